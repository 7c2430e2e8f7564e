"""A DeltaChannel holds what a plain reducer channel would, whatever is done to its thread (spec 05, P11)."""

from __future__ import annotations

import operator
import random
from typing import Annotated, Any, TypedDict

import pytest
from colours import Colour
from nested import THREAD, history, state
from updates import update

from tracegraph.channels.delta import DeltaChannel
from tracegraph.checkpoint.memory import InMemorySaver
from tracegraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from tracegraph.graph import START, StateGraph
from tracegraph.types import Command, interrupt


def extended(current: list[Any], batch: list[list[Any]]) -> list[Any]:
    """Add all writes of a superstep."""
    return [*current, *(word for words in batch for word in words)]


class Plain(TypedDict, total=False):
    log: Annotated[list[Any], operator.add]


class Delta(TypedDict, total=False):
    log: Annotated[list[Any], DeltaChannel(extended, snapshot_frequency=2)]


def graph_of(schema: Any) -> Any:
    """Return a saved graph of three nodes, the last of which asks."""
    graph: StateGraph[Any, Any, Any, Any] = StateGraph(schema)
    graph.add_sequence(
        [
            ("a", lambda state: {"log": ["a"]}),
            ("b", lambda state: {"log": ["b"]}),
            ("ask", lambda state: {"log": [interrupt("?")]}),
        ]
    )
    graph.add_edge(START, "a")
    return graph.compile(checkpointer=InMemorySaver(serde=JsonPlusSerializer()))


def something(colour: Colour, app: Any, choice: int, where: float) -> Any:
    """Do one of the things that can be done to a thread, and return what came of it."""
    past = history(colour, app)
    at = past[int(where * len(past))].config if past else THREAD
    durability: Any = ("sync", "exit")[choice % 2]
    match choice % 8:
        case 0 | 1:
            return colour.invoke(app, {"log": [choice]}, THREAD, durability=durability)["log"]
        case 2 | 3:
            return past and colour.invoke(app, Command(resume=choice), THREAD, durability=durability)["log"]
        case 4:
            return past and colour.invoke(app, None, at)["log"]
        case 5:
            return past and colour.invoke(app, {"log": [choice]}, at, durability=durability)["log"]
        case 6:
            return past and update(colour, app, {"log": [choice]}, "a", config=at) and state(colour, app).values["log"]
        case _:
            return past and update(colour, app, None, "__copy__", config=at) and state(colour, app).values.get("log")


@pytest.mark.parametrize("seed", range(12))
def test_a_delta_channel_holds_what_a_plain_one_does(colour: Colour, seed: int) -> None:
    """After any mix of runs, answers, replays, updates and copies, under any durability, history included."""
    chance = random.Random(seed)  # noqa: S311  # a choice of tests
    plain, delta = graph_of(Plain), graph_of(Delta)
    for _ in range(14):
        choice, where = chance.randrange(64), chance.random()
        assert something(colour, delta, choice, where) == something(colour, plain, choice, where)

    assert [found.values.get("log") for found in history(colour, delta)] == [
        found.values.get("log") for found in history(colour, plain)
    ]
