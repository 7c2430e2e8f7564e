"""How an exception looks on a span."""

from __future__ import annotations

import traceback
from asyncio import CancelledError
from functools import partial
from typing import TypeGuard

from opentelemetry.trace import Span, StatusCode

from tracegraph.errors import GraphBubbleUp
from tracegraph.telemetry import semconv
from tracegraph.telemetry.content.choice import active_policy
from tracegraph.telemetry.mirroring import add_event
from tracegraph.telemetry.quoted_values import without_values
from tracegraph.telemetry.shortening import shortened, shortened_inside

__all__ = ["error_type", "exception_attributes", "is_failure", "mark_failed", "message_of", "reason_text"]

_STACK_BYTES = 4_000
"""512 failed spans, which is a batch of the SDK's, stay below the 4 MiB that gRPC takes at once: more is lost as a whole."""


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
    'xxxxxx... (cut here)'
    """
    try:
        text = str(error)
    except Exception:  # noqa: BLE001  # the error is the user's, and so is its __str__
        return "(the exception has no printable message)"
    return shortened(active_policy().redacted_text(without_values(text), semconv.EXCEPTION_MESSAGE))


def reason_text(reason: str) -> str:
    """Return the reason that somebody gave for stopping a run, redacted and shortened; it is free text, too."""
    return shortened(active_policy().redacted_name(reason, semconv.RUN_REASON))


def mark_failed(span: Span, error: BaseException, at_ns: int, *, is_recorded: bool = True) -> None:
    """Give *span* status ERROR, ``error.type`` and, unless *is_recorded* is false, one exception event."""
    kind = error_type(error)
    message = message_of(error)
    span.set_attribute(semconv.ERROR_TYPE, kind)
    span.set_status(StatusCode.ERROR, message or None)
    if is_recorded:
        add_event(span, semconv.EXCEPTION_EVENT, partial(exception_attributes, error), at_ns)


def exception_attributes(error: BaseException) -> dict[str, str]:
    """Return the conventions' three attributes of an exception, for an event or a log record."""
    texts = {semconv.EXCEPTION_MESSAGE: message_of(error), semconv.EXCEPTION_STACKTRACE: _stack(error)}
    # What a redactor could not do is left out.
    return {semconv.EXCEPTION_TYPE: error_type(error), **{key: text for key, text in texts.items() if text}}


def _stack(error: BaseException) -> str:
    """Return the traceback; of a long one both ends, since the cause stands at the top and the raise at the bottom."""
    try:
        text = "".join(traceback.format_exception(error))
    except Exception:  # noqa: BLE001  # see message_of
        return "(the traceback cannot be printed)"
    return shortened_inside(active_policy().redacted_text(without_values(text), semconv.EXCEPTION_STACKTRACE), _STACK_BYTES)
