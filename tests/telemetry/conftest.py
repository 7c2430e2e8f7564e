"""An SDK provider that keeps finished spans, and remembers which were started and not ended."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from measured import Measured
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider
from otlp_receiver import OtlpGrpcReceiver, OtlpReceiver
from records import Records, recording
from signals import Signals

from tracegraph.telemetry import use_meter_provider, use_provider


class Recorder(SpanProcessor):
    """Finished spans by end, open ones by id; ending a span twice fails the test that did it."""

    def __init__(self) -> None:
        self.finished: list[ReadableSpan] = []
        self.open: dict[int, str] = {}
        self.raises: type[BaseException] | None = None

    def on_start(self, span: Any, parent_context: Any = None) -> None:
        self.open[span.context.span_id] = span.name

    def on_end(self, span: ReadableSpan) -> None:
        del self.open[span.context.span_id]
        self.finished.append(span)
        if self.raises is not None:
            raise self.raises("a span processor of the application")

    def clear(self) -> None:
        self.finished.clear()
        self.open.clear()

    def named(self, name: str) -> list[ReadableSpan]:
        return [span for span in self.finished if span.name == name]

    def one(self, name: str) -> ReadableSpan:
        (span,) = self.named(name)
        return span

    def parent_of(self, span: ReadableSpan) -> ReadableSpan | None:
        return next((s for s in self.finished if span.parent is not None and s.context.span_id == span.parent.span_id), None)

    def edges(self) -> list[tuple[str | None, str]]:
        """Return (parent name, name) of every finished span, sorted."""
        pairs = [(parent.name if (parent := self.parent_of(span)) else None, span.name) for span in self.finished]
        return sorted(pairs, key=lambda pair: (pair[0] or "", pair[1]))


@pytest.fixture
def recorder() -> Recorder:
    return Recorder()


@pytest.fixture
def provider(recorder: Recorder) -> Iterator[TracerProvider]:
    made = TracerProvider(shutdown_on_exit=False)
    made.add_span_processor(recorder)
    yield made
    made.shutdown()


@pytest.fixture
def records() -> Iterator[Records]:
    """The log records of this test alone."""
    with recording() as found:
        yield found


@pytest.fixture
def spans(provider: TracerProvider, recorder: Recorder) -> Iterator[Recorder]:
    """The spans of this test's runs."""
    use_provider(provider)
    yield recorder
    use_provider(None)


@pytest.fixture
def measured() -> Iterator[Measured]:
    """The measurements of this test's runs."""
    made = Measured()
    use_meter_provider(made.provider)
    yield made
    use_meter_provider(None)
    made.provider.shutdown()


@pytest.fixture
def signals() -> Signals:
    return Signals()


@pytest.fixture
def http() -> Iterator[OtlpReceiver]:
    receiver = OtlpReceiver()
    yield receiver
    receiver.close()


@pytest.fixture
def grpc() -> Iterator[OtlpGrpcReceiver]:
    receiver = OtlpGrpcReceiver()
    yield receiver
    receiver.close()
