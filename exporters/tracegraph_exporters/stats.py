"""Sums over operations: how often, how long, how many failed, what they cost."""

from __future__ import annotations

import json
import math
import time
from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from operator import itemgetter
from typing import Any, Final

from tracegraph_exporters.filters import TraceFilter
from tracegraph_exporters.prices import Bill, Rate, Tokens, rate_of
from tracegraph_exporters.store import TraceStore

__all__ = ["KINDS", "OperationStats", "operation_stats"]

KINDS: Final[tuple[str, ...]] = ("graph", "node", "model", "tool", "retrieval", "memory")
"""In the order in which they are listed."""

_SUMMED: Final = frozenset({"node", "tool", "graph"})
"""What the tokens of a model call are counted for besides the model: the nearest of each around it."""


@dataclass(frozen=True, slots=True)
class OperationStats:
    """All operations of one kind and name.

    Tokens and ``cost`` (US dollars, None if no price is known) of a node, tool or graph are those of the model calls that
    it is the nearest one around, so each column of a kind adds up to what was spent. ``retries`` counts tries after the first,
    ``unpriced`` the model calls whose price is not known.
    """

    kind: str
    name: str
    count: int
    errors: int
    p50_ns: int
    p95_ns: int
    total_ns: int
    retries: int
    cached: int
    input_tokens: int
    output_tokens: int
    cost: float | None
    unpriced: int


def operation_stats(store: TraceStore, which: TraceFilter | None = None, *, kinds: Iterable[str] = KINDS) -> list[OperationStats]:
    """Return the sums over the operations that ended, of the traces that *which* lets through.

    Each kind by total time, longest first.
    """
    which = TraceFilter() if which is None else which
    asked = [kind for kind in KINDS if kind in set(kinds)]
    groups: dict[tuple[str, str], _Group] = {}
    # Nothing is around a call that only it is asked for.
    has_around = not _SUMMED.isdisjoint(asked)
    for _, rows in groupby(_operations(store, which, () if has_around else asked), key=itemgetter(0)):
        _add_trace(store, list(rows), groups, has_around=has_around)
    found = [group.stats(kind, name) for (kind, name), group in groups.items() if kind in asked]
    return sorted(found, key=lambda s: (asked.index(s.kind), -s.total_ns, s.name))


@dataclass(slots=True)
class _Group:
    errors: int = 0
    retries: int = 0
    cached: int = 0
    bill: Bill = field(default_factory=Bill)
    durations: array[int] = field(default_factory=lambda: array("q"))

    def stats(self, kind: str, name: str) -> OperationStats:
        ordered = sorted(self.durations)
        tokens = self.bill.tokens()
        return OperationStats(
            kind=kind,
            name=name,
            count=len(ordered),
            errors=self.errors,
            p50_ns=_percentile(ordered, 0.50),
            p95_ns=_percentile(ordered, 0.95),
            total_ns=sum(ordered),
            retries=self.retries,
            cached=self.cached,
            input_tokens=tokens[0],
            output_tokens=tokens[1],
            cost=self.bill.total(),
            unpriced=self.bill.unpriced(),
        )


def _percentile(ordered: list[int], share: float) -> int:
    """Return the smallest duration that *share* of all do not exceed (nearest rank)."""
    return ordered[max(0, math.ceil(len(ordered) * share) - 1)]


def _operations(store: TraceStore, which: TraceFilter, kinds: Sequence[str]) -> Iterator[Any]:
    """Yield the operations of these kinds, or all, trace by trace, which is how they lie in the file."""
    tests = []
    if where := which.where():
        tests.append(f"trace_id IN (SELECT trace_id FROM traces {where})")  # noqa: S608  # constants only
    if kinds:
        tests.append("kind IN (SELECT value FROM json_each(:kinds))")
    chosen = f"WHERE {' AND '.join(tests)}" if tests else ""
    return store.iterate(
        "SELECT trace_id, kind, name, span_id, parent_id, duration_ns, status, attempts, is_cached, provider, start_ns, "  # noqa: S608
        f"input_tokens, output_tokens, cache_read_tokens, cache_write_tokens FROM operations {chosen} ORDER BY trace_id",
        which.values(time.time_ns()) | {"kinds": json.dumps(list(kinds))},
    )


def _add_trace(store: TraceStore, rows: list[Any], groups: dict[tuple[str, str], _Group], *, has_around: bool) -> None:
    calls = []
    for row in rows:
        _, kind, name, _, _, duration_ns, status, attempts, is_cached, *_ = row
        key = (kind, name)
        group = groups.get(key)
        if group is None:
            group = groups[key] = _Group()
        group.durations.append(duration_ns)
        if status == "error":
            group.errors += 1
        if attempts is not None and attempts > 1:
            group.retries += attempts - 1
        if is_cached:
            group.cached += 1
        if row[11] is not None or row[12] is not None:
            calls.append(row)
    if calls:
        _add_tokens(calls, groups, _Ancestors(store, rows) if has_around else None)


def _add_tokens(calls: list[Any], groups: dict[tuple[str, str], _Group], around: _Ancestors | None) -> None:
    for row in calls:
        tokens: Tokens = (row[11] or 0, row[12] or 0, row[13] or 0, row[14] or 0)
        rate = rate_of(row[9], row[2], row[10], tokens[0])
        groups["model", row[2]].bill.add(rate, tokens)
        if around is not None:
            around.add(row[4], rate, tokens, groups)


class _Ancestors:
    """Finds what is around the calls of one trace."""

    def __init__(self, store: TraceStore, rows: list[Any]) -> None:
        self._store = store
        self._trace_id = rows[0][0]
        self._known: dict[str, tuple[str | None, str, str]] = {row[3]: (row[4], row[1], row[2]) for row in rows}

    def add(self, span_id: str | None, rate: Rate, tokens: Tokens, groups: dict[tuple[str, str], _Group]) -> None:
        """Count a call for the nearest node, tool and graph among the span and those around it."""
        missing = set(_SUMMED)
        seen: set[str] = set()
        while span_id is not None and missing and span_id not in seen:
            seen.add(span_id)
            found = self._known.get(span_id)
            if found is None:
                found = self._known[span_id] = self._other(span_id)
            span_id, kind, name = found
            # What is still open has no sums yet.
            if kind in missing and (group := groups.get((kind, name))) is not None:
                missing.remove(kind)
                group.bill.add(rate, tokens)

    def _other(self, span_id: str) -> tuple[str | None, str, str]:
        """Look up a span that is no operation: a superstep, an attempt, somebody else's."""
        sql = "SELECT parent_id FROM {} WHERE trace_id = ? AND span_id = ?"
        for table in ("spans", "open_spans"):
            if rows := self._store.query(sql.format(table), (self._trace_id, span_id)):
                return rows[0][0], "", ""
        return None, "", ""
