"""Flushing and closing: one deadline for all that is behind setup(), not one for each."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import pytest
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import LogRecordExporter, LogRecordExportResult
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult

from tracegraph.telemetry import setup


class Slow:
    """Takes a tenth of a second to flush or to close, and notes how long it might have taken."""

    def __init__(self) -> None:
        self.allowed_ms: list[float] = []

    def _work(self, timeout_millis: float) -> None:
        self.allowed_ms.append(timeout_millis)
        threading.Event().wait(0.1)

    def force_flush(self, timeout_millis: float = 30_000) -> bool:
        self._work(timeout_millis)
        return True

    def shutdown(self, timeout_millis: float = 30_000) -> None:
        self._work(timeout_millis)


class SlowSpans(Slow, SpanExporter):
    def export(self, spans: Sequence[Any]) -> SpanExportResult:
        return SpanExportResult.SUCCESS


class SlowRecords(Slow, LogRecordExporter):
    def export(self, batch: Sequence[Any]) -> LogRecordExportResult:
        return LogRecordExportResult.SUCCESS


@pytest.mark.parametrize("step", ["force_flush", "shutdown"])
def test_each_step_has_what_the_ones_before_have_left(step: str) -> None:
    slow = [SlowSpans(), SlowSpans(), SlowRecords()]
    handle = setup(
        provider=TracerProvider(shutdown_on_exit=False),
        logger_provider=LoggerProvider(shutdown_on_exit=False),
        store=False,
        exporters=slow[:2],
        log_exporters=slow[2:],
    )
    try:
        getattr(handle, step)(5_000)
        allowed = [exporter.allowed_ms[0] for exporter in slow]
    finally:
        handle.shutdown()

    assert all(0 < ms <= 5_000 - 100 * place for place, ms in enumerate(allowed)), allowed


def test_a_deadline_that_has_passed_leaves_nothing() -> None:
    slow = [SlowSpans(), SlowSpans()]
    with setup(provider=TracerProvider(shutdown_on_exit=False), store=False, exporters=slow) as handle:
        handle.force_flush(50)
        assert slow[1].allowed_ms == [0]
