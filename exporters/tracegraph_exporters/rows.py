"""Spans as rows: how one that ended and one that is open are written, and the line of their trace is kept up to date."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable
from typing import Any, Final

from tracegraph_exporters.base import ABANDONED, CONVERSATION_ID, RUN_STATUS, SpanRecord, dump_json, safe_text
from tracegraph_exporters.bulk import existing, insert_rows
from tracegraph_exporters.operations import INSERT as INSERT_OPERATION
from tracegraph_exporters.operations import operation_of

__all__ = ["Key", "delete_open", "insert_ended", "insert_open", "take_back"]

Key = tuple[str, str]
"""A span: its trace's id and its own."""

_UPSERT_TRACE = """
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
_UPSERT_OPEN_TRACE = """
ON CONFLICT (trace_id) DO UPDATE SET
    start_ns = min(start_ns, excluded.start_ns),
    thread_id = coalesce(thread_id, excluded.thread_id), service_name = coalesce(service_name, excluded.service_name)
"""
_FORGET_ROOT = "UPDATE traces SET root_start_ns = NULL, root_end_ns = NULL, root_name = NULL, root_status = NULL"
_FORGET_RUN = "UPDATE traces SET run_start_ns = NULL, run_status = NULL"
_OPEN_TRACE_NAMES: Final = ("trace_id", "start_ns", "start_ns", "span_count", "error_count", "thread_id", "service_name")


def insert_ended(connection: sqlite3.Connection, records: Iterable[SpanRecord]) -> None:
    """Write spans that ended and bring their traces' lines up to date; one that is there already changes nothing."""
    by_key = {(record.trace_id, record.span_id): record for record in records}
    # A span exported twice (a retried batch) must not count twice.
    for key in existing(connection, "spans", "trace_id, span_id", list(by_key)):
        del by_key[key]
    new = list(by_key.values())
    resource_ids = _resource_ids(connection, new)
    rows = [_row(record, resource_ids[id(record.resource)]) for record in new]
    insert_rows(connection, "INSERT INTO spans", rows)
    found = (operation_of(row, record.attributes) for row, record in zip(rows, new, strict=True))
    insert_rows(connection, INSERT_OPERATION, [row for row in found if row is not None])
    summaries = [tuple(_summary(trace_id, group).values()) for trace_id, group in _by_trace(new).items()]
    insert_rows(connection, "INSERT INTO traces", summaries, _UPSERT_TRACE)
    linked = {(link.trace_id, record.trace_id) for record in new for link in record.links if link.trace_id != record.trace_id}
    insert_rows(connection, "INSERT OR IGNORE INTO links", list(linked))


def insert_open(connection: sqlite3.Connection, records: Iterable[SpanRecord], writer_id: int) -> None:
    """Write spans that have not ended, and a line for each trace that has none yet."""
    spans = list(records)
    resource_ids = _resource_ids(connection, spans)
    rows = [_row(record, resource_ids[id(record.resource)]) for record in spans]
    # Without what only an end brings: when, the status and its message.
    insert_rows(connection, "INSERT OR REPLACE INTO open_spans", [(*row[:7], *row[10:], writer_id) for row in rows])
    summaries = [_summary(trace_id, group) | {"span_count": 0, "error_count": 0} for trace_id, group in _by_trace(spans).items()]
    lines = [tuple(summary[name] for name in _OPEN_TRACE_NAMES) for summary in summaries]
    columns = "(trace_id, start_ns, end_ns, span_count, error_count, thread_id, service_name)"
    insert_rows(connection, f"INSERT INTO traces {columns}", lines, _UPSERT_OPEN_TRACE)


def delete_open(connection: sqlite3.Connection, keys: Iterable[Key]) -> None:
    """Remove the rows of spans that have ended."""
    connection.executemany("DELETE FROM open_spans WHERE trace_id = ? AND span_id = ?", keys)


def take_back(connection: sqlite3.Connection, keys: Iterable[Key]) -> None:
    """Remove what was written of spans as abandoned whose process turns out to live: their true ends are still to come."""
    for key in keys:
        found = connection.execute(
            "SELECT start_ns, is_local_root, attributes FROM spans WHERE trace_id = ? AND span_id = ?", key
        ).fetchone()
        if found is None or ABANDONED not in json.loads(found[2]):
            continue
        connection.execute("DELETE FROM spans WHERE trace_id = ? AND span_id = ?", key)
        connection.execute("DELETE FROM operations WHERE trace_id = ? AND span_id = ?", key)
        connection.execute("UPDATE traces SET span_count = span_count - 1 WHERE trace_id = ?", key[:1])
        if found[1]:
            connection.execute(f"{_FORGET_ROOT} WHERE trace_id = ? AND root_start_ns = ?", (key[0], found[0]))
        connection.execute(f"{_FORGET_RUN} WHERE trace_id = ? AND run_start_ns = ?", (key[0], found[0]))


def _by_trace(records: Iterable[SpanRecord]) -> dict[str, list[SpanRecord]]:
    by_trace: dict[str, list[SpanRecord]] = {}
    for record in records:
        by_trace.setdefault(record.trace_id, []).append(record)
    return by_trace


def _resource_ids(connection: sqlite3.Connection, records: Iterable[SpanRecord]) -> dict[int, int]:
    """Return the row of each resource by the resource's identity."""
    found: dict[int, int] = {}
    for record in records:
        if id(record.resource) not in found:
            found[id(record.resource)] = _resource_id(connection, record)
    return found


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


def _summary(trace_id: str, group: list[SpanRecord]) -> dict[str, Any]:
    """Return the line of a trace, as far as these spans of it tell; in the order of the table's columns."""
    by_start = sorted(group, key=lambda r: r.start_ns)
    root = next((r for r in by_start if r.is_local_root), None)
    # Also of what is no run of ours: a request that was being answered, say.
    run = next((r for r in by_start if RUN_STATUS in r.attributes or (r.is_local_root and ABANDONED in r.attributes)), None)
    thread = next((t for r in by_start if isinstance(t := r.attributes.get(CONVERSATION_ID), str)), None)
    service = by_start[0].resource.get("service.name")
    return {
        "trace_id": trace_id,
        "start_ns": by_start[0].start_ns,
        "end_ns": max(r.end_ns for r in group),
        "span_count": len(group),
        "error_count": sum(r.status == "error" for r in group),
        "root_start_ns": root and root.start_ns,
        "root_end_ns": root and root.end_ns,
        "root_name": root and safe_text(root.name),
        "root_status": root and root.status,
        "run_start_ns": run and run.start_ns,
        "run_status": run and safe_text(str(run.attributes.get(RUN_STATUS, "abandoned"))),
        "thread_id": thread and safe_text(thread),
        "service_name": None if service is None else safe_text(str(service)),
    }
