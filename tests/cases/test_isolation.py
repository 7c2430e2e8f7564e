"""A node that changes what it was given, in place, changes nothing for anybody else (the kind of fault of case C06)."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import Any, TypedDict

import pytest
from colours import Colour

from tracegraph.checkpoint.memory import InMemorySaver
from tracegraph.config import RunnableConfig
from tracegraph.graph import END, START, StateGraph
from tracegraph.types import Send

THREAD: RunnableConfig = {"configurable": {"thread_id": "1"}}


class State(TypedDict, total=False):
    items: Any
    other: Any


def spoil_list(items: list[str]) -> None:
    items.append("spoilt")


def spoil_dict(items: dict[str, int]) -> None:
    items["spoilt"] = 1


def spoil_set(items: set[str]) -> None:
    items.add("spoilt")


CONTAINERS = [
    pytest.param(lambda: ["good"], spoil_list, id="list"),
    pytest.param(lambda: {"good": 1}, spoil_dict, id="dict"),
    pytest.param(lambda: {"good"}, spoil_set, id="set"),
    pytest.param(lambda: deque(["good"]), spoil_list, id="deque"),
]


@pytest.mark.parametrize(("make", "spoil"), CONTAINERS)
def test_change_in_place_reaches_nobody(colour: Colour, make: Callable[[], Any], spoil: Callable[[Any], None]) -> None:
    """Sibling, path function, next node, caller, result and saved state see what was given."""
    is_spoilt = threading.Event()
    seen: dict[str, Any] = {}

    def spoiler(state: State) -> dict[str, Any]:
        spoil(state["items"])
        is_spoilt.set()
        return {}

    def sibling(state: State) -> dict[str, Any]:
        assert is_spoilt.wait(10)
        seen["sibling"] = state["items"]
        return {}

    def path(state: State) -> str:
        seen["path"] = state["items"]
        return "after"

    def after(state: State) -> dict[str, Any]:
        seen["next node"] = state["items"]
        return {}

    graph = StateGraph(State)
    for node in (spoiler, sibling, after):
        graph.add_node(node.__name__, node)
    graph.add_edge(START, "spoiler")
    graph.add_edge(START, "sibling")
    graph.add_conditional_edges("spoiler", path, ["after"])
    app = graph.compile(checkpointer=InMemorySaver())
    mine = make()

    result = colour.invoke(app, {"items": mine}, THREAD)

    seen |= {"caller": mine, "result": result["items"], "saved": app.get_state(THREAD).values["items"]}
    assert len(seen) == 6
    assert all(value == make() for value in seen.values()), seen


def test_path_function_that_changes_its_state_changes_no_state(colour: Colour) -> None:
    """A path function decides where to go, and nothing else."""
    seen = []

    def path(state: State) -> str:
        state["items"].append("spoilt")
        return "after"

    def after(state: State) -> dict[str, Any]:
        seen.append(state["items"])
        return {}

    graph = StateGraph(State)
    graph.add_node("before", lambda state: {"items": ["good"]})
    graph.add_node("after", after)
    graph.add_edge(START, "before")
    graph.add_conditional_edges("before", path, ["after"])

    result = colour.invoke(graph.compile(), {})

    assert (seen, result["items"]) == ([["good"]], ["good"])


def test_tasks_of_sends_with_one_argument_object_do_not_share_it(colour: Colour) -> None:
    """Each packet's task gets an argument of its own, even if the sender used the same dict for all."""
    seen = []

    def worker(packet: dict[str, Any]) -> dict[str, Any]:
        seen.append(dict(packet))
        packet["spoilt"] = True
        return {}

    def fan_out(state: State) -> list[Send]:
        packet = {"n": 1}
        return [Send("worker", packet) for _ in range(3)]

    graph = StateGraph(State)
    graph.add_node("worker", worker)
    graph.add_conditional_edges(START, fan_out, ["worker"])

    colour.invoke(graph.compile(), {"other": 1})

    assert seen == [{"n": 1}] * 3


def test_subgraph_that_changes_its_input_leaves_the_parents_state(colour: Colour) -> None:
    """A subgraph is a node like any other: what it does to its state stays inside until it is returned."""

    def spoiler(state: State) -> dict[str, Any]:
        state["items"].append("spoilt")
        return {"other": "done"}

    class Inner(TypedDict, total=False):
        items: list[str]
        other: str

    class InnerOutput(TypedDict, total=False):
        other: str

    inner = StateGraph(Inner, output_schema=InnerOutput)
    inner.add_node("spoiler", spoiler)
    inner.add_edge(START, "spoiler")
    graph = StateGraph(State)
    graph.add_node("inner", inner.compile())
    graph.add_edge(START, "inner")
    graph.add_edge("inner", END)
    mine = ["good"]

    result = colour.invoke(graph.compile(), {"items": mine})

    assert (mine, result) == (["good"], {"items": ["good"], "other": "done"})


def test_results_are_the_callers_to_change(colour: Colour) -> None:
    """Whoever got a result or a snapshot and changes it does not change the thread."""
    graph = StateGraph(State)
    graph.add_node("node", lambda state: {"other": len(state["items"])})
    graph.add_edge(START, "node")
    app = graph.compile(checkpointer=InMemorySaver())

    colour.invoke(app, {"items": ["good"]}, THREAD)["items"].append("spoilt")
    app.get_state(THREAD).values["items"].append("spoilt")

    assert app.get_state(THREAD).values["items"] == ["good"]
    assert colour.invoke(app, {"other": 0}, THREAD) == {"items": ["good"], "other": 1}


def test_streamed_values_are_the_consumers_to_change(colour: Colour) -> None:
    """A consumer that changes a chunk changes neither the run nor the chunks that follow."""
    graph = StateGraph(State)
    graph.add_node("a", lambda state: {"other": list(state["items"])})
    graph.add_node("b", lambda state: {"other": list(state["items"])})
    graph.add_edge(START, "a")
    graph.add_edge("a", "b")
    app = graph.compile()
    seen = []

    def consume(chunk: Any) -> None:
        seen.append((list(chunk["items"]), chunk.get("other")))
        chunk["items"].append("spoilt")

    colour.each(app, {"items": ["good"]}, consume, stream_mode="values")

    assert seen == [(["good"], None), (["good"], ["good"]), (["good"], ["good"])]
