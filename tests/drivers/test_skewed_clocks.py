"""A thread's newest checkpoint is the one with the greatest id, also where a machine whose clock is ahead made some."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest
from colours import Colour
from nested import THREAD, Recorder, around, at, before, history, namespaces, state
from updates import update

from tracegraph.checkpoint.base.id import uuid6
from tracegraph.checkpoint.memory import InMemorySaver
from tracegraph.types import Command

YEARS_AHEAD = 30 * 365 * 86_400 * 10_000_000


def later(checkpoint_id: str) -> str:
    """Return the id that a machine would have made whose clock is years ahead."""
    value = UUID(checkpoint_id).int
    ticks = ((value >> 80) << 12 | (value >> 64) & 0xFFF) + YEARS_AHEAD
    return str(UUID(int=(ticks >> 12) << 80 | 0x6 << 76 | (ticks & 0xFFF) << 64 | value & (1 << 64) - 1))


def ahead(saver: InMemorySaver, ns: str = "") -> str:
    """Put a copy of a namespace's newest checkpoint, made in the future, behind it; return its id."""
    head = saver.get_tuple(at(ns))
    assert head is not None
    made = {**head.checkpoint, "id": later(head.checkpoint["id"])}
    saver.put(head.config, made, head.metadata, made["channel_versions"])  # type: ignore[arg-type]  # a Checkpoint with another id
    return str(made["id"])


def replay(colour: Colour, app: Any, old: Any) -> None:
    """Do the rest again."""
    colour.invoke(app, None, old)


def replay_with_input(colour: Colour, app: Any, old: Any) -> None:
    """Begin anew from there."""
    colour.invoke(app, {"log": ["new"]}, old)


def replay_with_goto(colour: Colour, app: Any, old: Any) -> None:
    """Go on somewhere else from there."""
    colour.invoke(app, Command(goto="c"), old)


def change(colour: Colour, app: Any, old: Any) -> None:
    """Update it."""
    update(colour, app, {"log": ["changed"]}, "b", config=old)


def copy(colour: Colour, app: Any, old: Any) -> None:
    """Copy it."""
    update(colour, app, None, "__copy__", config=old)


@pytest.mark.parametrize("branch", [replay, replay_with_input, replay_with_goto, change, copy])
@pytest.mark.parametrize("durability", ["sync", "exit"])
def test_a_branch_of_an_old_checkpoint_becomes_the_newest(colour: Colour, branch: Any, durability: str) -> None:
    """Its ids sort after the head's, which is in the future, and the run after it goes on from the branch."""
    made, saver = Recorder(), InMemorySaver()
    app = around(saver, a=made.says("a"), b=made.says("b"), c=made.says("c"))
    colour.invoke(app, {"log": []}, THREAD, durability="sync")
    future = ahead(saver)
    assert state(colour, app).config["configurable"]["checkpoint_id"] == future

    branch(colour, _Durable(app, durability), before(colour, app, "b"))

    head = state(colour, app)
    assert head.config["configurable"]["checkpoint_id"] > future
    assert head.metadata["source"] in ("loop", "update", "fork")
    assert colour.invoke(app, {"log": ["more"]}, THREAD)["log"][-4:] == ["more", "a", "b", "c"]
    assert max(history(colour, app), key=lambda found: found.metadata["step"]).values["log"][-1] == "c"


class _Durable:
    """An app whose runs are saved in one way."""

    def __init__(self, app: Any, durability: str) -> None:
        self._app, self._durability = app, durability

    def invoke(self, given: Any, config: Any) -> Any:
        return self._app.invoke(given, config, durability=self._durability)

    async def ainvoke(self, given: Any, config: Any) -> Any:
        return await self._app.ainvoke(given, config, durability=self._durability)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._app, name)


def test_a_branch_inside_a_subgraph_becomes_the_newest(colour: Colour) -> None:
    """Both the root's head and the subgraph's are in the future; what is done inside sorts after both."""
    made, saver = Recorder(), InMemorySaver()
    app = around(saver, sub=made.chain(("a", "b", "ask?")), z=made.says("z"))
    colour.invoke(app, {"log": []}, THREAD)
    ns = namespaces(state(colour, app, subgraphs=True))["sub"]
    chosen = before(colour, app, "b", ns)
    colour.invoke(app, Command(resume="one"), THREAD)
    future = max(ahead(saver), ahead(saver, ns))

    colour.invoke(app, None, chosen)

    head = state(colour, app, subgraphs=True)
    assert head.next == ("sub",)
    assert min(i["configurable"]["checkpoint_id"] for i in (head.config, head.tasks[0].state.config)) > future
    assert colour.invoke(app, Command(resume="two"), THREAD)["log"] == ["a", "b", "two", "z"]


def test_an_update_inside_becomes_the_subgraphs_newest(colour: Colour) -> None:
    """And it is what the thread goes on from."""
    made, saver = Recorder(), InMemorySaver()
    app = around(saver, sub=made.chain(("a", "b", "ask?")))
    colour.invoke(app, {"log": []}, THREAD)
    ns = namespaces(state(colour, app, subgraphs=True))["sub"]
    old = before(colour, app, "b", ns)
    ahead(saver, ns)
    made.take()

    update(colour, app, {"log": ["changed"]}, "a", config=old)
    colour.invoke(app, None, THREAD)

    assert made.take() == ["b", "ask"]


def test_a_memory_is_as_old_as_the_state_around_it(colour: Colour) -> None:
    """Of a graph that lives on between calls, what is older than the replay point is told by id, so all ids share one order."""
    made, saver = Recorder(), InMemorySaver()
    app = around(saver, x=made.says("x"), sub=made.chain(("a",), checkpointer=True))
    colour.invoke(app, {"log": ["1"]}, THREAD)
    ahead(saver)
    colour.invoke(app, {"log": ["2"]}, THREAD)
    colour.invoke(app, {"log": ["3"]}, THREAD)
    remembered = state(colour, app, at("sub")).values["log"]

    third = next(found for found in history(colour, app) if found.next == ("x",))
    colour.invoke(app, None, third.config)

    assert state(colour, app, at("sub")).values["log"] == remembered


def test_a_new_id_sorts_after_one_of_another_kind() -> None:
    """A saver of another make may use ids that say no time."""
    assert uuid6(after="not a uuid").version == 6
