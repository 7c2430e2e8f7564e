"""Spans into the SQLite trace store: one transaction a batch, several processes at once, a cap on its size."""

from __future__ import annotations

import logging
import os
import sqlite3
import threading
import time
import weakref
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult

from tracegraph_exporters.base import CONVERSATION_ID, RUN_STATUS, SpanRecord, default_path, dump_json, safe_text, to_record
from tracegraph_exporters.schema import TraceStoreError, open_writer

__all__ = ["DEFAULT_MAX_BYTES", "MAX_MB_VARIABLE", "SQLiteSpanExporter"]

DEFAULT_MAX_BYTES: Final = 500_000_000
MAX_MB_VARIABLE: Final = "TRACEGRAPH_TRACES_MAX_MB"
_SLACK: Final = 0.95
"""Down to which part of the cap the oldest traces are dropped, so that not every batch has to."""

_log = logging.getLogger("tracegraph_exporters.sqlite")

_inherited: list[sqlite3.Connection] = []
"""Connections of a forked process's parent. Closing one would drop the parent's file locks, so they are kept."""

_INSERT_SPAN = "INSERT OR IGNORE INTO spans VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
_UPSERT_TRACE = """
INSERT INTO traces VALUES (
    :trace_id, :start_ns, :end_ns, :span_count, :error_count, :root_start_ns, :root_end_ns, :root_name, :root_status,
    :run_start_ns, :run_status, :thread_id, :service_name
)
ON CONFLICT (trace_id) DO UPDATE SET
    start_ns = min(start_ns, excluded.start_ns), end_ns = max(end_ns, excluded.end_ns),
    span_count = span_count + excluded.span_count, error_count = error_count + excluded.error_count,
    root_end_ns = iif({root}, excluded.root_end_ns, root_end_ns), root_name = iif({root}, excluded.root_name, root_name),
    root_status = iif({root}, excluded.root_status, root_status),
    root_start_ns = iif({root}, excluded.root_start_ns, root_start_ns),
    run_status = iif({run}, excluded.run_status, run_status), run_start_ns = iif({run}, excluded.run_start_ns, run_start_ns),
    thread_id = coalesce(thread_id, excluded.thread_id), service_name = coalesce(service_name, excluded.service_name)
""".format(
    # Of several roots (or runs) in a trace the earliest counts: a nested one starts later.
    root="excluded.root_start_ns < coalesce(root_start_ns, 9223372036854775807)",
    run="excluded.run_start_ns < coalesce(run_start_ns, 9223372036854775807)",
)


