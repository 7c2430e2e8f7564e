"""How the embedded store is fed: what ended and what is open, at most a second late. Loads the SDK."""

from __future__ import annotations

import logging
import os
import sqlite3
from pathlib import Path
from typing import Final

from tracegraph_exporters.abandoned import close_abandoned
from tracegraph_exporters.open_spans import StoreSpanProcessor
from tracegraph_exporters.schema import TraceStoreError
from tracegraph_exporters.sqlite import SQLiteSpanExporter

__all__ = ["end_abandoned", "store_processor"]

_DELAY_MS: Final = 1_000.0
"""How much a crash may cost the local store; the SDK's 5 s is meant for a network."""

_log = logging.getLogger("tracegraph.telemetry")


def store_processor(path: Path, *, max_queue_size: int | None) -> StoreSpanProcessor:
    """Return what feeds the store at *path*; the file is made with the first span.

    ``OTEL_BSP_SCHEDULE_DELAY`` (milliseconds) is the delay of both what ended and what is open.
    """
    delay_ms = _delay_ms()
    return StoreSpanProcessor(
        SQLiteSpanExporter(path), open_delay_s=delay_ms / 1e3, max_queue_size=max_queue_size, schedule_delay_millis=delay_ms
    )


def end_abandoned(path: Path) -> None:
    """End what dead processes left open in the store at *path*."""
    try:
        close_abandoned(path)
    except (TraceStoreError, OSError, sqlite3.Error) as error:
        # Not a reason to refuse: the exporter says itself when it cannot write.
        _log.warning("what dead processes left open in the trace store %s stays as it is: %s", path, error)


def _delay_ms() -> float:
    try:
        asked = float(os.environ.get("OTEL_BSP_SCHEDULE_DELAY", ""))
    except ValueError:
        return _DELAY_MS
    return asked if asked > 0 else _DELAY_MS
