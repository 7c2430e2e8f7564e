"""How the embedded store is fed: what ended and what is open, at most a second late. Loads the SDK."""

from __future__ import annotations

import logging
import os
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExportResult

from tracegraph.telemetry.counted_spans import CountingProcessor
from tracegraph.telemetry.losses import BatchCount
from tracegraph_exporters.abandoned import close_abandoned
from tracegraph_exporters.open_spans import StoreSpanProcessor
from tracegraph_exporters.schema import TraceStoreError
from tracegraph_exporters.sqlite import SQLiteSpanExporter

__all__ = ["STORE", "delay_ms", "end_abandoned", "store_processor"]

STORE: Final = "tracegraph_sqlite"
"""The exporter's name, as the standard variables have it."""

_DELAY_MS: Final = 1_000.0
"""How much a crash may cost the local store; the SDK's 5 s is meant for a network."""

_BATCH_SIZE: Final = 2_048

_log = logging.getLogger("tracegraph.telemetry")


def store_processor(path: Path, *, max_queue_size: int) -> StoreSpanProcessor:
    """Return what feeds the store at *path*; the file is made with the first span.

    ``OTEL_BSP_SCHEDULE_DELAY`` (milliseconds) is the delay of both what ended and what is open.
    """
    delay = delay_ms()
    count = BatchCount(max_queue_size, "traces", STORE)
    try:
        return _CountingStoreProcessor(
            _CountingStore(path, count),
            count,
            open_delay_s=delay / 1e3,
            max_queue_size=max_queue_size,
            schedule_delay_millis=delay,
            max_export_batch_size=_batch_size(max_queue_size),
        )
    except BaseException:
        count.close()
        raise


def end_abandoned(path: Path) -> None:
    """End what dead processes left open in the store at *path*."""
    try:
        close_abandoned(path)
    except (TraceStoreError, OSError, sqlite3.Error) as error:
        # Not a reason to refuse: the exporter says itself when it cannot write.
        _log.warning("what dead processes left open in the trace store %s stays as it is: %s", path, error)


class _CountingStoreProcessor(CountingProcessor, StoreSpanProcessor):
    """Counts what it loses, and knows the open spans as well."""

    def _stop(self, timeout_millis: int) -> None:  # noqa: ARG002  # writing to a file takes none to speak of
        StoreSpanProcessor.shutdown(self)


class _CountingStore(SQLiteSpanExporter):
    def __init__(self, path: Path, count: BatchCount) -> None:
        super().__init__(path)
        self._count = count

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        return self._count.of_export(super().export, spans)


def _batch_size(max_queue_size: int) -> int | None:
    """Return how many spans are written at once: many, as each transaction takes its time; None where a variable says."""
    return None if "OTEL_BSP_MAX_EXPORT_BATCH_SIZE" in os.environ else min(_BATCH_SIZE, max_queue_size)


def delay_ms() -> float:
    """Return how long what ended may wait before it is written to a local file: a second, or ``OTEL_BSP_SCHEDULE_DELAY``."""
    try:
        asked = float(os.environ.get("OTEL_BSP_SCHEDULE_DELAY", ""))
    except ValueError:
        return _DELAY_MS
    return asked if asked > 0 else _DELAY_MS
