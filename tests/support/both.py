"""A scenario told in terms of a library's names, so that LangGraph and tracegraph can be watched doing the same."""

from __future__ import annotations

import asyncio
import operator
import re
from importlib import import_module
from typing import Annotated, Any, TypedDict

from colours import Colour

from tracegraph.constants import TRACE

THREAD: Any = {"configurable": {"thread_id": "t"}}
_IDS = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
PLACES = {
    "graph": ("StateGraph", "START", "END"),
    "types": ("Command", "Send", "StateUpdate", "interrupt", "RetryPolicy"),
    "checkpoint.memory": ("InMemorySaver",),
    "func": ("task",),
}


class State(TypedDict, total=False):
    log: Annotated[list[Any], operator.add]


class Library:
    """One of the two libraries, in one colour, with what graphs of a scenario are made of."""

    def __init__(self, name: str, colour: Colour) -> None:
        self.name = name
        self.colour = colour
        self.ran: list[str] = []
        for module, attributes in PLACES.items():
            for attribute in attributes:
                setattr(self, attribute, getattr(import_module(f"{name}.{module}"), attribute))

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(name)

    # --- nodes and graphs ----------------------------------------------------------------------------------

    def says(self, word: str) -> Any:
        """Return a node that logs a word."""

        def node(state: State) -> Any:
            self.ran.append(word)
            return {"log": [word]}

        return node

    def asks(self, *questions: str) -> Any:
        """Return a node that asks in turn, and logs the answers."""

        def node(state: State) -> Any:
            self.ran.append(f"ask {questions[0]}")
            return {"log": [self.interrupt(question) for question in questions]}

        return node

    def fails(self, *, times: int = 1) -> Any:
        """Return a node that fails so many times, then logs."""
        left = [times]

        def node(state: State) -> Any:
            self.ran.append("fails")
            left[0] -= 1
            if left[0] >= 0:
                raise ValueError("no")
            return {"log": ["works"]}

        return node

    def chain(self, saver: Any = None, /, compiled: Any = None, **nodes: Any) -> Any:
        """Return a graph that runs *nodes* in a row; "new" makes a saver."""
        graph = self.StateGraph(State)
        graph.add_sequence(list(nodes.items()))
        graph.add_edge(self.START, next(iter(nodes)))
        return self.compiled(graph, saver, compiled)

    def beside(self, saver: Any = None, /, compiled: Any = None, **nodes: Any) -> Any:
        """Return a graph that runs *nodes* at once."""
        graph = self.StateGraph(State)
        for name, body in nodes.items():
            graph.add_node(name, body)
            graph.add_edge(self.START, name)
        return self.compiled(graph, saver, compiled)

    def compiled(self, graph: Any, saver: Any, options: Any = None) -> Any:
        """Compile a builder; "new" makes a saver."""
        return graph.compile(checkpointer=self.InMemorySaver() if saver == "new" else saver, **(options or {}))

    def calls(self, graph: Any, times: int = 1) -> Any:
        """Return a node that calls a graph so many times, and logs what the calls logged last."""

        def node(state: State) -> Any:
            self.ran.append("call")
            return {"log": [graph.invoke({"log": [f"in{n}"]})["log"] for n in range(times)]}

        async def anode(state: State) -> Any:
            self.ran.append("call")
            return {"log": [(await graph.ainvoke({"log": [f"in{n}"]}))["log"] for n in range(times)]}

        return node if self.colour.name == "sync" else anode

    # --- doing ---------------------------------------------------------------------------------------------

    def invoke(self, app: Any, given: Any, config: Any = THREAD, **options: Any) -> Any:
        """Run, and return the output in plain words, or the error's type."""
        try:
            return plain(self.colour.invoke(app, given, config, **options))
        except Exception as error:  # what is compared
            return f"raises {'RuntimeError' if isinstance(error, RuntimeError) else type(error).__name__}"

    def update(self, app: Any, values: Any, as_node: str | None = None, config: Any = THREAD) -> Any:
        """Update a thread."""
        if self.colour.name == "sync":
            return app.update_state(config, values, as_node)
        return asyncio.run(app.aupdate_state(config, values, as_node))

    def state(self, app: Any, config: Any = THREAD, **options: Any) -> Any:
        """Return a snapshot."""
        if self.colour.name == "sync":
            return app.get_state(config, **options)
        return asyncio.run(app.aget_state(config, **options))

    def history(self, app: Any, config: Any = THREAD) -> list[Any]:
        """Return all snapshots, newest first."""
        if self.colour.name == "sync":
            return list(app.get_state_history(config))

        async def read() -> list[Any]:
            return [found async for found in app.aget_state_history(config)]

        return asyncio.run(read())

    def at(self, app: Any, *following: str, config: Any = THREAD) -> Any:
        """Return the config of the newest checkpoint from which these nodes are next."""
        return next(found for found in self.history(app, config) if found.next == following).config

    def inside(self, app: Any, task: int = 0, config: Any = THREAD) -> Any:
        """Return the config of the thread's subgraph at a task that has not finished."""
        found = self.state(app, config).tasks[task].state
        return {"configurable": dict(found["configurable"])}

    def took(self) -> list[str]:
        """Return what ran since the last time, sorted: of nodes that run at once any may be first."""
        found, self.ran = sorted(self.ran), []
        return found

    def read(self, app: Any, config: Any = THREAD) -> list[Any]:
        """Return a thread's history in plain words."""
        return [shown(found) for found in self.history(app, config)]

    def look(self, app: Any, config: Any = THREAD, **options: Any) -> Any:
        """Return a snapshot in plain words."""
        return shown(self.state(app, config, **options))


