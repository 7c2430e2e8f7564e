"""Many rows in one statement.

``executemany`` lets go of Python's lock for each row, and waits to get it back: up to 5 ms a row (``sys.getswitchinterval``)
while another thread computes. A batch of 512 spans would take seconds beside a busy run.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any, Final

__all__ = ["existing", "insert_rows"]

_MAX_VALUES: Final = 32_000
"""SQLite takes 32,766 variables in a statement."""


def insert_rows(connection: sqlite3.Connection, head: str, rows: Sequence[tuple[Any, ...]], tail: str = "") -> None:
    """Insert rows of one width; *head* is the statement up to ``VALUES``, *tail* what follows the values.

    >>> connection = sqlite3.connect(":memory:")
    >>> _ = connection.execute("CREATE TABLE points (x, y)")
    >>> insert_rows(connection, "INSERT INTO points", [(1, 2), (3, 4)])
    >>> connection.execute("SELECT sum(x), sum(y) FROM points").fetchone()
    (4, 6)
    >>> connection.close()
    """
    for part in _parts(rows):
        connection.execute(f"{head} VALUES {_marks(part)} {tail}", list(chain.from_iterable(part)))


def existing(connection: sqlite3.Connection, table: str, columns: str, keys: Sequence[tuple[Any, ...]]) -> set[tuple[Any, ...]]:
    """Return which of *keys*, values of *columns*, are in a table.

    >>> connection = sqlite3.connect(":memory:")
    >>> _ = connection.execute("CREATE TABLE points (x, y)")
    >>> insert_rows(connection, "INSERT INTO points", [(1, 2)])
    >>> existing(connection, "points", "x, y", [(1, 2), (3, 4)])
    {(1, 2)}
    >>> connection.close()
    """
    found: set[tuple[Any, ...]] = set()
    for part in _parts(keys):
        sql = f"SELECT {columns} FROM {table} WHERE ({columns}) IN (VALUES {_marks(part)})"  # noqa: S608  # names of ours
        found.update(connection.execute(sql, list(chain.from_iterable(part))).fetchall())
    return found


def _parts(rows: Sequence[tuple[Any, ...]]) -> Iterator[Sequence[tuple[Any, ...]]]:
    size = max(1, _MAX_VALUES // len(rows[0])) if rows else 1
    for start in range(0, len(rows), size):
        yield rows[start : start + size]


def _marks(rows: Sequence[tuple[Any, ...]]) -> str:
    one = f"({', '.join('?' * len(rows[0]))})"
    return ", ".join([one] * len(rows))
