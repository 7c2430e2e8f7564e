"""Runs on an event loop of their own, inside a task of another run that ends first."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest
from colours import Colour
from small_graphs import PATIENCE_S, State, bounded, chain, parallel

from tracegraph.errors import RunClosed, StepTimeoutError

LIMIT_S = 0.2


@pytest.mark.parametrize("count", [1, 2], ids=["alone", "beside another"])
def test_nodes_are_cancelled_with_the_run_around_theirs(colour: Colour, count: int) -> None:
    """Also a lone one, which has no asyncio task of its own."""
    over = threading.Event()
    ended: list[str] = []

    async def waits(state: State) -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            ended.append("node")
            raise

    inner = parallel(**{f"n{i}": waits for i in range(count)}) if count > 1 else chain(n=waits)

    def calls(state: State) -> Any:
        try:
            return asyncio.run(inner.ainvoke({"xs": []}))
        except RunClosed:
            ended.append("run")
            raise
        finally:
            over.set()

    app = chain({"step_timeout": LIMIT_S}, calls=calls)
    with pytest.raises(StepTimeoutError):
        bounded(lambda: colour.invoke(app, {"xs": []}))

    assert over.wait(PATIENCE_S)
    assert ended == [*["node"] * count, "run"]


def test_a_node_that_is_cancelled_with_its_run_may_clean_up_and_its_caller_goes_on() -> None:
    """The asyncio task that awaited the lone node is not cancelled itself: what it does next may wait."""
    over = threading.Event()
    ended: list[str] = []

    async def waits(state: State) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            ended.append("cleaned up")

    inner = chain(n=waits)

    async def call() -> None:
        with pytest.raises(RunClosed):
            await inner.ainvoke({"xs": []})
        await asyncio.sleep(0)
        task = asyncio.current_task()
        assert task is not None
        ended.append(f"cancelled {task.cancelling()} times")

    def calls(state: State) -> None:
        try:
            asyncio.run(call())
        finally:
            over.set()

    app = chain({"step_timeout": LIMIT_S}, calls=calls)
    with pytest.raises(StepTimeoutError):
        bounded(lambda: app.invoke({"xs": []}))

    assert over.wait(PATIENCE_S)
    assert ended == ["cleaned up", "cancelled 0 times"]
