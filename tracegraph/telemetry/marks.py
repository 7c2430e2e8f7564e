"""Points in time that leave a mark on an open span rather than a span of their own.

The list of span events is short and closed: they are what backends without a log store show of a run.
"""

from __future__ import annotations

from functools import partial

from opentelemetry.trace import Span

from tracegraph.events import AttemptEnded, Drained, Interrupted, JoinStarved, Resumed, TaskEnded, TurnTaken
from tracegraph.telemetry import points, semconv
from tracegraph.telemetry.failure import is_failure, mark_failed, reason_text
from tracegraph.telemetry.mirroring import add_event
from tracegraph.telemetry.traceparent import parse_traceparent

__all__ = ["mark_drained", "mark_interrupted", "mark_join_starved", "mark_resumed", "mark_retry", "mark_task", "mark_turn_taken"]


def mark_interrupted(span: Span, event: Interrupted) -> None:
    """Note on the run that it pauses: for whom, and under which ids. The question itself is content."""
    add_event(span, semconv.RUN_INTERRUPTED_EVENT, partial(points.of_interrupted, event), event.at_ns)


def mark_resumed(span: Span, event: Resumed) -> None:
    """Note on the run what it goes on from, and link it there. Links are one-way, so the ids are attributes too."""
    span.set_attributes(points.of_resumed(event))
    add_event(span, semconv.RUN_RESUMED_EVENT, partial(points.of_resumed, event), event.at_ns)
    for context in map(parse_traceparent, event.links):
        if context is not None:
            span.add_link(context, {semconv.LINK_KIND: "resumed"})


def mark_drained(span: Span, event: Drained) -> None:
    """Note on the run that it was asked to stop, and where it would have gone on."""
    span.set_attribute(semconv.RUN_REASON, reason_text(event.reason))
    add_event(span, semconv.RUN_DRAINED_EVENT, partial(points.of_drained, event), event.at_ns)


def mark_join_starved(span: Span, event: JoinStarved) -> None:
    """Note on the run which join never got all of its sources."""
    add_event(span, semconv.JOIN_STARVED_EVENT, partial(points.of_join_starved, event), event.at_ns)


def mark_retry(span: Span, event: AttemptEnded, error: BaseException) -> None:
    """Note on the task that *error* is retried: the task's span itself does not fail for it."""
    add_event(span, semconv.TASK_RETRY_EVENT, partial(points.of_retry, event, error), event.at_ns)


def mark_task(span: Span, event: TaskEnded) -> None:
    """Say on a task's span how it ended other than well."""
    if event.reason is not None:
        span.set_attribute(semconv.TASK_REASON, event.reason)
    if event.status == "cached":
        span.set_attribute(semconv.CACHE_HIT, True)
    if event.status == "failed" and is_failure(event.error):
        mark_failed(span, event.error, event.at_ns)


def mark_turn_taken(span: Span, event: TurnTaken) -> None:
    """Note on the run how long it waited for those before it on its thread."""
    add_event(span, semconv.TURN_TAKEN_EVENT, partial(points.of_turn_taken, event), event.at_ns)
