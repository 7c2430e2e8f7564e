"""How an exception looks on a span."""

from __future__ import annotations

import traceback
from asyncio import CancelledError
from typing import TypeGuard

from opentelemetry.trace import Span, StatusCode

from tracegraph.errors import GraphBubbleUp
from tracegraph.telemetry import semconv
from tracegraph.telemetry.content.choice import active_policy

__all__ = ["error_type", "is_failure", "mark_failed", "message_of"]

_MESSAGE_LIMIT = 1_000
_STACK_LIMIT = 16_000
"""Characters. Backends cut values at 2,048 bytes or reject the whole span at some tens of kilobytes."""


def is_failure(error: BaseException | None) -> TypeGuard[BaseException]:
    """Say whether *error* is a failure, and no control flow: a pause, a jump to the parent graph, a cancellation.

    The type decides, not the name: a user's own error called ``GraphInterrupt`` is an error.
    """
    return error is not None and not isinstance(error, (GraphBubbleUp, CancelledError, GeneratorExit))


def error_type(error: BaseException) -> str:
    """Return the exception class as ``error.type`` has it.

    >>> error_type(ValueError("x")), error_type(CancelledError())
    ('ValueError', 'asyncio.exceptions.CancelledError')
    """
    cls = type(error)
    return cls.__qualname__ if cls.__module__ == "builtins" else f"{cls.__module__}.{cls.__qualname__}"


def message_of(error: BaseException) -> str:
    """Return the exception's text, redacted and shortened; an exception that cannot be printed still gives a text.

    >>> message_of(ValueError("x" * 5000))[-20:]
    'xxxxx... (cut here)'
    """
    try:
        text = str(error)
    except Exception:  # noqa: BLE001  # the error is the user's, and so is its __str__
        return "(the exception has no printable message)"
    text = active_policy().redacted_text(text, semconv.EXCEPTION_MESSAGE)
    return text if len(text) <= _MESSAGE_LIMIT else text[: _MESSAGE_LIMIT - 15] + "... (cut here)"


def mark_failed(span: Span, error: BaseException, at_ns: int, *, is_recorded: bool = True) -> None:
    """Give *span* status ERROR, ``error.type`` and, unless *is_recorded* is false, one exception event."""
    kind = error_type(error)
    message = message_of(error)
    span.set_attribute(semconv.ERROR_TYPE, kind)
    span.set_status(StatusCode.ERROR, message or None)
    if is_recorded:
        texts = {semconv.EXCEPTION_MESSAGE: message, semconv.EXCEPTION_STACKTRACE: _stack(error)}
        attributes = {semconv.EXCEPTION_TYPE: kind, **{key: text for key, text in texts.items() if text}}
        span.add_event(semconv.EXCEPTION_EVENT, attributes, at_ns)


def _stack(error: BaseException) -> str:
    """Return the traceback; of a long one both ends, since the cause stands at the top and the raise at the bottom."""
    try:
        text = "".join(traceback.format_exception(error))
    except Exception:  # noqa: BLE001  # see message_of
        return "(the traceback cannot be printed)"
    text = active_policy().redacted_text(text, semconv.EXCEPTION_STACKTRACE)
    if len(text) <= _STACK_LIMIT:
        return text
    return f"{text[: _STACK_LIMIT // 2]}\n... (cut here) ...\n{text[-_STACK_LIMIT // 2 :]}"
