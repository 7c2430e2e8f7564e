"""What happens in a trace store, as it comes in: runs, nodes and calls that start and end, and points in between."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from tracegraph_exporters import base
from tracegraph_exporters.operations import operation_of
from tracegraph_exporters.store import TraceStore

__all__ = ["Follower", "Point"]

_ENDED: Final = """
SELECT rowid, trace_id, span_id, parent_id, 0, name, kind, start_ns, end_ns, status, message, attributes, events FROM spans
WHERE rowid > ? ORDER BY rowid LIMIT 10000
"""
_OPEN: Final = "SELECT trace_id, span_id, parent_id, 0, name, kind, start_ns, start_ns, 'unset', attributes FROM open_spans"


@dataclass(frozen=True, slots=True)
class Point:
    """Something that happened.

    ``point`` is ``graph.started``, ``graph.ended``, the same of ``node``, ``model``, ``tool``, ``retrieval`` and ``memory``, or
    the name of a span event, as ``tracegraph.task.retry``. ``name`` is the graph's, node's, model's or tool's.
    """

    at_ns: int
    point: str
    trace_id: str
    span_id: str
    name: str
    thread_id: str | None
    superstep: int | None
    status: str | None
    duration_ns: int | None
    message: str | None
    attributes: dict[str, Any]
    """Those of a span event; empty for what starts and ends."""


class Follower:
    """Reads what is new in a store since the last time it was asked.

    A span is written some seconds after it ends, or while it is open once it has been so for a second, so points come
    late, and those of different traces not always in their order.
    """

    def __init__(self, store: TraceStore) -> None:
        self._store = store
        self._position = self._last()
        self._open: set[tuple[str, str]] = set()
        """Spans whose start has been told."""

    def poll(self) -> list[Point]:
        """Return what is new, by time. The first time that is what runs at this moment."""
        points: list[Point] = []
        is_open = self._store.query(_OPEN)
        for row in is_open:
            if (key := (row[0], row[1])) not in self._open:
                self._open.add(key)
                points.extend(_start(row, json.loads(row[9])))
        # Rows that were given back, by VACUUM or as not abandoned after all, have their numbers given again.
        self._position = min(self._position, self._last())
        while rows := self._store.query(_ENDED, (self._position,)):
            self._position = rows[-1][0]
            for row in rows:
                points.extend(self._ended(row))
        self._open.intersection_update({(row[0], row[1]) for row in is_open})
        return sorted(points, key=lambda point: point.at_ns)

    def _last(self) -> int:
        return int(self._store.query("SELECT coalesce(max(rowid), 0) FROM spans")[0][0])

    def _ended(self, row: tuple[Any, ...]) -> Iterator[Point]:
        attributes = json.loads(row[11])
        if (row[1], row[2]) not in self._open:
            yield from _start(row[1:], attributes)
        name = _name(row[1:], attributes)
        for event_name, at_ns, facts in json.loads(row[12]):
            yield Point(at_ns, event_name, row[1], row[2], name, *_place(attributes), None, None, None, _shown(facts))
        if (found := operation_of(row[1:], attributes)) is not None:
            yield Point(
                row[8], f"{found[1]}.ended", row[1], row[2], found[2], *_place(attributes), found[7], found[6], row[10], {}
            )


def _start(row: tuple[Any, ...], attributes: dict[str, Any]) -> Iterator[Point]:
    if (found := operation_of(row, attributes)) is not None:
        yield Point(found[5], f"{found[1]}.started", row[0], row[1], found[2], *_place(attributes), None, None, None, {})


def _name(row: tuple[Any, ...], attributes: dict[str, Any]) -> str:
    found = operation_of(row, attributes)
    return str(row[4]) if found is None else str(found[2])


def _place(attributes: dict[str, Any]) -> tuple[str | None, int | None]:
    thread, step = attributes.get(base.CONVERSATION_ID), attributes.get(base.SUPERSTEP)
    return thread if isinstance(thread, str) else None, step if isinstance(step, int) else None


def _shown(facts: dict[str, Any]) -> dict[str, Any]:
    # A stack trace is no line.
    return {key: value for key, value in facts.items() if key != "exception.stacktrace"}
