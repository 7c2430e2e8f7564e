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
    from tracegraph_exporters.open_spans import StoreSpanProcessor
    from tracegraph_exporters.schema import TraceStoreError
    from tracegraph_exporters.sqlite import SQLiteSpanExporter
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
}

__all__ = [
    "AmbiguousTraceError",
    "ConsoleTreeExporter",
    "Drops",
    "EventRecord",
    "LinkRecord",
    "SQLiteSpanExporter",
    "SpanNode",
    "SpanRecord",
    "StoreSpanProcessor",
    "TraceNotFoundError",
    "TraceStore",
    "TraceStoreError",
    "TraceSummary",
    "build_tree",
    "close_abandoned",
    "default_path",
    "render_plain",
    "render_rich",
    "to_record",
]


def __getattr__(name: str) -> Any:
    if (module := _MODULES.get(name)) is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{module}"), name)
