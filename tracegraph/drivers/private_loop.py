"""Async handlers of a sync run: their coroutines run to completion on an event loop of their own (design 6.12)."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable

from tracegraph.callbacks.hub import Hub

__all__ = ["finish_all", "run_to_completion"]


async def finish_all(hub: Hub, awaitables: list[Awaitable[None]]) -> None:
    """Await what handlers have to do, in order; a failure is the hub's business.

    Raises:
        asyncio.CancelledError: the caller was cancelled; one that a handler raised by itself counts as its failure.
    """
    task = asyncio.current_task()
    before = 0 if task is None else task.cancelling()
    for pending in awaitables:
        try:
            await pending
        except BaseException as error:
            if task is not None and task.cancelling() > before:
                raise
            hub.awaitable_failed(error)


def run_to_completion(hub: Hub) -> None:
    """Run the hub's outstanding awaitables; blocks until they are done."""
    if not hub.has_awaitables:
        return
    with hub.handler_lock:
        awaitables = hub.take_awaitables()
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            asyncio.run(finish_all(hub, awaitables))
            return
        # A sync run on a thread whose loop is running: that loop cannot be re-entered, so a thread of its own serves.
        thread = threading.Thread(target=asyncio.run, args=(finish_all(hub, awaitables),), daemon=True)
        thread.start()
        thread.join()
