"""In which trace a run was. Loads the SDK."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult

from tracegraph.telemetry.semconv import RUN_ID, TRACE_PART

__all__ = ["TraceFinder"]


class TraceFinder(SpanExporter):
    """An exporter that only remembers in which trace the run with a certain id was."""

    def __init__(self, run_id: UUID) -> None:
        self._run_id = str(run_id)
        self.trace_id: str | None = None
        """Its id as hex digits, once the run's span has been exported."""

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Look for the run's own span; not where a large run goes on, for its first trace leads to the others."""
        for span in spans:
            attributes = span.attributes or {}
            if attributes.get(RUN_ID) == self._run_id and TRACE_PART not in attributes:
                self.trace_id = f"{span.context.trace_id:032x}"
        return SpanExportResult.SUCCESS
