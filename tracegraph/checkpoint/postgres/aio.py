"""The PostgreSQL saver for event loops."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, Final, TypeAlias, TypeVar

import psycopg
from psycopg import AsyncConnection, AsyncPipeline
from psycopg_pool import AsyncConnectionPool, PoolTimeout

from tracegraph.checkpoint.postgres.carrying import acarry_out
from tracegraph.checkpoint.postgres.database import CONNECTION, SESSION, Database, attempt_of, checked, prepare_threshold
from tracegraph.checkpoint.postgres.dialect import PostgresDialect
from tracegraph.checkpoint.postgres.schema import preparing
from tracegraph.checkpoint.serde.base import SerializerProtocol
from tracegraph.checkpoint.sql.orders import Operation
from tracegraph.checkpoint.sql.saver import AsyncSqlSaver, SyncSqlSaver

__all__ = ["AsyncPostgresSaver"]

T = TypeVar("T")

Conn: TypeAlias = "AsyncConnection[Any] | AsyncConnectionPool[Any]"

_LOOK_S: Final = 0.5
"""How often a thread that waits for the event loop looks whether that still runs."""


class AsyncPostgresSaver(AsyncSqlSaver, SyncSqlSaver):
    """Keeps checkpoints in PostgreSQL without a thread, in the event loop it was made in; see :class:`PostgresSaver`.

    The sync methods work in other threads than the loop's, while the loop runs.
    """

    def __init__(
        self, conn: Conn, pipe: AsyncPipeline | None = None, serde: SerializerProtocol | None = None, *, pipeline: bool = True
    ) -> None:
        if not isinstance(conn, AsyncConnection | AsyncConnectionPool):
            raise TypeError(f"it takes psycopg's AsyncConnection or AsyncConnectionPool, not {type(conn).__qualname__}")
        super().__init__(PostgresDialect(), serde)
        self.conn = conn
        self.pipe = pipe
        self.loop = asyncio.get_running_loop()
        self._database = Database(conn, pipeline=pipeline)
        self._turn = asyncio.Lock()  # for a single connection

    @classmethod
    @asynccontextmanager
    async def from_conn_string(
        cls, conn_string: str, *, pipeline: bool = True, serde: SerializerProtocol | None = None, max_size: int = 10
    ) -> AsyncIterator[AsyncPostgresSaver]:
        """Open a pool of at most *max_size* connections while the block runs."""
        pool = AsyncConnectionPool(
            checked(conn_string), kwargs=CONNECTION, configure=_configure, min_size=1, max_size=max_size, open=False
        )
        saver = cls(pool, serde=serde, pipeline=pipeline)
        # Before the pool, which would try for half a minute, and not say why it did not succeed.
        if (reason := await saver._why_unreachable(pool)) is not None:
            raise saver._database.unusable("unreachable", reason)
        await pool.open()
        try:
            yield saver
        finally:
            if saver._database.is_of_this_process:  # else the server would take it for the other's farewell
                await pool.close()

    async def setup(self) -> None:
        """Make or update the tables now, rather than at the first call."""
        await self._transact(preparing(self._database.name), writes=True)
        self._database.is_ready = True

    def _run(self, operation: Operation[T], *, writes: bool) -> T:
        self._database.check_process()
        try:
            is_here = asyncio.get_running_loop() is self.loop
        except RuntimeError:
            is_here = False
        if is_here:
            raise self._database.unusable("other_loop", "a sync method was called in the saver's own event loop")
        return self._waited_for(self._arun(operation, writes=writes))

    def _waited_for(self, call: Coroutine[Any, Any, T]) -> T:
        """Return what the call returns in the saver's event loop.

        Raises:
            PostgresSaverError: the loop does not run, or stopped in the meantime.
        """
        if not self.loop.is_running():
            call.close()
            raise self._database.unusable("other_loop", "its event loop does not run any more")
        waiting = asyncio.run_coroutine_threadsafe(call, self.loop)
        while True:
            try:
                return waiting.result(_LOOK_S)
            except TimeoutError:
                if waiting.done():
                    return waiting.result()
                if not self.loop.is_running():
                    raise self._database.unusable("other_loop", "its event loop stopped before the call was over") from None

    async def _arun(self, operation: Operation[T], *, writes: bool) -> T:
        if not self._database.is_ready:
            await self.setup()
        return await self._transact(operation, writes=writes)

    async def _transact(self, operation: Operation[T], *, writes: bool) -> T:
        database = self._database
        database.check_process()
        if asyncio.get_running_loop() is not self.loop:
            raise database.unusable("other_loop", "an async method was called in another event loop")
        try:
            async with self._connection() as connection, AsyncExitStack() as stack:
                if database.has_pipeline:
                    await stack.enter_async_context(connection.pipeline())
                database.check_free(connection)
                await stack.enter_async_context(connection.transaction())
                return await acarry_out(connection, operation, writes=writes)
        except (psycopg.Error, UnicodeEncodeError) as error:
            raise await self._told(error) from error

    @asynccontextmanager
    async def _connection(self) -> AsyncIterator[AsyncConnection[Any]]:
        """Let this task alone have a connection."""
        if isinstance(self.conn, AsyncConnectionPool):
            async with self.conn.connection() as connection:
                yield connection
        else:
            async with self._turn:
                yield self.conn

    async def _told(self, error: psycopg.Error | UnicodeEncodeError) -> Exception:
        if isinstance(self.conn, AsyncConnectionPool):
            if isinstance(error, PoolTimeout) and (reason := await self._why_unreachable(self.conn)) is not None:
                return self._database.unusable("unreachable", reason)
            told = self._database.told(error)
            if getattr(told, "reason", None) == "lost":
                await self.conn.check()  # the others in the pool are probably lost too; each would fail one more call
            return told
        return self._database.told(error)

    async def _why_unreachable(self, pool: AsyncConnectionPool[Any]) -> str | None:
        """Return what speaks against opening a connection; None if nothing does."""
        try:
            if (attempt := attempt_of(pool)) is not None:
                await (await AsyncConnection.connect(**attempt)).close()
        except psycopg.Error as error:
            return str(error).strip().partition("\n")[0]
        return None


async def _configure(connection: AsyncConnection[Any]) -> None:
    ((session,),) = await (await connection.execute(SESSION)).fetchall()
    connection.prepare_threshold = prepare_threshold(connection, session)
