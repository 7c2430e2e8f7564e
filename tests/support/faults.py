"""What can go wrong in a node or at its caller, in each colour, and what the run says of it."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import gc
import signal
import threading
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from fault_scene import HERE, Scene
from small_graphs import PATIENCE_S, wait_for

from tracegraph.errors import NodeCancelledError

__all__ = ["FAULTS", "NO_SENSE", "Fault"]


@dataclass(frozen=True)
class Fault:
    """What the faulty code does, what its caller does meanwhile, and how the run then ends.

    ``strike`` is what a plain function does at the fault, ``astrike`` what an async one does. ``fall`` runs a graph into
    it and returns what comes out, ``afall`` does so on an event loop.
    """

    strike: Callable[[Scene], None]
    astrike: Callable[[Scene], Awaitable[None]]
    fall: Callable[[Scene, Any, Any], BaseException | None]
    afall: Callable[[Scene, Any, Any], Awaitable[BaseException | None]]
    raised: type[BaseException] | None
    """What comes out."""
    status: str
    """How the run ends, and with it what is open."""
    reasons: tuple[str, ...] = ("None",)
    """What the root span may give as the reason."""
    is_stuck: bool = False
    """A thread of the run, unless it is the caller's own, stays at the fault until it is let go."""
    is_raised_by_loop: bool = False
    """What comes out comes out of ``asyncio.run`` only: the run itself is cancelled."""


# --- what the code does ---------------------------------------------------------------------------------------


def _fail(scene: Scene) -> None:
    raise ValueError("boom")


async def _afail(scene: Scene) -> None:
    raise ValueError("boom")


def _raise_asyncio_cancelled(scene: Scene) -> None:
    raise asyncio.CancelledError


async def _araise_asyncio_cancelled(scene: Scene) -> None:
    raise asyncio.CancelledError


def _raise_future_cancelled(scene: Scene) -> None:
    raise concurrent.futures.CancelledError


async def _araise_future_cancelled(scene: Scene) -> None:
    raise concurrent.futures.CancelledError


def _hang(scene: Scene) -> None:
    scene.stand()


async def _ahang(scene: Scene) -> None:
    await asyncio.Event().wait()


def _linger(scene: Scene) -> None:
    """Go on as soon as the run has ended without this thread."""
    scene.is_reached.set()
    wait_for(scene.has_ended)


async def _aswallow(scene: Scene) -> None:
    with contextlib.suppress(asyncio.CancelledError):
        await asyncio.Event().wait()


def _press(scene: Scene) -> None:
    if threading.current_thread() is threading.main_thread():
        _interrupt_main()
        wait_for(scene.may_go_on)  # which the signal ends
    else:
        scene.stand(_interrupt_main)


def _interrupt_main() -> None:
    # To the main thread, as a terminal's: a signal that another thread gets does not wake it.
    signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)


async def _apress(scene: Scene) -> None:
    signal.raise_signal(signal.SIGINT)
    await asyncio.Event().wait()


# --- what the caller does -------------------------------------------------------------------------------------

GIVEN: Any = {"log": []}


def _invoke(scene: Scene, app: Any, config: Any) -> BaseException | None:
    try:
        app.invoke(GIVEN, config, durability=scene.durability)
    except BaseException as error:
        return error
    return None


async def _ainvoke(scene: Scene, app: Any, config: Any) -> BaseException | None:
    try:
        await app.ainvoke(GIVEN, config, durability=scene.durability)
    except BaseException as error:
        return error
    return None


async def _ainvoke_bare(scene: Scene, app: Any, config: Any) -> BaseException | None:
    """Let the loop see what comes out."""
    await app.ainvoke(GIVEN, config, durability=scene.durability)
    return None


def _read(scene: Scene, app: Any, config: Any) -> BaseException | None:
    """Wait for parts, while all nodes run in other threads."""
    try:
        for _ in app.stream(GIVEN, config, stream_mode="custom", durability=scene.durability):
            pass
    except BaseException as error:
        return error
    return None


async def _cancel(scene: Scene, app: Any, config: Any) -> BaseException | None:
    running = asyncio.create_task(app.ainvoke(GIVEN, config, durability=scene.durability))
    await asyncio.to_thread(wait_for, scene.is_reached)
    running.cancel()
    await asyncio.wait([running])
    return asyncio.CancelledError() if running.cancelled() else running.exception()


