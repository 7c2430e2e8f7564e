"""What the registry is made of: attributes, spans, events, metrics, and how strictly each belongs to each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

__all__ = [
    "ANY_PARENT",
    "Attribute",
    "AttributeType",
    "Event",
    "Level",
    "Metric",
    "Source",
    "SpanKindName",
    "SpanType",
    "Stability",
    "Use",
    "required",
    "opt_in",
    "recommended",
    "when",
]

AttributeType: TypeAlias = Literal["string", "int", "double", "boolean", "string[]", "double[]", "any"]
"""``any``: structured; on spans a JSON string."""

Level: TypeAlias = Literal["required", "conditionally required", "recommended", "opt-in"]
Stability: TypeAlias = Literal["stable", "development"]
SpanKindName: TypeAlias = Literal["INTERNAL", "CLIENT"]

Source: TypeAlias = Literal["core", "genai", "genai 1.41", "proposal", "openinference", "tracegraph"]
"""Who defined it.

``core``: OpenTelemetry's semantic conventions; ``genai``: the GenAI conventions as of October 2026, not yet
released in this form; ``genai 1.41``: their last release, where it differs; ``proposal``: an open proposal there;
``openinference``: the conventions of that name.
"""

ANY_PARENT = "*"
"""Stands for the application's own spans, other libraries' and none at all."""


@dataclass(frozen=True, slots=True)
class Attribute:
    """An attribute: what it means and what it may hold."""

    name: str
    type: AttributeType
    description: str
    source: Source = "tracegraph"
    stability: Stability = "development"
    unit: str = ""
    """In UCUM form (``s``, ``ms``, ``{token}``), empty if it is no quantity."""
    values: tuple[str, ...] = ()
    """All values it can have; empty if the set is open."""
    is_content: bool = False
    """It holds what users or models said, so it is absent unless somebody asked for it."""


@dataclass(frozen=True, slots=True)
class Use:
    """An attribute's place on a span, event or metric; ``condition`` says when it is there, if not always."""

    attribute: str
    level: Level
    condition: str = ""


@dataclass(frozen=True, slots=True)
class SpanType:
    """A kind of span: its name, its place in the tree and what it carries."""

    id: str
    """The first word (or words) of the span's name."""
    subject: str
    """The attribute whose value follows in the span's name; empty if nothing does."""
    kinds: tuple[SpanKindName, ...]
    description: str
    source: Source
    attributes: tuple[Use, ...]
    parents: tuple[str, ...]
    """Ids of the spans it may lie right below, :data:`ANY_PARENT` among them where that is so."""
    events: tuple[str, ...] = ()
    links: tuple[str, ...] = ()
    """Values that ``tracegraph.link`` may have on its links."""
    status: str = ""
    """The attribute that says how it ended, if there is one."""
    failures: tuple[str, ...] = ()
    """Values of that attribute with which the span's status is ERROR; with any other it is Unset."""
    stability: Stability = "development"

    @property
    def name(self) -> str:
        """The span's name as a pattern.

        >>> from tracegraph.telemetry.semconv.spans import SPANS
        >>> SPANS[0].name
        'invoke_workflow {gen_ai.workflow.name}'
        """
        return f"{self.id} {{{self.subject}}}" if self.subject else self.id


@dataclass(frozen=True, slots=True)
class Event:
    """A point in time: a log record with this event name, an event of a span, or both."""

    name: str
    description: str
    source: Source
    attributes: tuple[Use, ...]
    on_spans: bool
    in_logs: bool
    severity: str = "INFO"
    """Of the log record; one that tells of a failure is of severity ERROR."""
    in_logs_too: tuple[Use, ...] = ()
    """What the log record has beside :attr:`attributes`."""
    stability: Stability = "development"


@dataclass(frozen=True, slots=True)
class Metric:
    """An instrument."""

    name: str
    instrument: Literal["histogram", "counter", "updowncounter"]
    unit: str
    description: str
    source: Source
    attributes: tuple[Use, ...]
    buckets: tuple[float, ...] = ()
    """Advised bucket boundaries of a histogram."""
    stability: Stability = "development"


def required(*names: str) -> tuple[Use, ...]:
    """Return uses of attributes that are always there."""
    return tuple(Use(name, "required") for name in names)


def when(condition: str, *names: str) -> tuple[Use, ...]:
    """Return uses of attributes that are there exactly if *condition* holds."""
    return tuple(Use(name, "conditionally required", condition) for name in names)


def recommended(*names: str) -> tuple[Use, ...]:
    """Return uses of attributes that are there as far as they are known."""
    return tuple(Use(name, "recommended") for name in names)


def opt_in(*names: str) -> tuple[Use, ...]:
    """Return uses of attributes that are there only if somebody asked for them."""
    return tuple(Use(name, "opt-in") for name in names)
