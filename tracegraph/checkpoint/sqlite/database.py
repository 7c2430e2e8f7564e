"""One SQLite connection, safe for many threads: its lock, its transactions, and what its errors mean."""

from __future__ import annotations

import os
import sqlite3
import threading
from contextlib import suppress
from pathlib import Path
from typing import Final, Literal, TypeAlias, TypeVar
from urllib.parse import parse_qs, unquote, urlsplit

from tracegraph.checkpoint.sql.orders import Operation, Rows
from tracegraph.checkpoint.sqlite.errors import SqliteSaverError, told
from tracegraph.checkpoint.sqlite.schema import prepare
from tracegraph.errors import InvalidInputError

__all__ = ["BUSY_TIMEOUT_S", "Database", "Synchronous", "connect"]

T = TypeVar("T")

Synchronous: TypeAlias = Literal["normal", "full"]

BUSY_TIMEOUT_S: Final = 30.0
"""How long to wait for other processes. SQLite's waiting is not fair, so with many of them some wait long."""


def connect(path: str | Path, *, busy_timeout_s: float = BUSY_TIMEOUT_S) -> sqlite3.Connection:
    """Open a database; a file that is not there yet is made, and made private, since checkpoints hold what users said.

    SQLite gives the files beside it (``-wal``, ``-shm``) the same mode.

    Raises:
        SqliteSaverError: it cannot be opened.
    """
    name = str(path)
    try:
        if (new := _may_create(name)) is not None:
            with suppress(FileExistsError):
                os.close(os.open(new, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
        return sqlite3.connect(
            name, uri=name.startswith("file:"), isolation_level=None, check_same_thread=False, timeout=busy_timeout_s
        )
    except OSError as error:
        raise SqliteSaverError(name, "cannot_open", str(error)) from error
    except sqlite3.Error as error:
        raise told(name, error) from error


def _may_create(name: str) -> str | None:
    """Return the file that SQLite would make if there is none."""
    if not name.startswith("file:"):
        return None if name in ("", ":memory:") else name
    parts = urlsplit(name)
    options = parse_qs(parts.query)
    path = unquote(parts.path)
    return None if path in ("", ":memory:") or "vfs" in options or options.get("mode", ["rwc"]) != ["rwc"] else path


class Database:
    """A connection that one thread uses at a time, for whole transactions."""

    def __init__(self, connection: sqlite3.Connection, *, synchronous: Synchronous) -> None:
        if not isinstance(connection, sqlite3.Connection):
            raise TypeError(f"the SQLite savers take a connection of the sqlite3 module, not {type(connection).__qualname__}")
        if synchronous not in ("normal", "full"):
            raise InvalidInputError(f"synchronous={synchronous!r} is unknown; give 'normal' or 'full'")
        self.connection = connection
        self.path = _path_of(connection)
        self._synchronous = synchronous
        self._process = os.getpid()
        # Re-entrant: a reader that is dropped may save from inside the garbage collector, which may run anywhere.
        self.lock = threading.RLock()
        self.depth = 0
        self.is_ready = False

    def check_process(self) -> None:
        """Make sure that the connection was not brought here by a fork.

        Raises:
            SqliteSaverError: it was.
        """
        if os.getpid() != self._process:
            raise SqliteSaverError(self.path, "other_process", f"it was opened by process {self._process}")

    def transaction(self, begin: Literal["BEGIN", "BEGIN IMMEDIATE"]) -> Transaction:
        """Return a transaction, to be entered with ``with``: plain to read one state of everything, immediate to write."""
        return Transaction(self, begin)

    def run(self, operation: Operation[T], *, writes: bool) -> T:
        """Carry an operation out in one transaction."""
        with self.transaction("BEGIN IMMEDIATE" if writes else "BEGIN") as cursor:
            try:
                order = next(operation)
                while True:
                    if type(order) is Rows:
                        order = operation.send(cursor.execute(order.sql, order.values).fetchall())
                    else:
                        cursor.executemany(order.sql, order.rows)  # type: ignore[union-attr]
                        order = operation.send([])
            except StopIteration as stop:
                answer: T = stop.value
                return answer

    def make_ready(self) -> None:
        """Make or update the tables.

        Raises:
            SqliteSaverError: somebody else has a transaction open on the connection, or the tables are not ours.
        """
        if self.connection.in_transaction:
            raise SqliteSaverError(self.path, "in_transaction", "the connection has a transaction open")
        prepare(self.connection, self.path, synchronous=self._synchronous, patience_s=BUSY_TIMEOUT_S)
        self.is_ready = True

    def close(self) -> None:
        """Close the connection once no transaction is under way: one closed in the middle of it brings the process down."""
        with self.lock:
            self.connection.close()


class Transaction:
    """A transaction that has the connection for itself; one inside another of the same thread is a savepoint of it.

    Entering and leaving raise :class:`SqliteSaverError` where the database is full, locked, read-only, ...; then nothing
    was written. Written out as a class because entering generators takes as long as a small statement.
    """

    __slots__ = ("_begin", "_commit", "_cursor", "_database", "_rollback")

    def __init__(self, database: Database, begin: str) -> None:
        self._database = database
        self._begin, self._commit = begin, "COMMIT"
        self._rollback: tuple[str, ...] = ("ROLLBACK",)

    def __enter__(self) -> sqlite3.Cursor:
        database = self._database
        database.check_process()  # before the lock: another thread may have held it when the process forked
        database.lock.acquire()
        try:
            if database.depth:
                self._nest(f"tracegraph_{database.depth}")
            elif not database.is_ready or database.connection.in_transaction:
                database.make_ready()
            self._cursor = cursor = database.connection.cursor()
            cursor.row_factory = None
            cursor.execute(self._begin)
        except BaseException as error:
            self._undo()
            database.lock.release()
            self._tell(error)
            raise
        database.depth += 1
        return cursor

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        database = self._database
        try:
            if error is None:
                self._cursor.execute(self._commit)
        except BaseException as failure:
            self._undo()
            self._tell(failure)
            raise
        else:
            if error is not None:
                self._undo()
                self._tell(error)
        finally:
            database.depth -= 1
            database.lock.release()

    def _nest(self, name: str) -> None:
        self._begin, self._commit = f"SAVEPOINT {name}", f"RELEASE {name}"
        self._rollback = (f"ROLLBACK TO {name}", f"RELEASE {name}")

    def _undo(self) -> None:
        with suppress(sqlite3.Error, AttributeError):  # SQLite has rolled some errors back by itself
            for statement in self._rollback:
                self._cursor.execute(statement)

    def _tell(self, error: BaseException) -> None:
        if isinstance(error, sqlite3.Error | UnicodeEncodeError) and (found := told(self._database.path, error)) is not error:
            raise found from error


def _path_of(connection: sqlite3.Connection) -> str:
    cursor = connection.cursor()
    cursor.row_factory = None
    try:
        return cursor.execute("PRAGMA database_list").fetchone()[2] or ":memory:"
    except sqlite3.Error as error:
        raise told("?", error) from error
