"""The SDK's providers for the modes in which telemetry is measured: all real, with exporters that throw everything away."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, Self

from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import BatchLogRecordProcessor, LogRecordExporter, LogRecordExportResult
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import MetricExporter, MetricExportResult, MetricsData, PeriodicExportingMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF, ALWAYS_ON

from tracegraph.telemetry import use_logger_provider, use_meter_provider, use_provider

__all__ = ["MODES", "Providers"]

MODES: Final = {
    "untraced": (None, False, False),
    "sampled out": (ALWAYS_OFF, False, False),
    "traced": (ALWAYS_ON, False, False),
    "traced + metrics": (ALWAYS_ON, True, False),
    "traced + logs": (ALWAYS_ON, False, True),
    "traced + metrics + logs": (ALWAYS_ON, True, True),
}
"""Name -> sampler of the traces, metrics or not, log records or not."""

QUEUE_SIZE: Final = 1 << 17
"""Spans and records waiting for export. Above any run here: what is dropped costs less than what is kept."""


class _NoSpans(SpanExporter):
    count = 0

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        self.count += len(spans)
        return SpanExportResult.SUCCESS


class _NoRecords(LogRecordExporter):
    count = 0

    def export(self, batch: Sequence[Any]) -> LogRecordExportResult:
        self.count += len(batch)
        return LogRecordExportResult.SUCCESS

    def force_flush(self, timeout_millis: int = 10_000) -> bool:
        return True

    def shutdown(self) -> None:
        pass


class _NoMetrics(MetricExporter):
    count = 0

    def export(self, metrics_data: MetricsData, timeout_millis: float = 10_000, **kwargs: Any) -> MetricExportResult:
        self.count += sum(len(scope.metrics) for resource in metrics_data.resource_metrics for scope in resource.scope_metrics)
        return MetricExportResult.SUCCESS

    def force_flush(self, timeout_millis: float = 10_000) -> bool:
        return True

    def shutdown(self, timeout_millis: float = 30_000, **kwargs: Any) -> None:
        pass


class Providers:
    """A tracer provider for each sampler, a meter provider with a periodic reader and a logger provider with a batch."""

    def __init__(self) -> None:
        self._tracers = {sampler: TracerProvider(sampler=sampler) for sampler in (ALWAYS_OFF, ALWAYS_ON)}
        self._spans, self._metrics, self._records = _NoSpans(), _NoMetrics(), _NoRecords()
        for provider in self._tracers.values():
            provider.add_span_processor(BatchSpanProcessor(self._spans, max_queue_size=QUEUE_SIZE))
        self._meter = MeterProvider([PeriodicExportingMetricReader(self._metrics)])
        self._logger = LoggerProvider()
        self._logger.add_log_record_processor(BatchLogRecordProcessor(self._records, max_queue_size=QUEUE_SIZE))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self.use("untraced")
        for provider in self._all():
            provider.shutdown()

    def use(self, mode: str) -> None:
        """Have later runs observed as *mode* says."""
        sampler, has_metrics, has_logs = MODES[mode]
        use_provider(None if sampler is None else self._tracers[sampler])
        use_meter_provider(self._meter if has_metrics else None)
        use_logger_provider(self._logger if has_logs else None)

    def flush(self) -> None:
        """Wait until nothing is left to export, so that the next measurement does not pay for it."""
        for provider in self._all():
            provider.force_flush()

    @property
    def exported(self) -> tuple[int, int, int]:
        """How many spans, metrics (each time they are read) and log records were thrown away so far."""
        return self._spans.count, self._metrics.count, self._records.count

    def _all(self) -> tuple[Any, ...]:
        return (*self._tracers.values(), self._meter, self._logger)
