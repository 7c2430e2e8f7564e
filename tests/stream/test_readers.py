"""Who reads a stream may leave it in every way an iterator can be left."""

from __future__ import annotations

import asyncio
import gc
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any, TypedDict

import pytest

from tracegraph.graph import END, START, StateGraph
from tracegraph.types import StreamWriter


class State(TypedDict, total=False):
    n: int


@pytest.fixture
def ran() -> list[int]:
    """What the looping node saw."""
    return []


@pytest.fixture
def app(ran: list[int]) -> Any:
    """A graph that would loop very long."""

    def step(state: State) -> State:
        ran.append(state["n"])
        return {"n": state["n"] + 1}

    graph: StateGraph[Any, Any, Any, Any] = StateGraph(State)
    graph.add_node("step", step)
    graph.add_edge(START, "step")
    graph.add_conditional_edges("step", lambda state: "step" if state["n"] < 1000 else END)
    return graph.compile()


def test_nothing_runs_before_the_first_part_is_asked_for(app: Any, ran: list[int]) -> None:
    """Neither while the reader waits nor when it is dropped unread."""
    parts = app.stream({"n": 0})
    del parts
    gc.collect()

    assert ran == []


def test_a_with_block_closes_the_stream(app: Any, ran: list[int]) -> None:
    """Its end stops the run."""
    with app.stream({"n": 0}) as parts:
        next(parts)

    assert ran == [0]
    assert list(parts) == []


def test_an_error_thrown_into_the_reader_stops_the_run(app: Any, ran: list[int]) -> None:
    """It comes out again, as with generators."""
    parts = app.stream({"n": 0})
    next(parts)

    with pytest.raises(LookupError, match="mine"):
        parts.throw(LookupError("mine"))

    assert ran == [0]
    assert list(parts) == []


def test_an_async_with_block_closes_the_stream(app: Any, ran: list[int]) -> None:
    """Its end stops the run and waits for it."""

    async def run() -> list[Any]:
        async with app.astream({"n": 0}) as parts:
            await anext(parts)
        return [part async for part in parts]

    assert asyncio.run(run()) == []
    assert ran == [0]


def test_an_error_thrown_into_an_async_reader_stops_the_run(app: Any, ran: list[int]) -> None:
    """It comes out again, as with async generators."""

    async def run() -> list[Any]:
        parts = app.astream({"n": 0})
        await anext(parts)
        with pytest.raises(LookupError, match="mine"):
            await parts.athrow(LookupError("mine"))
        return [part async for part in parts]

    assert asyncio.run(run()) == []
    assert ran == [0]


def test_an_async_reader_dropped_unread_runs_nothing(app: Any, ran: list[int]) -> None:
    """It never had a run."""

    async def run() -> None:
        parts = app.astream({"n": 0})
        del parts
        gc.collect()

    asyncio.run(run())

    assert ran == []


def test_an_async_reader_that_left_gets_no_more_parts() -> None:
    """What it has not read by then is gone, as with generators."""

    async def talk(state: State, writer: StreamWriter) -> None:
        for word in ("a", "b", "c"):
            writer(word)

    async def read() -> list[Any]:
        parts = _of_one_node(talk).astream({"n": 0}, stream_mode="custom")
        found = [await anext(parts), await anext(parts)]
        await parts.aclose()
        return [*found, *[part async for part in parts]]

    assert asyncio.run(read()) == ["a", "b"]


@pytest.fixture
def _threads_that_keep_the_interpreter() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(60.0)
    yield
    sys.setswitchinterval(before)


@pytest.mark.usefixtures("_threads_that_keep_the_interpreter")
def test_a_part_reaches_a_waiting_reader_while_the_node_is_busy() -> None:
    """The node hands the interpreter over; by itself it would keep it for the whole interval."""

    def is_read_meanwhile() -> bool:
        was_read = threading.Event()
        found: list[bool] = []

        def compute(state: State, writer: StreamWriter) -> None:
            writer("here")
            end = time.monotonic() + 0.05
            while not was_read.is_set() and time.monotonic() < end:
                pass
            found.append(was_read.is_set())

        for _ in _of_one_node(compute).stream({"n": 0}, stream_mode="custom"):
            was_read.set()
        return found[0]

    # Several times, for on a busy machine the reader may be too slow to take what it is offered.
    assert any(is_read_meanwhile() for _ in range(20))


def _of_one_node(node: Any) -> Any:
    graph: StateGraph[Any, Any, Any, Any] = StateGraph(State)
    graph.add_node("node", node)
    graph.add_edge(START, "node")
    return graph.compile()
