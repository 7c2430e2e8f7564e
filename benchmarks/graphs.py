"""The graphs that are measured, written once against whichever library is handed in.

Nodes do next to nothing: what is left is the cost of the runtime itself.
"""

from __future__ import annotations

import operator
from typing import Annotated, Any, TypedDict

from benchmarks.case import Case, Library, Scenario

__all__ = ["GRAPHS", "fan_out", "loop"]


class Counter(TypedDict):
    """State of the chain and the loop."""

    n: int


def _bump(state: Counter) -> Counter:
    return {"n": state["n"] + 1}


async def _abump(state: Counter) -> Counter:
    return {"n": state["n"] + 1}


def _chain(lib: Library, size: int, is_async: bool) -> Case:
    """Build *size* nodes in a row."""
    builder = lib.StateGraph(Counter)
    previous = lib.START
    for index in range(size):
        builder.add_node(f"n{index}", _abump if is_async else _bump)
        builder.add_edge(previous, f"n{index}")
        previous = f"n{index}"
    builder.add_edge(previous, lib.END)
    return Case(builder.compile(), {"n": 0}, size)


def loop(lib: Library, size: int, is_async: bool) -> Case:
    """Build one node that runs *size* times."""

    def again(state: Counter) -> str:
        return "bump" if state["n"] < size else str(lib.END)

    builder = lib.StateGraph(Counter)
    builder.add_node("bump", _abump if is_async else _bump)
    builder.add_edge(lib.START, "bump")
    builder.add_conditional_edges("bump", again)
    return Case(builder.compile(), {"n": 0}, size)


class Spread(TypedDict):
    """State of the fan-outs: what the tasks found, in task order."""

    n: int
    found: Annotated[list[int], operator.add]


class Item(TypedDict):
    """What one task of a fan-out gets."""

    x: int


class Found(TypedDict):
    """What one task of a fan-out gives."""

    found: Annotated[list[int], operator.add]


class ItemFound(Item, Found):
    """State of the subgraph that takes the place of a task."""


def _square(state: Item) -> Found:
    return {"found": [state["x"] * state["x"]]}


async def _asquare(state: Item) -> Found:
    return {"found": [state["x"] * state["x"]]}


def _next_x(state: Item) -> Item:
    return {"x": state["x"] + 1}


async def _anext_x(state: Item) -> Item:
    return {"x": state["x"] + 1}


def _spread_over(lib: Library, size: int, worker: Any) -> Case:
    def scatter(state: Spread) -> list[Any]:
        return [lib.Send("work", {"x": index}) for index in range(state["n"])]

    builder = lib.StateGraph(Spread)
    builder.add_node("work", worker)
    builder.add_conditional_edges(lib.START, scatter, ["work"])
    builder.add_edge("work", lib.END)
    return Case(builder.compile(), {"n": size, "found": []}, size)


def fan_out(lib: Library, size: int, is_async: bool) -> Case:
    """Build a run of *size* parallel tasks."""
    return _spread_over(lib, size, _asquare if is_async else _square)


def _fan_out_subgraphs(lib: Library, size: int, is_async: bool) -> Case:
    """Build a run of *size* parallel subgraphs of two nodes."""
    sub = lib.StateGraph(ItemFound, output_schema=Found)
    sub.add_node("first", _anext_x if is_async else _next_x)
    sub.add_node("second", _asquare if is_async else _square)
    sub.add_edge(lib.START, "first")
    sub.add_edge("first", "second")
    sub.add_edge("second", lib.END)
    return _spread_over(lib, size, sub.compile())


FIELDS = tuple(f"f{index:02}" for index in range(29))
Wide = TypedDict("Wide", {"n": int} | dict.fromkeys(FIELDS, int))  # type: ignore[misc]  # 30 fields, spelled by a loop


def _wide(lib: Library, size: int, is_async: bool) -> Case:
    """Build a loop over a state of 30 fields, all of them written in each step."""

    def update(state: dict[str, int]) -> dict[str, int]:
        return {name: value + 1 for name, value in state.items()}

    async def aupdate(state: dict[str, int]) -> dict[str, int]:
        return update(state)

    def again(state: dict[str, int]) -> str:
        return "update" if state["n"] < size else str(lib.END)

    builder = lib.StateGraph(Wide)
    builder.add_node("update", aupdate if is_async else update)
    builder.add_edge(lib.START, "update")
    builder.add_conditional_edges("update", again)
    return Case(builder.compile(), {"n": 0} | dict.fromkeys(FIELDS, 0), size)


class Chat(TypedDict):
    """State of the agent loop."""

    messages: Annotated[list[dict[str, Any]], operator.add]


def _react(lib: Library, size: int, is_async: bool) -> Case:
    """Build an agent and its tools, taking turns for *size* steps; messages pile up."""

    def agent(state: Chat) -> Chat:
        turn = len(state["messages"])
        calls = [] if turn >= size else [{"name": "lookup", "args": {"q": turn}, "id": str(turn)}]
        return {"messages": [{"role": "assistant", "content": "thinking", "tool_calls": calls}]}

    def tools(state: Chat) -> Chat:
        calls = state["messages"][-1]["tool_calls"]
        return {"messages": [{"role": "tool", "content": "found", "tool_call_id": call["id"]} for call in calls]}

    async def aagent(state: Chat) -> Chat:
        return agent(state)

    async def atools(state: Chat) -> Chat:
        return tools(state)

    def has_calls(state: Chat) -> str:
        return "tools" if state["messages"][-1]["tool_calls"] else str(lib.END)

    builder = lib.StateGraph(Chat)
    builder.add_node("agent", aagent if is_async else agent)
    builder.add_node("tools", atools if is_async else tools)
    builder.add_edge(lib.START, "agent")
    builder.add_conditional_edges("agent", has_calls, ["tools", lib.END])
    builder.add_edge("tools", "agent")
    return Case(builder.compile(), {"messages": [{"role": "user", "content": "go"}]}, size)


GRAPHS = (
    Scenario("sequential", "step", 1000, 100, _chain, colours=("sync",)),
    Scenario("loop", "step", 1000, 100, loop),
    Scenario("fan-out 10", "task", 10, 10, fan_out, runs=20),
    Scenario("fan-out 100", "task", 100, 100, fan_out, runs=3),
    Scenario("subgraphs 10", "task", 10, 10, _fan_out_subgraphs, runs=10),
    Scenario("subgraphs 100", "task", 100, 100, _fan_out_subgraphs, runs=1),
    Scenario("wide state", "step", 300, 50, _wide),
    Scenario("react", "step", 101, 51, _react, runs=3),
)
