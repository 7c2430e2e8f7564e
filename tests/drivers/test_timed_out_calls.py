"""A call that is out of time fails its caller as any failure would: what the caller had called beside it is not lost."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest
from event_log import Recorder
from recording import recording
from small_graphs import PATIENCE_S, THREAD, bounded

from tracegraph.checkpoint.memory import InMemorySaver
from tracegraph.errors import NodeTimeoutError
from tracegraph.events import AttemptEnded, Event, ReportIgnored, TaskEnded
from tracegraph.func import entrypoint, task
from tracegraph.types import RetryPolicy

LIMIT_S = 0.1
AT_ONCE = RetryPolicy(initial_interval=0.001, jitter=False)


class Frees(Recorder):
    """Sets an event once an attempt, or the task, of the given name has ended."""

    def __init__(self, name: str, event: threading.Event) -> None:
        super().__init__()
        self._name = name
        self._event = event

    def observe(self, event: Event) -> None:
        """Keep the event."""
        super().observe(event)
        if isinstance(event, AttemptEnded | TaskEnded) and event.name == self._name:
            self._event.set()


@pytest.mark.parametrize("retry", [(), AT_ONCE], ids=["resumed", "retried"])
def test_a_thread_beside_a_call_that_is_out_of_time_is_not_begun_twice(retry: Any) -> None:
    """It cannot be stopped, so its result is kept for the caller's next attempt."""
    made: list[int] = []
    begun, may_end = threading.Event(), threading.Event()
    has_failed = False

    @task
    def work(x: int) -> int:
        made.append(x)
        begun.set()
        assert may_end.wait(PATIENCE_S)
        return x

    @task(timeout=LIMIT_S, retry_policy=RetryPolicy(max_attempts=1))
    async def hang() -> None:
        await asyncio.Event().wait()

    @entrypoint(checkpointer=InMemorySaver(), retry_policy=retry)
    async def main(x: int) -> int:
        nonlocal has_failed
        future = work(x)
        await asyncio.to_thread(begun.wait, PATIENCE_S)
        if not has_failed:
            has_failed = True
            await hang()
        return int(await future)

    async def run() -> int:
        if not retry:
            with pytest.raises(NodeTimeoutError, match="'hang'"):
                await main.ainvoke(1, THREAD)
        return int(await main.ainvoke(None if not retry else 1, THREAD))

    with recording(Frees("main", may_end)):
        assert bounded(lambda: asyncio.run(run())) == 1
    assert made == [1]


def test_the_late_report_of_a_dropped_call_is_told_once() -> None:
    """Its caller is out of time, and its thread ends during the next attempt."""
    may_end, has_ended = threading.Event(), threading.Event()
    attempts: list[int] = []

    class Hears(Recorder):
        def observe(self, event: Event) -> None:
            super().observe(event)
            if isinstance(event, ReportIgnored):
                has_ended.set()

    @task
    def work() -> None:
        assert may_end.wait(PATIENCE_S)

    @entrypoint(timeout=5 * LIMIT_S, retry_policy=AT_ONCE)
    async def main(x: int) -> int:
        attempts.append(x)
        if len(attempts) == 1:
            await work()
        may_end.set()
        assert await asyncio.to_thread(has_ended.wait, PATIENCE_S)
        for _ in range(10):  # what else the thread's end brings about on the loop
            await asyncio.sleep(0)
        return x

    with recording(Hears()) as recorder:
        assert bounded(lambda: asyncio.run(main.ainvoke(1))) == 1

    assert attempts == [1, 1]
    assert [event.name for event in recorder.events if isinstance(event, ReportIgnored)] == ["work"]
