"""Spans of what node code calls: models, tools, retrievers.

What a model answered is read by duck type, since it may be a message of ours, of LangChain or of a provider.
Content (messages, tool arguments, documents) is not recorded here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from opentelemetry.context import Context
from opentelemetry.trace import Span, SpanKind, Tracer
from opentelemetry.util.types import AttributeValue

from tracegraph.events import ModelEnded, ModelStarted, ModelToken, RetrievalEnded, RetrievalStarted, ToolEnded, ToolStarted
from tracegraph.telemetry import semconv
from tracegraph.telemetry.failure import is_failure, mark_failed
from tracegraph.telemetry.openinference import call_attributes
from tracegraph.telemetry.options import DEFAULT_OPTIONS, TelemetryOptions

__all__ = ["Call"]

_REQUEST_NUMBERS = (
    ("temperature", semconv.REQUEST_TEMPERATURE),
    ("max_tokens", semconv.REQUEST_MAX_TOKENS),
    ("top_p", semconv.REQUEST_TOP_P),
)


class Call:
    """One open call of a model, tool or retriever, and its span."""

    __slots__ = ("chunks", "first_chunk_ns", "options", "span", "started_ns", "task_id")

    def __init__(self, span: Span, task_id: str, started_ns: int, options: TelemetryOptions = DEFAULT_OPTIONS) -> None:
        self.span = span
        self.options = options
        self.task_id = task_id
        self.started_ns = started_ns
        self.chunks = 0
        self.first_chunk_ns = 0

    @classmethod
    def open(
        cls,
        event: ModelStarted | ToolStarted | RetrievalStarted,
        tracer: Tracer,
        context: Context,
        thread_id: str | None,
        options: TelemetryOptions = DEFAULT_OPTIONS,
    ) -> Call:
        """Start the span of a call below the span in *context*."""
        match event:
            case ModelStarted():
                name, kind, attributes = _model_request(event)
            case ToolStarted():
                name, kind, attributes = _tool_request(event)
            case RetrievalStarted():
                name, kind = semconv.RETRIEVAL, SpanKind.CLIENT
                attributes = {semconv.OPERATION_NAME: semconv.RETRIEVAL, semconv.RETRIEVER_NAME: event.name}
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
            self.span.add_event(semconv.FIRST_CHUNK_EVENT, None, event.at_ns)

    def close(self, event: ModelEnded | ToolEnded | RetrievalEnded) -> None:
        """Record the outcome and end the span."""
        try:
            self.span.set_attributes(self._outcome(event))
            if is_failure(event.error):
                mark_failed(self.span, event.error, event.at_ns)
        finally:
            self.span.end(event.at_ns)

    def abandon(self, status: str, at_ns: int) -> None:
        """End the span of a call whose end nobody will announce."""
        try:
            self.span.set_attribute(semconv.CALL_STATUS, status)
        finally:
            self.span.end(at_ns)

    def _outcome(self, event: ModelEnded | ToolEnded | RetrievalEnded) -> dict[str, AttributeValue]:
        outcome: dict[str, AttributeValue] = {}
        if event.error is not None and not is_failure(event.error):
            outcome[semconv.CALL_STATUS] = "interrupted"
        if self.chunks:
            outcome[semconv.STREAM_CHUNKS] = self.chunks
            outcome[semconv.RESPONSE_TIME_TO_FIRST_CHUNK] = (self.first_chunk_ns - self.started_ns) / 1e9
        match event:
            case ModelEnded():
                outcome.update(_model_answer(event.response, self.options))
            case RetrievalEnded(documents=list() | tuple() as documents):
                outcome[semconv.RETRIEVAL_COUNT] = len(documents)
            case ToolEnded() | RetrievalEnded():
                pass
        return outcome


def _model_request(event: ModelStarted) -> tuple[str, SpanKind, dict[str, AttributeValue]]:
    operation = semconv.CHAT if event.is_chat else semconv.TEXT_COMPLETION
    params, metadata = event.params, event.metadata
    attributes: dict[str, AttributeValue] = {semconv.OPERATION_NAME: operation}
    if provider := _text(params.get("provider"), metadata.get("ls_provider")):
        attributes[semconv.PROVIDER_NAME] = provider
    if model := _text(params.get("model"), params.get("model_name"), metadata.get("ls_model_name")):
        attributes[semconv.REQUEST_MODEL] = model
    for key, name in _REQUEST_NUMBERS:
        if isinstance(value := params.get(key, metadata.get(f"ls_{key}")), (int, float)):
            attributes[name] = value
    if params.get("stream") is True:
        attributes[semconv.REQUEST_STREAM] = True
    return f"{operation} {model or event.name}", SpanKind.CLIENT, attributes


def _tool_request(event: ToolStarted) -> tuple[str, SpanKind, dict[str, AttributeValue]]:
    attributes: dict[str, AttributeValue] = {
        semconv.OPERATION_NAME: semconv.EXECUTE_TOOL,
        semconv.TOOL_NAME: event.name,
        semconv.TOOL_TYPE: "function",
    }
    if event.tool_call_id:
        attributes[semconv.TOOL_CALL_ID] = event.tool_call_id
    if event.serialized and (description := _text(event.serialized.get("description"))):
        attributes[semconv.TOOL_DESCRIPTION] = description
    return f"{semconv.EXECUTE_TOOL} {event.name}", SpanKind.INTERNAL, attributes


def _model_answer(response: Any, options: TelemetryOptions) -> dict[str, AttributeValue]:
    """Return model, finish reason and token counts as far as the answer tells; what it does not tell stays absent, never 0."""
    message = _first_message(response)
    about = _mapping(getattr(message, "response_metadata", None))
    answer: dict[str, AttributeValue] = {}
    if model := _text(about.get("model_name"), about.get("model")):
        answer[semconv.RESPONSE_MODEL] = model
    if reason := _text(about.get("finish_reason"), about.get("stop_reason")):
        answer[semconv.RESPONSE_FINISH_REASONS] = (reason,)
    if isinstance(response_id := about.get("id", getattr(message, "id", None)), str):
        answer[semconv.RESPONSE_ID] = response_id
    usage = _mapping(getattr(message, "usage_metadata", None))
    inputs, outputs = _mapping(usage.get("input_token_details")), _mapping(usage.get("output_token_details"))
    is_released = options.semconv == "1.41"
    cache_write = semconv.USAGE_CACHE_CREATION_INPUT_TOKENS if is_released else semconv.USAGE_CACHE_WRITE_INPUT_TOKENS
    counts = (
        (usage.get("input_tokens"), semconv.USAGE_INPUT_TOKENS),
        (usage.get("output_tokens"), semconv.USAGE_OUTPUT_TOKENS),
        (inputs.get("cache_read"), semconv.USAGE_CACHE_READ_INPUT_TOKENS),
        (inputs.get("cache_creation"), cache_write),
        (outputs.get("reasoning"), semconv.USAGE_REASONING_OUTPUT_TOKENS),
    )
    return answer | {name: count for count, name in counts if isinstance(count, int)}


def _first_message(response: Any) -> Any:
    """Return the message in *response*: itself, or the first generation of a LangChain ``LLMResult``."""
    generations = getattr(response, "generations", None)
    while isinstance(generations, (list, tuple)) and generations:
        generations = generations[0]
    return response if generations is None else getattr(generations, "message", response)


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _text(*candidates: Any) -> str | None:
    return next((text for text in candidates if isinstance(text, str) and text), None)
