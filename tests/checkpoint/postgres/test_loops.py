"""The saver for event loops: which loop and thread may call it, and calls that are cancelled."""

from __future__ import annotations

import asyncio
from typing import Any

import psycopg
import pytest
from postgres_savers import THREAD, Called, asked, put, running_loop
from psycopg_pool import AsyncConnectionPool

from tracegraph.checkpoint.base import empty_checkpoint
from tracegraph.checkpoint.postgres import PostgresSaverError
from tracegraph.checkpoint.postgres.aio import AsyncPostgresSaver


async def test_sync_methods_work_in_other_threads_only(postgres_url: str) -> None:
    """In the loop's own thread they would wait for themselves."""
    async with AsyncPostgresSaver.from_conn_string(postgres_url) as saver:
        saved = await asyncio.to_thread(put, Called(saver))

        with pytest.raises(PostgresSaverError, match="in other threads only") as caught:
            saver.get_tuple(THREAD)

        assert caught.value.reason == "other_loop"
        assert [each.config for each in await asyncio.to_thread(lambda: [*saver.list(THREAD)])] == [saved]
        found = await saver.aget_tuple(THREAD)
        assert found is not None and found.config == saved


def test_other_loops_are_refused(postgres_url: str) -> None:
    """Connections belong to the loop they were opened in."""
    with running_loop() as run:
        entered = AsyncPostgresSaver.from_conn_string(postgres_url)
        saver = run(entered.__aenter__())

        with pytest.raises(PostgresSaverError, match="another event loop") as caught:
            asyncio.run(saver.aget_tuple(THREAD))

        assert caught.value.reason == "other_loop"
        run(entered.__aexit__(None, None, None))


def test_loop_that_has_ended_is_an_error(postgres_url: str) -> None:
    """Nobody would ever answer."""

    async def made() -> AsyncPostgresSaver:
        async with AsyncPostgresSaver.from_conn_string(postgres_url) as saver:
            return saver

    saver = asyncio.run(made())

    with pytest.raises(PostgresSaverError, match="does not run any more") as caught:
        saver.get_tuple(THREAD)
    assert caught.value.reason == "other_loop"


def test_loop_that_stops_in_the_middle_is_an_error(postgres_url: str) -> None:
    """The thread that waits is told, rather than left waiting."""
    with running_loop() as run:
        entered = AsyncPostgresSaver.from_conn_string(postgres_url)
        saver = run(entered.__aenter__())
        put(Called(saver))

        async def stopping(*_args: Any, **_kwargs: Any) -> None:
            saver.loop.stop()
            await asyncio.Event().wait()

        saver._arun = stopping
        with pytest.raises(PostgresSaverError, match="stopped before the call was over"):
            saver.get_tuple(THREAD)
        saver.loop.run_until_complete(entered.__aexit__(None, None, None))


def test_saver_is_made_inside_a_loop(postgres_url: str) -> None:
    """There is none here that it could belong to."""
    pool: Any = AsyncConnectionPool.__new__(AsyncConnectionPool)

    with pytest.raises(RuntimeError, match="no running event loop"):
        AsyncPostgresSaver(pool)


async def waiting_for_lock(url: str) -> None:
    while not await asyncio.to_thread(asked, url, "SELECT 1 FROM pg_locks WHERE NOT granted"):
        pass


@pytest.mark.parametrize("pipeline", [True, False])
@pytest.mark.parametrize("is_pool", [True, False])
async def test_cancelled_call_stores_nothing_and_leaves_its_connection_usable(
    postgres_url: str, pipeline: bool, is_pool: bool
) -> None:
    """The pool has but one, and has it back; a single connection goes on being one."""
    opened: Any = (
        AsyncConnectionPool(postgres_url, min_size=1, max_size=1, open=False)
        if is_pool
        else await psycopg.AsyncConnection.connect(postgres_url)
    )
    async with opened as conn, await psycopg.AsyncConnection.connect(postgres_url) as other:
        saver = AsyncPostgresSaver(conn, pipeline=pipeline)
        kept = await saver.aput(THREAD, empty_checkpoint(), {}, {})
        await other.execute("SELECT 1 FROM tracegraph_places FOR UPDATE")
        saving = asyncio.create_task(saver.aput(THREAD, empty_checkpoint(), {}, {}))
        await waiting_for_lock(postgres_url)
        queued = asyncio.create_task(saver.aput(THREAD, empty_checkpoint(), {}, {}))

        saving.cancel()
        with pytest.raises(asyncio.CancelledError):
            await saving
        await other.rollback()

        second = await queued
        assert [each.config async for each in saver.alist(THREAD)] == [second, kept]
