"""Turns of runs that are cancelled, abandoned or not heard of: nobody waits for them longer than for their saves."""

from __future__ import annotations

import asyncio
import gc
import logging
import threading
from collections.abc import Callable
from typing import Any, TypedDict

import pytest
from small_graphs import PATIENCE_S, THREAD, bounded, wait_for

from tracegraph.checkpoint.base import BaseCheckpointSaver
from tracegraph.checkpoint.memory import InMemorySaver
from tracegraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from tracegraph.checkpoint.sqlite import SqliteSaver
from tracegraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from tracegraph.checkpoint.sqlite.database import connect
from tracegraph.drivers import keepers
from tracegraph.drivers.effects import run_flow
from tracegraph.drivers.turns import take_turn
from tracegraph.errors import ConcurrentRunError, GraphDefinitionError
from tracegraph.graph import START, StateGraph


class Number(TypedDict):
    n: int


def app_on(saver: Any, **nodes: Any) -> Any:
    graph = StateGraph(Number)
    graph.add_sequence(list((nodes or {"a": add, "b": add}).items()))
    return graph.add_edge(START, next(iter(nodes or "a"))).compile(checkpointer=saver, concurrent_runs="queue")


def add(state: Number) -> Any:
    return {"n": state["n"] + 1}


class Watched(InMemorySaver):
    """Counts as I/O; keeps the tickets it was given, and rings at each look into the queue that finds somebody before."""

    does_io = True

    def __init__(self) -> None:
        super().__init__()
        self.tickets: list[str] = []
        self.joined = threading.Semaphore(0)
        self.waited = threading.Semaphore(0)

    async def _off_loop(self, call: Callable[[], Any]) -> Any:
        return await asyncio.to_thread(call)

    def join_queue(self, thread_id: str, ticket: str, *, lease_s: float) -> None:
        super().join_queue(thread_id, ticket, lease_s=lease_s)
        self.tickets.append(ticket)
        self.joined.release()

    def place_in_queue(self, ticket: str) -> Any:
        place = super().place_in_queue(ticket)
        if place == "waiting":
            self.waited.release()
        return place


class Gated(Watched):
    """Stores only once it may."""

    def __init__(self) -> None:
        super().__init__()
        self.is_storing, self.may_store = threading.Event(), threading.Event()
        self.order: list[str] = []

    def put_group(self, config: Any, saves: Any) -> None:
        self.is_storing.set()
        wait_for(self.may_store)
        super().put_group(config, saves)
        self.order.append("stored")


def looks(saver: Watched, times: int) -> None:
    """Wait until somebody looked so often and had to wait."""
    for _ in range(times):
        assert saver.waited.acquire(timeout=PATIENCE_S)


def in_thread(call: Callable[[], Any]) -> threading.Thread:
    thread = threading.Thread(target=call, daemon=True)
    thread.start()
    return thread


def test_a_cancelled_run_gives_its_turn_back_after_its_saves() -> None:
    saver = Gated()

    async def hang(_state: Number) -> Any:
        await asyncio.Event().wait()

    def second(state: Number) -> Any:
        saver.order.append("second runs")
        return add(state)

    async def main() -> None:
        first = asyncio.create_task(app_on(saver, a=add, b=hang).ainvoke({"n": 0}, THREAD))
        await asyncio.to_thread(saver.is_storing.wait, PATIENCE_S)
        following = asyncio.create_task(app_on(saver, a=second).ainvoke({"n": 10}, THREAD))
        await asyncio.to_thread(looks, saver, 1)
        first.cancel()
        await asyncio.to_thread(looks, saver, 3)
        saver.may_store.set()
        with pytest.raises(asyncio.CancelledError):
            await first
        assert await following == {"n": 11}

    bounded(lambda: asyncio.run(main()))
    assert saver.order.index("second runs") > 0


def test_a_dropped_reader_gives_its_turn_back_after_its_saves() -> None:
    saver = Gated()

    def second(state: Number) -> Any:
        saver.order.append("second runs")
        return add(state)

    reader = app_on(saver).stream({"n": 0}, THREAD)
    next(reader)
    wait_for(saver.is_storing)
    del reader
    following = in_thread(lambda: app_on(saver, a=second).invoke({"n": 10}, THREAD))
    looks(saver, 3)
    saver.may_store.set()
    following.join(PATIENCE_S)

    assert saver.order.index("second runs") > 0


