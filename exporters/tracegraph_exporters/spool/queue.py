"""The spool's SQLite file: requests that wait, who sends them, and what was lost."""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tracegraph_exporters.base import default_path
from tracegraph_exporters.database import Layout, leave_to_parent, max_bytes_from, open_writer
from tracegraph_exporters.spool.packing import Packed
from tracegraph_exporters.writers import LEASE_S, Writer, this_process

__all__ = ["DEFAULT_MAX_BYTES", "MAX_MB_VARIABLE", "Backlog", "Loss", "Request", "SpoolError", "SpoolQueue", "default_spool_path"]

DEFAULT_MAX_BYTES: Final = 500_000_000
MAX_MB_VARIABLE: Final = "TRACEGRAPH_SPOOL_MAX_MB"


class SpoolError(Exception):
    """The spool cannot be used; the text says why and what to do."""


_LAYOUT: Final = Layout(
    "spool",
    (
        (
            # Ids never come back: they are the order in which requests are sent.
            """
            CREATE TABLE requests (
                id INTEGER PRIMARY KEY AUTOINCREMENT, destination TEXT NOT NULL, items INTEGER NOT NULL,
                bytes INTEGER NOT NULL, at_ns INTEGER NOT NULL, body BLOB NOT NULL
            )
            """,
            # Sums and the next one to send, without reading bodies.
            "CREATE INDEX requests_by_destination ON requests(destination, id, items, bytes, at_ns)",
            # Who sends to a destination: one at a time, or the order would be lost.
            """
            CREATE TABLE senders (
                destination TEXT PRIMARY KEY, token TEXT NOT NULL, place TEXT NOT NULL, pid INTEGER NOT NULL,
                started TEXT NOT NULL, seen_ns INTEGER NOT NULL, request_id INTEGER
            ) WITHOUT ROWID
            """,
            """
            CREATE TABLE losses (
                destination TEXT NOT NULL, reason TEXT NOT NULL, items INTEGER NOT NULL, at_ns INTEGER NOT NULL,
                text TEXT NOT NULL, PRIMARY KEY (destination, reason)
            ) WITHOUT ROWID
            """,
        ),
    ),
    SpoolError,
)


@dataclass(frozen=True, slots=True)
class Request:
    """A request that waits: ``items`` spans or records in ``body``."""

    id: int
    items: int
    body: bytes


@dataclass(frozen=True, slots=True)
class Backlog:
    """What waits for one destination; ``oldest_ns`` is when the first of it came, 0 if nothing waits."""

    destination: str
    requests: int
    items: int
    bytes: int
    oldest_ns: int


@dataclass(frozen=True, slots=True)
class Loss:
    """Items that a destination will never get.

    ``reason``: ``spool_full`` (the oldest made room), ``too_large`` (alone over the size of a request), ``refused`` (the
    receiver's answer, in ``text``), ``rejected`` (it took the request but not these), ``unwritten`` (the disk).
    """

    destination: str
    reason: str
    items: int
    at_ns: int
    text: str


def default_spool_path() -> Path:
    """Return where the spool lies: beside the trace store, file ``spool.db``."""
    return default_path().with_name("spool.db")


