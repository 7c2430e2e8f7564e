"""Pauses in child graphs that store nothing, or that store for good."""

from __future__ import annotations

import operator
from typing import Annotated, Any, TypedDict

from colours import Colour

from tracegraph.checkpoint.memory import InMemorySaver
from tracegraph.graph import START, StateGraph
from tracegraph.types import Command, interrupt

THREAD = {"configurable": {"thread_id": "t"}}


class State(TypedDict, total=False):
    log: Annotated[list[Any], operator.add]


def holding(child: Any) -> Any:
    """Return a graph with *child* as its only node, on a saver."""
    graph: StateGraph[Any, Any, Any, Any] = StateGraph(State)
    graph.add_node("child", child)
    graph.add_edge(START, "child")
    return graph.compile(checkpointer=InMemorySaver())


def asking(**options: Any) -> Any:
    """Return a child graph that asks one question."""
    graph: StateGraph[Any, Any, Any, Any] = StateGraph(State)
    graph.add_node("ask", lambda state: {"log": [interrupt("?")]})
    graph.add_edge(START, "ask")
    return graph.compile(**options)


def test_a_child_that_stores_nothing_can_be_answered(colour: Colour) -> None:
    """It starts anew when its task is resumed, and asks under the same id."""
    app = holding(asking(checkpointer=False))
    first = colour.invoke(app, {"log": []}, THREAD)
    again = colour.invoke(app, None, THREAD)

    assert [i.id for i in first["__interrupt__"]] == [i.id for i in again["__interrupt__"]]
    assert colour.invoke(app, Command(resume="yes"), THREAD)["log"] == ["yes"]


def test_the_state_of_a_child_with_a_memory_is_found(colour: Colour) -> None:
    """It lives on between calls, so it is filed under its name, without the ids of one call."""
    app = holding(asking(checkpointer=True))
    colour.invoke(app, {"log": []}, THREAD)

    (task,) = app.get_state(THREAD, subgraphs=True).tasks

    assert task.state.next == ("ask",)
