"""The content policy: what of a run's values is recorded, where, how much, and what is redacted."""

from __future__ import annotations

import logging
import re
import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from tracegraph.errors import InvalidInputError
from tracegraph.telemetry.content.blobs import StoreBlob
from tracegraph.telemetry.content.budget import json_within
from tracegraph.telemetry.content.capture import Capture
from tracegraph.telemetry.content.redaction import REDACTED_KEYS, SECRETS, LeftOutError, Redaction, Redactor

if TYPE_CHECKING:
    from tracegraph.telemetry.content.upload import Upload

__all__ = ["SMALLEST_POLICY_BUDGET", "ContentPolicy"]

logger = logging.getLogger("tracegraph.telemetry")

SMALLEST_POLICY_BUDGET: Final = 64
_LEFT_OUT_TEXT: Final = "(left out: a redactor failed)"


@dataclass(frozen=True, slots=True, kw_only=True)
class ContentPolicy:
    """What is recorded of states, messages, tool arguments, documents and their like. Nothing, unless ``capture`` says so.

    Args:
        capture: a :class:`Capture` or its name, or True (everywhere) or False (nowhere).
        emit_event: False: no log events, whatever *capture* says; True: one for each model call, with content only if *capture*
            puts it on events; None: events where *capture* puts content on them.
        state: record the inputs and outputs of runs and nodes too, not only those of models, tools and retrievers.
        tool_definitions: record the tools a model could choose from; they are large, and the same each time.
        redactors: functions of a value and :class:`Where` it stands that return what may leave in its place. They are
            called for every value, containers before what is in them, and for the keys of mappings. What a redactor that
            raises was called for is left out, never recorded as it is.
        redacted_keys: a regular expression for the last word of keys whose values never leave; ``""`` for none.
        budget_bytes: bytes of UTF-8 that an attribute of a span may have, 64 or more. Log events and uploads have it all.
        max_attributes: content attributes that a span may have.
        exceptions: record the messages and stack traces of exceptions, redacted; else only their types. They are no
            content by the conventions, so this does not depend on ``capture``.
        upload: stores the full content of model calls elsewhere; spans refer to it.
        store_blob: stores the pictures, sounds and documents in messages: a function of bytes and their mime type (or None)
            that returns a URI, as an upload's ``store_blob`` is. No redactor sees them. None: they are left out.

    >>> ContentPolicy(capture="SPAN_ONLY", budget_bytes=500).capture
    <Capture.SPAN_ONLY: 'SPAN_ONLY'>

    Raises:
        InvalidInputError: an argument is no such thing.
    """

    capture: Capture | str | bool = Capture.NO_CONTENT
    emit_event: bool | None = None
    state: bool = True
    tool_definitions: bool = False
    redactors: tuple[Redactor, ...] = SECRETS
    redacted_keys: str = REDACTED_KEYS
    budget_bytes: int = 2_000
    max_attributes: int = 16
    exceptions: bool = True
    upload: Upload | None = None
    store_blob: StoreBlob | None = None
    _redaction: Redaction = field(init=False, repr=False, compare=False)
    _reported: set[str] = field(init=False, repr=False, compare=False, default_factory=set)
    _lock: threading.Lock = field(init=False, repr=False, compare=False, default_factory=threading.Lock)

    def __post_init__(self) -> None:
        object.__setattr__(self, "capture", Capture.of(self.capture))
        object.__setattr__(self, "redactors", tuple(self.redactors))
        for redactor in self.redactors:
            if not callable(redactor):
                raise InvalidInputError(f"a redactor is a function of a value and where it stands, not {redactor!r}")
        if self.emit_event not in (True, False, None):
            raise InvalidInputError(f"emit_event is True, False or None, not {self.emit_event!r}")
        if type(self.budget_bytes) is not int or self.budget_bytes < SMALLEST_POLICY_BUDGET:
            raise InvalidInputError(f"budget_bytes must be {SMALLEST_POLICY_BUDGET} or more, not {self.budget_bytes!r}")
        if type(self.max_attributes) is not int or self.max_attributes < 1:
            raise InvalidInputError(f"max_attributes must be 1 or more, not {self.max_attributes!r}")
        if not isinstance(self.redacted_keys, str):
            raise InvalidInputError(f"redacted_keys must be a regular expression, not {self.redacted_keys!r}")
        try:
            # A pattern that matches nothing, not one that matches the empty key.
            redaction = Redaction(self.redactors, self.redacted_keys or r"(?!)")
        except re.error as error:
            raise InvalidInputError(f"redacted_keys must be a regular expression, not {self.redacted_keys!r}: {error}") from error
        object.__setattr__(self, "_redaction", redaction)

    @classmethod
    def of(cls, value: ContentPolicy | Capture | str | bool) -> ContentPolicy:
        """Return a policy: as given, or the default one with this capture."""
        return value if isinstance(value, cls) else cls(capture=value)  # type: ignore[arg-type]  # told apart by Capture.of

    @property
    def on_spans(self) -> bool:
        """Whether spans get content."""
        return self.capture in (Capture.SPAN_ONLY, Capture.SPAN_AND_EVENT)

    @property
    def on_events(self) -> bool:
        """Whether log events get content."""
        return self.emit_event is not False and self.capture in (Capture.EVENT_ONLY, Capture.SPAN_AND_EVENT)

    @property
    def emits_events(self) -> bool:
        """Whether there are log events of model calls, with content or without."""
        return bool(self.emit_event) or self.on_events

    @property
    def is_off(self) -> bool:
        """Whether there is nothing to record."""
        return self.capture is Capture.NO_CONTENT and self.upload is None and not self.emit_event

    def redacted(self, data: Any, attribute: str) -> Any:
        """Return JSON data for *attribute* without what must not leave.

        Raises:
            LeftOutError: a redactor raised; it has been reported.
        """
        try:
            return self._redaction.apply(data, attribute)
        except LeftOutError as error:
            self.report(error.redactor, error)
            raise

    def redacted_text(self, text: str, attribute: str) -> str:
        """Return a text of an exception, which is no content, without what must not leave."""
        return self.redacted_name(text, attribute) if self.exceptions else ""

    def redacted_name(self, text: str, attribute: str) -> str:
        """Return a name or key, which is no content, without what must not leave."""
        try:
            return self._redaction.text(text, attribute)
        except LeftOutError as error:
            self.report(error.redactor, error)
            return _LEFT_OUT_TEXT

    def on_span(self, data: Any) -> tuple[str, bool]:
        """Return redacted JSON data as text within the budget, and whether something was cut."""
        return json_within(data, self.budget_bytes)

    def report(self, what: str, error: BaseException) -> None:
        """Log that *what* of the user's failed, the first time. Not how: its message may hold the value."""
        with self._lock:
            if what in self._reported:
                return
            self._reported.add(what)
        cause = error.__cause__ or error
        logger.warning("%s failed with %s: what it was for is left out; further failures are not logged", what, _kind(cause))


def _kind(error: BaseException) -> str:
    return type(error).__qualname__
