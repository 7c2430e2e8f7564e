"""Pauses in child graphs that store nothing, or that store for good."""

from __future__ import annotations

import operator
from typing import Annotated, Any, TypedDict

import pytest
from colours import Colour
from nested import Recorder, at, calling

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


@pytest.mark.parametrize("is_called", [False, True], ids=["as a node", "by node code"])
def test_a_child_with_a_memory_takes_new_input_behind_a_breakpoint(colour: Colour, is_called: bool) -> None:
    """The run is resumed, but this call of the child is its first: what it did in an earlier run is not its result (M16)."""
    made = Recorder()
    child = made.chain(("a",), checkpointer=True)
    builder: StateGraph[Any, Any, Any, Any] = StateGraph(State)
    builder.add_node("child", calling(colour, child) if is_called else child)
    builder.add_edge(START, "child")
    paused = builder.compile(checkpointer=InMemorySaver(), interrupt_before=["child"])
    straight = builder.compile(checkpointer=InMemorySaver())

    for word in "12":
        colour.invoke(paused, {"log": [word]}, THREAD)
        colour.invoke(paused, None, THREAD)
        colour.invoke(straight, {"log": [word]}, THREAD)

    assert made.take() == ["a"] * 4
    assert paused.get_state(THREAD).values == straight.get_state(THREAD).values
    assert paused.get_state(at("child")).values == straight.get_state(at("child")).values


def test_a_child_with_a_memory_goes_on_where_it_paused_or_failed(colour: Colour) -> None:
    """Resumed within one call, it takes no input again: neither after its own breakpoint, nor after an error."""
    made, failures = Recorder(), [True]

    def shaky(state: Any) -> Any:
        made.ran.append("shaky")
        if failures.pop() if failures else False:
            raise OSError("disk")
        return {"log": ["shaky"]}

    inner: StateGraph[Any, Any, Any, Any] = StateGraph(State)
    inner.add_sequence([("a", made.says("a")), ("b", made.says("b")), ("shaky", shaky)])
    inner.add_edge(START, "a")
    app = holding(inner.compile(checkpointer=True, interrupt_before=["b"]))
    colour.invoke(app, {"log": ["in"]}, THREAD)
    assert made.take() == ["a"]

    with pytest.raises(OSError, match="disk"):
        colour.invoke(app, None, THREAD)
    assert made.take() == ["b", "shaky"]

    assert colour.invoke(app, None, THREAD)["log"].count("in") == 2  # the reducer adds the child's whole log
    assert made.take() == ["shaky"]
    assert app.get_state(at("child")).values["log"] == ["in", "a", "b", "shaky"]


def test_a_child_with_a_memory_that_a_loop_calls_again_after_a_pause(colour: Colour) -> None:
    """The call that paused goes on; the next one, in the same run, takes its input."""
    made = Recorder()
    graph: StateGraph[Any, Any, Any, Any] = StateGraph(State)
    graph.add_node("child", calling(colour, made.chain(("a", "ask?"), checkpointer=True)))
    graph.add_edge(START, "child")
    graph.add_conditional_edges("child", lambda state: "child" if len(state["log"]) < 5 else "__end__")
    app = graph.compile(checkpointer=InMemorySaver())
    colour.invoke(app, {"log": []}, THREAD)
    colour.invoke(app, Command(resume=1), THREAD)

    done = colour.invoke(app, Command(resume=2), THREAD)

    assert made.take() == ["a", "ask", "ask", "a", "ask", "ask"]
    assert done["log"] == ["a", 1, "a", 1, "a", 2]