class SQLiteSpanExporter(SpanExporter):
    """Writes spans to ``traces.db`` (see :func:`tracegraph_exporters.default_path`).

    Nothing is opened before the first batch. A batch that cannot be written is lost to the store, logged once
    and counted there as soon as writing works again.

    Args:
        path: another file.
        max_bytes: what the stored data may take; beyond it the traces that ended longest ago are dropped and
            counted. ``$TRACEGRAPH_TRACES_MAX_MB`` (millions of bytes) if None, else 500 MB.
    """

    def __init__(self, path: str | Path | None = None, *, max_bytes: int | None = None) -> None:
        self.path = default_path() if path is None else Path(path)
        self.max_bytes = _max_bytes() if max_bytes is None else max_bytes
        self._connection: sqlite3.Connection | None = None
        self._lock = threading.Lock()
        self._is_shut_down = False
        self._unwritten = 0
        self._has_logged = False
        if hasattr(os, "register_at_fork"):
            method = weakref.WeakMethod(self._after_fork)
            os.register_at_fork(after_in_child=lambda: (found := method()) and found())

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Write a batch in one transaction."""
        with self._lock:
            if self._is_shut_down:
                return SpanExportResult.FAILURE
            try:
                self._write([to_record(span) for span in spans])
            except (sqlite3.Error, OSError, TraceStoreError) as error:
                self._unwritten += len(spans)
                if not self._has_logged:
                    self._has_logged = True
                    _log.error("spans cannot be written to the trace store %s: %s", self.path, error)
                return SpanExportResult.FAILURE
            self._unwritten = 0
            self._has_logged = False
        return SpanExportResult.SUCCESS

    def force_flush(self, timeout_millis: int = 30_000) -> bool:  # noqa: ARG002  # every batch is written at once
        """Return True: nothing is buffered here."""
        return True

    def shutdown(self) -> None:
        """Close the store; later batches are refused."""
        with self._lock:
            self._is_shut_down = True
            connection, self._connection = self._connection, None
            if connection is not None:
                connection.close()

    def _after_fork(self) -> None:
        self._lock = threading.Lock()
        if self._connection is not None:
            _inherited.append(self._connection)
            self._connection = None

    def _write(self, records: list[SpanRecord]) -> None:
        if self._connection is None:
            self._connection = open_writer(self.path)
        connection = self._connection
        connection.execute("BEGIN IMMEDIATE")
        try:
            _insert(connection, records)
            if self._unwritten:
                _count_drop(connection, "export_failed", 0, self._unwritten)
            _make_room(connection, self.max_bytes)
            # Pages become free when traces are dropped, and now and then when the trees are rebalanced.
            has_free_pages = _pages(connection)[1] > 0
            connection.execute("COMMIT")
        except BaseException:
            with suppress(sqlite3.Error):
                connection.execute("ROLLBACK")
            raise
        if has_free_pages:
            connection.execute("PRAGMA incremental_vacuum").fetchall()


def _max_bytes() -> int:
    text = os.environ.get(MAX_MB_VARIABLE, "")
    try:
        return int(float(text) * 1_000_000) if text else DEFAULT_MAX_BYTES
    except ValueError:
        _log.warning("%s is no number: %r; the trace store may take %d bytes", MAX_MB_VARIABLE, text, DEFAULT_MAX_BYTES)
        return DEFAULT_MAX_BYTES


def _insert(connection: sqlite3.Connection, records: Iterable[SpanRecord]) -> None:
    by_trace: dict[str, list[SpanRecord]] = {}
    for record in records:
        by_trace.setdefault(record.trace_id, []).append(record)
    resource_ids: dict[int, int] = {}
    for trace_id, group in by_trace.items():
        for record in group:
            if id(record.resource) not in resource_ids:
                resource_ids[id(record.resource)] = _resource_id(connection, record)
        rows = [_row(record, resource_ids[id(record.resource)]) for record in group]
        # A span exported twice (a retried batch) must not count twice.
        inserted = connection.executemany(_INSERT_SPAN, rows).rowcount
        if inserted:
            connection.execute(_UPSERT_TRACE, _summary(trace_id, group, inserted))
        linked = {link.trace_id for record in group for link in record.links} - {trace_id}
        connection.executemany("INSERT OR IGNORE INTO links VALUES (?, ?)", [(to, trace_id) for to in linked])


def _resource_id(connection: sqlite3.Connection, record: SpanRecord) -> int:
    text = dump_json(dict(record.resource))
    connection.execute("INSERT OR IGNORE INTO resources (attributes) VALUES (?)", (text,))
    return int(connection.execute("SELECT id FROM resources WHERE attributes = ?", (text,)).fetchone()[0])


def _row(record: SpanRecord, resource_id: int) -> tuple[Any, ...]:
    return (
        record.trace_id,
        record.span_id,
        record.parent_id,
        record.is_local_root,
        safe_text(record.name),
        record.kind,
        record.start_ns,
        record.end_ns,
        record.status,
        None if record.message is None else safe_text(record.message),
        dump_json(record.attributes),
        dump_json([[e.name, e.at_ns, e.attributes] for e in record.events]) if record.events else "[]",
        dump_json([[k.trace_id, k.span_id, k.attributes] for k in record.links]) if record.links else "[]",
        resource_id,
        record.scope,
    )


def _summary(trace_id: str, group: list[SpanRecord], inserted: int) -> dict[str, Any]:
    by_start = sorted(group, key=lambda r: r.start_ns)
    root = next((r for r in by_start if r.is_local_root), None)
    run = next((r for r in by_start if RUN_STATUS in r.attributes), None)
    thread = next((t for r in by_start if isinstance(t := r.attributes.get(CONVERSATION_ID), str)), None)
    service = by_start[0].resource.get("service.name")
    return {
        "trace_id": trace_id,
        "start_ns": by_start[0].start_ns,
        "end_ns": max(r.end_ns for r in group),
        "span_count": inserted,
        "error_count": sum(r.status == "error" for r in group),
        "root_start_ns": root and root.start_ns,
        "root_end_ns": root and root.end_ns,
        "root_name": root and safe_text(root.name),
        "root_status": root and root.status,
        "run_start_ns": run and run.start_ns,
        "run_status": run and safe_text(str(run.attributes[RUN_STATUS])),
        "thread_id": thread and safe_text(thread),
        "service_name": None if service is None else safe_text(str(service)),
    }


def _pages(connection: sqlite3.Connection) -> tuple[int, int, int]:
    """Return how many pages the file has, how many of them are free, and the size of one in bytes."""
    names = ("page_count", "freelist_count", "page_size")
    count, free, size = (int(connection.execute(f"PRAGMA {name}").fetchone()[0]) for name in names)
    return count, free, size


def _used_bytes(connection: sqlite3.Connection) -> int:
    count, free, size = _pages(connection)
    return (count - free) * size


def _make_room(connection: sqlite3.Connection, max_bytes: int) -> None:
    """Drop the traces that ended longest ago until the rest fits; the trace being written goes last, but it goes."""
    used = _used_bytes(connection)
    if used <= max_bytes:
        return
    target = max_bytes * _SLACK
    traces = spans = 0
    while used > target:
        total = int(connection.execute("SELECT count(*) FROM traces").fetchone()[0])
        if total == 0:
            break
        # As many as would make it fit if all were of one size, but at most half: sizes differ.
        count = max(1, min(total // 2, int(total * (used - target) / used)))
        oldest = connection.execute("SELECT trace_id, span_count FROM traces ORDER BY end_ns LIMIT ?", (count,)).fetchall()
        ids = [(trace_id,) for trace_id, _ in oldest]
        connection.executemany("DELETE FROM spans WHERE trace_id = ?", ids)
        connection.executemany("DELETE FROM links WHERE from_trace_id = ?", ids)
        connection.executemany("DELETE FROM traces WHERE trace_id = ?", ids)
        traces += len(oldest)
        spans += sum(span_count for _, span_count in oldest)
        used = _used_bytes(connection)
    if traces:
        _count_drop(connection, "size_cap", traces, spans)


def _count_drop(connection: sqlite3.Connection, reason: str, traces: int, spans: int) -> None:
    connection.execute(
        "INSERT INTO drops (at_ns, reason, traces, spans) VALUES (?, ?, ?, ?)", (time.time_ns(), reason, traces, spans)
    )
