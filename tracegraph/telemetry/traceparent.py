"""W3C traceparents: how a span is named outside its process (stored beside interrupts, linked to by a resume)."""

from __future__ import annotations

import re

from opentelemetry.trace import SpanContext, TraceFlags, format_span_id, format_trace_id

__all__ = ["format_traceparent", "parse_traceparent"]

_SHAPE = re.compile(r"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(?:-.*)?")


def format_traceparent(context: SpanContext) -> str:
    """Return *context* as a version 00 traceparent.

    >>> format_traceparent(SpanContext(1, 2, is_remote=False, trace_flags=TraceFlags(1)))
    '00-00000000000000000000000000000001-0000000000000002-01'
    """
    return f"00-{format_trace_id(context.trace_id)}-{format_span_id(context.span_id)}-{context.trace_flags:02x}"


def parse_traceparent(text: str) -> SpanContext | None:
    """Return the span *text* names, ``None`` if it names none: a link is not worth failing a run for.

    >>> parse_traceparent("00-00000000000000000000000000000001-0000000000000002-01").span_id
    2
    >>> parse_traceparent("nonsense")
    """
    found = _SHAPE.fullmatch(text)
    if found is None or found[1] == "ff":
        return None
    context = SpanContext(int(found[2], 16), int(found[3], 16), is_remote=True, trace_flags=TraceFlags(int(found[4], 16)))
    return context if context.is_valid else None
