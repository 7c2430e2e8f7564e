"""Streams of any graph: parts are counted, ordered and nested, and what they say of the state agrees."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, get_args

from colours import ASYNC, SYNC, Colour
from hypothesis import given
from hypothesis import strategies as st
from libraries import ours
from readings import quiet
from recipe_build import build
from recipe_strategies import recipes
from recipes import Recipe, text_of

from tracegraph.checkpoint.memory import InMemorySaver
from tracegraph.constants import MISSING
from tracegraph.engine.identity import path_text
from tracegraph.events import SuperstepStarted, TaskEnded
from tracegraph.types import StreamMode, StreamPart

MODES: tuple[str, ...] = get_args(StreamMode)
COLOURS = st.sampled_from([SYNC, ASYNC])


def parts_of(
    colour: Colour, recipe: Recipe, modes: Sequence[str], *, subgraphs: bool, is_saved: bool = False
) -> list[StreamPart]:
    """Return the parts of a run; an error of the run ends them."""
    app = build(recipe, ours(), colour.name, checkpointer=InMemorySaver() if is_saved else None)
    config: dict[str, Any] = {"recursion_limit": recipe.recursion_limit, "configurable": {"thread_id": "1"} if is_saved else {}}
    found: list[StreamPart] = []
    with quiet():
        try:
            colour.each(app, recipe.input(), found.append, config, stream_mode=modes, subgraphs=subgraphs, version="v2")
        except Exception as error:
            assert type(error).__name__ in ("InvalidUpdateError", "GraphRecursionError", "TypeError", "ValidationError"), error
    return found


@given(recipes(), COLOURS, st.lists(st.sampled_from(MODES), unique=True), st.booleans(), st.booleans())
def test_parts_are_numbered_and_in_the_order_of_their_events(
    recipe: Recipe, colour: Colour, modes: list[str], subgraphs: bool, is_saved: bool
) -> None:
    """Whatever is asked for: no number is missing, no part of an event comes before that of an earlier one."""
    found = parts_of(colour, recipe, modes, subgraphs=subgraphs, is_saved=is_saved)

    assert [part.meta.seq for part in found] == list(range(1, len(found) + 1))
    numbers = [part.meta.event_seq for part in found]
    assert numbers == sorted(numbers)
    assert {part["type"] for part in found} <= set(modes)
    if not subgraphs:
        assert {part["ns"] for part in found} <= {()}


@given(recipes(), COLOURS, st.sets(st.sampled_from(MODES)), st.booleans())
def test_tasks_start_before_they_end_and_hold_what_is_inside_them(
    recipe: Recipe, colour: Colour, modes: set[str], is_saved: bool
) -> None:
    """Every part of a graph inside lies between the start and the end of the task that runs it."""
    found = parts_of(colour, recipe, sorted({*modes, "tasks"}), subgraphs=True, is_saved=is_saved)

    starts: dict[str, int] = {}
    ends: dict[str, int] = {}
    for at, part in enumerate(found):
        if part["type"] == "tasks":
            where = starts if "input" in part["data"] else ends
            assert part["data"]["id"] not in where
            where[part["data"]["id"]] = at
    assert ends.keys() <= starts.keys()
    assert all(starts[task] < ended for task, ended in ends.items())
    for at, part in enumerate(found):
        for task in holders(part["ns"]):
            assert starts[task] < at < ends.get(task, len(found))


def holders(ns: Iterable[str]) -> list[str]:
    """Return the ids of the tasks around a namespace; a second call of one has a number for a segment."""
    return [segment.partition(":")[2] for segment in ns if ":" in segment]


@given(recipes(), COLOURS)
def test_updates_replayed_through_the_reducers_give_the_values(recipe: Recipe, colour: Colour) -> None:
    """After each superstep, in task order, which the event that a part is made of leads to."""
    found = parts_of(colour, recipe, ["updates", "values", "events"], subgraphs=False)

    channels = {f.name: build(recipe, ours()).channels[f.name].from_checkpoint(MISSING) for f in recipe.fields}
    events = {part.meta.event_seq: part["data"] for part in found if part["type"] == "events"}
    paths: dict[str, str] = {}
    updates: dict[int, list[tuple[str, Any]]] = {0: [("", recipe.input())]}
    for part in found:
        event = events.get(part.meta.event_seq)
        if part["type"] == "events" and isinstance(event, SuperstepStarted):
            paths.update((task.task_id, path_text(task.path)) for task in event.tasks)
        elif part["type"] == "updates":
            assert isinstance(event, TaskEnded)
            ((_, update),) = part["data"].items()
            updates.setdefault(part.meta.step, []).append((paths[event.task_id], update))
        elif part["type"] == "values":
            replay(channels, [update for _, update in sorted(updates[part.meta.step], key=lambda pair: pair[0])])
            assert text_of(as_dict(part["data"])) == text_of(read(channels))


def replay(channels: dict[str, Any], updates: Iterable[Any]) -> None:
    """Apply one superstep's updates; a channel nobody wrote to learns that there was a superstep."""
    writes: dict[str, list[Any]] = {}
    for update in updates:
        for each in update if isinstance(update, list) else [update or {}]:
            for name, value in each.items():
                writes.setdefault(name, []).append(value)
    for name, channel in channels.items():
        if name in writes or channel.is_available():
            channel.update(writes.get(name, []))


def as_dict(values: Any) -> dict[str, Any]:
    """Return values without the defaults of the schema they are an instance of."""
    return values if isinstance(values, dict) else {name: value for name, value in vars(values).items() if value is not None}


def read(channels: dict[str, Any]) -> dict[str, Any]:
    return {name: channel.get() for name, channel in channels.items() if channel.is_available()}
