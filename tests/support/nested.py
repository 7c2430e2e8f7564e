"""Graphs inside graphs that note which nodes ran, for going back into them."""

from __future__ import annotations

import asyncio
import operator
from collections.abc import Sequence
from typing import Annotated, Any, TypedDict

from colours import Colour

from tracegraph.checkpoint.memory import InMemorySaver
from tracegraph.graph import START, StateGraph
from tracegraph.types import Command, interrupt

THREAD: Any = {"configurable": {"thread_id": "t"}}


class State(TypedDict, total=False):
    log: Annotated[list[Any], operator.add]


class Recorder:
    """Makes graphs of nodes that write their name down."""

    def __init__(self) -> None:
        self.ran: list[str] = []

    def says(self, name: str) -> Any:
        """Return a node that logs its name."""

        def node(state: State) -> Any:
            self.ran.append(name)
            return {"log": [name]}

        return node

    def asks(self, name: str) -> Any:
        """Return a node that asks, and logs the answer."""

        def node(state: State) -> Any:
            self.ran.append(name)
            return {"log": [interrupt(f"{name}?")]}

        return node

    def chain(self, names: Sequence[str], *, prefix: str = "", **options: Any) -> Any:
        """Return a graph that runs these nodes in a row; a name that ends in "?" asks."""
        graph: StateGraph[Any, Any, Any, Any] = StateGraph(State)
        parts = [(n.rstrip("?"), self.asks(prefix + n.rstrip("?")) if n.endswith("?") else self.says(prefix + n)) for n in names]
        graph.add_sequence(parts)
        graph.add_edge(START, parts[0][0])
        return graph.compile(**options)

    def routed(self, names: Sequence[str], **options: Any) -> Any:
        """Return a graph whose nodes go on by Command instead of edges."""
        graph: StateGraph[Any, Any, Any, Any] = StateGraph(State)
        parts = [n.rstrip("?") for n in names]
        for at, given in enumerate(names):
            body = self.asks(parts[at]) if given.endswith("?") else self.says(parts[at])
            following = parts[at + 1 : at + 2]
            graph.add_node(parts[at], _going(body, following), destinations=tuple(following))
        graph.add_edge(START, parts[0])
        return graph.compile(**options)

    def take(self) -> list[str]:
        """Return what ran since the last time."""
        found, self.ran = self.ran, []
        return found


def _going(body: Any, following: list[str]) -> Any:
    return lambda state: Command(update=body(state), goto=following)


def around(saver: Any = None, /, **nodes: Any) -> Any:
    """Return a saved graph that runs *nodes* in a row."""
    graph: StateGraph[Any, Any, Any, Any] = StateGraph(State)
    graph.add_sequence(list(nodes.items()))
    graph.add_edge(START, next(iter(nodes)))
    return graph.compile(checkpointer=InMemorySaver() if saver is None else saver)


def beside(**nodes: Any) -> Any:
    """Return a saved graph that runs *nodes* at once."""
    graph: StateGraph[Any, Any, Any, Any] = StateGraph(State)
    for name, body in nodes.items():
        graph.add_node(name, body)
        graph.add_edge(START, name)
    return graph.compile(checkpointer=InMemorySaver())


def calling(colour: Colour, graph: Any, times: int = 1) -> Any:
    """Return a node that calls a graph so many times, and logs what the calls logged."""
    if colour.name == "sync":

        def node(state: State) -> Any:
            return {"log": [word for _ in range(times) for word in graph.invoke({"log": []})["log"]]}

        return node

    async def anode(state: State) -> Any:
        found = []
        for _ in range(times):
            found.extend((await graph.ainvoke({"log": []}))["log"])
        return {"log": found}

    return anode


def history(colour: Colour, app: Any, config: Any = THREAD, **options: Any) -> list[Any]:
    """Return a thread's history in the given colour."""
    if colour.name == "sync":
        return list(app.get_state_history(config, **options))

    async def read() -> list[Any]:
        return [found async for found in app.aget_state_history(config, **options)]

    return asyncio.run(read())


def state(colour: Colour, app: Any, config: Any = THREAD, **options: Any) -> Any:
    """Return a thread's state in the given colour."""
    if colour.name == "sync":
        return app.get_state(config, **options)
    return asyncio.run(app.aget_state(config, **options))


def namespaces(snapshot: Any) -> dict[str, str]:
    """Return where the states inside a snapshot taken with ``subgraphs=True`` are filed, by the last node's name."""
    found = {}
    for task in snapshot.tasks:
        if getattr(task.state, "config", None) is not None:
            found[task.name] = task.state.config["configurable"]["checkpoint_ns"]
            found.update(namespaces(task.state))
    return found


def at(ns: str) -> Any:
    """Return the config of a namespace of the thread."""
    return {"configurable": {"thread_id": "t", "checkpoint_ns": ns}}


def before(colour: Colour, app: Any, node: str, ns: str = "") -> Any:
    """Return the newest checkpoint's config from which *node* is next."""
    config = at(ns) if ns else THREAD
    return next(found for found in history(colour, app, config) if found.next == (node,)).config
