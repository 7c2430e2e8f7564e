"""Spans of what node code calls: models, tools, retrievers, stores.

Content (messages, tool arguments, documents) is not recorded here but in :mod:`tracegraph.telemetry.content`.
"""

from __future__ import annotations

from typing import TypeAlias

from opentelemetry.context import Context
from opentelemetry.trace import Span, SpanKind, Tracer, set_span_in_context
from opentelemetry.util.types import AttributeValue

from tracegraph.events import (
    MemoryEnded,
    MemoryStarted,
    ModelEnded,
    ModelStarted,
    ModelToken,
    RetrievalEnded,
    RetrievalStarted,
    ToolEnded,
    ToolStarted,
)
from tracegraph.telemetry import semconv
from tracegraph.telemetry.content.choice import active_policy
from tracegraph.telemetry.failure import is_failure, mark_failed
from tracegraph.telemetry.mirroring import add_event
from tracegraph.telemetry.model_calls import model_answer, model_request, usage_of
from tracegraph.telemetry.openinference import call_attributes
from tracegraph.telemetry.options import DEFAULT_OPTIONS, TelemetryOptions
from tracegraph.telemetry.shortening import shortened

__all__ = ["Call", "CallEnded", "CallStarted", "request_of"]

CallStarted: TypeAlias = ModelStarted | ToolStarted | RetrievalStarted | MemoryStarted
CallEnded: TypeAlias = ModelEnded | ToolEnded | RetrievalEnded | MemoryEnded

CUT_SHORT = "error"
"""The finish reason of an answer that broke off before its last piece."""


class Call:
    """One open call of a model, tool, retriever or store, and its span."""

    __slots__ = ("_context", "chunks", "first_chunk_ns", "options", "span", "started_ns", "task_id", "usage")

    def __init__(self, span: Span, task_id: str, started_ns: int, options: TelemetryOptions = DEFAULT_OPTIONS) -> None:
        self.span = span
        self.options = options
        self.task_id = task_id
        self.started_ns = started_ns
        self.chunks = 0
        self.first_chunk_ns = 0
        self.usage: dict[str, int] = {}
        """Token counts of the pieces so far: providers send them with the last one, or some with the first."""
        self._context: Context | None = None

    def context(self, around: Context) -> Context:
        """Return *around*, the run's context, with this call's span as the current one; made once for all who ask."""
        if self._context is None:
            self._context = set_span_in_context(self.span, around)
        return self._context

    @classmethod
    def open(
        cls,
        event: CallStarted,
        tracer: Tracer,
        context: Context,
        thread_id: str | None,
        options: TelemetryOptions = DEFAULT_OPTIONS,
    ) -> Call:
        """Start the span of a call below the span in *context*."""
        name, kind, attributes = request_of(event)
        if thread_id is not None:
            attributes[semconv.CONVERSATION_ID] = thread_id
        if options.profile == "openinference":
            attributes.update(call_attributes(event, thread_id))
        span = tracer.start_span(name, context, kind=kind, attributes=attributes, start_time=event.at_ns)
        return cls(span, event.task_id, event.at_ns, options)

    def chunk(self, event: ModelToken) -> None:
        """Count a piece of a streamed answer; tokens never become spans or span events, but the first one does."""
        self.chunks += 1
        if self.chunks == 1:
            self.first_chunk_ns = event.at_ns
            add_event(self.span, semconv.FIRST_CHUNK_EVENT, dict, event.at_ns)
        for name, count in usage_of(event.chunk).items():
            self.usage[name] = self.usage.get(name, 0) + count

    def close(self, event: CallEnded) -> None:
        """Record the outcome and end the span."""
        try:
            self.span.set_attributes(self._named(self._outcome(event)))
            if is_failure(event.error):
                mark_failed(self.span, event.error, event.at_ns)
        finally:
            self.span.end(event.at_ns)

    def cut(self) -> Span:
        """Record what had come of an answer whose end nobody will announce; return the span, which is the caller's to end."""
        if self.chunks:
            self.span.set_attributes(self._named({**self._streamed(), semconv.RESPONSE_FINISH_REASONS: (CUT_SHORT,)}))
        return self.span

    def _named(self, outcome: dict[str, AttributeValue]) -> dict[str, AttributeValue]:
        """Return *outcome* under the names that the options ask for."""
        if self.options.semconv == "1.41" and (count := outcome.pop(semconv.USAGE_CACHE_WRITE_INPUT_TOKENS, None)) is not None:
            outcome[semconv.USAGE_CACHE_CREATION_INPUT_TOKENS] = count
        return outcome

    def _streamed(self) -> dict[str, AttributeValue]:
        if not self.chunks:
            return {}
        waited_s = (self.first_chunk_ns - self.started_ns) / 1e9
        return {**self.usage, semconv.STREAM_CHUNKS: self.chunks, semconv.RESPONSE_TIME_TO_FIRST_CHUNK: waited_s}

    def _outcome(self, event: CallEnded) -> dict[str, AttributeValue]:
        outcome = self._streamed()
        if event.error is not None and not is_failure(event.error):
            outcome[semconv.CALL_STATUS] = "interrupted"
        match event:
            case ModelEnded():
                outcome.update(model_answer(event.response))
                if event.error is not None and self.chunks:
                    outcome[semconv.RESPONSE_FINISH_REASONS] = (CUT_SHORT,)
            case RetrievalEnded(documents=list() | tuple() as documents):
                outcome[semconv.RETRIEVAL_COUNT] = len(documents)
            case MemoryEnded(count=int() as count):
                outcome[semconv.MEMORY_RECORD_COUNT] = count
            case ToolEnded() | RetrievalEnded() | MemoryEnded():
                pass
        return outcome


