"""Node error handlers: once per failure, also across a resume."""

from __future__ import annotations

import operator
import threading
from typing import Annotated, Any, TypedDict

import pytest
from colours import Colour

from tracegraph.checkpoint.memory import InMemorySaver
from tracegraph.errors import NodeError
from tracegraph.graph import START, StateGraph
from tracegraph.types import Command

THREAD = {"configurable": {"thread_id": "t"}}


class State(TypedDict, total=False):
    log: Annotated[list[str], operator.add]


def test_a_handler_takes_over_and_decides_where_to_go(colour: Colour) -> None:
    """It gets the failed node's input and error; the failed node's own edges are not followed."""

    def broken(state: State) -> State:
        raise ValueError("boom")

    def rescue(state: State, error: NodeError) -> Command[str]:
        return Command(update={"log": [f"{error.node}: {error.error}", *state["log"]]}, goto="after")

    graph: StateGraph[Any, Any, Any, Any] = StateGraph(State)
    graph.add_node("broken", broken, error_handler=rescue)
    graph.add_node("after", lambda state: {"log": ["after"]})
    graph.add_node("never", lambda state: {"log": ["never"]})
    graph.add_edge(START, "broken")
    graph.add_edge("broken", "never")

    assert colour.invoke(graph.compile(), {"log": ["in"]})["log"] == ["in", "broken: boom", "in", "after"]


def test_a_handler_that_fails_fails_the_run(colour: Colour) -> None:
    """There is no handler of a handler."""

    def broken(state: State) -> State:
        raise ValueError("boom")

    def worse(state: State) -> State:
        raise KeyError("worse")

    graph: StateGraph[Any, Any, Any, Any] = StateGraph(State)
    graph.add_node("broken", broken, error_handler=worse)
    graph.add_edge(START, "broken")

    with pytest.raises(KeyError, match="worse"):
        colour.invoke(graph.compile(), {"log": []})


def test_neither_the_failed_node_nor_its_handler_runs_again_on_resume(colour: Colour) -> None:
    """A sibling failed the step: on resume only that sibling has anything left to do."""
    ran: list[str] = []
    rescued = threading.Event()

    class Watched(InMemorySaver):
        """Says when the handler's result is stored."""

        def put_writes(self, config: Any, writes: Any, task_id: str, task_path: str = "") -> None:
            super().put_writes(config, writes, task_id, task_path)
            if ("log", ["rescued"]) in writes:
                rescued.set()

    is_broken = True

    def a(state: State) -> State:
        ran.append("a")
        raise ValueError("boom")

    def rescue(state: State) -> State:
        ran.append("rescue")
        return {"log": ["rescued"]}

    def b(state: State) -> State:
        assert rescued.wait(10)
        ran.append("b")
        if is_broken:
            raise RuntimeError("later")
        return {"log": ["b"]}

    graph: StateGraph[Any, Any, Any, Any] = StateGraph(State)
    graph.add_node("a", a, error_handler=rescue)
    graph.add_node("b", b)
    graph.add_edge(START, "a")
    graph.add_edge(START, "b")
    app = graph.compile(checkpointer=Watched())
    with pytest.raises(RuntimeError, match="later"):
        colour.invoke(app, {"log": []}, THREAD, durability="sync")
    is_broken = False
    ran.clear()

    done = colour.invoke(app, None, THREAD)

    assert ran == ["b"]
    assert done["log"] == ["rescued", "b"]
