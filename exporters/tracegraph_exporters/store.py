"""The read side of the trace store: list traces, get one, find by id prefix, say what is missing."""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tracegraph_exporters.base import TRACE_PART_SPAN, EventRecord, LinkRecord, SpanRecord, default_path
from tracegraph_exporters.filters import COLUMNS, TraceFilter
from tracegraph_exporters.schema import TraceStoreError, open_reader

__all__ = ["AmbiguousTraceError", "Drops", "TraceNotFoundError", "TraceStore", "TraceStoreError", "TraceSummary"]

_HEX = frozenset("0123456789abcdef")

_SPAN_COLUMNS = "trace_id, span_id, parent_id, is_local_root, name, kind, start_ns"


class TraceNotFoundError(LookupError):
    """No stored trace has this id."""


class AmbiguousTraceError(LookupError):
    """Several stored traces begin with this id; ``matches`` are some of them."""

    def __init__(self, prefix: str, matches: tuple[str, ...]) -> None:
        self.prefix = prefix
        self.matches = matches
        super().__init__(f"several traces begin with {prefix!r}: {', '.join(matches)}; give more digits")


@dataclass(frozen=True, slots=True)
class TraceSummary:
    """A trace as a list shows it.

    ``name`` is its root span's, None as long as the store does not know of that. ``status`` is how its (outermost) run
    ended, ``failed`` if its root span has an error, else ``completed``; ``running`` while it has not ended,
    ``abandoned`` if its process died before, ``unfinished`` if all that is known are spans below its root.
    ``span_count`` counts open spans too; ``end_ns`` of a running one is when it was looked at.
    """

    trace_id: str
    name: str | None
    status: str
    span_count: int
    error_count: int
    start_ns: int
    end_ns: int
    thread_id: str | None
    service_name: str | None

    @property
    def is_part(self) -> bool:
        """Whether it is a further part of a run whose spans are more than one trace should have."""
        return self.name == TRACE_PART_SPAN

    @property
    def duration_ns(self) -> int:
        """How long the root span took, or has taken so far; without one, from the first start to the last end seen."""
        return self.end_ns - self.start_ns


@dataclass(frozen=True, slots=True)
class Drops:
    """What was left out for one ``reason``: ``size_cap`` or ``export_failed``."""

    reason: str
    traces: int
    spans: int
    last_ns: int


