"""Ends in the store what a process left open that died before it could."""

from __future__ import annotations

import json
import logging
import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from tracegraph_exporters.base import (
    ABANDONED,
    ATTEMPT_NUMBER,
    PROCESS_ID,
    RUN_ID,
    RUN_REASON,
    RUN_STATUS,
    TASK_ID,
    TASK_REASON,
    TASK_STATUS,
    EventRecord,
    LinkRecord,
    SpanRecord,
    default_path,
)
from tracegraph_exporters.rows import insert_ended
from tracegraph_exporters.schema import open_writer
from tracegraph_exporters.writers import Writer, this_process

__all__ = ["close_abandoned"]

REASON: Final = "process_died"
_PATIENCE_MS: Final = 1_000
"""How long to wait for another writer. Somebody waits for this, and the next one may do it as well."""

_log = logging.getLogger("tracegraph_exporters.sqlite")


def close_abandoned(path: str | Path | None = None) -> int:
    """Give each span that a dead process left open in the store an end, and return how many they were.

    The end is the last time the process was heard of, the status ``abandoned``. Harmless if several processes do it
    at once. Nothing is made where there is no store.

    Raises:
        TraceStoreError: the file is no trace store, or of a newer version.
        OSError, sqlite3.Error: it cannot be written.
    """
    path = default_path() if path is None else Path(path)
    if not path.is_file():
        return 0
    connection = open_writer(path)
    try:
        # Looked up before anything is locked: almost always there is nothing to do.
        if not _dead_writers(connection):
            return 0
        connection.execute(f"PRAGMA busy_timeout = {_PATIENCE_MS}")
        connection.execute("BEGIN IMMEDIATE")
        try:
            count = sum(_close_all_of(connection, *dead) for dead in _dead_writers(connection))
            connection.execute("COMMIT")
        except BaseException:
            connection.execute("ROLLBACK")
            raise
    finally:
        connection.close()
    if count:
        _log.info("%d spans that a process left open when it died are marked as abandoned in %s", count, path)
    return count


def _dead_writers(connection: sqlite3.Connection) -> list[tuple[int, int, int]]:
    """Return (id, pid, when it was last heard of) of each."""
    rows = connection.execute("SELECT id, place, pid, started, seen_ns FROM writers").fetchall()
    if not rows:
        return []
    here, now_ns = this_process().place, time.time_ns()
    return [
        (writer_id, pid, seen_ns)
        for writer_id, place, pid, started, seen_ns in rows
        if Writer(place, pid, started).is_dead(here, now_ns - seen_ns)
    ]


def _close_all_of(connection: sqlite3.Connection, writer_id: int, pid: int, seen_ns: int) -> int:
    records = list(_records(connection, writer_id, pid, seen_ns))
    connection.execute("DELETE FROM open_spans WHERE writer_id = ?", (writer_id,))
    connection.execute("DELETE FROM writers WHERE id = ?", (writer_id,))
    insert_ended(connection, records)
    return len(records)


def _records(connection: sqlite3.Connection, writer_id: int, pid: int, seen_ns: int) -> Iterator[SpanRecord]:
    rows = connection.execute(
        "SELECT trace_id, span_id, parent_id, is_local_root, name, kind, start_ns, o.attributes, events, links, scope, "
        "r.attributes FROM open_spans o JOIN resources r ON r.id = resource_id WHERE writer_id = ? ORDER BY start_ns",
        (writer_id,),
    ).fetchall()
    resources = {text: json.loads(text) for text in {row[11] for row in rows}}
    for trace_id, span_id, parent_id, is_local_root, name, kind, start_ns, attributes, events, links, scope, resource in rows:
        yield SpanRecord(
            trace_id=trace_id,
            span_id=span_id,
            parent_id=parent_id,
            is_local_root=bool(is_local_root),
            name=name,
            kind=kind,
            start_ns=start_ns,
            end_ns=max(start_ns, seen_ns),
            status="unset",
            message=None,
            attributes=_marked(json.loads(attributes), pid),
            events=tuple(EventRecord(*event) for event in json.loads(events)),
            links=tuple(LinkRecord(*link) for link in json.loads(links)),
            resource=resources[resource],
            scope=scope,
        )


def _marked(attributes: dict[str, Any], pid: int) -> dict[str, Any]:
    """Return the attributes of a span with how it ended, in the words of a run or a task where it is one."""
    marks: dict[str, Any] = {ABANDONED: True, PROCESS_ID: pid}
    if RUN_ID in attributes:
        marks |= {RUN_STATUS: "abandoned", RUN_REASON: REASON}
    elif TASK_ID in attributes:
        marks |= {TASK_STATUS: "abandoned", TASK_REASON: REASON}
    elif ATTEMPT_NUMBER in attributes:
        marks[TASK_STATUS] = "abandoned"
    return attributes | marks