class SpoolQueue:
    """Requests in order, for one or more destinations; several processes and threads may use one file.

    What it is given is on disk when :meth:`put` returns: a process that is killed loses nothing of it (a machine that
    loses power may lose the last moments: ``synchronous=NORMAL``).

    Args:
        path: the file; made when it is first written.
        max_bytes: what waiting requests may take; beyond it the oldest are dropped and counted.
            ``$TRACEGRAPH_SPOOL_MAX_MB`` (millions of bytes) if None, else 500 MB.
    """

    def __init__(self, path: str | Path | None = None, *, max_bytes: int | None = None) -> None:
        self.path = default_spool_path() if path is None else Path(path)
        self.max_bytes = max_bytes_from(MAX_MB_VARIABLE, DEFAULT_MAX_BYTES) if max_bytes is None else max_bytes
        self._lock = threading.RLock()
        self._connection: sqlite3.Connection | None = None
        self._unwritten: dict[str, int] = {}
        """Items that could not be written, by destination, until that can be."""
        self._here: Writer | None = None

    def put(self, destination: str, packed: Sequence[Packed]) -> dict[str, int]:
        """Store requests behind those that wait; return how many older items had to make room, by their destination.

        Raises:
            SpoolError, OSError, sqlite3.Error: nothing of it was stored; the items count as lost.
        """
        now_ns = time.time_ns()
        rows = [(destination, one.items, len(one.body), now_ns, one.body) for one in packed]
        with self._lock:
            try:
                with self._transaction() as connection:
                    self._note_unwritten(connection)
                    evicted = _make_room(connection, self.max_bytes - sum(row[2] for row in rows))
                    connection.executemany(
                        "INSERT INTO requests (destination, items, bytes, at_ns, body) VALUES (?, ?, ?, ?, ?)", rows
                    )
                self._unwritten.clear()
                return evicted
            except BaseException:
                self._unwritten[destination] = self._unwritten.get(destination, 0) + sum(one.items for one in packed)
                raise

    def first(self, destination: str, token: str) -> Request | None:
        """Return the next request, noting that *token* is about to send it; None if none waits or another has the lease."""
        with self._lock, self._transaction() as connection:
            row = connection.execute(
                "SELECT id, items, body FROM requests WHERE destination = ? ORDER BY id LIMIT 1", (destination,)
            ).fetchone()
            is_mine = connection.execute(
                "UPDATE senders SET request_id = ?, seen_ns = ? WHERE destination = ? AND token = ?",
                (row and row[0], time.time_ns(), destination, token),
            ).rowcount
        return Request(*row) if row is not None and is_mine else None

    def remove(self, request: Request, destination: str, loss: tuple[str, int, str] | None = None) -> None:
        """Forget a request that was answered; *loss*: the reason, number and text of items that were not taken."""
        with self._lock, self._transaction() as connection:
            connection.execute("DELETE FROM requests WHERE id = ?", (request.id,))
            if loss is not None:
                _count_loss(connection, destination, *loss)

    def replace(self, request: Request, destination: str, parts: Sequence[Packed]) -> None:
        """Put *parts* in the place of a request that is too large, before all others.

        The ids around it are taken, so they get negative ones, below any that wait.
        """
        with self._lock, self._transaction() as connection:
            connection.execute("DELETE FROM requests WHERE id = ?", (request.id,))
            lowest = connection.execute("SELECT min(coalesce(min(id), 0), 0) FROM requests").fetchone()[0]
            connection.executemany(
                "INSERT INTO requests (id, destination, items, bytes, at_ns, body) VALUES (?, ?, ?, ?, ?, ?)",
                [
                    (lowest - len(parts) + index, destination, part.items, len(part.body), time.time_ns(), part.body)
                    for index, part in enumerate(parts)
                ],
            )

    def take_lease(self, destination: str, token: str) -> bool:
        """Become the one that sends to *destination*, or stay it, for a minute; False while another is."""
        here = self._here = self._here or this_process()
        now_ns = time.time_ns()
        with self._lock, self._transaction() as connection:
            row = connection.execute(
                "SELECT token, place, pid, started, seen_ns FROM senders WHERE destination = ?", (destination,)
            ).fetchone()
            if row is not None and row[0] != token:
                silent_ns = now_ns - row[4]
                # Silence counts for a live process too: it may have been stopped.
                if silent_ns < LEASE_S * 1_000_000_000 and not Writer(*row[1:4]).is_dead(here.place, silent_ns):
                    return False
            connection.execute(
                "INSERT OR REPLACE INTO senders VALUES (?, ?, ?, ?, ?, ?, NULL)",
                (destination, token, here.place, here.pid, here.started, now_ns),
            )
        return True

    def give_back_lease(self, destination: str, token: str) -> None:
        """Let another send to *destination*."""
        with self._lock, self._transaction() as connection:
            connection.execute("DELETE FROM senders WHERE destination = ? AND token = ?", (destination, token))

    def backlog(self, destination: str | None = None) -> list[Backlog]:
        """Return what waits, by destination."""
        rows = self._query(
            "SELECT destination, count(*), sum(items), sum(bytes), min(at_ns) FROM requests "
            "WHERE ?1 IS NULL OR destination = ?1 GROUP BY destination ORDER BY destination",
            destination,
        )
        return [Backlog(*row) for row in rows]

    def losses(self, destination: str | None = None) -> list[Loss]:
        """Return what was lost, by destination and reason."""
        rows = self._query(
            "SELECT destination, reason, items, at_ns, text FROM losses WHERE ?1 IS NULL OR destination = ?1 "
            "ORDER BY destination, reason",
            destination,
        )
        return [Loss(*row) for row in rows]

    def count_loss(self, destination: str, reason: str, items: int, text: str = "") -> None:
        """Note items that will never be sent."""
        with self._lock, self._transaction() as connection:
            _count_loss(connection, destination, reason, items, text)

    def last_id(self, destination: str) -> int | None:
        """Return the id of the newest request that waits, None if none does."""
        found = self._query("SELECT max(id) FROM requests WHERE destination = ?1", destination)[0][0]
        return None if found is None else int(found)

    def waits(self, destination: str, up_to: int) -> bool:
        """Say whether a request with an id up to *up_to* waits."""
        return bool(
            self._query("SELECT EXISTS (SELECT 1 FROM requests WHERE destination = ?1 AND id <= ?2)", destination, up_to)[0][0]
        )

    def give_back_space(self) -> None:
        """Make the file smaller by the pages that are free."""
        with self._lock:
            self._open().executescript("PRAGMA incremental_vacuum")

    def close(self) -> None:
        """Close the file; it is opened again when it is used."""
        with self._lock:
            connection, self._connection = self._connection, None
            if connection is not None:
                connection.close()

    def forget_parent(self) -> None:
        """Begin anew in a forked process."""
        self._lock = threading.RLock()
        self._unwritten = {}
        self._here = None
        if self._connection is not None:
            leave_to_parent(self._connection)
            self._connection = None

    def _open(self) -> sqlite3.Connection:
        if self._connection is None:
            self._connection = open_writer(self.path, _LAYOUT)
        return self._connection

    def _transaction(self) -> _Transaction:
        return _Transaction(self._open())

    def _query(self, sql: str, *values: Any) -> list[Any]:
        with self._lock:
            return self._open().execute(sql, values).fetchall()

    def _note_unwritten(self, connection: sqlite3.Connection) -> None:
        for destination, items in self._unwritten.items():
            _count_loss(connection, destination, "unwritten", items, "")


