"""How much the trace store keeps: no more than a size, nothing older than an age; what goes is counted."""

from __future__ import annotations

import logging
import os
import sqlite3
import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

from tracegraph_exporters.base import default_path
from tracegraph_exporters.database import max_bytes_from
from tracegraph_exporters.durations import parse_duration
from tracegraph_exporters.schema import open_writer

__all__ = [
    "DEFAULT_MAX_BYTES",
    "KEEP_VARIABLE",
    "MAX_MB_VARIABLE",
    "Pruned",
    "count_drop",
    "drop_older",
    "free_pages",
    "give_back_pages",
    "keep_ns_from_environment",
    "make_room",
    "max_bytes_from_environment",
    "prune",
    "vacuum",
]

KEEP_VARIABLE: Final = "TRACEGRAPH_TRACES_KEEP"
MAX_MB_VARIABLE: Final = "TRACEGRAPH_TRACES_MAX_MB"
DEFAULT_MAX_BYTES: Final = 500_000_000

_SLACK: Final = 0.95
"""Down to which part of the cap the oldest traces are dropped, so that not every batch has to."""

_STEP: Final = 1_000
"""How many traces are dropped in one transaction: others wait for it to write."""

_RUNNING = "SELECT trace_id FROM open_spans"
_OLDEST = f"SELECT trace_id, span_count FROM traces ORDER BY trace_id IN ({_RUNNING}), end_ns LIMIT ?"  # noqa: S608  # constants only
_OLDER = f"SELECT trace_id, span_count FROM traces WHERE end_ns < ? AND trace_id NOT IN ({_RUNNING}) ORDER BY end_ns LIMIT ?"  # noqa: S608

_log = logging.getLogger("tracegraph_exporters.sqlite")


@dataclass(frozen=True, slots=True)
class Pruned:
    """What was dropped, and what the file takes in bytes before and after."""

    traces: int
    spans: int
    bytes_before: int
    bytes_after: int


def keep_ns_from_environment() -> int | None:
    """Return how long traces are kept by ``$TRACEGRAPH_TRACES_KEEP`` in nanoseconds; what is no duration is reported."""
    text = os.environ.get(KEEP_VARIABLE, "")
    try:
        return parse_duration(text) if text else None
    except ValueError as error:
        _log.warning("%s: %s; traces are kept until the store is full", KEEP_VARIABLE, error)
        return None


def max_bytes_from_environment() -> int:
    """Return what the stored data may take, by ``$TRACEGRAPH_TRACES_MAX_MB``."""
    return max_bytes_from(MAX_MB_VARIABLE, DEFAULT_MAX_BYTES)


