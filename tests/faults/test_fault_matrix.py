"""Every fault at every kind of place, in every colour, with every saver: what the caller sees, what is told, what is left.

A cell of the matrix runs a graph into its fault, looks at everything, takes the fault away and resumes.
"""

from __future__ import annotations

import asyncio
import re
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from itertools import product
from pathlib import Path
from typing import Any, get_args

import pytest
from event_log import Recorder, assert_numbered, assert_well_nested
from fault_scene import FAULTY, KEPT, LOGS, Colour, Scene, Shape
from faults import FAULTS, GIVEN, NO_SENSE, Fault
from left_behind import Surroundings, recorded
from spans import Trace

from tracegraph.checkpoint.memory import InMemorySaver
from tracegraph.checkpoint.sqlite import SqliteSaver
from tracegraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from tracegraph.events import CheckpointSaved, CheckpointStarted, Event, RunEnded, TaskEnded
from tracegraph.telemetry import semconv

SAVERS = ("no saver", "memory", "sqlite", "sqlite at exit")
CELLS = list(product(get_args(Colour), get_args(Shape), FAULTS, SAVERS))
NOTE = re.compile(r"while running node '(\w+)' \(step (\d+), task ([0-9a-f-]+), attempt 1(, thread 't')?\)")
NODES: dict[Shape, list[str]] = {
    "single": ["work"],
    "parallel": ["work"],
    "subgraph": ["inside", "work"],
    "send": ["work"],
    "call": ["called", "work"],
}
"""What is around the fault, innermost first."""


class Stage:
    """One cell: its graph, its saver, and how it is run."""

    def __init__(self, colour: Colour, shape: Shape, fault: Fault, saver: str, path: Path) -> None:
        self.fault = fault
        self.scene = Scene(shape, colour, fault.strike, fault.astrike)
        self._saver = saver
        self._memory = InMemorySaver()
        self._path = path
        self.is_saved = saver != "no saver"
        if saver == "sqlite at exit":
            self.scene.durability = "exit"

    def config(self, *callbacks: Any) -> Any:
        """Return the config of a run."""
        return {"callbacks": list(callbacks), **({"configurable": {"thread_id": "t"}} if self.is_saved else {})}

    @contextmanager
    def app(self) -> Iterator[Any]:
        """Yield the graph for a thread's code."""
        if self._saver.startswith("sqlite"):
            with SqliteSaver.from_conn_string(self._path) as saver:
                yield self.scene.compile(saver)
        else:
            yield self.scene.compile(self._memory if self.is_saved else None)

    @asynccontextmanager
    async def aapp(self) -> AsyncIterator[Any]:
        """Yield the graph for an event loop's code."""
        if self._saver.startswith("sqlite"):
            async with AsyncSqliteSaver.from_conn_string(self._path) as saver:
                yield self.scene.compile(saver)
        else:
            yield self.scene.compile(self._memory if self.is_saved else None)

    # --- into the fault ------------------------------------------------------------------------------------

    def fall(self, surroundings: Surroundings) -> BaseException | None:
        """Run into the fault and return what comes out."""
        if self.scene.colour != "sync":
            return self._fall_on_loop()
        with self.app() as app:
            found = self.fault.fall(self.scene, app, self.config(self.scene))
            if found is None:  # who leaves without a word does not wait for what is being saved
                surroundings.assert_threads_ended(self.scene.stuck)
            return found

    def _fall_on_loop(self) -> BaseException | None:
        async def main() -> BaseException | None:
            async with self.aapp() as app:
                try:
                    return await self.fault.afall(self.scene, app, self.config(self.scene))
                finally:
                    assert asyncio.all_tasks() == {asyncio.current_task()}

        try:
            return asyncio.run(main())
        except KeyboardInterrupt as error:
            assert self.fault.is_raised_by_loop
            return error

    # --- afterwards ----------------------------------------------------------------------------------------

    def state(self) -> tuple[Any, Any]:
        """Return the thread's snapshot, and its head as it is stored."""
        if self.scene.colour == "sync":
            with self.app() as app:
                return app.get_state(self.config()), app.checkpointer.get_tuple(self.config())

        async def read() -> tuple[Any, Any]:
            async with self.aapp() as app:
                return await app.aget_state(self.config()), await app.checkpointer.aget_tuple(self.config())

        return asyncio.run(read())

    def resume(self) -> Any:
        """Take the fault away and run to the end."""
        self.scene.is_broken = False
        given = None if self.is_saved else GIVEN
        if self.scene.colour == "sync":
            with self.app() as app:
                return app.invoke(given, self.config())

        async def run() -> Any:
            async with self.aapp() as app:
                return await app.ainvoke(given, self.config())

        return asyncio.run(run())