@pytest.mark.parametrize("is_closed", [True, False])
def test_a_reader_whose_loop_has_stopped_gives_its_turn_back(*, is_closed: bool) -> None:
    app = app_on(InMemorySaver())
    loop = asyncio.new_event_loop()
    reader = app.astream({"n": 0}, THREAD)
    loop.run_until_complete(anext(reader))
    if is_closed:
        loop.close()
    del reader
    gc.collect()

    assert bounded(lambda: app.invoke({"n": 5}, THREAD)) == {"n": 7}
    loop.close()


def test_saves_that_a_closed_loop_never_stored_are_told_of(caplog: pytest.LogCaptureFixture) -> None:
    saver = Gated()
    loop = asyncio.new_event_loop()
    reader = app_on(saver).astream({"n": 0}, THREAD, durability="exit")
    loop.run_until_complete(anext(reader))
    loop.close()
    with caplog.at_level(logging.ERROR, "tracegraph.drivers"):
        del reader
        gc.collect()

    assert "was closed before" in caplog.text


def test_a_turn_that_is_forgotten_is_given_back() -> None:
    saver = InMemorySaver()
    turn = run_flow(take_turn(saver, "t"))
    del turn

    bounded(lambda: run_flow(take_turn(saver, "t"))).drop()


@pytest.mark.parametrize("is_strict", [True, False])
def test_a_run_in_a_node_does_not_wait_for_itself_whatever_the_serialiser(*, is_strict: bool) -> None:
    """For a strict one, each graph has a copy of the saver that knows its state's classes."""
    saver = InMemorySaver(serde=JsonPlusSerializer(allowed_msgpack_modules=None) if is_strict else JsonPlusSerializer())
    inner = app_on(saver)

    def node(_state: Number) -> Any:
        return inner.invoke({"n": 0}, {"configurable": {"thread_id": "t", "checkpoint_ns": "other"}})

    with pytest.raises(ConcurrentRunError):
        bounded(lambda: app_on(saver, node=node).invoke({"n": 0}, THREAD))


def test_copies_of_a_saver_that_does_not_call_init_share_its_storage() -> None:
    class Bare(BaseCheckpointSaver):
        def __init__(self) -> None:
            self.serde = JsonPlusSerializer(allowed_msgpack_modules=None)

    saver = Bare()

    assert saver.with_allowlist([Number]).with_allowlist([Number]).storage_key is saver.storage_key
    assert saver.storage_key is not Bare().storage_key


@pytest.mark.parametrize("make", [InMemorySaver, lambda: SqliteSaver(connect(":memory:"))], ids=["memory", "sqlite"])
def test_a_ticket_is_first_or_waiting_or_gone(make: Any) -> None:
    saver = make()
    for ticket in ("a", "b", "c"):
        saver.join_queue("t", ticket, lease_s=60)

    saver.leave_queue("b")

    assert [saver.place_in_queue(ticket) for ticket in "abc"] == ["first", "gone", "waiting"]
    assert [saver.keep_turn(ticket, lease_s=60) for ticket in "abc"] == [True, False, True]


def test_a_ticket_that_ran_out_does_not_come_back() -> None:
    """Those behind may have begun."""
    saver = SqliteSaver(connect(":memory:"))
    saver.join_queue("t", "late", lease_s=-1)

    assert not saver.keep_turn("late", lease_s=60)
    assert saver.place_in_queue("late") == "gone"


def test_a_waiting_run_whose_ticket_ran_out_joins_again() -> None:
    saver = Watched()
    saver.join_queue("t", "before", lease_s=60)
    running = in_thread(lambda: app_on(saver).invoke({"n": 0}, THREAD))
    looks(saver, 1)

    saver.leave_queue(saver.tickets[1])
    for _ in range(3):
        assert saver.joined.acquire(timeout=PATIENCE_S)
    looks(saver, 1)
    is_waiting = saver.get(THREAD) is None
    saver.leave_queue("before")
    running.join(PATIENCE_S)

    assert is_waiting
    assert saver.get(THREAD)["channel_values"] == {"n": 2}  # type: ignore[index]


