"""Going on with a trace that another process began, where nothing has made its context current."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager

__all__ = ["continue_trace"]


@contextmanager
def continue_trace(carrier: Mapping[str, str] | Iterable[tuple[str | bytes, str | bytes]]) -> Iterator[None]:
    """Make the trace context in *carrier* current: runs started inside join that trace and see its baggage.

    Not needed where the web framework or the queue's client is instrumented: there the context is current already.
    The application's propagators read it (by default W3C ``traceparent``, ``tracestate`` and ``baggage``); what they
    cannot read changes nothing.

    Args:
        carrier: the headers of a message or request, in a mapping or in pairs of text or bytes; names in any case, so
            ``os.environ`` will do for a process that was started with ``TRACEPARENT``.

    >>> from opentelemetry.trace import get_current_span
    >>> with continue_trace({"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}):
    ...     print(f"{get_current_span().get_span_context().trace_id:032x}")
    0af7651916cd43dd8448eb211c80319c
    """
    from opentelemetry.context import attach, detach
    from opentelemetry.propagate import extract

    pairs = carrier.items() if isinstance(carrier, Mapping) else carrier
    token = attach(extract({_text(name).lower(): _text(value) for name, value in pairs}))
    try:
        yield
    finally:
        detach(token)


def _text(value: str | bytes) -> str:
    # Header bytes are Latin-1; what is no text at all (a number in some queue's headers) is read as it prints.
    return value.decode("latin-1") if isinstance(value, bytes) else str(value)
