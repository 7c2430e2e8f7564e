"""What the exporters share: a span as a plain record, its JSON, and where the store lies."""

from __future__ import annotations

import base64
import json
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import ReadableSpan

__all__ = ["HOME_VARIABLE", "EventRecord", "LinkRecord", "SpanRecord", "default_path", "dump_json", "safe_text", "to_record"]

HOME_VARIABLE: Final = "TRACEGRAPH_HOME"

# The few attribute names that lists and trees show; a test holds them against tracegraph's own.
CONVERSATION_ID: Final = "gen_ai.conversation.id"
TRACE_PART_SPAN: Final = "trace part"
OPERATION_NAME: Final = "gen_ai.operation.name"
WORKFLOW_NAME: Final = "gen_ai.workflow.name"
AGENT_NAME: Final = "gen_ai.agent.name"
STEP_NAME: Final = "gen_ai.step.name"
REQUEST_MODEL: Final = "gen_ai.request.model"
RESPONSE_MODEL: Final = "gen_ai.response.model"
TOOL_NAME: Final = "gen_ai.tool.name"
RETRIEVER_NAME: Final = "tracegraph.retriever.name"
PROVIDER: Final = "gen_ai.provider.name"
ERROR_TYPE: Final = "error.type"
RUN_ID: Final = "tracegraph.run.id"
RUN_STATUS: Final = "tracegraph.run.status"
RUN_REASON: Final = "tracegraph.run.reason"
TASK_ID: Final = "tracegraph.task.id"
TASK_REASON: Final = "tracegraph.task.reason"
TASK_STATUS: Final = "tracegraph.task.status"
CALL_STATUS: Final = "tracegraph.call.status"
SUPERSTEP: Final = "tracegraph.superstep"
CACHE_HIT: Final = "tracegraph.cache.hit"
ATTEMPT_NUMBER: Final = "tracegraph.attempt.number"
TASK_ATTEMPTS: Final = "tracegraph.task.attempts"
INPUT_TOKENS: Final = "gen_ai.usage.input_tokens"
OUTPUT_TOKENS: Final = "gen_ai.usage.output_tokens"
CACHE_READ_TOKENS: Final = "gen_ai.usage.cache_read.input_tokens"
CACHE_WRITE_TOKENS: Final = "gen_ai.usage.cache_write.input_tokens"

ABANDONED: Final = "tracegraph.span.abandoned"
"""On a span that its process never ended; the store ended it when it found that process dead."""

PROCESS_ID: Final = "process.pid"
"""The process that died; a stable name of the core conventions."""


@dataclass(frozen=True, slots=True)
class EventRecord:
    """A span event."""

    name: str
    at_ns: int
    attributes: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class LinkRecord:
    """A link from a span to another, perhaps in another trace."""

    trace_id: str
    span_id: str
    attributes: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class SpanRecord:
    """A span: ids as lower-case hex, times in nanoseconds since the epoch, ``status`` unset, ok or error.

    ``is_local_root``: it has no parent in this process (none at all, or a remote one).
    ``is_running``: it has not ended; ``end_ns`` is when it was looked at.
    """

    trace_id: str
    span_id: str
    parent_id: str | None
    is_local_root: bool
    name: str
    kind: str
    start_ns: int
    end_ns: int
    status: str
    message: str | None
    attributes: Mapping[str, Any]
    events: tuple[EventRecord, ...]
    links: tuple[LinkRecord, ...]
    resource: Mapping[str, Any]
    scope: str | None
    is_running: bool = False

    @property
    def duration_ns(self) -> int:
        """How long the span took, or has taken so far."""
        return self.end_ns - self.start_ns


def to_record(span: ReadableSpan) -> SpanRecord:
    """Return what the SDK hands to exporters as a plain record; one that has not ended yet ends where it started."""
    from opentelemetry.trace import format_span_id, format_trace_id

    context, parent = span.context, span.parent
    start_ns = span.start_time or 0
    return SpanRecord(
        trace_id=format_trace_id(context.trace_id),
        span_id=format_span_id(context.span_id),
        parent_id=None if parent is None else format_span_id(parent.span_id),
        is_local_root=parent is None or parent.is_remote,
        name=span.name,
        kind=span.kind.name.lower(),
        start_ns=start_ns,
        end_ns=span.end_time or start_ns,
        status=span.status.status_code.name.lower(),
        message=span.status.description,
        attributes=_as_dict(span.attributes),
        events=tuple(EventRecord(e.name, e.timestamp, _as_dict(e.attributes)) for e in span.events),
        links=tuple(
            LinkRecord(format_trace_id(k.context.trace_id), format_span_id(k.context.span_id), _as_dict(k.attributes))
            for k in span.links
        ),
        resource=span.resource.attributes,
        scope=span.instrumentation_scope.name if span.instrumentation_scope is not None else None,
    )


def default_path() -> Path:
    """Return where the trace store lies: in ``$TRACEGRAPH_HOME``, else in the user's data folder; file ``traces.db``."""
    if home := os.environ.get(HOME_VARIABLE):
        return Path(home).expanduser() / "traces.db"
    from platformdirs import user_data_path

    return user_data_path("tracegraph", appauthor=False) / "traces.db"


def dump_json(value: Any) -> str:
    """Return *value* as strict JSON: bytes as base64, what JSON has no word for (NaN, objects) as text.

    >>> dump_json({"a": (1, b"x"), "b": float("nan")})
    '{"a":[1,"eA=="],"b":"nan"}'
    """
    try:
        text = _ENCODER.encode(value)
    except (ValueError, TypeError):
        text = _ENCODER.encode(_plain(value))
    return safe_text(text)


def safe_text(text: str) -> str:
    r"""Return *text* without lone surrogates: one of them would make the whole batch unwritable.

    >>> safe_text("a\ud800b")
    'a?b'
    """
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")


def _plain(value: Any) -> Any:
    match value:
        case None | bool() | int() | str():
            return value
        case float():
            return value if math.isfinite(value) else str(value)
        case bytes():
            return base64.b64encode(value).decode("ascii")
        case Mapping():
            return {str(key): _plain(item) for key, item in value.items()}
        case Sequence():
            return [_plain(item) for item in value]
        case _:
            return str(value)


# One encoder for all: json.dumps with arguments makes a new one for every call.
_ENCODER: Final = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=_plain)


def _as_dict(attributes: Any) -> Mapping[str, Any]:
    """Return attributes as the SDK keeps them in a plain dict; its view looks every key up in Python code."""
    copy = getattr(attributes, "copy", None)
    copied = copy() if copy is not None else attributes
    return copied if type(copied) is dict else dict(copied or {})
