"""The logger provider of :func:`tracegraph.telemetry.setup`, and where its records go. Loads the SDK.

As with spans: ``OTEL_LOGS_EXPORTER`` names the exporters (``none``: none); where it is not set, records go by
OTLP, through the spool, if ``OTEL_EXPORTER_OTLP_ENDPOINT`` (or its ``_LOGS_`` form) is. The application's own provider is never
replaced, and gets only the exporters that arguments name.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Any, Final

from opentelemetry import _logs
from opentelemetry.sdk._logs import LoggerProvider, ReadableLogRecord, ReadWriteLogRecord
from opentelemetry.sdk._logs.export import BatchLogRecordProcessor, LogRecordExporter, LogRecordExportResult

from tracegraph.errors import InvalidInputError
from tracegraph.telemetry import otlp
from tracegraph.telemetry.deadline import Deadline, close_exporter, flush_exporter
from tracegraph.telemetry.log_provider import use_logger_provider
from tracegraph.telemetry.losses import BatchCount
from tracegraph.telemetry.sinks import queue_size
from tracegraph.telemetry.spool_sink import SPOOL, spool_exporter

if TYPE_CHECKING:
    from opentelemetry.sdk.resources import Resource

__all__ = ["LogPipeline", "LogPlan"]

_VARIABLE: Final = "OTEL_LOGS_EXPORTER"
_GROUP: Final = "opentelemetry_logs_exporter"
_TIMEOUT_MS: Final = 30_000


class _Owned:
    """The provider made here and set as the global one. OpenTelemetry allows that once a process, so it is used again."""

    provider: LoggerProvider | None = None


@dataclass(frozen=True, slots=True)
class LogPlan:
    """What a pipeline will get: made, and neither fed nor seen by anybody."""

    pipeline: LogPipeline
    provider: Any
    """The one to feed the processors; None if there is nothing to feed."""
    is_new: bool
    """It is to become the global one."""
    processors: dict[str, _CountingProcessor]


class LogPipeline:
    """The processors that setup() adds to a logger provider: the one *given*, else the global one, made if there is none."""

    def __init__(self, given: LoggerProvider | None) -> None:
        self._given = given
        self._processors: dict[str, _CountingProcessor] = {}

    def feeds(self, given: LoggerProvider | None) -> bool:
        """Whether it is the pipeline of that provider; of any, if none is *given*."""
        return given is None or given is self._given

    def plan(
        self, exporters: Sequence[Any], *, has_environment: bool, resource: Callable[[], Resource | None], undo: ExitStack
    ) -> LogPlan:
        """Make what is asked for and not there yet; nothing is started, and *undo* gets what discards it.

        Args:
            resource: returns that of a provider made here.

        Raises:
            InvalidInputError: ``OTEL_LOGS_EXPORTER`` or the OTLP protocol names something that does not exist, or the
                provider takes no processors.
            ValueError: an exporter or the SDK refuses what a variable of its own says.
        """
        is_by_environment = has_environment and self._given is None and not _has_application_provider()
        named = {name: _exporter_class(name) for name in (_environment_names() if is_by_environment else ())}
        named = {name: cls for name, cls in named.items() if name not in self._processors}
        lent = {f"exporter {id(exporter)}": exporter for exporter in exporters}
        lent = {key: exporter for key, exporter in lent.items() if key not in self._processors}
        provider, is_new = self._provider(resource, is_needed=bool(named or lent))
        processors: dict[str, _CountingProcessor] = {}
        for name, cls in named.items():
            processors[name] = _batched_own(cls(), name)
            undo.callback(processors[name].shutdown)
        for key, exporter in lent.items():
            processors[key] = processor = _batched(exporter, type(exporter).__name__)
            undo.callback(processor.discard)
        return LogPlan(self, provider, is_new, processors)

    def _provider(self, resource: Callable[[], Resource | None], *, is_needed: bool) -> tuple[Any, bool]:
        """Return the provider to feed, and whether it is one made here and now; None if none is needed."""
        if not is_needed and self._given is None:
            return None, False
        found: Any = self._given or _logs.get_logger_provider()
        if hasattr(found, "add_log_record_processor") or not is_needed:
            return found, False
        if self._given is not None or _has_application_provider():
            raise InvalidInputError(
                f"the logger provider is a {type(found).__name__}, which takes no processors; "
                "pass logger_provider= an SDK provider, or let the application export its records itself"
            )
        # The handle shuts its exporters down itself when the process ends.
        return LoggerProvider(resource(), shutdown_on_exit=False), True

    def start(self, plan: LogPlan) -> None:
        """Start what was planned."""
        if plan.provider is None:
            return
        if plan.is_new:
            _Owned.provider = plan.provider
            _logs.set_logger_provider(plan.provider)
        use_logger_provider(self._given)
        for key, processor in plan.processors.items():
            self._processors[key] = processor
            plan.provider.add_log_record_processor(processor)

    def force_flush(self, timeout_ms: int) -> bool:
        """Export what is waiting; return whether all of it went out."""
        deadline, has_flushed = Deadline(timeout_ms), True
        for processor in tuple(self._processors.values()):
            has_flushed &= processor.force_flush(deadline.left_ms)
        return has_flushed

    def shutdown(self, timeout_ms: int = _TIMEOUT_MS) -> None:
        """Export what is waiting, for so long at most, and close the exporters.

        Records are made again once there is a provider in use.
        """
        if self._processors or self._given is not None:
            use_logger_provider(None, retired=_Owned.provider)
        processors, self._processors = self._processors, {}
        deadline = Deadline(timeout_ms)
        for processor in processors.values():
            processor.shutdown(deadline.left_ms)


def _has_application_provider() -> bool:
    provider = _logs.get_logger_provider()
    is_real = type(provider).__name__ != "ProxyLoggerProvider" and not isinstance(provider, _logs.NoOpLoggerProvider)
    return is_real and provider is not _Owned.provider


def _environment_names() -> list[str]:
    return otlp.exporter_names("LOGS", [SPOOL] if otlp.endpoint("LOGS") else [])


def _exporter_class(name: str) -> Any:
    if name == SPOOL:
        return spool_exporter("LOGS")
    looked_up = otlp.entry_point_name("LOGS") if name == "otlp" else name
    for entry_point in entry_points(group=_GROUP, name=looked_up):
        return entry_point.load()
    known = sorted({SPOOL, "otlp", "none"} | {point.name for point in entry_points(group=_GROUP)})
    raise InvalidInputError(f"{_VARIABLE} names {name!r}, which is no installed log exporter; known: {', '.join(known)}")


def _batched_own(exporter: Any, name: str) -> _CountingProcessor:
    """Return a batch processor of an exporter made here, which is closed if there can be none."""
    try:
        return _batched(exporter, name)
    except BaseException:
        exporter.shutdown()
        raise


def _batched(exporter: Any, name: str) -> _CountingProcessor:
    """Return a batch processor; the ``OTEL_BLRP_*`` variables win over our choices."""
    count = BatchCount(queue_size("OTEL_BLRP_MAX_QUEUE_SIZE"), "logs", name)
    try:
        return _CountingProcessor(_CountingExporter(exporter, count), count)
    except BaseException:
        count.close()
        raise


class _CountingProcessor(BatchLogRecordProcessor):
    def __init__(self, exporter: _CountingExporter, count: BatchCount) -> None:
        super().__init__(exporter, max_queue_size=count.capacity)
        self._counting = exporter
        self._count = count

    def discard(self) -> None:
        """Stop, before anything was fed to it, and leave the exporter open: it is its owner's."""
        self._counting.is_released = True
        self.shutdown()

    def on_emit(self, log_record: ReadWriteLogRecord) -> None:
        self._count.put()
        super().on_emit(log_record)

    def force_flush(self, timeout_millis: int = _TIMEOUT_MS) -> bool:
        deadline = Deadline(timeout_millis)
        has_flushed = super().force_flush(timeout_millis)
        return self._counting.force_flush(deadline.left_ms) and has_flushed

    def shutdown(self, timeout_millis: int = _TIMEOUT_MS) -> None:
        # The SDK's own shutdown() takes no time, but what it calls does.
        self._batch_processor.shutdown(timeout_millis)
        self._count.close()


class _CountingExporter(LogRecordExporter):
    def __init__(self, exporter: LogRecordExporter, count: BatchCount) -> None:
        self._exporter = exporter
        self._count = count
        self.is_released = False

    def export(self, batch: Sequence[ReadableLogRecord]) -> LogRecordExportResult:
        return self._count.of_export(self._exporter.export, batch)

    def shutdown(self, timeout_millis: float = 30_000) -> None:
        if not self.is_released:
            close_exporter(self._exporter, timeout_millis)

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        return flush_exporter(self._exporter, timeout_millis)
