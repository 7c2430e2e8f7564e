"""The shape of what a stream yields: by version, form of the mode argument, and ``subgraphs`` (spec 8.2)."""

from __future__ import annotations

from typing import Any, TypedDict

import pytest
from colours import Colour

from tracegraph.graph import START, StateGraph
from tracegraph.types import interrupt


class State(TypedDict, total=False):
    n: int


def nested() -> Any:
    """Return a graph whose node ``outer`` is a graph with the node ``leaf``."""
    inner: StateGraph[Any, Any, Any, Any] = StateGraph(State)
    inner.add_node("leaf", lambda state: {"n": 1})
    inner.add_edge(START, "leaf")
    graph: StateGraph[Any, Any, Any, Any] = StateGraph(State)
    graph.add_node("outer", inner.compile())
    graph.add_edge(START, "outer")
    return graph.compile()


def without_ids(part: Any) -> Any:
    """Return a part whose namespaces name nodes only."""
    if isinstance(part, dict) and "ns" in part:
        return {**part, "ns": tuple(segment.partition(":")[0] for segment in part["ns"])}
    if isinstance(part, tuple) and isinstance(part[0], tuple):
        return (tuple(segment.partition(":")[0] for segment in part[0]), *part[1:])
    return part


LEAF, OUTER = {"leaf": {"n": 1}}, {"outer": {"n": 1}}


@pytest.mark.parametrize(
    ("mode", "subgraphs", "version", "parts"),
    [
        ("updates", False, "v1", [OUTER]),
        ("updates", True, "v1", [(("outer",), LEAF), ((), OUTER)]),
        (["updates"], False, "v1", [("updates", OUTER)]),
        (["updates"], True, "v1", [(("outer",), "updates", LEAF), ((), "updates", OUTER)]),
        ("updates", False, "v2", [{"type": "updates", "ns": (), "data": OUTER}]),
        (
            ["updates"],
            True,
            "v2",
            [{"type": "updates", "ns": ("outer",), "data": LEAF}, {"type": "updates", "ns": (), "data": OUTER}],
        ),
    ],
)
def test_a_part_says_what_was_not_fixed_by_the_call(
    colour: Colour, mode: Any, subgraphs: bool, version: str, parts: list[Any]
) -> None:
    """Its mode if several could be asked for, its namespace with subgraphs; version 2 always says both."""
    found = colour.stream(nested(), {"n": 0}, stream_mode=mode, subgraphs=subgraphs, version=version)

    assert [without_ids(part) for part in found] == parts


def test_a_tuple_of_modes_is_like_a_list(colour: Colour) -> None:
    """Each part says its mode."""
    found = colour.stream(nested(), {"n": 0}, stream_mode=("values", "updates"))

    assert found == [("values", {"n": 0}), ("updates", OUTER), ("values", {"n": 1})]


def test_no_modes_yield_no_parts(colour: Colour) -> None:
    """The graph runs all the same."""
    ran: list[int] = []
    graph: StateGraph[Any, Any, Any, Any] = StateGraph(State)
    graph.add_node("a", lambda state: ran.append(1))
    graph.add_edge(START, "a")

    assert colour.stream(graph.compile(), {"n": 0}, stream_mode=[]) == []
    assert ran == [1]


def test_segments_of_a_namespace_carry_task_ids(colour: Colour) -> None:
    """A namespace is a tuple with one segment per level."""
    ((ns, _),) = [part for part in colour.stream(nested(), {"n": 0}, stream_mode="updates", subgraphs=True) if part[0]]

    (segment,) = ns
    node, _, task_id = segment.partition(":")
    assert (node, len(task_id)) == ("outer", 36)


@pytest.mark.filterwarnings("ignore:.*cannot be resumed")
def test_values_of_version_2_keep_interrupts_apart(colour: Colour) -> None:
    """Version 1 puts them among the values; a bare value gives way to them."""
    graph: StateGraph[Any, Any, Any, Any] = StateGraph(State)
    graph.add_node("ask", lambda state: {"n": interrupt("?")})
    graph.add_edge(START, "ask")
    app = graph.compile()

    of_v2 = colour.stream(app, {"n": 0}, stream_mode="values", version="v2")
    of_v1 = colour.stream(app, {"n": 0}, stream_mode="values")
    bare = colour.stream(app, {"n": 0}, stream_mode="values", output_keys="n")

    assert [(part["data"], len(part["interrupts"])) for part in of_v2] == [({"n": 0}, 0), ({"n": 0}, 1)]
    assert (of_v1[-1]["n"], [question.value for question in of_v1[-1]["__interrupt__"]]) == (0, ["?"])
    assert bare[0] == 0
    assert bare[-1].keys() == {"__interrupt__"}
