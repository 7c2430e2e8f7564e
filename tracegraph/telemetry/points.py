"""What is said of points in time, on a span event and on a log record alike. Questions, answers and values are not."""

from __future__ import annotations

from tracegraph.events import AttemptEnded, Drained, Interrupted, JoinStarved, Resumed, TurnTaken
from tracegraph.telemetry import semconv
from tracegraph.telemetry.failure import error_type
from tracegraph.telemetry.open_spans import Attributes

__all__ = ["of_drained", "of_interrupted", "of_join_starved", "of_resumed", "of_retry", "of_turn_taken"]


def of_interrupted(event: Interrupted) -> Attributes:
    """Return for whom a run pauses, and under which ids."""
    attributes: Attributes = {
        semconv.INTERRUPT_REASON: "human_input" if event.status == "pending" else event.status,
        semconv.INTERRUPT_ID: tuple(i.id for i in event.interrupts),
        semconv.SUPERSTEP: event.step,
    }
    if event.checkpoint_id is not None:
        attributes[semconv.CHECKPOINT_ID] = event.checkpoint_id
    return attributes


def of_resumed(event: Resumed) -> Attributes:
    """Return what a run goes on from."""
    attributes: Attributes = {}
    if event.checkpoint_id is not None:
        attributes[semconv.RESUMED_FROM_CHECKPOINT] = event.checkpoint_id
    if event.interrupt_ids:
        attributes[semconv.RESUMED_FROM_INTERRUPT] = tuple(event.interrupt_ids)
    waited = tuple(wait.seconds for wait in event.waits if wait.seconds is not None)
    if waited and len(waited) == len(event.interrupt_ids):  # by position, so one that is not known leaves no place
        attributes[semconv.RESUMED_FROM_WAITED] = waited
    return attributes


def of_drained(event: Drained) -> Attributes:
    """Return where a run that was asked to stop would have gone on."""
    return {semconv.NEXT_NODES: event.next_nodes}


def of_join_starved(event: JoinStarved) -> Attributes:
    """Return which join never got all of its sources."""
    return {
        semconv.JOIN_NAME: event.join,
        semconv.JOIN_TARGET: event.target,
        semconv.JOIN_WAITING_FOR: event.waiting_for,
    }


def of_retry(event: AttemptEnded, error: BaseException) -> Attributes:
    """Return which attempt failed, with what, and when the next one begins."""
    return {
        semconv.ATTEMPT_NUMBER: event.attempt,
        semconv.RETRY_DELAY_S: event.delay_s,
        semconv.ERROR_TYPE: error_type(error),
    }


def of_turn_taken(event: TurnTaken) -> Attributes:
    """Return how long a run waited for those before it on its thread."""
    return {semconv.WAITED_S: event.waited_ns / 1e9}
