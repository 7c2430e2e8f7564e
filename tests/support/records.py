"""Log records that a test reads: an in-memory exporter, and their facts in short."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import InMemoryLogRecordExporter, SimpleLogRecordProcessor

from tracegraph.telemetry import use_logger_provider


class Records:
    """The records of one test, in the order in which they were made."""

    def __init__(self, provider: LoggerProvider) -> None:
        self.provider = provider
        self._exporter = InMemoryLogRecordExporter()
        provider.add_log_record_processor(SimpleLogRecordProcessor(self._exporter))

    @property
    def all(self) -> list[Any]:
        """Every record."""
        return [finished.log_record for finished in self._exporter.get_finished_logs()]

    @property
    def scopes(self) -> list[str]:
        """Names of the loggers of every record."""
        return [finished.instrumentation_scope.name for finished in self._exporter.get_finished_logs()]

    @property
    def names(self) -> list[str]:
        """EventNames, without what all of them begin with."""
        return [str(record.event_name).removeprefix("tracegraph.") for record in self.all]

    def named(self, name: str) -> list[Any]:
        """Return the records of one EventName."""
        return [record for record in self.all if record.event_name in (name, f"tracegraph.{name}")]

    def one(self, name: str) -> Any:
        """Return the only record of an EventName."""
        (record,) = self.named(name)
        return record

    def clear(self) -> None:
        """Forget what was recorded."""
        self._exporter.clear()


@contextmanager
def recording() -> Iterator[Records]:
    """Send log records to an exporter of this test's own."""
    provider = LoggerProvider(shutdown_on_exit=False)
    found = Records(provider)
    use_logger_provider(provider)
    try:
        yield found
    finally:
        use_logger_provider(None)
        provider.shutdown()


def belongs_to(record: Any, span: Any) -> bool:
    """Say whether *record* names *span*."""
    return (record.trace_id, record.span_id) == (span.context.trace_id, span.context.span_id)