async def _run_out_of_time(scene: Scene, app: Any, config: Any) -> BaseException | None:
    async def until_reached(limit: asyncio.Timeout) -> None:
        await asyncio.to_thread(wait_for, scene.is_reached)
        limit.reschedule(asyncio.get_running_loop().time())

    try:
        async with asyncio.timeout(None) as limit:
            watching = asyncio.create_task(until_reached(limit))
            await app.ainvoke(GIVEN, config, durability=scene.durability)
    except BaseException as error:
        return error
    finally:
        await watching
    return None


def _reader(scene: Scene, app: Any, config: Any) -> Any:
    parts = app.stream(GIVEN, config, stream_mode="custom", subgraphs=True, durability=scene.durability)
    assert next(parts)[-1] == HERE
    return parts


def _close(scene: Scene, app: Any, config: Any) -> None:
    parts = _reader(scene, app, config)
    parts.close()
    parts.close()
    assert list(parts) == []


def _drop(scene: Scene, app: Any, config: Any) -> None:
    parts = _reader(scene, app, config)
    del parts
    assert scene.has_ended.is_set()


async def _areader(scene: Scene, app: Any, config: Any) -> Any:
    parts = app.astream(GIVEN, config, stream_mode="custom", subgraphs=True, durability=scene.durability)
    assert (await anext(parts))[-1] == HERE
    return parts


async def _aclose(scene: Scene, app: Any, config: Any) -> None:
    parts = await _areader(scene, app, config)
    await parts.aclose()
    await parts.aclose()
    assert [part async for part in parts] == []


async def _adrop(scene: Scene, app: Any, config: Any) -> None:
    parts = await _areader(scene, app, config)
    del parts
    gc.collect()
    assert scene.has_ended.is_set()
    # Nobody is there to wait for what it leaves, so it comes to rest by itself.
    while rest := asyncio.all_tasks() - {asyncio.current_task()}:
        _, late = await asyncio.wait(rest, timeout=PATIENCE_S)
        assert not late, late


# --- the faults -----------------------------------------------------------------------------------------------

_CANCELLED = (NodeCancelledError, "failed")
FAULTS: dict[str, Fault] = {
    "raise": Fault(_fail, _afail, _invoke, _ainvoke, ValueError, "failed"),
    "raise asyncio's CancelledError": Fault(
        _raise_asyncio_cancelled, _araise_asyncio_cancelled, _invoke, _ainvoke, NodeCancelledError, "failed"
    ),
    "raise a future's CancelledError": Fault(
        _raise_future_cancelled, _araise_future_cancelled, _invoke, _ainvoke, NodeCancelledError, "failed"
    ),
    "hang and run out of time": Fault(
        _hang, _ahang, _invoke, _run_out_of_time, TimeoutError, "cancelled", ("CancelledError",), is_stuck=True
    ),
    "hang and lose its reader": Fault(_hang, _ahang, _drop, _adrop, None, "abandoned", ("consumer_dropped",), is_stuck=True),
    "cancel the caller": Fault(_linger, _ahang, _invoke, _cancel, asyncio.CancelledError, "cancelled", ("CancelledError",)),
    "swallow the cancellation": Fault(
        _linger, _aswallow, _invoke, _cancel, asyncio.CancelledError, "cancelled", ("CancelledError",)
    ),
    "KeyboardInterrupt": Fault(
        _press,
        _apress,
        _invoke,
        _ainvoke_bare,
        KeyboardInterrupt,
        "cancelled",
        ("KeyboardInterrupt", "CancelledError"),
        is_stuck=True,
        is_raised_by_loop=True,
    ),
    "KeyboardInterrupt for a waiting caller": Fault(
        _press, _apress, _read, _ainvoke_bare, KeyboardInterrupt, "cancelled", ("KeyboardInterrupt",), is_stuck=True
    ),
    "close the reader": Fault(_linger, _ahang, _close, _aclose, None, "abandoned", ("consumer_closed",)),
    "drop the reader": Fault(_linger, _ahang, _drop, _adrop, None, "abandoned", ("consumer_dropped",)),
}

NO_SENSE: dict[tuple[str, str], str] = {
    ("sync", "hang and run out of time"): "a sync caller cannot stop waiting for invoke(); it can leave a stream, as below",
    ("sync", "cancel the caller"): "a thread cannot be cancelled",
    ("sync", "swallow the cancellation"): "no CancelledError reaches a thread",
    ("async", "KeyboardInterrupt for a waiting caller"): "the event loop takes the signal, wherever its nodes run: as above",
    ("workers", "KeyboardInterrupt for a waiting caller"): "as above",
    ("workers", "swallow the cancellation"): "no CancelledError reaches a thread",
}
"""Combinations of colour and fault that do not exist, with the reason."""
