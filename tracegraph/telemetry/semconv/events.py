"""Every point in time that is told: as a log record, as an event on a span, or both.

Log records are the primary form. A short closed list stands on spans as well, since backends without a log store
show nothing else.
"""

from __future__ import annotations

from typing import Final

from tracegraph.telemetry.semconv import names
from tracegraph.telemetry.semconv.model import Event, recommended, required, when
from tracegraph.telemetry.semconv.spans import SPANS

__all__ = ["EVENTS"]

_OF_A_RUN: Final = (
    *required(names.RUN_ID, names.CHECKPOINT_NS),
    *when("the graph has a name", names.WORKFLOW_NAME),
    *when("the run is on a thread", names.CONVERSATION_ID),
)
_INFERENCE: Final = next(span.attributes for span in SPANS if span.id == names.CHAT)
_EXCEPTION: Final = required(names.EXCEPTION_TYPE, names.EXCEPTION_MESSAGE, names.EXCEPTION_STACKTRACE)

_LOGGED: Final = (
    Event(names.RUN_STARTED_EVENT, "A run began.", "tracegraph", _OF_A_RUN, on_spans=False, in_logs=True),
    Event(
        names.RUN_ENDED_EVENT,
        "A run ended, in whatever way.",
        "tracegraph",
        (*_OF_A_RUN, *required(names.RUN_STATUS), *when("it failed", names.ERROR_TYPE)),
        on_spans=False,
        in_logs=True,
    ),
    Event(
        names.CHECKPOINT_SAVED_EVENT,
        "A checkpoint was stored. Never its values.",
        "tracegraph",
        (
            *_OF_A_RUN,
            *required(names.CHECKPOINT_ID, names.CHECKPOINT_SOURCE, names.SUPERSTEP, names.CHECKPOINT_CHANGED),
            *when("it is not the thread's first", names.CHECKPOINT_PARENT_ID),
        ),
        on_spans=False,
        in_logs=True,
    ),
    Event(
        names.INFERENCE_DETAILS_EVENT,
        "A model call with all that is on its span, messages included, so that content can be kept apart from traces.",
        "genai",
        _INFERENCE,
        on_spans=False,
        in_logs=True,
    ),
    Event(
        names.OPERATION_EXCEPTION_EVENT,
        "A model call failed.",
        "genai",
        _EXCEPTION,
        on_spans=False,
        in_logs=True,
        severity="WARN",
    ),
)

_MIRRORED: Final = (
    Event(
        names.RUN_INTERRUPTED_EVENT,
        "A run pauses. Never the question itself.",
        "tracegraph",
        (
            *required(names.INTERRUPT_REASON, names.INTERRUPT_ID, names.SUPERSTEP),
            *when("the run saves checkpoints", names.CHECKPOINT_ID),
        ),
        on_spans=True,
        in_logs=True,
    ),
    Event(
        names.RUN_RESUMED_EVENT,
        "A run goes on from a checkpoint.",
        "tracegraph",
        (
            *recommended(names.RESUMED_FROM_CHECKPOINT),
            *when("it brings answers", names.RESUMED_FROM_INTERRUPT),
        ),
        on_spans=True,
        in_logs=True,
    ),
    Event(
        names.TURN_TAKEN_EVENT,
        "A run of a graph whose runs take turns has its turn.",
        "tracegraph",
        required(names.WAITED_S),
        on_spans=True,
        in_logs=True,
    ),
    Event(
        names.RUN_DRAINED_EVENT,
        "A run stops between two supersteps because it was asked to.",
        "tracegraph",
        required(names.NEXT_NODES),
        on_spans=True,
        in_logs=True,
    ),
    Event(
        names.JOIN_STARVED_EVENT,
        "A run ended with a join that some, but not all, of its sources reached.",
        "tracegraph",
        required(names.JOIN_NAME, names.JOIN_TARGET, names.JOIN_WAITING_FOR),
        on_spans=True,
        in_logs=True,
        severity="WARN",
    ),
    Event(
        names.TASK_RETRY_EVENT,
        "A try failed, and another one follows.",
        "tracegraph",
        required(names.ATTEMPT_NUMBER, names.RETRY_DELAY_S, names.ERROR_TYPE),
        on_spans=True,
        in_logs=True,
        severity="WARN",
    ),
    Event(
        names.FIRST_CHUNK_EVENT, "The first piece of a model's answer is there.", "tracegraph", (), on_spans=True, in_logs=False
    ),
    Event(
        names.EXCEPTION_EVENT,
        "The exception that failed the span it stands on.",
        "core",
        _EXCEPTION,
        on_spans=True,
        in_logs=False,
        stability="stable",
    ),
)

EVENTS: Final = (*_LOGGED, *_MIRRORED)