@pytest.mark.parametrize(
    ("colour", "shape", "fault", "saver"),
    [pytest.param(*cell, id=" - ".join(cell)) for cell in CELLS if (cell[0], cell[2]) not in NO_SENSE],
)
def test_fault(
    colour: Colour,
    shape: Shape,
    fault: str,
    saver: str,
    surroundings: Surroundings,
    trace: Trace,
    caplog: pytest.LogCaptureFixture,
    tmp_path: Path,
) -> None:
    """The caller learns of it, all that began has ended, nothing is left, and the thread can be resumed."""
    stage = Stage(colour, shape, FAULTS[fault], saver, tmp_path / "threads.db")
    with recorded(surroundings) as log:
        raised = stage.fall(surroundings)
        assert_told(stage, log, trace, raised)
    del raised
    if stage.is_saved:
        assert_stored(stage, *stage.state())
    assert bool(stage.scene.stuck) == (stage.fault.is_stuck and stage.scene.struck_in not in (None, threading.main_thread()))
    surroundings.assert_threads_ended(stage.scene.stuck)
    trace.ended.clear()
    with recorded(surroundings) as log:
        assert stage.resume() == {"log": LOGS[shape]}
        assert_whole(log, trace)
    if stage.is_saved:
        assert stage.scene.ran == stage.scene.expected_runs

    told = len(log.events)
    stage.scene.may_go_on.set()
    surroundings.assert_threads_ended()
    assert len(log.events) == told
    del stage, log
    surroundings.assert_nothing_left()
    assert [record.getMessage() for record in caplog.records] == []


def test_what_is_left_out_makes_no_sense() -> None:
    """Every cell is tried, but for those that cannot be: each with its reason."""
    assert {(colour, fault) for colour, _, fault, _ in CELLS} >= NO_SENSE.keys()
    assert all(NO_SENSE.values())


def assert_told(stage: Stage, log: Recorder, trace: Trace, raised: BaseException | None) -> None:
    """Assert that caller, observers and traces are told the same, and all of it."""
    fault, shape = stage.fault, stage.scene.shape
    assert type(raised) is (type(None) if fault.raised is None else fault.raised)
    assert_whole(log, trace)
    (last,) = [event for event in log.events if isinstance(event, RunEnded) and event.ns == ""]
    assert last.status == fault.status
    assert str(last.reason) in fault.reasons
    (root,) = [span for span in trace.ended if span.parent is None]
    assert (root.attributes or {})[semconv.RUN_STATUS] == fault.status
    assert (root.attributes or {}).get(semconv.RUN_REASON) == last.reason
    is_failed = fault.status == "failed"
    faulty = faulty_tasks(log, shape)
    assert [(event.name, event.status) for event in faulty] == [(name, fault.status) for name in NODES[shape]]
    assert last.error in (raised, None)
    if is_failed:
        assert last.error is raised
        assert sorted(trace.errors) == sorted(
            ["invoke_workflow", *(f"run_step {name}" for name in NODES[shape]), *["invoke_workflow"] * (shape == "subgraph")]
        )
        found = [NOTE.fullmatch(note) for note in getattr(raised, "__notes__", ())]
        assert [(note[1], note[2], note[3]) for note in found if note] == [
            (event.name, str(event.step), event.task_id) for event in faulty
        ]
        assert all(note and bool(note[4]) is stage.is_saved for note in found)
    else:
        assert trace.errors == []
        assert not getattr(raised, "__notes__", ())


def faulty_tasks(log: Recorder, shape: Shape) -> list[TaskEnded]:
    """Return the ends of the tasks around the fault."""
    ends = [event for event in log.events if isinstance(event, TaskEnded) and event.status != "completed"]
    assert {event.name for event in ends} <= set(NODES[shape])
    return ends


def assert_whole(log: Recorder, trace: Trace) -> None:
    """Assert that what began has ended, once, inside what it is part of, in one trace."""
    assert_numbered(log.events)
    assert_well_nested(without_late_saves(log.events))
    assert trace.is_complete(), (trace.open, trace.ended_twice)
    assert len(trace.trace_ids) == len(trace.roots) == 1
    by_id = {span.context.span_id: span for span in trace.ended if span.context is not None}
    for span in trace.ended:
        if span.parent is not None:
            outer = by_id[span.parent.span_id]
            assert (outer.start_time or 0) <= (span.start_time or 0)
            assert (span.end_time or 0) <= (outer.end_time or 0), (span.name, outer.name)


def without_late_saves(events: list[Event]) -> list[Event]:
    """Return the events without saves that a run which ends at once does not see the end of: they are made all the same."""
    end = {event.run_id: event.seq for event in events if isinstance(event, RunEnded)}
    root = next(event for event in events if isinstance(event, RunEnded) and event.ns == "")
    late = [event for event in events if event.seq > end[event.run_id] and isinstance(event, CheckpointSaved)]
    assert not [event for event in events if event.seq > root.seq and event not in late]
    assert not [event for event in late if event.error is not None]
    ids = {event.checkpoint_id for event in late}
    return [e for e in events if not (isinstance(e, CheckpointStarted | CheckpointSaved) and e.checkpoint_id in ids)]


def assert_stored(stage: Stage, snapshot: Any, head: Any) -> None:
    """Assert that the thread is where the superstep began, and that what finished in it is kept."""
    shape = stage.scene.shape
    beside = [word for word in KEPT[shape] if word not in ("before", "prepare", "first")]
    assert head.checkpoint["channel_values"]["log"] == ["before"]
    assert snapshot.values == {"log": ["before", *beside]}
    assert snapshot.next == ("work",)
    assert sorted(task.result["log"][0] for task in snapshot.tasks if task.result) == beside
    (open_task,) = [task for task in snapshot.tasks if not task.result]
    assert bool(open_task.error) is (stage.fault.status == "failed")
    assert {word: stage.scene.ran[word] for word in (*KEPT[shape], FAULTY[shape])} == dict.fromkeys(
        (*KEPT[shape], FAULTY[shape]), 1
    )
