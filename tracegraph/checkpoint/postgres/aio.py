"""The PostgreSQL saver for event loops."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, nullcontext
from typing import Any, TypeAlias, TypeVar

import psycopg
from psycopg import AsyncConnection, AsyncPipeline
from psycopg.rows import tuple_row
from psycopg_pool import AsyncConnectionPool, PoolTimeout

from tracegraph.checkpoint.postgres.carrying import CONNECTION, READING, acarry_out
from tracegraph.checkpoint.postgres.dialect import PostgresDialect
from tracegraph.checkpoint.postgres.errors import PostgresSaverError, told
from tracegraph.checkpoint.postgres.saver import name_of
from tracegraph.checkpoint.postgres.schema import preparing
from tracegraph.checkpoint.serde.base import SerializerProtocol
from tracegraph.checkpoint.sql.orders import Operation
from tracegraph.checkpoint.sql.saver import AsyncSqlSaver, SyncSqlSaver

__all__ = ["AsyncPostgresSaver"]

T = TypeVar("T")

Conn: TypeAlias = "AsyncConnection[Any] | AsyncConnectionPool[Any]"


class AsyncPostgresSaver(AsyncSqlSaver, SyncSqlSaver):
    """Keeps checkpoints in PostgreSQL without a thread, in the event loop it was made in; see :class:`PostgresSaver`.

    The sync methods work in other threads than the loop's, while the loop runs.
    """

    def __init__(self, conn: Conn, pipe: AsyncPipeline | None = None, serde: SerializerProtocol | None = None) -> None:
        super().__init__(PostgresDialect(), serde)
        self.conn = conn
        self.pipe = pipe
        self.loop = asyncio.get_running_loop()
        self._name = name_of(conn)
        self._process = os.getpid()
        # Of a pool, each task has a connection to itself.
        self._turn: Any = nullcontext() if isinstance(conn, AsyncConnectionPool) else asyncio.Lock()
        self._has_pipeline = AsyncPipeline.is_supported()
        self._is_ready = False

    @classmethod
    @asynccontextmanager
    async def from_conn_string(
        cls, conn_string: str, *, pipeline: bool = True, serde: SerializerProtocol | None = None, max_size: int = 10
    ) -> AsyncIterator[AsyncPostgresSaver]:
        """Open a pool of at most *max_size* connections while the block runs.

        *pipeline*: send statements without waiting for each answer; turn it off for a pooler that cannot do that.
        """
        async with AsyncConnectionPool(conn_string, kwargs=CONNECTION, min_size=1, max_size=max_size, open=False) as pool:
            try:
                await pool.wait()
            except PoolTimeout as error:
                raise PostgresSaverError(name_of(pool), "unreachable", str(error)) from error
            saver = cls(pool, serde=serde)
            saver._has_pipeline = saver._has_pipeline and pipeline
            yield saver

    async def setup(self) -> None:
        """Make or update the tables now, rather than at the first call."""
        await self._transact(preparing(self._name), writes=True)
        self._is_ready = True

    def _run(self, operation: Operation[T], *, writes: bool) -> T:
        try:
            is_here = asyncio.get_running_loop() is self.loop
        except RuntimeError:
            is_here = False
        if is_here or not self.loop.is_running():
            detail = "a sync method was called in its own event loop" if is_here else "its event loop does not run any more"
            raise PostgresSaverError(self._name, "other_loop", detail)
        return asyncio.run_coroutine_threadsafe(self._arun(operation, writes=writes), self.loop).result()

    async def _arun(self, operation: Operation[T], *, writes: bool) -> T:
        if not self._is_ready:
            await self.setup()
        return await self._transact(operation, writes=writes)

    async def _transact(self, operation: Operation[T], *, writes: bool) -> T:
        if os.getpid() != self._process:
            raise PostgresSaverError(self._name, "other_process", f"it was opened by process {self._process}")
        if asyncio.get_running_loop() is not self.loop:
            raise PostgresSaverError(self._name, "other_loop", "an async method was called in another event loop")
        try:
            async with AsyncExitStack() as stack:
                if isinstance(self.conn, AsyncConnectionPool):
                    connection = await stack.enter_async_context(self.conn.connection())
                else:
                    await stack.enter_async_context(self._turn)
                    connection = self.conn
                if self._has_pipeline:
                    await stack.enter_async_context(connection.pipeline())
                await stack.enter_async_context(connection.transaction())
                cursor = await stack.enter_async_context(connection.cursor(row_factory=tuple_row))
                if not writes:
                    await cursor.execute(READING)
                return await acarry_out(cursor, operation)
        except (psycopg.Error, PoolTimeout) as error:
            if (found := told(self._name, error)) is error:
                raise
            raise found from error
