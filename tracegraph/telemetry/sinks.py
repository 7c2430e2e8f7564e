"""Where spans can go: exporters by name, each with the span processor that feeds it. Loads the SDK."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, Final

from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SimpleSpanProcessor, SpanExporter, SpanExportResult

from tracegraph.errors import InvalidInputError
from tracegraph.telemetry import otlp
from tracegraph.telemetry.counted_spans import CountingProcessor
from tracegraph.telemetry.deadline import close_exporter, flush_exporter
from tracegraph.telemetry.losses import BatchCount
from tracegraph.telemetry.spool_sink import SPOOL, spool_exporter
from tracegraph.telemetry.store_sink import STORE, delay_ms, end_abandoned, store_processor
from tracegraph_exporters.console import ConsoleTreeExporter
from tracegraph_exporters.sqlite import SQLiteSpanExporter

__all__ = [
    "CONSOLE",
    "STORE",
    "Sink",
    "environment_names",
    "make_sinks",
    "queue_size",
]

CONSOLE: Final = "tracegraph_console"

_OURS: Final = {STORE: SQLiteSpanExporter, CONSOLE: ConsoleTreeExporter}
"""Known without an installed distribution, whose entry points they are too."""

_GROUP: Final = "opentelemetry_traces_exporter"
_QUEUE_SIZE: Final = 16_384
"""Spans that may wait for a slow exporter. The SDK's 2,048 lose most of one wide fan-out."""


@dataclass(frozen=True, slots=True)
class Sink:
    """A span processor and what it feeds; two sinks with one ``key`` would write everything twice."""

    key: str
    processor: SpanProcessor
    store_path: Path | None = None
    is_lent: bool = False
    """The exporter was an argument, so it is its owner's until the sink is in use."""

    def start(self, provider: TracerProvider) -> None:
        """Feed it the spans of *provider*."""
        if self.store_path is not None:
            end_abandoned(self.store_path)
        provider.add_span_processor(self.processor)

    def shutdown(self, timeout_ms: int) -> None:
        """Export what waits, for so long at most, and close the exporter."""
        if isinstance(self.processor, CountingProcessor):
            self.processor.shutdown(timeout_ms)
        else:
            self.processor.shutdown()

    def discard(self) -> None:
        """Stop what was made and never started; a lent exporter stays open."""
        if self.is_lent and isinstance(self.processor, CountingProcessor):
            self.processor.release()
        self.processor.shutdown()


def environment_names() -> list[str]:
    """Return the exporters that the standard variables ask for, the store where they say nothing."""
    return otlp.exporter_names("TRACES", [STORE, SPOOL] if otlp.endpoint("TRACES") else [STORE])


def make_sinks(
    names: Iterable[str],
    store: bool | str | Path | None,
    *,
    has_console: bool,
    exporters: Sequence[SpanExporter],
    present: frozenset[str],
    undo: ExitStack,
) -> list[Sink]:
    """Return a sink for every name, then for every argument of :func:`tracegraph.telemetry.setup` that adds one.

    Those whose key is in *present* are left out. None is started; *undo* gets what discards them.

    Raises:
        InvalidInputError: a name is no known exporter.
        ValueError: an exporter or the SDK refuses what a variable of its own says.
    """
    wanted = dict.fromkeys(names)
    if store is False:
        wanted.pop(STORE, None)
    elif store is not None:
        wanted[STORE] = None
    if has_console:
        wanted[CONSOLE] = None
    path = SQLiteSpanExporter(None if store is None or isinstance(store, bool) else store).path.absolute()
    keys = {(f"{STORE} {path}" if name == STORE else name): name for name in wanted}
    # Looked up first, made second: a processor starts a thread.
    classes = {key: _exporter_class(name) for key, name in keys.items() if key not in present}
    lent = ((f"exporter {id(exporter)}", exporter) for exporter in exporters)
    makers = [partial(_sink, key, cls, path) for key, cls in classes.items()]
    makers.extend(partial(_lent_sink, key, exporter) for key, exporter in lent if key not in present)
    sinks = []
    for make in makers:
        sinks.append(sink := make())
        undo.callback(sink.discard)
    return sinks


def _sink(key: str, cls: Any, store_path: Path) -> Sink:
    if cls is SQLiteSpanExporter:
        return Sink(key, store_processor(store_path, max_queue_size=queue_size("OTEL_BSP_MAX_QUEUE_SIZE")), store_path)
    if cls is ConsoleTreeExporter:
        # Not batched: a tree should appear when its run ends, and waits in the exporter until then anyway.
        return Sink(key, SimpleSpanProcessor(ConsoleTreeExporter()))
    # What is in the spool outlives this process, so it should be there soon.
    options = {"schedule_delay_millis": delay_ms()} if key == SPOOL else {}
    exporter = cls()
    try:
        return Sink(key, _batched(exporter, key, **options))
    except BaseException:
        exporter.shutdown()
        raise


def _lent_sink(key: str, exporter: SpanExporter) -> Sink:
    return Sink(key, _batched(exporter, type(exporter).__name__), is_lent=True)


def _batched(exporter: SpanExporter, name: str, **options: Any) -> BatchSpanProcessor:
    """Return a batch processor; the ``OTEL_BSP_*`` variables win over our choices."""
    count = BatchCount(queue_size("OTEL_BSP_MAX_QUEUE_SIZE"), "traces", name)
    try:
        return CountingProcessor(_CountingExporter(exporter, count), count, max_queue_size=count.capacity, **options)
    except BaseException:
        count.close()
        raise


def queue_size(variable: str) -> int:
    """Return how many items may wait for an exporter: what *variable* says, else our choice."""
    try:
        return int(os.environ[variable])
    except (KeyError, ValueError):
        return _QUEUE_SIZE


class _CountingExporter(SpanExporter):
    def __init__(self, exporter: SpanExporter, count: BatchCount) -> None:
        self._exporter = exporter
        self._count = count
        self.is_released = False

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        return self._count.of_export(self._exporter.export, spans)

    def shutdown(self, timeout_millis: float = 30_000) -> None:
        if not self.is_released:
            close_exporter(self._exporter, timeout_millis)

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        return flush_exporter(self._exporter, timeout_millis)


def _exporter_class(name: str) -> Any:
    if name == SPOOL:
        return spool_exporter("TRACES")
    if name in _OURS:
        return _OURS[name]
    looked_up = otlp.entry_point_name("TRACES") if name == "otlp" else name
    for entry_point in entry_points(group=_GROUP, name=looked_up):
        return entry_point.load()
    known = sorted({STORE, CONSOLE, SPOOL, "otlp", "none"} | {point.name for point in entry_points(group=_GROUP)})
    raise InvalidInputError(
        f"OTEL_TRACES_EXPORTER names {name!r}, which is no installed span exporter; known: {', '.join(known)}"
    )
