"""Both drivers publish the same kind of log for the same recipe: numbered, nested, and about the same tasks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any
from uuid import UUID

import pytest
from bare import BareRun, Stopped
from colours import ASYNC, SYNC, Colour
from event_log import assert_numbered, assert_well_nested
from hypothesis import assume, given
from hypothesis import strategies as st
from libraries import ours
from readings import quiet
from recipe_build import build
from recipe_strategies import recipes
from recipes import Recipe, text_of
from recording import recording

from tracegraph.checkpoint.memory import InMemorySaver
from tracegraph.constants import PUSH
from tracegraph.engine import identity
from tracegraph.events import Event, RunEnded, RunStarted, SuperstepStarted, TaskEnded, TaskPlanned, TaskStarted

RUN_ID = UUID("018f0000-0000-7000-8000-00000000000a")


def events_of(colour: Colour, recipe: Recipe, config: dict[str, Any], *, checkpointer: Any = None) -> list[Event]:
    """Run the recipe and return what was published; an error of the run is part of its log."""
    app = build(recipe, ours(), colour.name, checkpointer=checkpointer)
    with quiet(), recording() as recorder:
        try:
            colour.invoke(app, recipe.input(), {"recursion_limit": recipe.recursion_limit, **config})
        except Exception as error:
            (ended,) = [e for e in recorder.events if isinstance(e, RunEnded) and e.ns == ""]
            assert ended.error is error
    return recorder.events


@given(recipes(), st.sampled_from([SYNC, ASYNC]), st.booleans(), st.none() | st.integers(1, 2))
def test_log_is_numbered_and_well_nested(recipe: Recipe, colour: Colour, is_saved: bool, max_concurrency: int | None) -> None:
    """Whatever starts ends, once, inside what it is part of, child runs included; no sequence number is missing."""
    config: dict[str, Any] = {"configurable": {"thread_id": "1"}} if is_saved else {}

    events = events_of(
        colour, recipe, {**config, "max_concurrency": max_concurrency}, checkpointer=InMemorySaver() if is_saved else None
    )

    assert_numbered(events)
    assert_well_nested(events)
    assert isinstance(events[0], RunStarted)
    assert isinstance(events[-1], RunEnded)


def finished(events: Iterable[Event]) -> Counter[tuple[str, int, str, str]]:
    """Return namespace, step, id and name of each task that completed."""
    return Counter((e.ns, e.step, e.task_id, e.name) for e in events if isinstance(e, TaskEnded) and e.status == "completed")


@given(recipes())
def test_tasks_have_the_same_ids_on_both_drivers(recipe: Recipe) -> None:
    """Given the id that ids are hashed from; a child run of a node is a run with an id of its own."""
    sync_log, async_log = (events_of(colour, recipe, {"run_id": RUN_ID}) for colour in (SYNC, ASYNC))

    has_failed = any(isinstance(e, RunEnded) and e.error is not None for e in sync_log)
    if not has_failed:  # how far siblings of a failed task get is a race
        assert root_tasks(sync_log) == root_tasks(async_log)


def root_tasks(events: Iterable[Event]) -> Counter[tuple[str, int, str, str]]:
    return Counter({key: n for key, n in finished(events).items() if key[0] == ""})


@given(recipes(), st.sampled_from([SYNC, ASYNC]))
def test_ids_of_a_checkpointed_run_follow_from_its_checkpoints(recipe: Recipe, colour: Colour) -> None:
    """Anyone can recompute them from what a superstep says of itself; subgraphs too, for they are saved beside it."""
    events = events_of(colour, recipe, {"configurable": {"thread_id": "1"}}, checkpointer=InMemorySaver())

    for step in events:
        if isinstance(step, SuperstepStarted):
            assert step.checkpoint_id is not None
            checkpoint = UUID(step.checkpoint_id).bytes
            for task in step.tasks:
                assert task.task_id == identity.task_id(checkpoint, step.ns, step.step, task.name, tail_of(task))


def tail_of(task: TaskPlanned) -> bytes:
    """Return what a task's id ends with: a Send is known by its index, a node by its triggers."""
    if task.path[0] == PUSH:
        return identity.send_suffix(task.name, task.path[1])
    return identity.pull_suffix(task.name, task.triggers)


@given(recipes(is_resumable=True), st.data(), st.sampled_from([SYNC, ASYNC]))
def test_either_driver_finishes_what_was_stopped(recipe: Recipe, data: st.DataObject, colour: Colour) -> None:
    """A run that died after any report goes on from what its saver holds, and runs nothing that is stored there."""
    whole = BareRun(build(recipe, ours()), saver=InMemorySaver(), config={"thread_id": "1"})
    with quiet():
        expected = whole.run(recipe.input())
    assume(expected.error is None)
    saver = InMemorySaver()
    stop_after = data.draw(st.integers(1, whole.report_count - 1))
    dead = BareRun(build(recipe, ours()), saver=saver, config={"thread_id": "1"}, stop_after=stop_after)
    with quiet(), pytest.raises(Stopped):
        dead.run(recipe.input())

    app = build(recipe, ours(), colour.name, checkpointer=saver)
    with quiet(), recording() as recorder:
        found = colour.invoke(app, None, {"configurable": {"thread_id": "1"}})

    assert text_of(found) == text_of(expected.output)
    ran = {e.task_id for e in recorder.events if isinstance(e, TaskStarted)}
    assert not ran & dead.saved_ids