def plain(value: Any) -> Any:
    """Return an output without what differs between two runs."""
    if isinstance(value, dict):
        return {key: plain(found) for key, found in value.items()}
    if isinstance(value, (list, tuple)):
        found = [plain(each) for each in value]
        return sorted(found, key=repr) if value and type(value[0]).__name__ == "Interrupt" else found
    if type(value).__name__ == "Interrupt":
        return f"asks {value.value}"
    if isinstance(value, BaseException):
        return f"{type(value).__name__}: {value}"
    return value


def shown(snapshot: Any) -> Any:
    """Return a snapshot without ids and times, but with what is told by them: order, parent, step in the id, namespace."""
    where = snapshot.config["configurable"]
    checkpoint_id = where.get("checkpoint_id")
    return {
        "values": plain(snapshot.values),
        "next": sorted(snapshot.next),
        "metadata": {
            key: sorted(bare(ns) for ns in value) if key == "parents" else value
            for key, value in (snapshot.metadata or {}).items()
            if key != TRACE and key != "counters_since_delta_snapshot"
        },
        "step in id": checkpoint_id and checkpoint_id.split("-")[3],
        "ns": bare(where.get("checkpoint_ns", "")),
        "map": sorted(map(bare, where.get("checkpoint_map", ()))),
        "has parent": snapshot.parent_config is not None,
        "is timed": snapshot.created_at is not None,
        "tasks": sorted((told(task) for task in snapshot.tasks), key=repr),
        "interrupts": sorted(plain(each) for each in snapshot.interrupts),
    }


def told(task: Any) -> Any:
    """Return a task of a snapshot in plain words."""
    state = task.state
    if isinstance(state, dict):
        state = {key: bare(value) for key, value in state["configurable"].items() if key in ("thread_id", "checkpoint_ns")}
    elif state is not None:
        state = shown(state)
    error = None if task.error is None else re.sub(r"'$|^'|\"", "", str(task.error))
    return (task.name, plain(task.path), error, sorted(plain(each) for each in task.interrupts), state, plain(task.result))


def bare(ns: str) -> str:
    """Return a namespace with stars for ids."""
    return _IDS.sub("*", ns)
