"""Ordinary OpenTelemetry span exporters, and the read side of the store one of them writes.

They know nothing of tracegraph but a few attribute names, and work with any OpenTelemetry application.
Both are entry points, so ``OTEL_TRACES_EXPORTER=tracegraph_sqlite,tracegraph_console`` finds them.

Names are loaded when they are used: reading a store needs neither the OpenTelemetry SDK nor rich.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tracegraph_exporters.abandoned import close_abandoned
    from tracegraph_exporters.base import EventRecord, LinkRecord, SpanRecord, default_path, to_record
    from tracegraph_exporters.console import ConsoleTreeExporter
    from tracegraph_exporters.content import without_content
    from tracegraph_exporters.differences import Pair, Step, compare, steps_of
    from tracegraph_exporters.filters import TraceFilter
    from tracegraph_exporters.folding import folded_tree
    from tracegraph_exporters.following import Follower, Point
    from tracegraph_exporters.open_spans import StoreSpanProcessor
    from tracegraph_exporters.retention import Pruned, prune, vacuum
    from tracegraph_exporters.schema import TraceStoreError
    from tracegraph_exporters.sqlite import SQLiteSpanExporter
    from tracegraph_exporters.stats import OperationStats, operation_stats
    from tracegraph_exporters.store import AmbiguousTraceError, Drops, TraceNotFoundError, TraceStore, TraceSummary
    from tracegraph_exporters.tree import SpanNode, build_tree, render_plain, render_rich

_MODULES = {
    "close_abandoned": "abandoned",
    "EventRecord": "base",
    "LinkRecord": "base",
    "SpanRecord": "base",
    "default_path": "base",
    "to_record": "base",
    "ConsoleTreeExporter": "console",
    "StoreSpanProcessor": "open_spans",
    "TraceStoreError": "schema",
    "SQLiteSpanExporter": "sqlite",
    "AmbiguousTraceError": "store",
    "Drops": "store",
    "TraceNotFoundError": "store",
    "TraceStore": "store",
    "TraceSummary": "store",
    "SpanNode": "tree",
    "build_tree": "tree",
    "render_plain": "tree",
    "render_rich": "tree",
    "Follower": "following",
    "OperationStats": "stats",
    "Pair": "differences",
    "Point": "following",
    "Pruned": "retention",
    "Step": "differences",
    "TraceFilter": "filters",
    "compare": "differences",
    "folded_tree": "folding",
    "operation_stats": "stats",
    "prune": "retention",
    "vacuum": "retention",
    "steps_of": "differences",
    "without_content": "content",
}

__all__ = [
    "AmbiguousTraceError",
    "ConsoleTreeExporter",
    "Drops",
    "EventRecord",
    "Follower",
    "LinkRecord",
    "OperationStats",
    "Pair",
    "Point",
    "Pruned",
    "SQLiteSpanExporter",
    "SpanNode",
    "SpanRecord",
    "Step",
    "StoreSpanProcessor",
    "TraceFilter",
    "TraceNotFoundError",
    "TraceStore",
    "TraceStoreError",
    "TraceSummary",
    "build_tree",
    "close_abandoned",
    "compare",
    "default_path",
    "folded_tree",
    "operation_stats",
    "prune",
    "render_plain",
    "render_rich",
    "steps_of",
    "to_record",
    "vacuum",
    "without_content",
]


def __getattr__(name: str) -> Any:
    if (module := _MODULES.get(name)) is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{module}"), name)
