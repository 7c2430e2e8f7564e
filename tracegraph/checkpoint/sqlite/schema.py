"""The tables, their versions, and how a database is made ready.

``PRAGMA user_version`` holds the version. A new version appends one entry to ``MIGRATIONS``; entries are never
edited once released, for databases out there were made by them.
"""

from __future__ import annotations

import sqlite3
import time
from typing import Final

from tracegraph.checkpoint.sqlite.errors import SqliteSaverError

__all__ = ["MIGRATIONS", "prepare"]

MIGRATIONS: Final = (
    (
        # A place is a namespace of a thread. Every other row names it by number, for thread ids are long. A number is
        # never used again: a process may still hold that of a thread which another one deleted.
        """
        CREATE TABLE tracegraph_places (
            place INTEGER PRIMARY KEY AUTOINCREMENT, thread_id TEXT NOT NULL, ns TEXT NOT NULL, UNIQUE (thread_id, ns)
        )
        """,
        # Keys begin with what grows, so that a save changes neighbouring pages: each changed page is written whole.
        # record: see rows.py.
        """
        CREATE TABLE tracegraph_checkpoints (
            place INTEGER NOT NULL, id TEXT NOT NULL, parent_id TEXT, run_id TEXT, record BLOB NOT NULL, metadata TEXT NOT NULL,
            PRIMARY KEY (place, id)
        ) WITHOUT ROWID
        """,
        "CREATE INDEX tracegraph_checkpoints_by_run ON tracegraph_checkpoints(run_id) WHERE run_id IS NOT NULL",
        # version has no type, so that numbers stay numbers and texts stay texts.
        """
        CREATE TABLE tracegraph_blobs (
            place INTEGER NOT NULL, version NOT NULL, channel TEXT NOT NULL, kind TEXT NOT NULL, value BLOB NOT NULL,
            PRIMARY KEY (place, version, channel)
        ) WITHOUT ROWID
        """,
        """
        CREATE TABLE tracegraph_writes (
            place INTEGER NOT NULL, checkpoint_id TEXT NOT NULL, task_id TEXT NOT NULL, slot INTEGER NOT NULL,
            task_path TEXT NOT NULL, channel TEXT NOT NULL, kind TEXT NOT NULL, value BLOB NOT NULL,
            PRIMARY KEY (place, checkpoint_id, task_id, slot)
        ) WITHOUT ROWID
        """,
    ),
    (
        # A value may be kept as what was added to that of another version of its channel, the base: growth says how,
        # the rest where it stands in the chain (see sql/values.py). All empty: a whole value.
        "ALTER TABLE tracegraph_blobs ADD COLUMN base",
        "ALTER TABLE tracegraph_blobs ADD COLUMN growth TEXT",
        "ALTER TABLE tracegraph_blobs ADD COLUMN level INTEGER",
        "ALTER TABLE tracegraph_blobs ADD COLUMN run INTEGER",
        "ALTER TABLE tracegraph_blobs ADD COLUMN chain_bytes INTEGER",
        "ALTER TABLE tracegraph_blobs ADD COLUMN whole_bytes INTEGER",
        # Runs in line for a thread, in the order of the numbers. The tickets are their own, and never used again.
        """
        CREATE TABLE tracegraph_turns (
            number INTEGER PRIMARY KEY, ticket TEXT NOT NULL UNIQUE, thread_id TEXT NOT NULL, expires_at REAL NOT NULL
        )
        """,
        "CREATE INDEX tracegraph_turns_by_thread ON tracegraph_turns(thread_id, number)",
    ),
)


def prepare(connection: sqlite3.Connection, path: str, *, synchronous: str, patience_s: float) -> None:
    """Switch the connection to our settings, and make or update the tables where need be.

    Raises:
        SqliteSaverError: the file belongs to something else or to a newer version, or is old and cannot be written.
        sqlite3.Error: it cannot be read, or be written though it has to be.
    """
    deadline = time.monotonic() + patience_s
    while True:
        try:
            _prepare(connection, path, synchronous)
            return
        except sqlite3.OperationalError as error:
            # Of two processes that switch a new file to WAL at once one is refused without waiting for its timeout.
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
            time.sleep(0.01)


def _prepare(connection: sqlite3.Connection, path: str, synchronous: str) -> None:
    version = _version(connection, path)
    connection.execute(f"PRAGMA synchronous = {synchronous}")
    connection.execute("PRAGMA journal_size_limit = 4194304")
    try:
        # A property of the file, which copies made by VACUUM INTO or .dump do not have.
        connection.execute("PRAGMA journal_mode = WAL").fetchall()
        if version < len(MIGRATIONS):
            _migrate(connection, path)
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_READONLY or version == 0:
            raise
        if version < len(MIGRATIONS):
            raise SqliteSaverError(path, "older", f"its tables have version {version}, and it is read-only") from error


def _migrate(connection: sqlite3.Connection, path: str) -> None:
    connection.execute("BEGIN IMMEDIATE")
    try:
        # Read again: another process may have made the tables while this one waited for the lock.
        for statements in MIGRATIONS[_version(connection, path) :]:
            for statement in statements:
                connection.execute(statement)
        connection.execute(f"PRAGMA user_version = {len(MIGRATIONS)}")
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _version(connection: sqlite3.Connection, path: str) -> int:
    cursor = connection.cursor()
    cursor.row_factory = None
    version = int(cursor.execute("PRAGMA user_version").fetchone()[0])
    if version == 0:
        return 0
    ours = cursor.execute("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'tracegraph_checkpoints'").fetchone()
    if ours is None:
        raise SqliteSaverError(path, "foreign", f"it has version {version} of somebody else's tables")
    if version > len(MIGRATIONS):
        raise SqliteSaverError(path, "newer", f"its tables have version {version}, but this tracegraph knows {len(MIGRATIONS)}")
    return version
