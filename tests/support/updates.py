"""Small graphs with a saver, and updates of their threads in either colour."""

from __future__ import annotations

import asyncio
import operator
from typing import Annotated, Any, TypedDict

from colours import Colour

from tracegraph.checkpoint.memory import InMemorySaver
from tracegraph.graph import END, START, StateGraph
from tracegraph.managed import RemainingSteps
from tracegraph.types import interrupt

THREAD: Any = {"configurable": {"thread_id": "t"}}
X = {"log": ["x"]}


class State(TypedDict, total=False):
    log: Annotated[list[Any], operator.add]


class Counted(State, total=False):
    left: RemainingSteps


def says(word: str) -> Any:
    """Return a node that logs a word."""
    return lambda state: {"log": [word]}


def asks(state: State) -> Any:
    """Log the answer to a question."""
    return {"log": [interrupt("?")]}


def chain(saver: Any = None, **nodes: Any) -> Any:
    """Return a saved graph that runs *nodes* in a row; by default two that speak."""
    graph: StateGraph[Any, Any, Any, Any] = StateGraph(State)
    nodes = nodes or {"a": says("a"), "b": says("b")}
    graph.add_sequence(list(nodes.items()))
    graph.add_edge(START, next(iter(nodes)))
    return graph.compile(checkpointer=saver or InMemorySaver())


def branching(path: Any, **options: Any) -> Any:
    """Return a saved graph whose first node goes where *path* says: to "b", or to the end."""
    graph: StateGraph[Any, Any, Any, Any] = StateGraph(State)
    graph.add_node("a", says("a"))
    graph.add_node("b", says("b"))
    graph.add_edge(START, "a")
    graph.add_conditional_edges("a", path, ["b", END])
    return graph.compile(checkpointer=InMemorySaver(), **options)


def joined(**nodes: Any) -> Any:
    """Return a saved graph that runs *nodes* at once, and then ``j``, before which it pauses."""
    graph: StateGraph[Any, Any, Any, Any] = StateGraph(State)
    for name, body in nodes.items():
        graph.add_node(name, body)
        graph.add_edge(START, name)
    graph.add_node("j", says("j"))
    graph.add_edge(list(nodes), "j")
    return graph.compile(checkpointer=InMemorySaver(), interrupt_before=["j"])


def update(colour: Colour, app: Any, values: Any, as_node: str | None = None, *, config: Any = THREAD, **options: Any) -> Any:
    """Update a thread in the given colour."""
    if colour.name == "sync":
        return app.update_state(config, values, as_node, **options)
    return asyncio.run(app.aupdate_state(config, values, as_node, **options))


def bulk(colour: Colour, app: Any, *supersteps: Any, config: Any = THREAD) -> Any:
    """Update a thread superstep by superstep in the given colour."""
    if colour.name == "sync":
        return app.bulk_update_state(config, supersteps)
    return asyncio.run(app.abulk_update_state(config, supersteps))


def enclosing(inner: Any, **options: Any) -> Any:
    """Return a saved graph whose one node is *inner*."""
    graph: StateGraph[Any, Any, Any, Any] = StateGraph(State)
    graph.add_node("inner", inner)
    graph.add_edge(START, "inner")
    return graph.compile(checkpointer=InMemorySaver(), **options)


def inner_graph(**options: Any) -> Any:
    """Return a graph that asks."""
    graph: StateGraph[Any, Any, Any, Any] = StateGraph(State)
    graph.add_node("ask", asks)
    graph.add_edge(START, "ask")
    return graph.compile(**options)


def chain_without_saver() -> Any:
    """Return a graph of one node that nobody saves."""
    graph: StateGraph[Any, Any, Any, Any] = StateGraph(State)
    graph.add_node("h", says("h"))
    graph.add_edge(START, "h")
    return graph.compile()
