"""Every superstep is one part of ``values``, also one that changed nothing (the kind of fault of case C14)."""

from __future__ import annotations

from typing import Any, TypedDict

import pytest
from colours import Colour

from tracegraph.graph import START, StateGraph
from tracegraph.types import Command


class State(TypedDict, total=False):
    n: int
    hidden: int


class Shown(TypedDict, total=False):
    n: int


def count(state: State) -> dict[str, int]:
    return {"n": state["n"] + 1}


def chain(*middle: Any) -> Any:
    """Return count -> middle... -> count, whose output has only ``n``."""
    graph = StateGraph(State, output_schema=Shown)
    names = []
    for i, body in enumerate((count, *middle, count)):
        names.append(f"node{i}")
        graph.add_node(names[-1], body)
    for a, b in zip([START, *names], names, strict=False):
        graph.add_edge(a, b)
    return graph.compile()


SILENT = [
    pytest.param(lambda state: None, id="None"),
    pytest.param(lambda state: {}, id="empty dict"),
    pytest.param(lambda state: {"stray": 1}, id="unknown key"),
    pytest.param(lambda state: {"hidden": 1}, id="key outside the output"),
    pytest.param(lambda state: Command(), id="empty command"),
]


@pytest.mark.parametrize("silent", SILENT)
def test_values_and_updates_count_the_same_supersteps(colour: Colour, silent: Any) -> None:
    """Three nodes are three updates and, with the input, four values."""
    app = chain(silent)

    updates = colour.stream(app, {"n": 0}, stream_mode="updates")
    values = colour.stream(app, {"n": 0}, stream_mode="values")

    assert [next(iter(chunk)) for chunk in updates] == ["node0", "node1", "node2"]
    assert [chunk["n"] for chunk in values] == [0, 1, 1, 2]


@pytest.mark.parametrize("silent", SILENT)
def test_each_values_part_follows_the_updates_of_its_superstep(colour: Colour, silent: Any) -> None:
    """A consumer of both modes can tell the supersteps apart."""
    chunks = colour.stream(chain(silent, silent), {"n": 0}, stream_mode=["updates", "values"])

    assert [mode for mode, _ in chunks] == ["values"] + ["updates", "values"] * 4


@pytest.mark.parametrize("silent", SILENT)
def test_silent_last_step_does_not_change_the_result(colour: Colour, silent: Any) -> None:
    """The result of a run is its state, whatever its last node returned."""
    graph = StateGraph(State, output_schema=Shown)
    graph.add_node("count", count)
    graph.add_node("silent", silent)
    graph.add_edge(START, "count")
    graph.add_edge("count", "silent")

    assert colour.invoke(graph.compile(), {"n": 0}) == {"n": 1}
