"""The saver in a SQLite database."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TypeVar

from tracegraph.checkpoint.serde.base import SerializerProtocol
from tracegraph.checkpoint.sql.orders import Operation
from tracegraph.checkpoint.sql.saver import SyncSqlSaver
from tracegraph.checkpoint.sqlite.database import BUSY_TIMEOUT_S, Database, Synchronous, connect
from tracegraph.checkpoint.sqlite.dialect import SqliteDialect

__all__ = ["SqliteSaver"]

T = TypeVar("T")


class SqliteSaver(SyncSqlSaver):
    """Keeps checkpoints in a SQLite file; for any number of threads on one saver, and of processes on one file.

    The connection must be made with ``check_same_thread=False`` if more than one thread uses the saver, and is the
    saver's while it does. Tables are made or updated at the first call.

    Args:
        serde: :class:`JsonPlusSerializer` if None.
        synchronous: "normal" loses nothing when the process is killed, but a power failure may take the last
            checkpoints (the file stays sound); "full" waits for the disk at each of them.

    >>> from tracegraph.checkpoint.base import empty_checkpoint
    >>> thread = {"configurable": {"thread_id": "1", "checkpoint_ns": ""}}
    >>> with SqliteSaver.from_conn_string(":memory:") as saver:
    ...     saved = saver.put(thread, empty_checkpoint(), {"source": "input", "step": -1}, {})
    ...     saver.get_tuple(thread).metadata
    {'source': 'input', 'step': -1}
    """

    def __init__(
        self, conn: sqlite3.Connection, *, serde: SerializerProtocol | None = None, synchronous: Synchronous = "normal"
    ) -> None:
        super().__init__(SqliteDialect(), serde)
        self._database = Database(conn, synchronous=synchronous)

    @classmethod
    @contextmanager
    def from_conn_string(
        cls,
        conn_string: str | Path,
        *,
        serde: SerializerProtocol | None = None,
        synchronous: Synchronous = "normal",
        busy_timeout_s: float = BUSY_TIMEOUT_S,
    ) -> Iterator[SqliteSaver]:
        """Open a file, ":memory:" or a "file:..." URI while the block runs; a new file gets mode 0600."""
        with closing(connect(conn_string, busy_timeout_s=busy_timeout_s)) as connection:
            saver = cls(connection, serde=serde, synchronous=synchronous)
            try:
                yield saver
            finally:
                saver._database.close()

    @property
    def conn(self) -> sqlite3.Connection:
        """The connection; leave it alone while the saver is in use."""
        return self._database.connection

    def setup(self) -> None:
        """Make or update the tables now, rather than at the first call."""
        with self._database.transaction("BEGIN"):
            pass

    def _run(self, operation: Operation[T], *, writes: bool) -> T:
        return self._database.run(operation, writes=writes)
