"""Which signals content may go to, in the words of the GenAI conventions."""

from __future__ import annotations

from enum import Enum
from typing import Final

from tracegraph.errors import InvalidInputError

__all__ = ["CAPTURE_VARIABLE", "EMIT_VARIABLE", "HOOK_VARIABLE", "VARIABLES", "Capture"]

CAPTURE_VARIABLE: Final = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
EMIT_VARIABLE: Final = "OTEL_INSTRUMENTATION_GENAI_EMIT_EVENT"
HOOK_VARIABLE: Final = "OTEL_INSTRUMENTATION_GENAI_COMPLETION_HOOK"
VARIABLES: Final = (CAPTURE_VARIABLE, EMIT_VARIABLE, HOOK_VARIABLE)
"""With none of them set there is nothing to record."""


class Capture(Enum):
    """Where content goes: nowhere (the default), to spans, to log events, or to both."""

    NO_CONTENT = "NO_CONTENT"
    SPAN_ONLY = "SPAN_ONLY"
    EVENT_ONLY = "EVENT_ONLY"
    SPAN_AND_EVENT = "SPAN_AND_EVENT"

    @property
    def on_spans(self) -> bool:
        """Whether spans get content."""
        return self in (Capture.SPAN_ONLY, Capture.SPAN_AND_EVENT)

    @property
    def on_events(self) -> bool:
        """Whether log events get content."""
        return self in (Capture.EVENT_ONLY, Capture.SPAN_AND_EVENT)

    @classmethod
    def of(cls, value: object) -> Capture:
        """Return what a switch means. Older instrumentations had ``true`` and ``false``: everywhere and nowhere.

        >>> Capture.of("span_only"), Capture.of(True)
        (<Capture.SPAN_ONLY: 'SPAN_ONLY'>, <Capture.SPAN_AND_EVENT: 'SPAN_AND_EVENT'>)

        Raises:
            InvalidInputError: it is none of the words.
        """
        if isinstance(value, Capture):
            return value
        word = str(value).strip().upper() if isinstance(value, (str, bool)) else "?"
        if word in _OLD:
            return _OLD[word]
        if word in cls.__members__:
            return cls[word]
        raise InvalidInputError(
            f"content is captured as one of {', '.join(cls.__members__)} (or true, false), not {value!r}: "
            f"correct capture=, or the variable {CAPTURE_VARIABLE}"
        )


_OLD: Final = {"TRUE": Capture.SPAN_AND_EVENT, "FALSE": Capture.NO_CONTENT, "": Capture.NO_CONTENT}
