"""Spans into the SQLite trace store: one transaction a batch, several processes at once, a cap on its size."""

from __future__ import annotations

import logging
import os
import sqlite3
import threading
import time
import weakref
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult
from opentelemetry.trace import format_span_id, format_trace_id

from tracegraph_exporters.base import SpanRecord, default_path, to_record
from tracegraph_exporters.database import leave_to_parent
from tracegraph_exporters.retention import (
    DEFAULT_MAX_BYTES,
    MAX_MB_VARIABLE,
    count_drop,
    drop_older,
    free_pages,
    give_back_pages,
    keep_ns_from_environment,
    make_room,
    max_bytes_from_environment,
)
from tracegraph_exporters.rows import Key, delete_open, insert_ended, insert_open, take_back
from tracegraph_exporters.schema import TraceStoreError, open_writer
from tracegraph_exporters.writers import HEARTBEAT_S, this_process

__all__ = ["DEFAULT_MAX_BYTES", "MAX_MB_VARIABLE", "SQLiteSpanExporter"]

_PRUNE_EVERY_NS: Final = 3_600 * 1_000_000_000
"""How often what is too old is looked for."""

_LOST_AFTER_NS: Final = 60 * 1_000_000_000
"""What ended so long ago, its trace too, and was never exported is in no batch any more: its end is written from the span."""

_log = logging.getLogger("tracegraph_exporters.sqlite")


