"""Leaving early: nothing of the run goes on, nothing leaks into the caller."""

from __future__ import annotations

import asyncio
import contextvars
import gc
import threading
from typing import Any, TypedDict

import pytest
from colours import Colour

from tracegraph.current import CURRENT
from tracegraph.errors import NodeCancelledError
from tracegraph.graph import END, START, StateGraph

SEEN: contextvars.ContextVar[str] = contextvars.ContextVar("seen", default="caller's")


class State(TypedDict, total=False):
    n: int


def looping(step: Any, *, limit: int = 1000) -> Any:
    """Return a graph whose one node runs until ``n`` reaches *limit*."""
    graph = StateGraph(State)
    graph.add_node("step", step)
    graph.add_edge(START, "step")
    graph.add_conditional_edges("step", lambda state: "step" if state["n"] < limit else END)
    return graph.compile()


def test_closing_a_sync_stream_stops_the_run() -> None:
    """No further step runs; closing again is harmless, and the iterator is exhausted."""
    ran: list[int] = []

    def step(state: State) -> State:
        ran.append(state["n"])
        return {"n": state["n"] + 1}

    parts = looping(step).stream({"n": 0})
    next(parts)
    parts.close()
    parts.close()

    assert ran == [0]
    assert list(parts) == []


def test_a_dropped_sync_stream_stops_the_run() -> None:
    """A reader that is garbage collected ends the run without waiting for it."""
    ran: list[int] = []

    def step(state: State) -> State:
        ran.append(state["n"])
        return {"n": state["n"] + 1}

    parts = looping(step).stream({"n": 0})
    next(parts)
    del parts
    gc.collect()

    assert ran == [0]


def test_closing_waits_for_the_node_that_runs() -> None:
    """Its thread is not left behind: what it does still happens before close() returns."""
    may_end, done = threading.Event(), threading.Event()

    def slow(state: State) -> State:
        assert may_end.wait(10)
        done.set()
        return {"n": 1}

    graph = StateGraph(State)
    graph.add_node("slow", slow)
    graph.add_node("quick", lambda state: {})
    graph.add_edge(START, "slow")
    graph.add_edge(START, "quick")
    parts = graph.compile().stream({"n": 0})
    next(parts)
    closing = threading.Thread(target=parts.close)
    closing.start()
    may_end.set()
    closing.join(10)

    assert done.is_set()
    assert not closing.is_alive()


def test_closing_an_async_stream_cancels_its_nodes() -> None:
    """The node that sleeps is cancelled, and has come to rest when aclose() returns."""
    seen: list[str] = []

    async def sleeper(state: State) -> State:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            seen.append("cancelled")
            raise
        return {}

    async def quick(state: State) -> State:
        return {"n": 1}

    graph = StateGraph(State)
    graph.add_node("sleeper", sleeper)
    graph.add_node("quick", quick)
    graph.add_edge(START, "sleeper")
    graph.add_edge(START, "quick")
    app = graph.compile()

    async def run() -> None:
        parts = app.astream({"n": 0})
        assert await anext(parts) == {"quick": {"n": 1}}
        await parts.aclose()
        await parts.aclose()

    asyncio.run(run())

    assert seen == ["cancelled"]


def test_cancelling_the_caller_cancels_the_run() -> None:
    """The inline node gets the cancellation, the caller sees CancelledError."""
    seen: list[str] = []

    async def run() -> None:
        started = asyncio.Event()

        async def sleeper(state: State) -> State:
            started.set()
            try:
                await asyncio.Event().wait()
            finally:
                seen.append("over")
            return {}

        running = asyncio.create_task(looping(sleeper).ainvoke({"n": 0}))
        await started.wait()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running

    asyncio.run(run())

    assert seen == ["over"]


def test_a_node_that_raises_cancelled_error_failed() -> None:
    """Nobody cancelled it, so it is the node's own error, by name."""

    async def odd(state: State) -> State:
        raise asyncio.CancelledError

    with pytest.raises(NodeCancelledError, match="'step'"):
        asyncio.run(looping(odd).ainvoke({"n": 0}))


def test_a_failing_sibling_cancels_a_task_that_has_not_begun() -> None:
    """It never ran a line, and the run still ends, with the failure."""

    async def bad(state: State) -> State:
        raise ValueError("boom")

    async def other(state: State) -> State:
        await asyncio.Event().wait()
        return {}

    graph = StateGraph(State)
    for name, body in (("a", bad), ("b", other), ("c", other)):
        graph.add_node(name, body)
        graph.add_edge(START, name)

    with pytest.raises(ValueError, match="boom"):
        asyncio.run(graph.compile().ainvoke({"n": 0}))


def test_keyboard_interrupt_leaves_at_once() -> None:
    """It is not recorded as a failure of the node, and comes out as it is."""

    def interrupted(state: State) -> State:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        looping(interrupted).invoke({"n": 0})


def test_nothing_leaks_into_the_caller(colour: Colour) -> None:
    """What a node sets in its Context stays there: not in the next node, not in the caller, not after a stream."""
    seen: list[str] = []

    def step(state: State) -> State:
        seen.append(SEEN.get())
        SEEN.set(f"node {state['n']}")
        return {"n": state["n"] + 1}

    colour.invoke(looping(step, limit=2), {"n": 0})
    colour.stream(looping(step, limit=2), {"n": 0})

    assert seen == ["caller's"] * 4
    assert SEEN.get() == "caller's"
    assert CURRENT.get() is None


def test_async_nodes_see_the_callers_context_and_keep_their_own() -> None:
    """Inline or as tasks of their own: each attempt has one Context from its first line to its last."""
    seen: list[tuple[str, str]] = []

    async def step(state: State) -> State:
        before = SEEN.get()
        SEEN.set("mine")
        await asyncio.sleep(0)
        seen.append((before, SEEN.get()))
        return {"n": state["n"] + 1}

    async def run() -> None:
        SEEN.set("outer")
        await looping(step, limit=2).ainvoke({"n": 0})
        assert SEEN.get() == "outer"

    asyncio.run(run())

    assert seen == [("outer", "mine"), ("outer", "mine")]
