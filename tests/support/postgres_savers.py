"""Postgres savers of either colour, called without awaiting, so that a test is written once."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import AsyncExitStack, contextmanager
from typing import Any, TypeAlias
from uuid import uuid4

import psycopg
from psycopg import sql
from psycopg.conninfo import make_conninfo

from tracegraph.checkpoint.base import BaseCheckpointSaver, CheckpointTuple, empty_checkpoint
from tracegraph.checkpoint.postgres import PostgresSaver
from tracegraph.checkpoint.postgres.aio import AsyncPostgresSaver

__all__ = ["THREAD", "Called", "asked", "opened", "put", "role", "running_loop", "terminated", "wrapping"]

THREAD: dict[str, Any] = {"configurable": {"thread_id": "1", "checkpoint_ns": ""}}

Run: TypeAlias = Callable[[Coroutine[Any, Any, Any]], Any]


class Called:
    """Calls the methods of a saver, or their async twins in its loop."""

    def __init__(self, saver: BaseCheckpointSaver, run: Run | None = None) -> None:
        self.saver = saver
        self.run = run

    def __getattr__(self, method: str) -> Any:
        run = self.run
        if run is None:
            return getattr(self.saver, method)
        return lambda *args, **kwargs: run(getattr(self.saver, f"a{method}")(*args, **kwargs))

    def setup(self) -> None:
        """Make the tables."""
        done: Any = self.saver.setup()  # type: ignore[attr-defined]
        if self.run is not None:
            self.run(done)

    def list(self, config: Any = None, **options: Any) -> list[CheckpointTuple]:
        """Return what the saver lists."""
        if self.run is None:
            return list(self.saver.list(config, **options))

        async def all_of() -> list[CheckpointTuple]:
            return [found async for found in self.saver.alist(config, **options)]

        found: list[CheckpointTuple] = self.run(all_of())
        return found


@contextmanager
def running_loop() -> Iterator[Run]:
    """Run an event loop in another thread; the value runs something there, and waits for it."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    try:
        yield lambda call: asyncio.run_coroutine_threadsafe(call, loop).result()
    finally:
        if loop.is_running():
            loop.call_soon_threadsafe(loop.stop)
        thread.join()
        if left := asyncio.all_tasks(loop):
            for task in left:
                task.cancel()
            loop.run_until_complete(asyncio.wait(left))
        loop.close()


@contextmanager
def opened(url: str, *, is_async: bool = False, **options: Any) -> Iterator[Called]:
    """Open a saver with a pool of its own."""
    if not is_async:
        with PostgresSaver.from_conn_string(url, **options) as saver:
            yield Called(saver)
        return
    with running_loop() as run:
        entered = AsyncPostgresSaver.from_conn_string(url, **options)
        saver_there = run(entered.__aenter__())
        try:
            yield Called(saver_there, run)
        finally:
            run(entered.__aexit__(None, None, None))


@contextmanager
def wrapping(open_sync: Any, open_async: Any, *, is_async: bool, **options: Any) -> Iterator[Called]:
    """Make a saver on what one of two functions opens: a connection, or a pool, of the saver's colour."""
    if not is_async:
        with open_sync() as conn:
            yield Called(PostgresSaver(conn, **options))
        return

    async def made() -> tuple[AsyncPostgresSaver, AsyncExitStack]:
        stack = AsyncExitStack()
        conn = open_async()
        conn = await stack.enter_async_context(await conn if asyncio.iscoroutine(conn) else conn)
        return AsyncPostgresSaver(conn, **options), stack

    with running_loop() as run:
        saver, stack = run(made())
        try:
            yield Called(saver, run)
        finally:
            run(stack.aclose())


def put(saver: Called, value: Any = 1, *, thread_id: str = "1", metadata: Any = None, **more: Any) -> Any:
    """Store a new checkpoint with one channel; return its config."""
    checkpoint = empty_checkpoint()
    checkpoint["channel_values"] = {"a": value}
    checkpoint["channel_versions"] = {"a": saver.saver.get_next_version(None, None)}
    where = {"configurable": {"thread_id": thread_id, "checkpoint_ns": ""}}
    return saver.put(where, checkpoint, metadata or {}, checkpoint["channel_versions"], **more)


def asked(url: str, statement: Any, *values: Any) -> list[tuple[Any, ...]]:
    """Run a statement as somebody else; return its rows."""
    with psycopg.connect(url, autocommit=True) as connection:
        cursor = connection.execute(statement, values or None)
        return cursor.fetchall() if cursor.description else []


def terminated(url: str) -> int:
    """End everybody's sessions on a database, as a restart of the server does; return how many there were."""
    others = (
        "FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type LIKE 'client%'"
    )
    return len(asked(url, f"SELECT pg_terminate_backend(pid, 10000) {others}"))


@contextmanager
def role(url: str, *grants: str) -> Iterator[str]:
    """Make a role that may do this and nothing else; the value is a connection string to act as it."""
    name = f"role_{uuid4().hex}"
    asked(url, sql.SQL("CREATE ROLE {}").format(sql.Identifier(name)))
    asked(url, "REVOKE CREATE ON SCHEMA public FROM PUBLIC")
    for grant in grants:
        asked(url, f"GRANT {grant} TO {name}")
    try:
        yield make_conninfo(url, options=f"-c role={name}")
    finally:
        asked(url, f"DROP OWNED BY {name}")
        asked(url, f"DROP ROLE {name}")
