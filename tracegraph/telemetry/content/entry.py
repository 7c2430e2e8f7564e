"""What of one run, task or call has been recorded so far, and the span it is on."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from opentelemetry.trace import Span

from tracegraph.telemetry import semconv
from tracegraph.telemetry.content.budget import text_within
from tracegraph.telemetry.content.policy import ContentPolicy
from tracegraph.telemetry.content.redaction import LeftOutError
from tracegraph.telemetry.content.snapshot import snapshot

__all__ = ["Entry"]


class Entry:
    """Collects redacted content; puts each attribute on the span at once, so that a span that never ends well has it."""

    __slots__ = ("_count", "_cut", "_left_out", "_policy", "content", "facts", "is_inference", "span")

    def __init__(self, policy: ContentPolicy, span: Span | None, facts: dict[str, Any]) -> None:
        self._policy = policy
        self.span = span
        self.facts = facts
        """What a log event says beside the content."""
        self.content: dict[str, Any] = {}
        self.is_inference = False
        self._count = 0
        self._cut: tuple[str, ...] = ()
        self._left_out: tuple[str, ...] = ()

    def put(self, attribute: str, value: Any, shape: Callable[[Any], Any] | None = None, *, is_text: bool = False) -> None:
        """Record *value*, as *shape* makes it, for *attribute*; nothing if it is None or *shape* makes an empty list."""
        if value is None:
            return
        try:
            if shape is not None:
                value = shape(value)
                if value is None or (isinstance(value, list) and not value):
                    return
            data = self._policy.redacted(snapshot(value), attribute)
        except LeftOutError:
            self._leave_out(attribute)
        except Exception as error:  # noqa: BLE001  # the function is the user's, or reads classes of theirs, or the stack is full
            self._policy.report(getattr(shape, "__qualname__", attribute), error)
            self._leave_out(attribute)
        else:
            self.content[attribute] = data
            if self.span is not None and self._policy.on_spans:
                self._put_on_span(self.span, attribute, data, is_text)

    def refer(self, attribute: str, ref: str) -> None:
        """Say where the content was uploaded to."""
        self.facts[attribute] = ref
        if self.span is not None and self.span.is_recording():
            self.span.set_attribute(attribute, ref)

    def _put_on_span(self, span: Span, attribute: str, data: Any, is_text: bool) -> None:
        if self._count >= self._policy.max_attributes:
            self._mark_cut(span, attribute)
            return
        self._count += 1
        if is_text:
            text = data if isinstance(data, str) else json.dumps(data, ensure_ascii=False)
            text, is_cut = text_within(text, self._policy.budget_bytes)
        else:
            text, is_cut = self._policy.on_span(data)
        span.set_attribute(attribute, text)
        if is_cut:
            self._mark_cut(span, attribute)

    def _mark_cut(self, span: Span, attribute: str) -> None:
        self._cut += (attribute,)
        span.set_attribute(semconv.TRUNCATED, self._cut)

    def _leave_out(self, attribute: str) -> None:
        self._left_out += (attribute,)
        self.facts[semconv.LEFT_OUT] = self._left_out
        if self.span is not None:
            self.span.set_attribute(semconv.LEFT_OUT, self._left_out)