class Told(logging.Handler):
    """Rings when something is logged."""

    def __init__(self) -> None:
        super().__init__()
        self.bell = threading.Event()
        self.messages: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.messages.append(record.getMessage())
        self.bell.set()


def test_a_run_that_lost_its_turn_says_so(colour: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """And goes on: the head check protects it."""
    monkeypatch.setattr(keepers, "LEASE_S", 0.03)
    saver, told = Watched(), Told()

    def node(state: Number) -> Any:
        saver.leave_queue(saver.tickets[0])
        wait_for(told.bell)
        return add(state)

    keepers.logger.addHandler(told)
    try:
        assert colour.invoke(app_on(saver, node=node), {"n": 0}, THREAD) == {"n": 1}
    finally:
        keepers.logger.removeHandler(told)
    assert told.messages == ["the turn of a run on thread 't' ran out; others may begin before it ends"]


def test_a_saver_with_only_async_methods_prolongs_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keepers, "LEASE_S", 0.03)
    inner, prolonged = InMemorySaver(), threading.Semaphore(0)

    class AsyncOnly(BaseCheckpointSaver):
        async def akeep_turn(self, ticket: str, *, lease_s: float) -> bool:
            prolonged.release()
            return inner.keep_turn(ticket, lease_s=lease_s)

        def get_next_version(self, current: Any, channel: None) -> str:
            return inner.get_next_version(current, None)

    for method in ("put", "put_writes", "get_tuple", "join_queue", "place_in_queue", "leave_queue"):

        async def call(_self: Any, *args: Any, method: str = method, **kwargs: Any) -> Any:
            return getattr(inner, method)(*args, **kwargs)

        setattr(AsyncOnly, f"a{method}", call)

    async def node(state: Number) -> Any:
        assert await asyncio.to_thread(lambda: all(prolonged.acquire(timeout=PATIENCE_S) for _ in range(3)))
        return add(state)

    assert asyncio.run(app_on(AsyncOnly(), node=node).ainvoke({"n": 0}, THREAD)) == {"n": 1}


@pytest.mark.parametrize("method", ["join_queue", "leave_queue"])
def test_cancelling_while_the_queue_is_joined_or_left_leaves_no_ticket(method: str) -> None:
    is_there, may_go_on = threading.Event(), threading.Event()

    def slow(self: Any, *args: Any, **kwargs: Any) -> None:
        is_there.set()
        wait_for(may_go_on)
        getattr(AsyncSqliteSaver, method)(self, *args, **kwargs)

    saver = type("Slow", (AsyncSqliteSaver,), {method: slow})(connect(":memory:"))

    async def main() -> None:
        running = asyncio.create_task(app_on(saver).ainvoke({"n": 0}, THREAD))
        await asyncio.to_thread(is_there.wait, PATIENCE_S)
        for task in asyncio.all_tasks() - {asyncio.current_task()}:
            task.cancel()
        asyncio.get_running_loop().call_soon(may_go_on.set)
        with pytest.raises(asyncio.CancelledError):
            await running

    bounded(lambda: asyncio.run(main()))
    assert saver.conn.execute("SELECT * FROM tracegraph_turns").fetchall() == []


def test_whoever_is_cancelled_again_no_longer_waits_for_the_turn_to_be_given_back() -> None:
    async def main() -> None:
        is_there, may_go_on = asyncio.Event(), asyncio.Event()

        class Slow(InMemorySaver):
            async def aleave_queue(self, ticket: str) -> None:
                is_there.set()
                await may_go_on.wait()
                await super().aleave_queue(ticket)

        running = asyncio.create_task(app_on(Slow()).ainvoke({"n": 0}, THREAD))
        await is_there.wait()
        running.cancel()
        assert await asyncio.wait([running], timeout=0) == (set(), {running})
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        may_go_on.set()
        await asyncio.gather(*(asyncio.all_tasks() - {asyncio.current_task()}))

    bounded(lambda: asyncio.run(main()))


@pytest.mark.parametrize("saver", [None, True, False])
def test_a_queue_needs_a_saver(saver: bool | None) -> None:  # noqa: FBT001
    with pytest.raises(GraphDefinitionError, match="concurrent_runs='queue' needs a saver"):
        app_on(saver)