class TraceStore:
    """Reads what :class:`~tracegraph_exporters.SQLiteSpanExporter` wrote, also while it is being written.

    Raises:
        FileNotFoundError: there is no store at *path* (default: :func:`tracegraph_exporters.default_path`) yet.
        TraceStoreError: the file is no trace store, or of a newer version.
    """

    def __init__(self, path: str | Path | None = None) -> None:
        self.path = default_path() if path is None else Path(path)
        self._connection = open_reader(self.path)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, stack: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def traces(self, *, limit: int = 20, offset: int = 0, **tests: Any) -> list[TraceSummary]:
        """Return traces, newest first.

        Args:
            limit: at most so many; a negative one means all.
            offset: leave out so many of the newest.
            tests: the arguments of a :class:`~tracegraph_exporters.TraceFilter`.
        """
        return self.find(TraceFilter(**tests), limit=limit, offset=offset)

    def find(self, which: TraceFilter, *, limit: int = 20, offset: int = 0) -> list[TraceSummary]:
        """Return the traces that a filter lets through, as :meth:`traces` does."""
        sql = f"SELECT {COLUMNS} FROM traces {which.where()} ORDER BY traces.start_ns DESC, trace_id LIMIT :limit OFFSET :offset"  # noqa: S608  # constants only
        values = which.values(time.time_ns()) | {"limit": limit, "offset": offset}
        return [_summary(row) for row in self.query(sql, values)]

    def summary(self, trace_id: str) -> TraceSummary:
        """Return one trace's line of the list.

        Raises:
            TraceNotFoundError: there is no such trace.
        """
        rows = self.query(f"SELECT {COLUMNS} FROM traces WHERE trace_id = ?", (trace_id,))  # noqa: S608
        if not rows:
            raise TraceNotFoundError(f"there is no trace {trace_id!r} in {str(self.path)!r}")
        return _summary(rows[0])

    def spans(self, trace_id: str, span_ids: Collection[str] | None = None) -> list[SpanRecord]:
        """Return a trace's spans by start time, those that have not ended too; none if there is no such trace.

        Args:
            trace_id: the trace's id in full.
            span_ids: only these.
        """
        chosen = "" if span_ids is None else "AND span_id IN (SELECT value FROM json_each(?3))"
        rows = self.query(
            f"SELECT {_SPAN_COLUMNS}, end_ns, status, message, attributes, events, links, resource_id, scope, 0 "  # noqa: S608  # constants only
            f"FROM spans WHERE trace_id = ?1 {chosen} UNION ALL "
            f"SELECT {_SPAN_COLUMNS}, ?2, 'unset', NULL, attributes, events, links, resource_id, scope, 1 FROM open_spans o "
            # A forked child may have ended what its parent process has open.
            f"WHERE trace_id = ?1 {chosen} AND NOT EXISTS "
            "(SELECT 1 FROM spans s WHERE s.trace_id = o.trace_id AND s.span_id = o.span_id) "
            "ORDER BY start_ns, end_ns DESC, span_id",
            (trace_id, time.time_ns(), *([] if span_ids is None else [json.dumps(list(span_ids))])),
        )
        known = {row[13] for row in rows}
        texts = {key: self.query("SELECT attributes FROM resources WHERE id = ?", (key,))[0][0] for key in known}
        resources = {key: json.loads(text) for key, text in texts.items()}
        return [_record(row, resources[row[13]]) for row in rows]

    def resolve(self, prefix: str) -> str:
        """Return the full id of the one trace whose id begins with *prefix* (hex, any case); ``latest`` is the newest.

        Raises:
            TraceNotFoundError: no trace does.
            AmbiguousTraceError: several do.
        """
        if prefix == "latest":
            rows = self.query("SELECT trace_id FROM traces ORDER BY start_ns DESC, trace_id LIMIT 1", ())
        elif (text := prefix.lower()) and _HEX.issuperset(text):
            # A range, so that the primary key serves it; "g" sorts after every hex digit.
            rows = self.query(
                "SELECT trace_id FROM traces WHERE trace_id >= ? AND trace_id < ? ORDER BY trace_id LIMIT 6", (text, text + "g")
            )
        else:
            rows = []
        if not rows:
            raise TraceNotFoundError(f"no trace in {str(self.path)!r} has an id that begins with {prefix!r}")
        if len(rows) > 1:
            raise AmbiguousTraceError(prefix, tuple(row[0] for row in rows))
        return str(rows[0][0])

    def continuations(self, trace_id: str) -> list[str]:
        """Return the ids of traces that link to this one, oldest first: the runs that resumed it, and its own further parts."""
        sql = (
            "SELECT from_trace_id FROM links JOIN traces ON traces.trace_id = from_trace_id "
            "WHERE to_trace_id = ? ORDER BY start_ns, from_trace_id"
        )
        return [row[0] for row in self.query(sql, (trace_id,))]

    def drops(self) -> list[Drops]:
        """Return what the store had to leave out, by reason; empty if it is complete."""
        rows = self.query("SELECT reason, sum(traces), sum(spans), max(at_ns) FROM drops GROUP BY reason ORDER BY reason", ())
        return [Drops(*row) for row in rows]

    def query(self, sql: str, values: Sequence[Any] | Mapping[str, Any] = ()) -> list[Any]:
        """Return the rows of a SELECT of your own; the tables are described in ``schema.py``.

        Raises:
            TraceStoreError: the file cannot be read, or it is no proper SQL.
        """
        return list(self.iterate(sql, values))

    def iterate(self, sql: str, values: Sequence[Any] | Mapping[str, Any] = ()) -> Iterator[Any]:
        """Yield the rows that :meth:`query` returns one by one, where they may be too many to hold."""
        try:
            yield from self._connection.execute(sql, values)
        except sqlite3.DatabaseError as error:
            raise TraceStoreError(f"the trace store {str(self.path)!r} cannot be read: {error}") from error


def _record(row: tuple[Any, ...], resource: Mapping[str, Any]) -> SpanRecord:
    return SpanRecord(
        trace_id=row[0],
        span_id=row[1],
        parent_id=row[2],
        is_local_root=bool(row[3]),
        name=row[4],
        kind=row[5],
        start_ns=row[6],
        end_ns=row[7],
        status=row[8],
        message=row[9],
        attributes=json.loads(row[10]),
        events=tuple(EventRecord(*event) for event in json.loads(row[11])) if row[11] != "[]" else (),
        links=tuple(LinkRecord(*link) for link in json.loads(row[12])) if row[12] != "[]" else (),
        resource=resource,
        scope=row[14],
        is_running=bool(row[15]),
    )


def _summary(row: tuple[Any, ...]) -> TraceSummary:
    found = TraceSummary(*row)
    return replace(found, end_ns=max(found.start_ns, time.time_ns())) if found.status == "running" else found
