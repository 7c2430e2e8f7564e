"""Futures of called tasks: blocking ones, for code without an event loop, and those of a loop."""

from __future__ import annotations

import asyncio
import concurrent.futures
from typing import Any

__all__ = ["blocking_future", "settle_blocking", "settle_on_loop"]


def blocking_future() -> concurrent.futures.Future[Any]:
    """Return a future that counts as running, so that nobody can cancel it: the task is the run's, not its caller's."""
    future: concurrent.futures.Future[Any] = concurrent.futures.Future()
    future.set_running_or_notify_cancel()
    return future


def settle_blocking(
    future: concurrent.futures.Future[Any], result: Any, error: BaseException | None, *, is_cancelled: bool
) -> None:
    """Give a future what its task came to; a cancelled one raises, or a thread would wait for it for ever."""
    if is_cancelled:
        future.set_exception(concurrent.futures.CancelledError())
    elif error is not None:
        future.set_exception(error)
    else:
        future.set_result(result)


def settle_on_loop(future: asyncio.Future[Any], result: Any, error: BaseException | None) -> None:
    """Give an asyncio future what its task came to, on its loop; one that is done already stays as it is."""
    if future.done():
        return
    if isinstance(error, asyncio.CancelledError):
        future.cancel()
    elif isinstance(error, StopIteration):  # asyncio futures refuse it; a generator's end is not a node's result
        future.set_exception(RuntimeError(f"a node raised StopIteration: {error}"))
    elif error is not None:
        future.set_exception(error)
        future.exception()  # marked as seen: a call nobody awaits is not an asyncio warning
    else:
        future.set_result(result)
