"""The saver in a PostgreSQL database."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, TypeAlias, TypeVar

import psycopg
from psycopg import Connection, Pipeline
from psycopg_pool import ConnectionPool, PoolTimeout

from tracegraph.checkpoint.postgres.carrying import carry_out
from tracegraph.checkpoint.postgres.database import CONNECTION, SESSION, Database, attempt_of, checked, prepare_threshold
from tracegraph.checkpoint.postgres.dialect import PostgresDialect
from tracegraph.checkpoint.postgres.schema import preparing
from tracegraph.checkpoint.serde.base import SerializerProtocol
from tracegraph.checkpoint.sql.orders import Operation
from tracegraph.checkpoint.sql.saver import SyncSqlSaver

__all__ = ["PostgresSaver"]

T = TypeVar("T")

Conn: TypeAlias = "Connection[Any] | ConnectionPool[Any]"


class PostgresSaver(SyncSqlSaver):
    """Keeps checkpoints in PostgreSQL, for any number of threads and processes.

    Tables are made or updated at the first call, or by :meth:`setup`. Works behind a pooler that hands out a session
    for each transaction, like pgbouncer, if the connections have ``prepare_threshold=None``; :meth:`from_conn_string`
    sees to that where there is one.

    Args:
        conn: a psycopg connection, which threads then use in turn, or an open pool.
        pipe: taken for graphs written for LangGraph; pipelines are used in any case.
        serde: :class:`JsonPlusSerializer` if None.
        pipeline: send statements without waiting for each answer; turn it off for a pooler that cannot do that.
    """

    def __init__(
        self, conn: Conn, pipe: Pipeline | None = None, serde: SerializerProtocol | None = None, *, pipeline: bool = True
    ) -> None:
        if not isinstance(conn, Connection | ConnectionPool):
            raise TypeError(f"PostgresSaver takes psycopg's Connection or ConnectionPool, not {type(conn).__qualname__}")
        super().__init__(PostgresDialect(), serde)
        self.conn = conn
        self.pipe = pipe
        self._database = Database(conn, pipeline=pipeline)
        # For a single connection. Re-entrant, so that a save from inside the garbage collector fails instead of waiting
        # for ever for the call that it interrupted.
        self._turn = threading.RLock()

    @classmethod
    @contextmanager
    def from_conn_string(
        cls, conn_string: str, *, pipeline: bool = True, serde: SerializerProtocol | None = None, max_size: int = 10
    ) -> Iterator[PostgresSaver]:
        """Open a pool of at most *max_size* connections while the block runs."""
        pool = ConnectionPool(
            checked(conn_string), kwargs=CONNECTION, configure=_configure, min_size=1, max_size=max_size, open=False
        )
        saver = cls(pool, serde=serde, pipeline=pipeline)
        # Before the pool, which would try for half a minute, and not say why it did not succeed.
        if (reason := saver._why_unreachable(pool)) is not None:
            raise saver._database.unusable("unreachable", reason)
        pool.open()
        try:
            yield saver
        finally:
            if saver._database.is_of_this_process:  # else the server would take it for the other's farewell
                pool.close()

    def setup(self) -> None:
        """Make or update the tables now, rather than at the first call."""
        self._transact(preparing(self._database.name), writes=True)
        self._database.is_ready = True

    def _run(self, operation: Operation[T], *, writes: bool) -> T:
        if not self._database.is_ready:
            self.setup()
        return self._transact(operation, writes=writes)

    def _transact(self, operation: Operation[T], *, writes: bool) -> T:
        database = self._database
        database.check_process()
        try:
            with self._connection() as connection, ExitStack() as stack:
                if database.has_pipeline:
                    stack.enter_context(connection.pipeline())
                database.check_free(connection)
                stack.enter_context(connection.transaction())
                return carry_out(connection, operation, writes=writes)
        except (psycopg.Error, UnicodeEncodeError) as error:
            raise self._told(error) from error

    @contextmanager
    def _connection(self) -> Iterator[Connection[Any]]:
        """Let this thread alone have a connection."""
        if isinstance(self.conn, ConnectionPool):
            with self.conn.connection() as connection:
                yield connection
            return
        database = self._database
        with self._turn:
            if database.is_busy:
                raise database.unusable("in_transaction", "a call began inside another one of the same thread")
            database.is_busy = True
            try:
                yield self.conn
            finally:
                database.is_busy = False

    def _told(self, error: psycopg.Error | UnicodeEncodeError) -> Exception:
        if isinstance(self.conn, ConnectionPool):
            if isinstance(error, PoolTimeout) and (reason := self._why_unreachable(self.conn)) is not None:
                return self._database.unusable("unreachable", reason)
            told = self._database.told(error)
            if getattr(told, "reason", None) == "lost":
                self.conn.check()  # the others in the pool are probably lost too; each would fail one more call
            return told
        return self._database.told(error)

    def _why_unreachable(self, pool: ConnectionPool[Any]) -> str | None:
        """Return what speaks against opening a connection; None if nothing does."""
        try:
            if (attempt := attempt_of(pool)) is not None:
                psycopg.connect(**attempt).close()
        except psycopg.Error as error:
            return str(error).strip().partition("\n")[0]
        return None


def _configure(connection: Connection[Any]) -> None:
    ((session,),) = connection.execute(SESSION).fetchall()
    connection.prepare_threshold = prepare_threshold(connection, session)
