"""Futures of called tasks that block: for code without an event loop."""

from __future__ import annotations

import concurrent.futures
from typing import Any

__all__ = ["blocking_future", "settle_blocking"]


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
