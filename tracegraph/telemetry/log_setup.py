"""The logger provider of :func:`tracegraph.telemetry.setup`, and where its records go. Loads the SDK.

As with spans: ``OTEL_LOGS_EXPORTER`` names the exporters (``none``: none); where it is not set, records go by
OTLP if ``OTEL_EXPORTER_OTLP_ENDPOINT`` (or its ``_LOGS_`` form) is. The application's own provider is never
replaced, and gets only the exporters that arguments name.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import partial
from importlib.metadata import entry_points
from typing import Any, Final

from opentelemetry import _logs
from opentelemetry.sdk._logs import LoggerProvider, LogRecordProcessor, ReadableLogRecord, ReadWriteLogRecord
from opentelemetry.sdk._logs.export import BatchLogRecordProcessor, LogRecordExporter, LogRecordExportResult

from tracegraph.errors import InvalidInputError
from tracegraph.telemetry import otlp
from tracegraph.telemetry.log_provider import use_logger_provider
from tracegraph.telemetry.losses import BatchCount
from tracegraph.telemetry.sinks import queue_size

__all__ = ["LogPipeline"]

_VARIABLE: Final = "OTEL_LOGS_EXPORTER"
_GROUP: Final = "opentelemetry_logs_exporter"


class _Owned:
    """The provider made here and set as the global one. OpenTelemetry allows that once a process, so it is used again."""

    provider: LoggerProvider | None = None


class LogPipeline:
    """The processors that setup() adds to a logger provider: the one *given*, else the global one, made if there is none."""

    def __init__(self, given: LoggerProvider | None) -> None:
        self._given = given
        self._processors: dict[str, LogRecordProcessor] = {}
        self._planned: dict[str, Callable[[], Any]] = {}

    def feeds(self, given: LoggerProvider | None) -> bool:
        """Whether it is the pipeline of that provider; of any, if none is *given*."""
        return given is None or given is self._given

    def plan(self, exporters: Sequence[Any], *, has_environment: bool) -> None:
        """Note what is asked for and not there yet; nothing is started.

        Raises:
            InvalidInputError: ``OTEL_LOGS_EXPORTER`` or the OTLP protocol names something that does not exist, or the
                provider takes no processors.
        """
        is_by_environment = has_environment and self._given is None and not _has_application_provider()
        planned = {name: _exporter_class(name) for name in (_environment_names() if is_by_environment else ())}
        planned |= {f"exporter {id(exporter)}": partial(_itself, exporter) for exporter in exporters}
        self._planned = {key: make for key, make in planned.items() if key not in self._processors}
        provider = self._given or (_logs.get_logger_provider() if _has_application_provider() else None)
        if self._planned and provider is not None and not hasattr(provider, "add_log_record_processor"):
            raise InvalidInputError(
                f"the logger provider is a {type(provider).__name__}, which takes no processors; "
                "pass logger_provider= an SDK provider, or let the application export its records itself"
            )

    def open(self, tracer_provider: Any) -> None:
        """Start what was planned. A provider made here has the resource of *tracer_provider*."""
        planned, self._planned = self._planned, {}
        if not planned and self._given is None:
            return
        provider: Any = self._given or _logs.get_logger_provider()
        if not hasattr(provider, "add_log_record_processor"):
            # The handle shuts its exporters down itself when the process ends.
            provider = _Owned.provider = LoggerProvider(getattr(tracer_provider, "resource", None), shutdown_on_exit=False)
            _logs.set_logger_provider(provider)
        use_logger_provider(self._given)
        for key, make in planned.items():
            exporter = make()
            self._processors[key] = _batched(exporter, type(exporter).__name__ if key.startswith("exporter ") else key)
            provider.add_log_record_processor(self._processors[key])

    def force_flush(self, timeout_ms: int) -> bool:
        """Export what is waiting; return whether all of it went out."""
        has_flushed = True
        for processor in tuple(self._processors.values()):
            has_flushed &= processor.force_flush(timeout_ms)
        return has_flushed

    def shutdown(self) -> None:
        """Export what is waiting and close the exporters; records are made again once there is a provider in use."""
        if self._processors or self._given is not None:
            use_logger_provider(None, retired=_Owned.provider)
        processors, self._processors = self._processors, {}
        for processor in processors.values():
            processor.shutdown()


def _has_application_provider() -> bool:
    provider = _logs.get_logger_provider()
    is_real = type(provider).__name__ != "ProxyLoggerProvider" and not isinstance(provider, _logs.NoOpLoggerProvider)
    return is_real and provider is not _Owned.provider


def _environment_names() -> list[str]:
    if named := os.environ.get(_VARIABLE, "").strip():
        return [name for part in named.split(",") if (name := part.strip()) and name.lower() != "none"]
    return ["otlp"] if otlp.endpoint("LOGS") else []


def _exporter_class(name: str) -> Any:
    looked_up = otlp.entry_point_name("LOGS") if name == "otlp" else name
    for entry_point in entry_points(group=_GROUP, name=looked_up):
        return entry_point.load()
    known = sorted({"otlp", "none"} | {point.name for point in entry_points(group=_GROUP)})
    raise InvalidInputError(f"{_VARIABLE} names {name!r}, which is no installed log exporter; known: {', '.join(known)}")


def _batched(exporter: Any, name: str) -> BatchLogRecordProcessor:
    """Return a batch processor; the ``OTEL_BLRP_*`` variables win over our choices."""
    count = BatchCount(queue_size("OTEL_BLRP_MAX_QUEUE_SIZE"), "logs", name)
    return _CountingProcessor(_CountingExporter(exporter, count), count)


class _CountingProcessor(BatchLogRecordProcessor):
    def __init__(self, exporter: LogRecordExporter, count: BatchCount) -> None:
        super().__init__(exporter, max_queue_size=count.capacity)
        self._count = count

    def on_emit(self, log_record: ReadWriteLogRecord) -> None:
        self._count.put()
        super().on_emit(log_record)

    def shutdown(self) -> None:
        super().shutdown()  # type: ignore[no-untyped-call]  # the SDK's own
        self._count.close()


class _CountingExporter(LogRecordExporter):
    def __init__(self, exporter: LogRecordExporter, count: BatchCount) -> None:
        self._exporter = exporter
        self._count = count

    def export(self, batch: Sequence[ReadableLogRecord]) -> LogRecordExportResult:
        self._count.take(len(batch))
        try:
            result = self._exporter.export(batch)
        except BaseException:
            self._count.fail(len(batch))
            raise
        if result is not LogRecordExportResult.SUCCESS:
            self._count.fail(len(batch))
        return result

    def shutdown(self) -> None:
        self._exporter.shutdown()  # type: ignore[no-untyped-call]  # the SDK's own

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        return self._exporter.force_flush(timeout_millis)


def _itself(exporter: Any) -> Any:
    return exporter
