"""Saves whose task is cancelled, as by whoever cancels all tasks of a loop: they are made, or it is told that they were not."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest
from small_graphs import THREAD, SlowSaver, State, bounded, chain, saving, says

from tracegraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from tracegraph.checkpoint.sqlite.database import connect


async def a(_state: State) -> State:
    """Never let go of the loop: what it orders to be saved has not begun when the next node begins."""
    return {"xs": ["a"]}


def cancel_all() -> None:
    for task in asyncio.all_tasks():
        task.cancel()


def test_a_saving_task_cancelled_before_its_first_step_begins_again() -> None:
    saver = AsyncSqliteSaver(connect(":memory:"))

    async def b(_state: State) -> State:
        cancel_all()
        await asyncio.sleep(0)
        return {}

    with pytest.raises(asyncio.CancelledError):
        bounded(lambda: asyncio.run(chain(saving(saver), a=a, b=b).ainvoke({"xs": []}, THREAD)))

    assert chain(saving(saver), a=a, b=b).get_state(THREAD).values == {"xs": ["a"]}


def test_closing_a_reader_while_its_saving_task_is_cancelled_ends() -> None:
    saver = AsyncSqliteSaver(connect(":memory:"))
    app = chain(saving(saver), a=a, b=says("b"))

    async def main() -> None:
        reader = app.astream({"xs": []}, THREAD, durability="async")
        await anext(reader)
        for task in asyncio.all_tasks() - {asyncio.current_task()}:
            task.cancel()
        await reader.aclose()

    bounded(lambda: asyncio.run(main()))
    assert app.get_state(THREAD).values == {"xs": ["a"]}


class Hanging(SlowSaver):
    """Stores nothing until it is cancelled."""

    def __init__(self) -> None:
        super().__init__()
        self.is_storing = asyncio.Event()
        self.storing: Any = None

    async def aput(self, *args: Any, **kwargs: Any) -> Any:
        self.storing = asyncio.current_task()
        self.is_storing.set()
        await asyncio.Event().wait()


def test_a_run_whose_saving_task_is_cancelled_while_it_stores_fails() -> None:
    async def main() -> None:
        saver = Hanging()

        async def b(_state: State) -> State:
            await saver.is_storing.wait()
            saver.storing.cancel()
            return {"xs": ["b"]}

        await chain(saving(saver), a=says("a"), b=b).ainvoke({"xs": []}, THREAD)

    with pytest.raises(asyncio.CancelledError):
        bounded(lambda: asyncio.run(main()))


def test_saves_that_were_cancelled_after_the_end_of_their_run_are_told_of(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        saver = Hanging()

        async def b(_state: State) -> State:
            await asyncio.Event().wait()
            return {}

        running = asyncio.create_task(chain(saving(saver), a=says("a"), b=b).ainvoke({"xs": []}, THREAD))
        await saver.is_storing.wait()
        running.cancel()
        await asyncio.sleep(0)
        saver.storing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running

    with caplog.at_level(logging.ERROR, "tracegraph.drivers"):
        bounded(lambda: asyncio.run(main()))

    assert "are not stored" in caplog.text
