"""The saver in a PostgreSQL database."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from typing import Any, TypeAlias, TypeVar

import psycopg
from psycopg import Connection, Pipeline
from psycopg.rows import tuple_row
from psycopg_pool import ConnectionPool, PoolTimeout

from tracegraph.checkpoint.postgres.carrying import CONNECTION, READING, carry_out
from tracegraph.checkpoint.postgres.dialect import PostgresDialect
from tracegraph.checkpoint.postgres.errors import PostgresSaverError, told
from tracegraph.checkpoint.postgres.schema import preparing
from tracegraph.checkpoint.serde.base import SerializerProtocol
from tracegraph.checkpoint.sql.orders import Operation
from tracegraph.checkpoint.sql.saver import SyncSqlSaver

__all__ = ["PostgresSaver", "name_of"]

T = TypeVar("T")

Conn: TypeAlias = "Connection[Any] | ConnectionPool[Any]"


class PostgresSaver(SyncSqlSaver):
    """Keeps checkpoints in PostgreSQL, for any number of threads and processes.

    Tables are made or updated at the first call, or by :meth:`setup`. Works behind a pooler that hands out a session
    for each transaction, like pgbouncer, if the connections have ``prepare_threshold=None``; those that
    :meth:`from_conn_string` opens have.

    Args:
        conn: a psycopg connection, which threads then use in turn, or a pool.
        pipe: taken for graphs written for LangGraph; pipelines are used in any case.
        serde: :class:`JsonPlusSerializer` if None.
    """

    def __init__(self, conn: Conn, pipe: Pipeline | None = None, serde: SerializerProtocol | None = None) -> None:
        super().__init__(PostgresDialect(), serde)
        self.conn = conn
        self.pipe = pipe
        self._name = name_of(conn)
        self._process = os.getpid()
        # Of a pool, each thread has a connection to itself.
        self._turn: Any = nullcontext() if isinstance(conn, ConnectionPool) else threading.RLock()
        self._has_pipeline = Pipeline.is_supported()
        self._is_ready = False

    @classmethod
    @contextmanager
    def from_conn_string(
        cls, conn_string: str, *, pipeline: bool = True, serde: SerializerProtocol | None = None, max_size: int = 10
    ) -> Iterator[PostgresSaver]:
        """Open a pool of at most *max_size* connections while the block runs.

        *pipeline*: send statements without waiting for each answer; turn it off for a pooler that cannot do that.
        """
        with ConnectionPool(conn_string, kwargs=CONNECTION, min_size=1, max_size=max_size, open=False) as pool:
            try:
                pool.wait()
            except PoolTimeout as error:
                raise PostgresSaverError(name_of(pool), "unreachable", str(error)) from error
            saver = cls(pool, serde=serde)
            saver._has_pipeline = saver._has_pipeline and pipeline
            yield saver

    def setup(self) -> None:
        """Make or update the tables now, rather than at the first call."""
        self._transact(preparing(self._name), writes=True)
        self._is_ready = True

    def _run(self, operation: Operation[T], *, writes: bool) -> T:
        if not self._is_ready:
            self.setup()
        return self._transact(operation, writes=writes)

    def _transact(self, operation: Operation[T], *, writes: bool) -> T:
        if os.getpid() != self._process:
            raise PostgresSaverError(self._name, "other_process", f"it was opened by process {self._process}")
        try:
            with self._turn, self._connection() as connection, ExitStack() as stack:
                if self._has_pipeline:
                    stack.enter_context(connection.pipeline())
                stack.enter_context(connection.transaction())
                cursor = stack.enter_context(connection.cursor(row_factory=tuple_row))
                if not writes:
                    cursor.execute(READING)
                return carry_out(cursor, operation)
        except (psycopg.Error, PoolTimeout) as error:
            if (found := told(self._name, error)) is error:
                raise
            raise found from error

    def _connection(self) -> Any:
        return self.conn.connection() if isinstance(self.conn, ConnectionPool) else nullcontext(self.conn)


def name_of(conn: Any) -> str:
    """Return what to call a connection's database in errors; never with a password."""
    if hasattr(conn, "info"):
        info = conn.info
        return f"{info.dbname} on {info.host or 'localhost'}"
    known = psycopg.conninfo.conninfo_to_dict(conn.conninfo if isinstance(conn.conninfo, str) else "")
    return f"{known.get('dbname', '?')} on {known.get('host', 'localhost')}"