class SQLiteSpanExporter(SpanExporter):
    """Writes spans to ``traces.db`` (see :func:`tracegraph_exporters.default_path`).

    Nothing is opened before the first batch. A batch that cannot be written is lost to the store, logged once
    and counted there as soon as writing works again.

    An exporter is told of spans when they have ended; a :class:`~tracegraph_exporters.StoreSpanProcessor` in front of
    it also puts those into the store that have not.

    Args:
        path: another file.
        max_bytes: what the stored data may take; beyond it the traces that ended longest ago are dropped and
            counted. ``$TRACEGRAPH_TRACES_MAX_MB`` (millions of bytes) if None, else 500 MB.
        keep_ns: how long traces are kept after their end, in nanoseconds; looked at every hour.
            ``$TRACEGRAPH_TRACES_KEEP`` (such as ``30d``) if None, else as long as there is room.
    """

    def __init__(self, path: str | Path | None = None, *, max_bytes: int | None = None, keep_ns: int | None = None) -> None:
        self.path = default_path() if path is None else Path(path)
        self.max_bytes = max_bytes_from_environment() if max_bytes is None else max_bytes
        self.keep_ns = keep_ns_from_environment() if keep_ns is None else keep_ns
        self._prune_at_ns = 0
        self._connection: sqlite3.Connection | None = None
        self._lock = threading.Lock()
        self._is_shut_down = False
        self._unwritten = 0
        self._has_logged = False
        self._open: dict[Key, ReadableSpan] = {}
        """Spans that the store has as open."""
        self._discarded: set[Key] = set()
        """Those among them that have ended and are not kept."""
        self._writer_id: int | None = None
        self._heard_ns = 0
        if hasattr(os, "register_at_fork"):
            method = weakref.WeakMethod(self._after_fork)
            os.register_at_fork(after_in_child=lambda: (found := method()) and found())

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Write a batch in one transaction."""
        with self._lock:
            if self._is_shut_down:
                return SpanExportResult.FAILURE
            if not self._try_to_write([to_record(span) for span in spans]):
                self._unwritten += len(spans)
                return SpanExportResult.FAILURE
        return SpanExportResult.SUCCESS

    def export_open(self, spans: Iterable[ReadableSpan]) -> bool:
        """Write those of *spans* that have not ended as open, until :meth:`export` gets them.

        To be called now and then, without spans too, while any are open: it tells the store that this process lives,
        and writes the ends that a batch was lost with.

        Returns:
            False if they cannot be written now; logged once, as for a batch.
        """
        with self._lock:
            if self._is_shut_down:
                return True
            # Seen under the lock: what ends from now on is exported, and its row removed, after this.
            opened = {_key(span): span for span in spans if span.end_time is None}
            now_ns = time.time_ns()
            lost = self._lost(now_ns)
            is_due = bool(self._open) and now_ns - self._heard_ns >= HEARTBEAT_S * 1_000_000_000
            if not (opened or lost or is_due or self._discarded):
                return True
            return self._try_to_write([to_record(span) for span in lost], opened)

    def discard(self, spans: Iterable[ReadableSpan]) -> None:
        """Forget those of *spans* that the store has as open: they have ended, and are not kept."""
        with self._lock:
            self._discarded |= {key for span in spans if (key := _key(span)) in self._open}

    @property
    def has_open(self) -> bool:
        """Whether the store has spans of this exporter as open."""
        return bool(self._open)

    def force_flush(self, timeout_millis: int = 30_000) -> bool:  # noqa: ARG002  # every batch is written at once
        """Return True: nothing is buffered here."""
        return True

    def shutdown(self) -> None:
        """Close the store; later batches are refused. Spans that are open stay so until this process has ended."""
        with self._lock:
            self._is_shut_down = True
            connection, self._connection = self._connection, None
            if connection is None:
                return
            if self._writer_id is not None and not self._open:
                with suppress(sqlite3.Error):
                    connection.execute("DELETE FROM writers WHERE id = ?", (self._writer_id,))
            connection.close()

    def _after_fork(self) -> None:
        self._lock = threading.Lock()
        self._open = {}
        self._discarded = set()
        self._writer_id = None
        if self._connection is not None:
            leave_to_parent(self._connection)
            self._connection = None

    def _lost(self, now_ns: int) -> list[ReadableSpan]:
        """Return the spans whose end no batch brings any more; none of a trace that goes on: a tail sampler may hold it."""
        last: dict[str, int] = {}
        for (trace_id, _), span in self._open.items():
            last[trace_id] = max(last.get(trace_id, 0), span.end_time or now_ns)
        before_ns = now_ns - _LOST_AFTER_NS
        return [span for key, span in self._open.items() if last[key[0]] < before_ns and key not in self._discarded]

    def _try_to_write(self, ended: Sequence[SpanRecord], opened: Mapping[Key, ReadableSpan] | None = None) -> bool:
        try:
            self._write(ended, opened or {})
        except (sqlite3.Error, OSError, TraceStoreError) as error:
            if not self._has_logged:
                self._has_logged = True
                _log.error("spans cannot be written to the trace store %s: %s", self.path, error)
            return False
        self._unwritten = 0
        self._has_logged = False
        return True

    def _write(self, ended: Sequence[SpanRecord], opened: Mapping[Key, ReadableSpan]) -> None:
        if self._connection is None:
            self._connection = open_writer(self.path)
        connection = self._connection
        done = {key for record in ended if (key := (record.trace_id, record.span_id)) in self._open} if self._open else set()
        done |= self._discarded
        still_open = {key: span for key, span in self._open.items() if key not in done} if done else self._open
        connection.execute("BEGIN IMMEDIATE")
        try:
            writer_id = self._writer_id
            if writer_id is not None or opened:
                writer_id, is_new = _announce(connection, writer_id)
                if is_new:
                    take_back(connection, self._open)
                    opened = {**still_open, **opened}
                delete_open(connection, done)
                insert_open(connection, [to_record(span) for span in opened.values()], writer_id)
            insert_ended(connection, ended)
            if self._unwritten:
                count_drop(connection, "export_failed", 0, self._unwritten)
            self._drop_expired(connection)
            make_room(connection, self.max_bytes)
            has_free_pages = free_pages(connection) > 0
            connection.execute("COMMIT")
        except BaseException:
            with suppress(sqlite3.Error):
                connection.execute("ROLLBACK")
            raise
        self._open = {**still_open, **opened} if opened else still_open
        self._discarded.clear()
        if writer_id is not None:
            self._writer_id, self._heard_ns = writer_id, time.time_ns()
        if has_free_pages:
            give_back_pages(connection)

    def _drop_expired(self, connection: sqlite3.Connection) -> None:
        if self.keep_ns is None or (now_ns := time.time_ns()) < self._prune_at_ns:
            return
        dropped, _ = drop_older(connection, now_ns - self.keep_ns)
        # There may be more than one batch of spans should wait for.
        self._prune_at_ns = 0 if dropped else now_ns + _PRUNE_EVERY_NS


def _key(span: ReadableSpan) -> Key:
    return format_trace_id(span.context.trace_id), format_span_id(span.context.span_id)


def _announce(connection: sqlite3.Connection, writer_id: int | None) -> tuple[int, bool]:
    """Note that this process lives; return the id it goes by and whether that is a new one.

    A row that is gone was taken for a dead process's: the machine slept, or its clock and another's differ.
    """
    now_ns = time.time_ns()
    if writer_id is not None and connection.execute("UPDATE writers SET seen_ns = ? WHERE id = ?", (now_ns, writer_id)).rowcount:
        return writer_id, False
    me = this_process()
    row = (me.place, me.pid, me.started, now_ns)
    cursor = connection.execute("INSERT INTO writers (place, pid, started, seen_ns) VALUES (?, ?, ?, ?)", row)
    assert cursor.lastrowid is not None  # an INSERT has one
    return cursor.lastrowid, True
