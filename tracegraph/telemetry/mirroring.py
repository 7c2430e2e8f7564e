"""Points in time are log records first; a short list of them is mirrored as events on spans, which this switches.

The conventions move from span events to log records, but trace-only backends show nothing else, so the
default is both.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final, Literal, TypeAlias, get_args

from tracegraph.errors import InvalidInputError
from tracegraph.telemetry.log_provider import logger_in_use

if TYPE_CHECKING:
    from opentelemetry.trace import Span
    from opentelemetry.util.types import AttributeValue

__all__ = ["EVENTS_VARIABLE", "Events", "add_event", "check_events", "has_records", "has_state_records", "use_events"]

Events: TypeAlias = Literal["logs", "dup", "spans"]
"""``logs``: records, and no span events where there is a logger provider; ``dup``: both; ``spans``: no records."""

EVENTS_VARIABLE: Final = "TRACEGRAPH_EVENTS"
_STATE_VARIABLE: Final = "TRACEGRAPH_LOG_STATE_UPDATES"
_EXCEPTIONS_VARIABLE: Final = "OTEL_SEMCONV_EXCEPTION_SIGNAL_OPT_IN"
_EXCEPTION_EVENT: Final = "exception"

logger = logging.getLogger("tracegraph.telemetry")


class _Choice:
    """What was chosen in code; and the last bad value of the variable, which is complained of once."""

    events: Events | None = None
    refused: str | None = None


def use_events(events: Events | None) -> None:
    """Choose where points in time go (``None``: as ``TRACEGRAPH_EVENTS`` says, else ``dup``).

    Raises:
        InvalidInputError: *events*, or the variable where *events* is None, is none of the three.

    >>> use_events("both")
    Traceback (most recent call last):
    tracegraph.errors.InvalidInputError: [TG102] events is 'both'; known: logs, dup, spans
    """
    check_events(events)
    _Choice.events = events


def check_events(events: Events | None) -> None:
    """Refuse what :func:`use_events` refuses, and change nothing."""
    given = events or os.environ.get(EVENTS_VARIABLE)
    if given and given not in get_args(Events):
        raise InvalidInputError(f"{'events' if events else EVENTS_VARIABLE} is {given!r}; known: {', '.join(get_args(Events))}")


def has_records() -> bool:
    """Whether log records are made of lifecycle events."""
    return _chosen() != "spans"


def has_state_records() -> bool:
    """Whether records tell which keys of the state each superstep changed."""
    return os.environ.get(_STATE_VARIABLE, "").lower() in ("1", "true", "yes")


def add_event(span: Span, name: str, attributes: Callable[[], Mapping[str, AttributeValue]], at_ns: int) -> None:
    """Put an event on *span*, unless log records have taken the place of span events."""
    if not _is_left_to_records(name):
        span.add_event(name, attributes(), at_ns)


def _is_left_to_records(name: str) -> bool:
    chosen = _chosen()
    only_records = chosen == "logs" or (
        chosen == "dup" and name == _EXCEPTION_EVENT and "logs" in os.environ.get(_EXCEPTIONS_VARIABLE, "").split(",")
    )
    return only_records and logger_in_use() is not None


def _chosen() -> Events:
    if _Choice.events is not None:
        return _Choice.events
    given = os.environ.get(EVENTS_VARIABLE)
    for known in get_args(Events):
        if given == known:
            return known  # type: ignore[no-any-return]  # get_args has no types
    if given and given != _Choice.refused:
        _Choice.refused = given
        logger.warning("%s is %r; known: %s. It is taken as dup", EVENTS_VARIABLE, given, ", ".join(get_args(Events)))
    return "dup"
