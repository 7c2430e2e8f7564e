"""Graphs whose parts are read: what a reader pays for a part, and how long it waits for the first."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from functools import partial
from typing import Any, Final, TypedDict

from benchmarks.case import Case, Library, Scenario
from benchmarks.clocks import Clocks
from benchmarks.graphs import loop
from benchmarks.models import Feed, callbacks, langchain_model, own_model, own_model_invoked, wait_for_more

__all__ = ["STREAMS", "Reading"]


class Reading:
    """A graph that is streamed when it is invoked; returns how many parts there were.

    ``parts`` and ``aparts`` open the stream of a graph.
    """

    def __init__(self, graph: Any, parts: Callable[..., Iterator[Any]], aparts: Callable[..., AsyncIterator[Any]]) -> None:
        self._graph = graph
        self._parts = parts
        self._aparts = aparts
        self.firsts: list[Clocks] = []
        """What passed until the first part of each reading was there."""

    def invoke(self, given: Any, config: Any) -> int:
        """Read all parts."""
        began = Clocks.now()
        parts = self._parts(self._graph, given, config)
        next(parts)
        self.firsts.append(began.passed())
        return 1 + sum(1 for _ in parts)

    async def ainvoke(self, given: Any, config: Any) -> int:
        """Read all parts, on the event loop."""
        began = Clocks.now()
        parts = self._aparts(self._graph, given, config)
        await anext(parts)
        self.firsts.append(began.passed())
        count = 1
        async for _ in parts:
            count += 1
        return count

    @classmethod
    def of_mode(cls, graph: Any, mode: str) -> Reading:
        """Return a reading of one stream mode."""
        return cls(
            graph,
            lambda graph, given, config: graph.stream(given, config, stream_mode=mode),
            lambda graph, given, config: graph.astream(given, config, stream_mode=mode),
        )


# Of runs as objects ("v3"): a projection each.


def _values(graph: Any, given: Any, config: Any) -> Iterator[Any]:
    run = graph.stream_events(given, config, version="v3")
    yield from run.values


async def _avalues(graph: Any, given: Any, config: Any) -> AsyncIterator[Any]:
    run = await graph.astream_events(given, config, version="v3")
    async for values in run.values:
        yield values


def _texts(graph: Any, given: Any, config: Any) -> Iterator[str]:
    run = graph.stream_events(given, config, version="v3")
    for message in run.messages:
        yield from message.text


async def _atexts(graph: Any, given: Any, config: Any) -> AsyncIterator[str]:
    run = await graph.astream_events(given, config, version="v3")
    async for message in run.messages:
        async for text in message.text:
            yield text


class Asked(TypedDict):
    """State of the graph around one node that says something."""

    n: int


def _of_one_node(lib: Library, node: Any) -> Any:
    builder = lib.StateGraph(Asked)
    builder.add_node("ask", node)
    builder.add_edge(lib.START, "ask")
    builder.add_edge("ask", lib.END)
    return builder.compile()


def _read_loop(mode: str, lib: Library, size: int, is_async: bool) -> Case:
    """Build the loop, with a reader of *mode*."""
    case = loop(lib, size, is_async)
    reading = Reading.of_mode(case.graph, mode)
    return Case(reading, case.input, size, reading.firsts)


def _read_custom(lib: Library, size: int, is_async: bool) -> Case:
    """Build a node that writes to the stream, with a reader of it."""

    def node(state: Asked) -> None:
        write = lib.get_stream_writer()
        for index in range(size):
            write(index)

    async def anode(state: Asked) -> None:
        write = lib.get_stream_writer()
        for index in range(size):
            write(index)
            await wait_for_more(index)

    reading = Reading.of_mode(_of_one_node(lib, anode if is_async else node), "custom")
    return Case(reading, {"n": 0}, size, reading.firsts)


def _read_messages(feed: Feed, lib: Library, size: int, is_async: bool) -> Case:
    """Build a node in which *feed* has words said, with a reader of them."""
    reading = Reading.of_mode(_of_one_node(lib, feed(lib, size, is_async)), "messages")
    return Case(reading, {"n": 0}, size, reading.firsts)


def _read_v3_values(lib: Library, size: int, is_async: bool) -> Case:
    """Build the loop, with a reader of the projection ``values``."""
    case = loop(lib, size, is_async)
    reading = Reading(case.graph, _values, _avalues)
    return Case(reading, case.input, size, reading.firsts)


def _read_v3_messages(lib: Library, size: int, is_async: bool) -> Case:
    """Build a node in which a model speaks, with a reader of the text of the projection ``messages``."""
    reading = Reading(_of_one_node(lib, own_model_invoked(lib, size, is_async)), _texts, _atexts)
    return Case(reading, {"n": 0}, size, reading.firsts)


STREAMS: Final = (
    Scenario("read values", "part", 1000, 100, partial(_read_loop, "values"), runs=3),
    Scenario("read updates", "part", 1000, 100, partial(_read_loop, "updates"), runs=3),
    Scenario("read custom", "part", 100_000, 100, _read_custom),
    # LangGraph hears of tokens from LangChain's models alone: each library's own kind of model, then the calls that a model
    # makes without the model, then LangChain's model in both.
    Scenario("read tokens, own model", "part", 100_000, 100, partial(_read_messages, own_model)),
    Scenario("read tokens, callbacks", "part", 100_000, 100, partial(_read_messages, callbacks)),
    Scenario("read tokens, LangChain", "part", 20_000, 100, partial(_read_messages, langchain_model)),
    Scenario("read v3 values", "part", 1000, 100, _read_v3_values, runs=3),
    Scenario("read v3 tokens", "part", 100_000, 100, _read_v3_messages),
)
