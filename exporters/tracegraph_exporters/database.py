"""SQLite files that several processes write: made private, in WAL mode, brought to the newest version of their tables.

``PRAGMA user_version`` holds the version: how many of a :class:`Layout`'s migrations the file has seen.
"""

from __future__ import annotations

import logging
import os
import sqlite3
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeAlias

__all__ = ["BUSY_TIMEOUT_S", "Change", "Layout", "leave_to_parent", "max_bytes_from", "open_writer", "version_of"]

BUSY_TIMEOUT_S: Final = 10.0

_log = logging.getLogger("tracegraph_exporters")

_inherited: list[sqlite3.Connection] = []


def leave_to_parent(connection: sqlite3.Connection) -> None:
    """Keep a forked process's parent's *connection* from being closed here: that would drop the parent's file locks."""
    _inherited.append(connection)


def max_bytes_from(variable: str, default: int) -> int:
    """Return the limit that *variable* gives in millions of bytes, else *default*; what is no number is reported.

    >>> max_bytes_from("TRACEGRAPH_NOT_SET_MAX_MB", 7)
    7
    """
    text = os.environ.get(variable, "")
    try:
        return int(float(text) * 1_000_000) if text else default
    except ValueError:
        _log.warning("%s is no number: %r; the limit is %d bytes", variable, text, default)
        return default


Change: TypeAlias = str | Callable[[sqlite3.Connection], None]
"""A statement, or a function that makes changes which SQL has no words for."""


@dataclass(frozen=True, slots=True)
class Layout:
    """What a file is called in errors, its migrations (each a list of changes), and the error of one that cannot be used."""

    name: str
    migrations: Sequence[Sequence[Change]]
    error: Callable[[str], Exception]


def open_writer(path: Path, layout: Layout) -> sqlite3.Connection:
    """Open *path* for writing; make it, its folder and its tables first where they do not exist.

    What is made is private (folder 0700, file 0600): telemetry may hold what users said. SQLite gives the
    files beside it (``-wal``, ``-shm``) the same mode.

    Raises:
        layout.error: a newer version of this package wrote the file, or it is something else.
        OSError, sqlite3.Error: it cannot be opened or written.
    """
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
    if os.name == "posix" and path.stat().st_mode & 0o077:
        path.chmod(0o600)
    deadline = time.monotonic() + BUSY_TIMEOUT_S
    while True:
        connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=BUSY_TIMEOUT_S)
        try:
            _prepare(connection, path, layout)
            return connection
        except sqlite3.OperationalError as error:
            connection.close()
            # Of two processes that switch a new file to WAL at once one is refused without waiting for its timeout.
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
            time.sleep(0.01)
        except BaseException:
            connection.close()
            raise


def _prepare(connection: sqlite3.Connection, path: Path, layout: Layout) -> None:
    version = version_of(connection, path, layout)
    connection.execute("PRAGMA synchronous = NORMAL")
    connection.execute("PRAGMA journal_size_limit = 4194304")
    if version == len(layout.migrations):
        return
    if version == 0:
        # Both are properties of the file and must precede its first table.
        connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
        connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("BEGIN IMMEDIATE")
    try:
        # Read again: another process may have made the tables while this one waited for the lock.
        for changes in layout.migrations[version_of(connection, path, layout) :]:
            for change in changes:
                connection.execute(change) if isinstance(change, str) else change(connection)
        connection.execute(f"PRAGMA user_version = {len(layout.migrations)}")
        connection.execute("COMMIT")
    except BaseException:
        connection.execute("ROLLBACK")
        raise


def version_of(connection: sqlite3.Connection, path: Path, layout: Layout) -> int:
    """Return the version of an open file.

    Raises:
        layout.error: it is newer than *layout*, or no database.
    """
    try:
        version = int(connection.execute("PRAGMA user_version").fetchone()[0])
    except sqlite3.OperationalError:
        raise
    except sqlite3.DatabaseError as error:
        raise layout.error(f"{str(path)!r} is no {layout.name} ({error}); move it away or set TRACEGRAPH_HOME") from error
    if version > (known := len(layout.migrations)):
        raise layout.error(
            f"the {layout.name} {str(path)!r} has version {version}, but this tracegraph reads only up to {known}; "
            "upgrade tracegraph, or set TRACEGRAPH_HOME to another folder"
        )
    return version
