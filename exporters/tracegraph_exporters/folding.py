"""The tree of a long trace, of which only what will be shown is read whole."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any, Final

from tracegraph_exporters.store import TraceStore
from tracegraph_exporters.tree import LeftOut, SpanNode, build_tree

__all__ = ["folded_tree"]

_OUTLINE: Final = """
SELECT span_id, parent_id, status = 'error' FROM (
    SELECT span_id, parent_id, status, start_ns, end_ns FROM spans WHERE trace_id = :trace_id
    UNION ALL SELECT span_id, parent_id, 'unset', start_ns, :now_ns FROM open_spans o WHERE trace_id = :trace_id
    AND NOT EXISTS (SELECT 1 FROM spans s WHERE s.trace_id = o.trace_id AND s.span_id = o.span_id)
) ORDER BY start_ns, end_ns DESC, span_id
"""


def folded_tree(store: TraceStore, trace_id: str, max_siblings: int) -> tuple[list[SpanNode], int]:
    """Return a trace's top nodes, with at most *max_siblings* spans below each span, and how many spans that leaves out."""
    below, errors = _outline(store, trace_id)
    shown: list[str] = []
    left_out: dict[str, LeftOut] = {}
    stack = list(reversed(below.get(None, [])))
    while stack:
        span_id = stack.pop()
        shown.append(span_id)
        children = below.get(span_id, [])
        stack.extend(reversed(children[:max_siblings]))
        if len(children) > max_siblings:
            hidden = [found for child in children[max_siblings:] for found in _walk(below, child)]
            left_out[span_id] = LeftOut(len(children) - max_siblings, len(hidden), len(errors.intersection(hidden)))
    roots = build_tree(store.spans(trace_id, shown))
    for root in roots:
        for _, node in root.walk():
            node.left_out = left_out.get(node.span.span_id)
    return roots, sum(found.spans for found in left_out.values())


def _outline(store: TraceStore, trace_id: str) -> tuple[dict[str | None, list[str]], set[str]]:
    """Return the ids of the spans below each, by start time, those of the top below None; and the ids of those with errors."""
    rows: list[Any] = store.query(_OUTLINE, {"trace_id": trace_id, "now_ns": time.time_ns()})
    known = {row[0] for row in rows}
    below: dict[str | None, list[str]] = {}
    for span_id, parent_id, _ in rows:
        below.setdefault(parent_id if parent_id in known and parent_id != span_id else None, []).append(span_id)
    return below, {row[0] for row in rows if row[2]}


def _walk(below: dict[str | None, list[str]], span_id: str) -> Iterator[str]:
    stack = [span_id]
    while stack:
        found = stack.pop()
        yield found
        stack.extend(below.get(found, ()))