class _Transaction:
    """``BEGIN IMMEDIATE`` to ``COMMIT``, or ``ROLLBACK``."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def __enter__(self) -> sqlite3.Connection:
        self._connection.execute("BEGIN IMMEDIATE")
        return self._connection

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            try:
                self._connection.execute("COMMIT")
                return
            except BaseException:
                self._roll_back()
                raise
        self._roll_back()

    def _roll_back(self) -> None:
        with suppress(sqlite3.Error):
            self._connection.execute("ROLLBACK")


def _make_room(connection: sqlite3.Connection, allowed: int) -> dict[str, int]:
    """Drop the oldest requests until the rest takes at most *allowed* bytes; return how many items of which destination.

    Not one that is being sent: it may have arrived.
    """
    used = connection.execute("SELECT coalesce(sum(bytes), 0) FROM requests").fetchone()[0]
    evicted: dict[str, int] = {}
    while used > allowed:
        row = connection.execute(
            "SELECT id, destination, items, bytes FROM requests WHERE id NOT IN "
            "(SELECT request_id FROM senders WHERE request_id IS NOT NULL) ORDER BY id LIMIT 1"
        ).fetchone()
        if row is None:
            break
        connection.execute("DELETE FROM requests WHERE id = ?", (row[0],))
        _count_loss(connection, row[1], "spool_full", row[2], "")
        used -= row[3]
        evicted[row[1]] = evicted.get(row[1], 0) + row[2]
    return evicted


def _count_loss(connection: sqlite3.Connection, destination: str, reason: str, items: int, text: str) -> None:
    connection.execute(
        "INSERT INTO losses VALUES (?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET "
        "items = items + excluded.items, at_ns = excluded.at_ns, text = excluded.text",
        (destination, reason, items, time.time_ns(), text[:500]),
    )
