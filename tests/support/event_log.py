"""Checks a sequence of lifecycle events: what begins ends, once, inside what it is part of."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Any

from tracegraph.events import (
    AttemptEnded,
    AttemptStarted,
    BranchEnded,
    BranchStarted,
    CheckpointSaved,
    CheckpointStarted,
    Event,
    ReportIgnored,
    RunEnded,
    RunStarted,
    SuperstepEnded,
    SuperstepStarted,
    TaskEnded,
    TaskStarted,
    every_kind,
)

NEVER_BEGAN = ("cached", "cancelled", "abandoned")
"""A task with one of these ends may not have started: it was handed back, or dropped from the queue."""


class Recorder:
    """An observer that keeps every event."""

    wants = every_kind()

    def __init__(self) -> None:
        self.events: list[Event] = []

    def observe(self, event: Event) -> None:
        """Keep the event."""
        self.events.append(event)


def assert_numbered(events: Iterable[Event]) -> None:
    """Assert that the sequence numbers are 1, 2, 3, ..."""
    numbers = [event.seq for event in events]
    assert numbers == list(range(1, len(numbers) + 1))


def assert_well_nested(events: Iterable[Event]) -> None:
    """Assert that intervals are opened and closed once, each inside its run, superstep, task and attempt."""
    nesting = _Nesting()
    for event in events:
        nesting.take(event)
    assert not nesting.open, f"never ended: {nesting.open}"


class _Nesting:
    """The intervals that are open, by key, each with the keys that enclose it."""

    def __init__(self) -> None:
        self.open: dict[Hashable, tuple[Hashable, ...]] = {}
        self._known: set[Hashable] = set()
        self._has_runs = False

    def take(self, event: Event) -> None:
        """Take the next event."""
        run: Any = ("run", event.run_id)
        step: Any = ("step", event.run_id, event.step)
        match event:
            case RunStarted(parent_task_id=None):
                self._has_runs = True
                self._begin(run)
            case RunStarted():
                self._begin(run, ("task", event.parent_run_id, event.parent_task_id))
            case RunEnded():
                self._end(run)
            case SuperstepStarted():
                self._begin(step, *self._in_run(run))
            case SuperstepEnded():
                self._end(step)
            case TaskStarted():
                self._begin(("task", event.run_id, event.task_id), step)
            case TaskEnded():
                self._end_task(event, step)
            case AttemptStarted():
                self._begin(("attempt", event.run_id, event.task_id, event.attempt), ("task", event.run_id, event.task_id))
            case AttemptEnded():
                self._end(("attempt", event.run_id, event.task_id, event.attempt))
            case BranchStarted():
                self._begin(("branch", event.run_id, event.task_id, event.position), ("task", event.run_id, event.task_id))
            case BranchEnded():
                self._end(("branch", event.run_id, event.task_id, event.position))
            case CheckpointStarted():
                self._begin(("save", event.run_id, event.checkpoint_id), *self._in_run(run))
            case CheckpointSaved():
                self._end(("save", event.run_id, event.checkpoint_id))
            case _:
                # What was left behind may report at any time, or never.
                is_inside = not self._has_runs or run in self.open or isinstance(event, ReportIgnored)
                assert is_inside, f"outside its run: {event}"

    def _in_run(self, run: Hashable) -> tuple[Hashable, ...]:
        return (run,) if self._has_runs else ()  # a bare engine is not told of runs: drivers announce them

    def _begin(self, key: Hashable, *inside: Hashable) -> None:
        assert key not in self._known, f"began twice: {key}"
        assert all(outer in self.open for outer in inside), f"{key} began outside {inside}"
        self._known.add(key)
        self.open[key] = inside

    def _end(self, key: Hashable) -> None:
        assert key in self.open, f"ended, but is not open: {key}"
        within = [other for other, inside in self.open.items() if key in inside]
        assert not within, f"{key} ended before {within}"
        del self.open[key]

    def _end_task(self, event: TaskEnded, step: Hashable) -> None:
        key = ("task", event.run_id, event.task_id)
        assert step in self.open, f"ended outside its superstep: {event}"
        if key not in self.open and event.status in NEVER_BEGAN:
            self._begin(key, step)
        self._end(key)
