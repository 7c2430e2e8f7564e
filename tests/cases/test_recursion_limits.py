"""A recursion limit that somebody set counts, whatever its value (the kind of fault of case C20)."""

from __future__ import annotations

from typing import Any, TypedDict

import pytest
from colours import Colour

from tracegraph.constants import DEFAULT_RECURSION_LIMIT
from tracegraph.errors import GraphRecursionError
from tracegraph.graph import END, START, StateGraph

SET = [DEFAULT_RECURSION_LIMIT - 1, DEFAULT_RECURSION_LIMIT, DEFAULT_RECURSION_LIMIT + 1, 21]


class State(TypedDict, total=False):
    n: int


def looping(turns: int) -> Any:
    """Return a graph that takes as many supersteps as *turns*."""
    graph = StateGraph(State)
    graph.add_node("turn", lambda state: {"n": state["n"] + 1})
    graph.add_edge(START, "turn")
    graph.add_conditional_edges("turn", lambda state: "turn" if state["n"] < turns else END)
    return graph.compile()


def calling(body: Any) -> Any:
    """Return a graph with one node."""
    graph = StateGraph(State)
    graph.add_node("call", body)
    graph.add_edge(START, "call")
    return graph.compile()


@pytest.mark.parametrize("limit", SET)
def test_limit_bound_to_the_inner_graph_beats_the_outer_runs(colour: Colour, limit: int) -> None:
    """Also when it equals the default."""
    inner = looping(20).with_config({"recursion_limit": limit})

    assert colour.invoke(calling(lambda state: inner.invoke({"n": 0})), {}, {"recursion_limit": 5}) == {"n": 20}


@pytest.mark.parametrize("limit", SET)
def test_limit_given_to_the_inner_call_beats_the_outer_runs(colour: Colour, limit: int) -> None:
    """The nearest one wins."""
    inner = looping(20)

    def body(state: State) -> Any:
        return inner.invoke({"n": 0}, {"recursion_limit": limit})

    assert colour.invoke(calling(body), {}, {"recursion_limit": 5}) == {"n": 20}


def test_limit_bound_to_a_subgraph_that_is_a_node_counts(colour: Colour) -> None:
    """A node's graph keeps its own limit too."""
    graph = StateGraph(State)
    graph.add_node("inner", looping(20).with_config({"recursion_limit": DEFAULT_RECURSION_LIMIT}))
    graph.add_edge(START, "inner")

    assert colour.invoke(graph.compile(), {"n": 0}, {"recursion_limit": 5}) == {"n": 20}


def test_inner_run_without_a_limit_has_the_outer_runs(colour: Colour) -> None:
    """Nothing was set inside, so what the caller set holds there too."""
    inner = looping(20)

    with pytest.raises(GraphRecursionError) as failure:
        colour.invoke(calling(lambda state: inner.invoke({"n": 0})), {}, {"recursion_limit": 5})

    assert failure.value.limit == 5


@pytest.mark.parametrize(("limit", "is_enough"), [(3, False), (4, True)])
def test_three_supersteps_need_a_limit_of_four(colour: Colour, limit: int, is_enough: bool) -> None:
    """That a run is over is found by one step more."""
    if is_enough:
        assert colour.invoke(looping(3), {"n": 0}, {"recursion_limit": limit}) == {"n": 3}
        return
    with pytest.raises(GraphRecursionError, match="TG205"):
        colour.invoke(looping(3), {"n": 0}, {"recursion_limit": limit})