def make_room(connection: sqlite3.Connection, max_bytes: int, most: int | None = None) -> tuple[int, int]:
    """Drop the traces that ended longest ago until the rest fits; those of running and just ended runs go last, but they go.

    Args:
        connection: of a writer, in a transaction.
        max_bytes: what the rest may take.
        most: drop no more traces than this, also if the rest does not fit then.

    Returns:
        How many traces and spans.
    """
    used = _used_bytes(connection)
    if used <= max_bytes:
        return 0, 0
    target = max_bytes * _SLACK
    traces = spans = 0
    while used > target:
        total = int(connection.execute("SELECT count(*) FROM traces").fetchone()[0])
        if total == 0:
            break
        # As many as would make it fit if all were of one size, but at most half: sizes differ.
        count = max(1, min(total // 2, int(total * (used - target) / used), total if most is None else most))
        oldest = connection.execute(_OLDEST, (count,)).fetchall()
        _drop(connection, oldest)
        traces += len(oldest)
        spans += sum(span_count for _, span_count in oldest)
        used = _used_bytes(connection)
        if most is not None:
            break
    if traces:
        count_drop(connection, "size_cap", traces, spans)
    return traces, spans


def drop_older(connection: sqlite3.Connection, before_ns: int) -> tuple[int, int]:
    """Drop up to 1,000 traces that ended before a time, and what was counted as lost before it; not those that run.

    Returns:
        How many traces and spans.
    """
    older = connection.execute(_OLDER, (before_ns, _STEP)).fetchall()
    _drop(connection, older)
    connection.execute("DELETE FROM drops WHERE at_ns < ?", (before_ns,))
    spans = sum(span_count for _, span_count in older)
    if older:
        count_drop(connection, "expired", len(older), spans)
    return len(older), spans


def count_drop(connection: sqlite3.Connection, reason: str, traces: int, spans: int) -> None:
    """Note what is missing, one row a reason and hour: a store that is always full must not fill with notes."""
    now_ns = time.time_ns()
    hour_ns = now_ns - now_ns % 3_600_000_000_000
    latest = "SELECT max(id) FROM drops WHERE reason = ? AND at_ns >= ?"
    changed = connection.execute(
        f"UPDATE drops SET at_ns = ?, traces = traces + ?, spans = spans + ? WHERE id = ({latest})",  # noqa: S608  # constants only
        (now_ns, traces, spans, reason, hour_ns),
    ).rowcount
    if not changed:
        row = (now_ns, reason, traces, spans)
        connection.execute("INSERT INTO drops (at_ns, reason, traces, spans) VALUES (?, ?, ?, ?)", row)


def free_pages(connection: sqlite3.Connection) -> int:
    """Return how many pages of the file hold nothing: after a drop, and now and then when the trees are rebalanced."""
    return _pages(connection)[1]


def give_back_pages(connection: sqlite3.Connection) -> None:
    """Make the file smaller by its free pages."""
    # As a script: each step of this statement gives one page back, and fetchall() steps once.
    connection.executescript("PRAGMA incremental_vacuum")


def prune(path: str | Path | None = None, *, keep_ns: int | None = None, max_bytes: int | None = None) -> Pruned:
    """Drop what is older than *keep_ns*, then what is too much, oldest first, and make the file smaller.

    Runs that have not ended are not dropped for their age. Others can write in between.

    Raises:
        FileNotFoundError: there is no store.
        TraceStoreError: the file is no trace store, or of a newer version.
        OSError, sqlite3.Error: it cannot be written.
    """
    with closing(_open(path)) as connection:
        count, _, size = _pages(connection)
        before = count * size
        traces = spans = 0
        while keep_ns is not None:
            found = _in_transaction(connection, drop_older, time.time_ns() - keep_ns)
            traces, spans = traces + found[0], spans + found[1]
            if found[0] < _STEP:
                break
        while max_bytes is not None:
            found = _in_transaction(connection, partial(make_room, most=_STEP), max_bytes)
            traces, spans = traces + found[0], spans + found[1]
            if not found[0]:
                break
        give_back_pages(connection)
        return Pruned(traces, spans, before, _pages(connection)[0] * size)


def vacuum(path: str | Path | None = None) -> Pruned:
    """Write the file anew, without gaps and in order. Takes as much room again on the disk, and others wait meanwhile.

    Raises:
        FileNotFoundError: there is no store.
        TraceStoreError: the file is no trace store, or of a newer version.
        OSError, sqlite3.Error: it cannot be written.
    """
    with closing(_open(path)) as connection:
        count, _, size = _pages(connection)
        connection.execute("VACUUM")
        connection.execute("PRAGMA optimize")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        return Pruned(0, 0, count * size, _pages(connection)[0] * size)


def _open(path: str | Path | None) -> sqlite3.Connection:
    path = default_path() if path is None else Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"there is no trace store at {str(path)!r} yet; it is made by the first traced run")
    return open_writer(path)


def _in_transaction(connection: sqlite3.Connection, work: Any, argument: int) -> tuple[int, int]:
    connection.execute("BEGIN IMMEDIATE")
    try:
        found: tuple[int, int] = work(connection, argument)
        connection.execute("COMMIT")
    except BaseException:
        connection.execute("ROLLBACK")
        raise
    return found


def _drop(connection: sqlite3.Connection, traces: Sequence[tuple[str, int]]) -> None:
    ids = [(trace_id,) for trace_id, _ in traces]
    for table, column in (
        ("open_spans", "trace_id"),
        ("spans", "trace_id"),
        ("operations", "trace_id"),
        ("links", "from_trace_id"),
        ("traces", "trace_id"),
    ):
        connection.executemany(f"DELETE FROM {table} WHERE {column} = ?", ids)  # noqa: S608  # constants only


def _pages(connection: sqlite3.Connection) -> tuple[int, int, int]:
    """Return how many pages the file has, how many of them are free, and the size of one in bytes."""
    names = ("page_count", "freelist_count", "page_size")
    count, free, size = (int(connection.execute(f"PRAGMA {name}").fetchone()[0]) for name in names)
    return count, free, size


def _used_bytes(connection: sqlite3.Connection) -> int:
    count, free, size = _pages(connection)
    return (count - free) * size
