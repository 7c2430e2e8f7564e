"""Attempts out of time that go on all the same: nothing they write, call or return reaches the attempt after them."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from typing import Any

import pytest
from colours import Colour
from small_graphs import State, bounded, says, wait_for

from tracegraph.drivers.sync_driver import SyncRun
from tracegraph.engine.actions import TimeOut
from tracegraph.errors import NodeTimeoutError
from tracegraph.func import task
from tracegraph.graph import START, StateGraph
from tracegraph.types import RetryPolicy, Send

LIMIT_S = 0.2
AT_ONCE = RetryPolicy(initial_interval=0.001, jitter=False)


def limited(body: Any) -> Any:
    """Return a graph whose one node has little time, and tries again at once."""
    graph: StateGraph[Any, Any, Any, Any] = StateGraph(State)
    graph.add_node("a", body, timeout=LIMIT_S, retry_policy=AT_ONCE)
    graph.add_edge(START, "a")
    return graph.compile()


def pass_time() -> None:
    """Let more time pass than a node with a limit has."""
    threading.Event().wait(1.5 * LIMIT_S)


def sent_with_limit(source: str, *packets: Send, body: Any, retry: RetryPolicy = AT_ONCE) -> Any:
    """Return a graph whose node ``w`` is sent *packets*: only a Send may limit the time of a sync node."""
    graph: StateGraph[Any, Any, Any, Any] = StateGraph(State)
    graph.add_node("w", body, retry_policy=retry)
    if source != START:
        graph.add_node(source, says(source))
        graph.add_edge(START, source)
    graph.add_conditional_edges(source, lambda state: list(packets), ["w"])
    return graph.compile()


async def swallow_cancellation() -> None:
    """Come to an end by being cancelled, and keep quiet about it."""
    with contextlib.suppress(asyncio.CancelledError):
        await asyncio.Event().wait()


def test_writes_of_an_attempt_that_swallowed_its_cancellation_are_dropped() -> None:
    """It returns while the next attempt runs, whose writes alone count."""
    attempts: list[int] = []

    async def run() -> Any:
        second_began, first_returns = asyncio.Event(), asyncio.Event()

        async def body(state: State) -> State:
            attempts.append(len(attempts) + 1)
            if len(attempts) == 1:
                await swallow_cancellation()
                await second_began.wait()
                first_returns.set()
                return {"xs": ["late"]}
            second_began.set()
            await first_returns.wait()
            return {"xs": ["in time"]}

        return await limited(body).ainvoke({"xs": []})

    assert bounded(lambda: asyncio.run(run())) == {"xs": ["in time"]}


def test_writes_of_a_thread_that_is_out_of_time_are_dropped(colour: Colour) -> None:
    """A sync body cannot be stopped; what it returns beside the next attempt is ignored."""
    second_began, first_returns = threading.Event(), threading.Event()
    attempts: list[int] = []

    def body(state: State) -> State:
        attempts.append(len(attempts) + 1)
        if len(attempts) == 1:
            wait_for(second_began)
            first_returns.set()
            return {"xs": ["late"]}
        second_began.set()
        wait_for(first_returns)
        return {"xs": ["in time"]}

    app = sent_with_limit(START, Send("w", {}, timeout=LIMIT_S), body=body)

    assert bounded(lambda: colour.invoke(app, {"xs": []})) == {"xs": ["in time"]}


def test_a_call_of_a_late_attempt_does_not_take_the_next_ones_result() -> None:
    """Both calls have the same position, hence the same id; each caller gets an answer of its own, and nobody hangs."""
    attempts: list[int] = []
    called: list[str] = []
    stale: list[type[BaseException]] = []

    async def run() -> Any:
        fresh_called, may_end = asyncio.Event(), asyncio.Event()

        @task
        async def work(who: str) -> str:
            called.append(who)
            fresh_called.set()
            await may_end.wait()
            return who

        async def body(state: State) -> State:
            attempts.append(len(attempts) + 1)
            if len(attempts) > 1:
                return {"xs": [await work("fresh")]}
            await swallow_cancellation()
            await fresh_called.wait()
            try:
                await work("stale")
            except BaseException as error:
                stale.append(type(error))
            finally:
                may_end.set()
            return {"xs": ["late"]}

        return await limited(body).ainvoke({"xs": []})

    assert bounded(lambda: asyncio.run(run())) == {"xs": ["fresh"]}
    assert called == ["fresh"]
    assert attempts == [1, 2]
    assert stale == [asyncio.CancelledError]


@pytest.mark.parametrize("count", [1, 3])
def test_a_send_with_a_time_limit_runs(colour: Colour, count: int) -> None:
    """The task is told apart from the step's others by its limit, and somebody runs it all the same."""
    app = sent_with_limit("a", *[Send("w", {}, timeout=60.0)] * count, body=says("w"))

    assert bounded(lambda: colour.invoke(app, {"xs": []})) == {"xs": ["a", *["w"] * count]}


def test_a_time_limit_counts_from_when_the_attempt_begins(colour: Colour) -> None:
    """A reader that holds the run back takes nothing from the time of the node it has not let begin."""
    app = sent_with_limit("a", Send("w", {}, timeout=LIMIT_S), body=says("w") if colour.name == "sync" else quick)
    parts: list[Any] = []

    def read_slowly(part: Any) -> None:
        parts.append(part)
        pass_time()

    bounded(lambda: colour.each(app, {"xs": []}, read_slowly, stream_mode="updates"))

    assert parts == [{"a": {"xs": ["a"]}}, {"w": {"xs": ["w"]}}]


def test_a_time_limit_holds_for_an_attempt_that_a_reader_kept_waiting(colour: Colour) -> None:
    """The limit would have passed before the attempt began; it is not forgotten for that."""
    may_end = threading.Event()

    def hang(state: State) -> State:
        wait_for(may_end)
        return {"xs": ["late"]}

    async def ahang(state: State) -> State:
        await asyncio.Event().wait()
        return {"xs": ["late"]}

    send = Send("w", {}, timeout=LIMIT_S)
    app = sent_with_limit("a", send, body=hang if colour.name == "sync" else ahang, retry=RetryPolicy(max_attempts=1))

    try:
        with pytest.raises(NodeTimeoutError, match=f"run timeout of {LIMIT_S} s"):
            bounded(lambda: colour.each(app, {"xs": []}, lambda part: pass_time(), stream_mode="updates"))
    finally:
        may_end.set()


async def quick(state: State) -> State:
    """Return without ever letting the loop turn."""
    return {"xs": ["w"]}


def test_an_order_to_give_up_does_not_reach_the_next_attempt(monkeypatch: pytest.MonkeyPatch) -> None:
    """The attempt that is out of time fails by itself before the order is carried out, and its task is tried again."""
    is_ordered, second_began, may_end = threading.Event(), threading.Event(), threading.Event()
    carry_out = SyncRun.time_out

    def late(run: SyncRun, action: TimeOut) -> None:
        is_ordered.set()
        wait_for(second_began)
        carry_out(run, action)
        may_end.set()

    monkeypatch.setattr(SyncRun, "time_out", late)
    attempts: list[int] = []

    def body(state: State) -> State:
        attempts.append(len(attempts) + 1)
        if len(attempts) == 1:
            wait_for(is_ordered)
            raise ConnectionError
        second_began.set()
        wait_for(may_end)
        return {"xs": [attempts[-1]]}

    app = sent_with_limit(START, Send("w", {}, timeout=2 * LIMIT_S), body=body)

    assert bounded(lambda: app.invoke({"xs": []})) == {"xs": [2]}
    assert attempts == [1, 2]
