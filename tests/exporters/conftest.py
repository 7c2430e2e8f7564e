"""Spans of a real SDK provider, handed to the exporter under test one batch at a time."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider
from opentelemetry.trace import Link, Span, SpanContext, StatusCode, TraceFlags, set_span_in_context
from span_story import Story

from tracegraph_exporters import SQLiteSpanExporter

AT_NS = 1_700_000_000_000_000_000
MS = 1_000_000


class Maker(SpanProcessor):
    """Makes finished spans with given times."""

    def __init__(self) -> None:
        self.provider = TracerProvider(resource=Resource({"service.name": "tests"}), shutdown_on_exit=False)
        self.provider.add_span_processor(self)
        self.tracer = self.provider.get_tracer("maker")
        self.finished: list[ReadableSpan] = []

    def on_end(self, span: ReadableSpan) -> None:
        self.finished.append(span)

    def start(self, name: str, parent: Span | None = None, *, at_ms: int = 0, **options: Any) -> Span:
        context = set_span_in_context(parent) if parent is not None else None
        return self.tracer.start_span(name, context, start_time=AT_NS + at_ms * MS, **options)

    def end(self, span: Span, *, at_ms: int = 10) -> ReadableSpan:
        span.end(AT_NS + at_ms * MS)
        return self.finished[-1]

    def take(self) -> list[ReadableSpan]:
        """Return what has ended since the last call, as one batch."""
        batch, self.finished = self.finished, []
        return batch

    def run(
        self, name: str = "invoke_workflow g", *, at_ms: int = 0, status: str = "completed", steps: int = 2
    ) -> list[ReadableSpan]:
        """Return the spans of one finished run of thread ``t-1``."""
        root = self.start(name, at_ms=at_ms, attributes={"gen_ai.conversation.id": "t-1", "tracegraph.run.status": status})
        for number in range(steps):
            attributes = {"tracegraph.superstep": number, "tracegraph.task.status": "completed"}
            self.end(
                self.start(f"run_step n{number}", root, at_ms=at_ms + number, attributes=attributes), at_ms=at_ms + number + 1
            )
        self.end(root, at_ms=at_ms + steps + 1)
        return self.take()


@pytest.fixture
def maker() -> Iterator[Maker]:
    made = Maker()
    yield made
    made.provider.shutdown()


def link_to(trace_id: int, span_id: int) -> Link:
    """Return a link to a span of another process."""
    return Link(SpanContext(trace_id, span_id, is_remote=True, trace_flags=TraceFlags(1)), {"why": "resumed"})


def fail(span: Span, message: str) -> Span:
    """Give *span* status ERROR."""
    span.set_status(StatusCode.ERROR, message)
    return span


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "traces.db"


@pytest.fixture
def story(path: Path, maker: Any) -> Iterator[Story]:
    made = Story(maker, SQLiteSpanExporter(path))
    yield made
    made.exporter.shutdown()