def request_of(event: CallStarted) -> tuple[str, SpanKind, dict[str, AttributeValue]]:
    """Return name, kind and attributes of a call's span, as far as they are known when it begins."""
    match event:
        case ModelStarted():
            return model_request(event)
        case ToolStarted():
            return _tool_request(event)
        case RetrievalStarted():
            attributes: dict[str, AttributeValue] = {semconv.OPERATION_NAME: semconv.RETRIEVAL}
            return semconv.RETRIEVAL, SpanKind.CLIENT, attributes | {semconv.RETRIEVER_NAME: event.name}
        case MemoryStarted():
            return _memory_request(event)


def _tool_request(event: ToolStarted) -> tuple[str, SpanKind, dict[str, AttributeValue]]:
    attributes: dict[str, AttributeValue] = {
        semconv.OPERATION_NAME: semconv.EXECUTE_TOOL,
        semconv.TOOL_NAME: event.name,
        semconv.TOOL_TYPE: "function",
    }
    if event.tool_call_id:
        attributes[semconv.TOOL_CALL_ID] = event.tool_call_id
    if event.serialized and isinstance(description := event.serialized.get("description"), str) and description:
        attributes[semconv.TOOL_DESCRIPTION] = shortened(description)
    return f"{semconv.EXECUTE_TOOL} {event.name}", SpanKind.INTERNAL, attributes


def _memory_request(event: MemoryStarted) -> tuple[str, SpanKind, dict[str, AttributeValue]]:
    # Never the namespace: that is where programs file by user.
    attributes: dict[str, AttributeValue] = {
        semconv.OPERATION_NAME: event.operation,
        semconv.MEMORY_STORE_NAME: shortened(event.name),
    }
    if event.store_id is not None:
        attributes[semconv.MEMORY_STORE_ID] = shortened(event.store_id)
    if event.record_id is not None:
        key = active_policy().redacted_name(event.record_id, semconv.MEMORY_RECORD_ID)
        attributes[semconv.MEMORY_RECORD_ID] = shortened(key)
    return event.operation, SpanKind.INTERNAL if event.is_in_process else SpanKind.CLIENT, attributes
