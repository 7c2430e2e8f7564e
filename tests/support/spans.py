"""Keeps what a tracer provider makes: which spans are open, which ended, and who is whose parent."""

from __future__ import annotations

from typing import Any

from opentelemetry.context import Context
from opentelemetry.sdk.trace import ReadableSpan, Span, SpanProcessor, TracerProvider
from opentelemetry.trace import StatusCode, Tracer


class Trace(SpanProcessor):
    """The spans of one test."""

    def __init__(self, provider: TracerProvider) -> None:
        self.tracer: Tracer = provider.get_tracer("tests")
        self.open: dict[int, str] = {}
        self.ended: list[ReadableSpan] = []
        self.ended_twice: list[str] = []

    def on_start(self, span: Span, parent_context: Context | None = None) -> None:
        self.open[_id(span)] = span.name

    def on_end(self, span: ReadableSpan) -> None:
        if self.open.pop(_id(span), None) is None:
            self.ended_twice.append(span.name)
        self.ended.append(span)

    @property
    def roots(self) -> list[str]:
        """Names of the spans without a parent."""
        return [span.name for span in self.ended if span.parent is None]

    @property
    def errors(self) -> list[str]:
        """Names of the spans whose status is an error."""
        return [span.name for span in self.ended if span.status.status_code is StatusCode.ERROR]

    @property
    def trace_ids(self) -> set[int]:
        """Ids of the traces that the spans are in."""
        return {span.context.trace_id for span in self.ended if span.context is not None}

    def named(self, part: str) -> list[ReadableSpan]:
        """Return the ended spans whose name contains *part*."""
        return [span for span in self.ended if part in span.name]

    def ancestors(self, span: ReadableSpan) -> list[str]:
        """Return the names from a span's parent up to the root."""
        by_id = {_id(s): s for s in self.ended}
        names = []
        at: Any = span
        while at.parent is not None:
            at = by_id[at.parent.span_id]
            names.append(at.name)
        return names

    def is_complete(self) -> bool:
        """Say whether every span that was started has ended, exactly once."""
        return not self.open and not self.ended_twice


def _id(span: Any) -> int:
    return int(span.get_span_context().span_id)
