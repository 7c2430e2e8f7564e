"""Readers that are dropped, and runs that are cancelled: what must happen happens at once, or before they return."""

from __future__ import annotations

import asyncio
import gc
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from colours import Colour
from small_graphs import PATIENCE_S, THREAD, Listening, SlowSaver, State, bounded, chain, parallel, saving, says, wait_for

from tracegraph.callbacks import AsyncCallbackHandler
from tracegraph.config import get_stream_writer
from tracegraph.drivers.sync_driver import SyncRun


@pytest.fixture
def no_collector() -> Iterator[None]:
    """Nothing is collected unless a test asks for it."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def telling(name: str) -> Any:
    """Return a node that writes its name to the log and to the custom stream."""

    def body(state: State) -> State:
        get_stream_writer()(name)
        return {"xs": [name]}

    return body


@pytest.mark.parametrize("mode", ["updates", "values", "custom"])
def test_a_stream_left_by_break_ends_at_once(colour: Colour, no_collector: None, mode: str) -> None:
    """Not when the garbage collector comes by: every run that began has ended, and no further node begins."""
    app = chain(a=telling("a"), b=telling("b"))
    listening = Listening()
    given = {"callbacks": [listening]}

    def leave() -> None:
        for _ in app.stream({"xs": []}, given, stream_mode=mode):
            break

    async def aleave() -> None:
        async for _ in app.astream({"xs": []}, given, stream_mode=mode):
            break
        assert listening.bell.is_set()

    bounded(leave if colour.name == "sync" else lambda: asyncio.run(aleave()))

    assert listening.bell.is_set()
    assert listening.ends[-1] == ("GeneratorExit", "LangGraph")
    assert "b" not in [name for _, name in listening.ends]


def test_a_reader_that_outlives_its_event_loop_ends_its_run_when_it_is_collected(no_collector: None) -> None:
    """Nobody is left to await, and what began is announced as ended all the same."""
    listening = Listening()
    loop = asyncio.new_event_loop()

    # Not in a worker thread, which may hold the run a moment longer than it runs a node of it.
    async def node(state: State) -> State:
        return {"xs": ["a"]}

    async def begin() -> Any:
        parts = chain(a=node, b=node).astream({"xs": []}, {"callbacks": [listening]}, stream_mode="updates")
        assert await anext(parts) == {"a": {"xs": ["a"]}}
        return parts

    parts = loop.run_until_complete(begin())
    loop.close()
    is_over_before = listening.bell.is_set()
    del parts
    gc.collect()

    assert not is_over_before
    assert listening.ends[-1] == ("GeneratorExit", "LangGraph")


def test_an_async_handler_hears_that_the_reader_of_a_sync_run_was_dropped(no_collector: None) -> None:
    """Whoever drops it does not wait for the handler, so what the handler has to do is done by somebody else."""
    is_heard = threading.Event()

    class Hearing(AsyncCallbackHandler):
        async def on_chain_error(self, error: BaseException, **kwargs: Any) -> None:
            await asyncio.sleep(0)
            assert isinstance(error, GeneratorExit)
            is_heard.set()

    parts = chain(a=says("a"), b=says("b")).stream({"xs": []}, {"callbacks": [Hearing()]}, stream_mode="updates")
    assert next(parts) == {"a": {"xs": ["a"]}}
    del parts

    wait_for(is_heard)


def test_a_node_whose_end_was_announced_does_not_start(monkeypatch: pytest.MonkeyPatch) -> None:
    """A thread that was about to run it when the reader left: a handler would be told of a start without an end."""
    is_held, is_released = threading.Event(), threading.Event()
    attempt = SyncRun._attempt
    ran: list[str] = []

    def held(run: SyncRun, here: Any, action: Any) -> Any:
        if here.task.node.name == "late":
            is_held.set()
            wait_for(is_released)
        return attempt(run, here, action)

    class Starts(Listening):
        def on_chain_start(self, serialized: Any, inputs: Any, **kwargs: Any) -> None:
            super().on_chain_start(serialized, inputs, **kwargs)
            started.append(kwargs["name"])

    def late(state: State) -> State:
        ran.append("late")
        return {}

    monkeypatch.setattr(SyncRun, "_attempt", held)
    started: list[str] = []
    listening = Starts()
    parts = parallel(early=says("early"), late=late).stream({"xs": []}, {"callbacks": [listening]}, stream_mode="updates")
    assert bounded(lambda: next(parts)) == {"early": {"xs": ["early"]}}
    wait_for(is_held)
    closing = threading.Thread(target=parts.close)
    closing.start()
    wait_for(listening.bell)
    is_released.set()
    closing.join(PATIENCE_S)

    assert not closing.is_alive()
    assert sorted(started) == sorted(name for _, name in listening.ends)
    assert ran == []


def test_a_cancelled_run_saves_before_it_returns() -> None:
    """What ``durability="exit"`` promises is stored when the caller sees the cancellation, whatever handlers do besides."""
    order: list[str] = []

    class Turning(SlowSaver):
        async def aput(self, *args: Any, **kwargs: Any) -> Any:
            for _ in range(50):
                await asyncio.sleep(0)
            order.append("saved")
            return await super().aput(*args, **kwargs)

    class Handling(AsyncCallbackHandler):
        async def on_chain_error(self, error: BaseException, **kwargs: Any) -> None:
            for _ in range(5):
                await asyncio.sleep(0)
            order.append("handled")

    async def run() -> None:
        began = asyncio.Event()

        async def b(state: State) -> State:
            began.set()
            await asyncio.Event().wait()
            return {}

        app = chain(saving(Turning()), a=says("a"), b=b)
        running = asyncio.create_task(app.ainvoke({"xs": []}, {**THREAD, "callbacks": [Handling()]}, durability="exit"))
        await began.wait()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        order.append("returned")
        assert app.get_state(THREAD).values == {"xs": ["a"]}

    bounded(lambda: asyncio.run(run()))

    assert order[-1] == "returned"
    assert order.count("saved") == 1
    assert "handled" in order
