"""Points in time that leave a mark on an open span rather than a span of their own.

The list of span events is short and closed: they are what backends without a log store show of a run.
"""

from __future__ import annotations

from opentelemetry.trace import Span

from tracegraph.events import AttemptEnded, Drained, Interrupted, JoinStarved, Resumed, TaskEnded, TurnTaken
from tracegraph.telemetry import semconv
from tracegraph.telemetry.failure import error_type, is_failure, mark_failed
from tracegraph.telemetry.open_spans import Attributes
from tracegraph.telemetry.traceparent import parse_traceparent

__all__ = ["mark_drained", "mark_interrupted", "mark_join_starved", "mark_resumed", "mark_retry", "mark_task"]


def mark_interrupted(span: Span, event: Interrupted) -> None:
    """Note on the run that it pauses: for whom, and under which ids. The question itself is content."""
    attributes: Attributes = {
        semconv.INTERRUPT_REASON: "human_input" if event.status == "pending" else event.status,
        semconv.INTERRUPT_ID: tuple(i.id for i in event.interrupts),
        semconv.SUPERSTEP: event.step,
    }
    if event.checkpoint_id is not None:
        attributes[semconv.CHECKPOINT_ID] = event.checkpoint_id
    span.add_event(semconv.RUN_INTERRUPTED_EVENT, attributes, event.at_ns)


def mark_resumed(span: Span, event: Resumed) -> None:
    """Note on the run what it goes on from, and link it there. Links are one-way, so the ids are attributes too."""
    attributes: Attributes = {}
    if event.checkpoint_id is not None:
        attributes[semconv.RESUMED_FROM_CHECKPOINT] = event.checkpoint_id
    if event.interrupt_ids:
        attributes[semconv.RESUMED_FROM_INTERRUPT] = tuple(event.interrupt_ids)
    span.set_attributes(attributes)
    span.add_event(semconv.RUN_RESUMED_EVENT, attributes, event.at_ns)
    for context in map(parse_traceparent, event.links):
        if context is not None:
            span.add_link(context, {semconv.LINK_KIND: "resumed"})


def mark_drained(span: Span, event: Drained) -> None:
    """Note on the run that it was asked to stop, and where it would have gone on."""
    span.set_attribute(semconv.RUN_REASON, event.reason)
    span.add_event(semconv.RUN_DRAINED_EVENT, {semconv.NEXT_NODES: event.next_nodes}, event.at_ns)


def mark_join_starved(span: Span, event: JoinStarved) -> None:
    """Note on the run which join never got all of its sources."""
    attributes: Attributes = {
        semconv.JOIN_NAME: event.join,
        semconv.JOIN_TARGET: event.target,
        semconv.JOIN_WAITING_FOR: event.waiting_for,
    }
    span.add_event(semconv.JOIN_STARVED_EVENT, attributes, event.at_ns)


def mark_retry(span: Span, event: AttemptEnded, error: BaseException) -> None:
    """Note on the task that *error* is retried: the task's span itself does not fail for it."""
    attributes: Attributes = {
        semconv.ATTEMPT_NUMBER: event.attempt,
        semconv.RETRY_DELAY_S: event.delay_s,
        semconv.ERROR_TYPE: error_type(error),
    }
    span.add_event(semconv.TASK_RETRY_EVENT, attributes, event.at_ns)


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
    span.add_event(semconv.TURN_TAKEN_EVENT, {semconv.WAITED_S: event.waited_ns / 1e9}, event.at_ns)
