"""Sync bodies of async runs: called in a worker thread, awaited on the loop."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
from typing import Any

from tracegraph.drivers import workers
from tracegraph.drivers.calling import Call
from tracegraph.drivers.futures import settle_on_loop
from tracegraph.drivers.here import HereNow
from tracegraph.engine.reports import Report, TaskFailed, TaskSucceeded

__all__ = ["call_in_worker"]


async def call_in_worker(here: HereNow, call: Call) -> Any:
    """Call a sync body in a worker thread, in a copy of the task's Context.

    A thread cannot be stopped: if its attempt was given up meanwhile, it reports its end itself, late.
    """
    context = contextvars.copy_context()
    loop = asyncio.get_running_loop()
    future: asyncio.Future[Any] = loop.create_future()

    def work() -> None:
        result: Any = None
        error: BaseException | None = None
        try:
            result = context.run(call.body.fn, *call.args, **call.kwargs)  # type: ignore[arg-type]  # it has a sync lane
        except BaseException as raised:
            error = raised
        if here.is_given_up:
            here.run.report(_late(here, error))
        with contextlib.suppress(RuntimeError):  # the loop is closed: whoever waited is gone
            loop.call_soon_threadsafe(settle_on_loop, future, result, error)

    workers.submit(work)
    return await future


def _late(here: HereNow, error: BaseException | None) -> Report:
    """Return a report that will be ignored: what was asked, or is to be retried, does not matter any more."""
    return TaskSucceeded(here.task, here.attempt) if error is None else TaskFailed(here.task, here.attempt, error)
