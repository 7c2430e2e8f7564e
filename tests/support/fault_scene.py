"""One graph in which something goes wrong at a known point: its shapes, its nodes in each colour, and what its code did."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import Callable
from typing import Annotated, Any, Literal, TypeAlias, TypedDict

from small_graphs import wait_for

from tracegraph.callbacks import BaseCallbackHandler
from tracegraph.config import get_stream_writer
from tracegraph.func import task
from tracegraph.graph import START, StateGraph
from tracegraph.types import Durability, Send

Shape: TypeAlias = Literal["single", "parallel", "subgraph", "send", "call"]
Colour: TypeAlias = Literal["sync", "async", "workers"]
"""``workers``: an async run whose nodes are plain functions, so that they run in worker threads."""

HERE = "here"
"""The chunk that the faulty code sends as soon as it is at its fault."""

LOGS: dict[Shape, list[str]] = {
    "single": ["before", "work", "after"],
    "parallel": ["before", "done", "work", "after"],
    "subgraph": ["before", "prepare", "work", "after"],
    "send": ["before", "work0", "work1", "work2", "after"],
    "call": ["before", "first", "second", "after"],
}
"""What a run without a fault leaves in the log."""

FAULTY: dict[Shape, str] = {"single": "work", "parallel": "work", "subgraph": "work", "send": "work1", "call": "second"}
"""What is at fault, by what it says to the log."""

KEPT: dict[Shape, tuple[str, ...]] = {
    "single": ("before",),
    "parallel": ("before", "done"),
    "subgraph": ("before", "prepare"),
    "send": ("before", "work0", "work2"),
    "call": ("before", "first"),
}
"""What has finished before the fault, and must not be done again."""

_ENDED_FIRST: dict[Shape, tuple[str, int]] = {"parallel": ("done", 1), "send": ("work", 2)}


def merge(left: list[str], right: list[str]) -> list[str]:
    """Add what is not there yet: a subgraph's log contains its parent's."""
    return left + [word for word in right if word not in left]


class State(TypedDict, total=False):
    log: Annotated[list[str], merge]


class Packet(TypedDict):
    n: int


class Scene(BaseCallbackHandler):
    """A graph of one shape whose code calls *strike* (or awaits *astrike*) at its fault, as long as it is broken.

    As a handler it sees to it that all others of the superstep have ended before, and tells when the root run has.
    """

    def __init__(self, shape: Shape, colour: Colour, strike: Callable[[Scene], None], astrike: Callable[[Scene], Any]) -> None:
        self.shape = shape
        self.colour = colour
        self._strike = strike
        self._astrike = astrike
        self.ran: Counter[str] = Counter()
        self.is_broken = True
        self.durability: Durability | None = None
        self.stuck: list[threading.Thread] = []
        """Threads that stand at the fault until they are let go."""
        self.struck_in: threading.Thread | None = None
        """The thread in which a plain function came to its fault."""
        self.is_reached, self.may_go_on, self.has_ended = threading.Event(), threading.Event(), threading.Event()
        self._others_ended = threading.Event()
        self._count = 0
        self._names: dict[Any, tuple[str, bool]] = {}
        if shape not in _ENDED_FIRST:
            self._others_ended.set()

    # --- as a handler --------------------------------------------------------------------------------------

    def on_chain_start(self, serialized: Any, inputs: Any, **kwargs: Any) -> None:
        self._names[kwargs["run_id"]] = kwargs["name"], kwargs.get("parent_run_id") is None

    def on_chain_end(self, outputs: Any, **kwargs: Any) -> None:
        name, is_root = self._names[kwargs["run_id"]]
        if is_root:
            self.has_ended.set()
        if name == _ENDED_FIRST.get(self.shape, ("", 0))[0]:
            self._count += 1
            if self._count == _ENDED_FIRST[self.shape][1]:
                self._others_ended.set()

    def on_chain_error(self, error: BaseException, **kwargs: Any) -> None:
        if self._names[kwargs["run_id"]][1]:
            self.has_ended.set()

    # --- the code of the nodes -----------------------------------------------------------------------------

    def _do(self, word: str) -> str:
        self.ran[word] += 1
        if word == FAULTY[self.shape] and self.is_broken:
            wait_for(self._others_ended)
            get_stream_writer()(HERE)
            self.struck_in = threading.current_thread()
            self._strike(self)
        return word

    async def _ado(self, word: str) -> str:
        self.ran[word] += 1
        if word == FAULTY[self.shape] and self.is_broken:
            if not self._others_ended.is_set():
                await asyncio.to_thread(wait_for, self._others_ended)
            get_stream_writer()(HERE)
            self.is_reached.set()
            await self._astrike(self)
        return word

    def stand(self, say: Callable[[], None] = lambda: None) -> None:
        """Block this thread until it is let go; *say* so to somebody."""
        self.stuck.append(threading.current_thread())
        say()
        self.is_reached.set()
        wait_for(self.may_go_on)

    def _node(self, *words: str) -> Any:
        """Return a node that does *words*, one after the other."""

        def node(state: Any) -> Any:
            return {"log": [self._do(word) for word in words]}

        async def anode(state: Any) -> Any:
            return {"log": [await self._ado(word) for word in words]}

        return anode if self.colour == "async" else node

    def _packet_node(self) -> Any:
        def node(packet: Packet) -> Any:
            return {"log": [self._do(f"work{packet['n']}")]}

        async def anode(packet: Packet) -> Any:
            return {"log": [await self._ado(f"work{packet['n']}")]}

        return anode if self.colour == "async" else node

    def _calling_node(self) -> Any:
        if self.colour == "async":
            acall = task(name="called")(self._ado)

            async def anode(state: Any) -> Any:
                return {"log": [await acall("first"), await acall("second")]}

            return anode
        call = task(name="called")(self._do)

        def node(state: Any) -> Any:
            return {"log": [call("first").result(), call("second").result()]}

        return node

    # --- the graph -----------------------------------------------------------------------------------------

    def compile(self, saver: Any = None) -> Any:
        """Return the graph: ``before``, then what the shape says, then ``after``."""
        graph: StateGraph[Any, Any, Any, Any] = StateGraph(State)
        graph.add_node("before", self._node("before"))
        graph.add_node("after", self._node("after"))
        graph.add_edge(START, "before")
        graph.add_node("work", self._work(), **({"input_schema": Packet} if self.shape == "send" else {}))
        if self.shape == "send":
            graph.add_conditional_edges("before", lambda state: [Send("work", {"n": n}) for n in range(3)], ["work"])
        else:
            graph.add_edge("before", "work")
        if self.shape == "parallel":
            graph.add_node("done", self._node("done"))
            graph.add_edge("before", "done")
        graph.add_edge("work", "after")
        return graph.compile(checkpointer=saver)

    def _work(self) -> Any:
        match self.shape:
            case "send":
                return self._packet_node()
            case "call":
                return self._calling_node()
            case "subgraph":
                inner: StateGraph[Any, Any, Any, Any] = StateGraph(State)
                inner.add_sequence([("prepare", self._node("prepare")), ("inside", self._node("work"))])
                inner.add_edge(START, "prepare")
                return inner.compile()
            case _:
                return self._node("work")

    @property
    def expected_runs(self) -> dict[str, int]:
        """How often each piece of code has run once the thread was resumed: only what was at fault ran twice."""
        return {word: 2 if word == FAULTY[self.shape] else 1 for word in LOGS[self.shape]}
