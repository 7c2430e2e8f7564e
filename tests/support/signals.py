"""Spans and log records in memory, and everything that they say as one text."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import InMemoryLogRecordExporter, SimpleLogRecordProcessor
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import Sampler

from tracegraph.telemetry import use_provider
from tracegraph.telemetry.content import ContentPolicy, use_content


class Signals:
    """What runs inside :meth:`recorded` leave in spans and log records."""

    def __init__(self, sampler: Sampler | None = None) -> None:
        self._spans = InMemorySpanExporter()
        self._logs = InMemoryLogRecordExporter()
        self.tracer_provider = TracerProvider(sampler=sampler, shutdown_on_exit=False)
        self.tracer_provider.add_span_processor(SimpleSpanProcessor(self._spans))
        self.logger_provider = LoggerProvider(shutdown_on_exit=False)
        self.logger_provider.add_log_record_processor(SimpleLogRecordProcessor(self._logs))

    @contextmanager
    def recorded(self, policy: Any = None, **options: Any) -> Iterator[Signals]:
        """Record runs under *policy*, or one made of *options*; neither: as by default."""
        chosen = ContentPolicy(**options) if options else policy
        use_provider(self.tracer_provider)
        use_content(chosen, logger_provider=self.logger_provider)
        try:
            yield self
        finally:
            use_provider(None)
            use_content(None)
            self.tracer_provider.shutdown()
            self.logger_provider.shutdown()

    @property
    def spans(self) -> tuple[ReadableSpan, ...]:
        """All ended spans."""
        return self._spans.get_finished_spans()

    @property
    def logs(self) -> list[Any]:
        """All log records."""
        return [data.log_record for data in self._logs.get_finished_logs()]

    def span(self, name: str) -> dict[str, Any]:
        """Return the attributes of the one span of this name."""
        (found,) = [span for span in self.spans if span.name == name]
        return dict(found.attributes or {})

    def json(self, name: str, attribute: str) -> Any:
        """Return what an attribute of the one span of this name says."""
        return json.loads(self.span(name)[attribute])

    def log(self, name: str, **attributes: Any) -> dict[str, Any]:
        """Return the attributes of the one log event of this name that has these ones, lists as lists."""
        (found,) = [plain(log.attributes) for log in self.logs if log.event_name == name and _has(log.attributes, attributes)]
        return found

    def everything(self) -> str:
        """Return all that any signal says, as one text."""
        spans = [
            (s.name, s.status.description, plain(s.attributes), [(e.name, plain(e.attributes)) for e in s.events],
             [plain(link.attributes) for link in s.links])
            for s in self.spans
        ]  # fmt: skip
        logs = [(log.event_name, log.body, plain(log.attributes)) for log in self.logs]
        return json.dumps([spans, logs], ensure_ascii=False, default=repr)


def plain(value: Any) -> Any:
    """Return an attribute value with lists in place of tuples."""
    if hasattr(value, "items"):
        return {key: plain(item) for key, item in value.items()}
    return [plain(item) for item in value] if isinstance(value, (list, tuple)) else value


def _has(attributes: Any, wanted: dict[str, Any]) -> bool:
    return all(attributes.get(key.replace("__", ".")) == value for key, value in wanted.items())
