"""One SQLite connection, safe for many threads: its lock, its transactions, and what its errors mean."""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final, Literal, TypeAlias
from urllib.parse import parse_qs, unquote, urlsplit

from tracegraph.checkpoint.sqlite.errors import SqliteSaverError, told
from tracegraph.checkpoint.sqlite.schema import prepare
from tracegraph.errors import InvalidInputError

__all__ = ["BUSY_TIMEOUT_S", "Database", "Synchronous", "connect"]

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
        self._lock = threading.RLock()
        self._depth = 0
        self._is_ready = False

    def check_process(self) -> None:
        """Make sure that the connection was not brought here by a fork.

        Raises:
            SqliteSaverError: it was.
        """
        if os.getpid() != self._process:
            raise SqliteSaverError(self.path, "other_process", f"it was opened by process {self._process}")

    @contextmanager
    def transaction(self, begin: Literal["BEGIN", "BEGIN IMMEDIATE"]) -> Iterator[sqlite3.Cursor]:
        """Give a cursor inside a transaction: plain to read one state of everything, immediate to write.

        Raises:
            SqliteSaverError: the database is full, locked, read-only, ...; nothing was written.
        """
        self.check_process()  # before the lock: another thread may have held it when the process forked
        with self._lock:
            try:
                self._prepare()
                cursor = self.connection.cursor()
                cursor.row_factory = None
                with self._nested(cursor) if self._depth else self._outermost(cursor, begin):
                    yield cursor
            except sqlite3.Error as error:
                raise told(self.path, error) from error

    def _prepare(self) -> None:
        if self._depth:
            return
        if self.connection.in_transaction:
            raise SqliteSaverError(self.path, "in_transaction", "the connection has a transaction open")
        if not self._is_ready:
            prepare(self.connection, self.path, synchronous=self._synchronous, patience_s=BUSY_TIMEOUT_S)
            self._is_ready = True

    @contextmanager
    def _outermost(self, cursor: sqlite3.Cursor, begin: str) -> Iterator[None]:
        self._depth += 1
        try:
            cursor.execute(begin)
            yield
            cursor.execute("COMMIT")
        except BaseException:
            with suppress(sqlite3.Error):  # SQLite has rolled some errors back by itself
                cursor.execute("ROLLBACK")
            raise
        finally:
            self._depth -= 1

    @contextmanager
    def _nested(self, cursor: sqlite3.Cursor) -> Iterator[None]:
        name = f"tracegraph_{self._depth}"
        self._depth += 1
        try:
            cursor.execute(f"SAVEPOINT {name}")
            yield
        except BaseException:
            with suppress(sqlite3.Error):
                cursor.execute(f"ROLLBACK TO {name}")
            raise
        finally:
            self._depth -= 1
            with suppress(sqlite3.Error):
                cursor.execute(f"RELEASE {name}")


def _path_of(connection: sqlite3.Connection) -> str:
    cursor = connection.cursor()
    cursor.row_factory = None
    try:
        return cursor.execute("PRAGMA database_list").fetchone()[2] or ":memory:"
    except sqlite3.Error as error:
        raise told("?", error) from error
