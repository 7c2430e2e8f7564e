"""A join that can never fire is reported at the end of the run (the kind of fault of case C24)."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, TypedDict

import colours
import pytest
from colours import Colour

from tracegraph.checkpoint.memory import InMemorySaver
from tracegraph.config import RunnableConfig
from tracegraph.errors import TracegraphWarning
from tracegraph.graph import END, START, StateGraph

THREAD: RunnableConfig = {"configurable": {"thread_id": "1"}}


class State(TypedDict, total=False):
    route: list[str]
    turn: int


def joining(path: Callable[[State], Any], ran: list[str], *, is_deferred: bool = False, checkpointer: Any = None) -> Any:
    """Return a graph in which *path* picks among left and right, and goal waits for both."""

    def node(name: str) -> Callable[[State], dict[str, Any]]:
        def body(state: State) -> dict[str, Any]:
            ran.append(name)
            return {}

        return body

    graph = StateGraph(State)
    for name in ("left", "right"):
        graph.add_node(name, node(name))
    graph.add_node("goal", node("goal"), defer=is_deferred)
    graph.add_node("after goal", node("after goal"))
    graph.add_conditional_edges(START, path, ["left", "right", END])
    graph.add_edge(["left", "right"], "goal")
    graph.add_edge("goal", "after goal")
    return graph.compile(checkpointer=checkpointer)


@pytest.mark.parametrize("is_deferred", [False, True])
@pytest.mark.parametrize(("chosen", "missing"), [("left", "right"), ("right", "left")])
def test_join_whose_source_was_not_chosen_is_reported(colour: Colour, chosen: str, missing: str, is_deferred: bool) -> None:
    """The warning names the node that never ran and the source it still waits for."""
    ran: list[str] = []
    app = joining(lambda state: chosen, ran, is_deferred=is_deferred, checkpointer=InMemorySaver())

    with pytest.warns(TracegraphWarning, match=f"(?s)goal.*{missing}") as found:
        colour.invoke(app, {"turn": 1}, THREAD)

    assert (ran, len(found)) == ([chosen], 1)
    assert found[0].filename == colours.__file__  # where the graph was called
    assert app.get_state(THREAD).next == ()


@pytest.mark.parametrize("route", [["left", "right"], END], ids=["both", "neither"])
def test_join_that_fired_or_that_nobody_reached_is_no_news(colour: Colour, route: Any) -> None:
    """Nothing was lost, so nothing is said."""
    ran: list[str] = []

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        colour.invoke(joining(lambda state: route, ran), {"turn": 1})

    assert sorted(ran) == ([] if route == END else ["after goal", "goal", "left", "right"])


def test_join_in_a_subgraph_is_reported_too(colour: Colour) -> None:
    """The inner run is a run with an end of its own."""
    ran: list[str] = []
    graph = StateGraph(State)
    graph.add_node("inner", joining(lambda state: "left", ran))
    graph.add_edge(START, "inner")

    with pytest.warns(TracegraphWarning, match="goal"):
        colour.invoke(graph.compile(), {"turn": 1})

    assert ran == ["left"]


def test_join_fires_when_its_sources_finish_in_different_supersteps(colour: Colour) -> None:
    """What has arrived is kept until the rest has."""
    order: list[str] = []

    def node(name: str) -> Callable[[State], dict[str, Any]]:
        def body(state: State) -> dict[str, Any]:
            order.append(name)
            return {}

        return body

    graph = StateGraph(State)
    for name in ("early", "first", "late", "goal"):
        graph.add_node(name, node(name))
    graph.add_edge(START, "early")
    graph.add_edge(START, "first")
    graph.add_edge("first", "late")
    graph.add_edge(["early", "late"], "goal")

    colour.invoke(graph.compile(), {"turn": 1})

    assert (sorted(order[:2]), order[2:]) == (["early", "first"], ["late", "goal"])
