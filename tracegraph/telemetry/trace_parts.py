"""How large a trace gets: a run with more spans than backends show in one goes on in another that is linked to it.

Each part but the first has a root of its own, ``trace part``, with links to the run's own span and to the part before. What was
open when a part was full stays in it, and may end after its root, which ends then so that the part can be looked at.
"""

from __future__ import annotations

from typing import Final

from opentelemetry.context import Context
from opentelemetry.trace import INVALID_SPAN, Link, Span, SpanContext, Tracer, set_span_in_context

from tracegraph.events import RunStarted
from tracegraph.telemetry import semconv
from tracegraph.telemetry.open_spans import Attributes, End

__all__ = ["TraceParts"]

_FILL: Final = 0.95
"""Which part of the budget is used before the next trace begins; the rest is for what is still open."""

_TRIES: Final = 200
"""How often a new trace is begun until the sampler takes one: half of a run's parts would be of no use."""


class TraceParts:
    """The part of a root run's trace that spans are started in now, and how many there have been.

    Args:
        tracer: makes the roots of parts.
        root: the run's own span.
        started: what the run began with.
        budget: the spans that a trace may have.
    """

    __slots__ = ("_attributes", "_budget", "_part", "_root", "_tracer", "count", "number", "total", "trace_ids")

    def __init__(self, tracer: Tracer, root: Span, started: RunStarted, budget: int) -> None:
        self._tracer = tracer
        self._root = root
        self._part: Span | None = None
        self._budget = max(1, int(budget * _FILL))
        self.count = 1
        """Spans in the part that is filled now."""
        self.total = 1
        self.number = 1
        """Of that part, from 1."""
        self.trace_ids = {root.get_span_context().trace_id}
        self._attributes: Attributes = {semconv.RUN_ID: str(started.run_id)}
        if started.workflow_name is not None:
            self._attributes[semconv.WORKFLOW_NAME] = started.workflow_name
        if started.thread_id is not None:
            self._attributes[semconv.CONVERSATION_ID] = started.thread_id

    @property
    def is_large(self) -> bool:
        """Whether the run has filled a whole part, so that its supersteps get no spans any more."""
        return self.total >= self._budget

    def add(self) -> None:
        """Count a span that is started."""
        self.count += 1
        self.total += 1

    def turn(self, at_ns: int) -> bool:
        """Begin the next part if this one is full; return whether that was done."""
        if self.count < self._budget:
            return False
        before = self._part or self._root
        part = self._start(before.get_span_context(), at_ns)
        self.count = 0
        if part is None:
            return False  # no new trace would be sampled: a large one is better than a gap
        context = part.get_span_context()
        self.number += 1
        self.trace_ids.add(context.trace_id)
        before.set_attribute(semconv.TRACE_CONTINUED_IN, f"{context.trace_id:032x}")
        if self._part is not None:
            self._part.end(at_ns)
        self._part = part
        return True

    def context(self, base: Context) -> Context:
        """Return *base* with the root of the part that is filled now as its span."""
        return base if self._part is None else set_span_in_context(self._part, base)

    def ends(self, status: str) -> list[End]:
        """Return what is to be ended with the run: the last part's root; and tell its span how many there are."""
        if self._part is None:
            return []
        self._root.set_attribute(semconv.TRACE_PARTS, self.number)
        part, self._part = self._part, None
        return [(part, semconv.RUN_STATUS, status)]

    def _start(self, before: SpanContext, at_ns: int) -> Span | None:
        first = self._root.get_span_context()
        links = [Link(first, {semconv.LINK_KIND: "run"})]
        if before.span_id != first.span_id:
            links.append(Link(before, {semconv.LINK_KIND: "part"}))
        attributes = {**self._attributes, semconv.TRACE_PART: self.number + 1}
        nowhere = set_span_in_context(INVALID_SPAN, Context())
        for _ in range(_TRIES):
            span = self._tracer.start_span(semconv.TRACE_PART_SPAN, nowhere, attributes=attributes, links=links, start_time=at_ns)
            if span.is_recording():
                return span
        return None
