"""Every point in time that is told: as a log record, as an event on a span, or both.

Log records are the primary form. A short closed list stands on spans as well, since backends without a log store
show nothing else.
"""

from __future__ import annotations

from typing import Final

from tracegraph.telemetry.semconv import names
from tracegraph.telemetry.semconv.model import Event, Use, opt_in, recommended, required, when
from tracegraph.telemetry.semconv.spans import MODEL_REQUEST, SPANS

__all__ = ["EVENTS"]

_OF_A_RUN: Final = (
    *required(names.RUN_ID, names.CHECKPOINT_NS),
    *when("the graph has a name", names.WORKFLOW_NAME),
    *when("the run is on a thread", names.CONVERSATION_ID),
)
_OF_A_TASK: Final = (*_OF_A_RUN, *required(names.STEP_NAME, names.TASK_ID, names.SUPERSTEP))
_OF_A_SAVE: Final = (
    *_OF_A_RUN,
    *required(names.CHECKPOINT_ID, names.CHECKPOINT_SOURCE, names.SUPERSTEP, names.CHECKPOINT_CHANGED),
    *when("it is not the thread's first", names.CHECKPOINT_PARENT_ID),
)
_SAVED: Final = (*_OF_A_SAVE, *when("the saver tells", names.CHECKPOINT_BYTES))
_EXCEPTION: Final = (*required(names.EXCEPTION_TYPE), *recommended(names.EXCEPTION_MESSAGE, names.EXCEPTION_STACKTRACE))
_FAILED: Final = when("it failed", names.ERROR_TYPE, names.EXCEPTION_TYPE, names.EXCEPTION_MESSAGE, names.EXCEPTION_STACKTRACE)


def _logged(name: str, description: str, attributes: tuple[Use, ...], severity: str = "INFO") -> Event:
    return Event(name, description, "tracegraph", attributes, on_spans=False, in_logs=True, severity=severity)


def _mirrored(
    name: str, description: str, attributes: tuple[Use, ...], severity: str = "INFO", also: tuple[Use, ...] = _OF_A_RUN
) -> Event:
    taken = {use.attribute for use in attributes}
    rest = tuple(use for use in also if use.attribute not in taken)
    return Event(name, description, "tracegraph", attributes, on_spans=True, in_logs=True, severity=severity, in_logs_too=rest)


_OF_RUNS: Final = (
    _logged(
        names.RUN_STARTED_EVENT,
        "A run began.",
        (
            *_OF_A_RUN,
            *required(names.IS_RESUME),
            *when("it saves checkpoints", names.DURABILITY),
            *when("it has tags", names.RUN_TAGS),
            *when("it goes on from a checkpoint", names.RESUMED_FROM_CHECKPOINT),
        ),
    ),
    _logged(
        names.RUN_ENDED_EVENT,
        "A run ended, in whatever way. The root's says what of its telemetry is missing.",
        (
            *_OF_A_RUN,
            *required(names.RUN_STATUS),
            *when("something other than its nodes ended it", names.RUN_REASON),
            *_FAILED,
            *when("an observer raised", names.OBSERVERS_FAILED),
            *when("the trace is large", names.SUPERSTEPS_COLLAPSED),
            *when("something was lost", names.TELEMETRY_LOST),
            *when("it is the root and models told their usage", *names.RUN_USAGE_TOKENS),
            *when("it is the root and models or tools were called", names.RUN_USAGE_MODEL_CALLS, names.RUN_USAGE_TOOL_CALLS),
        ),
    ),
    _mirrored(
        names.RUN_INTERRUPTED_EVENT,
        "A run pauses. Never the question itself.",
        (
            *required(names.INTERRUPT_REASON, names.INTERRUPT_ID, names.SUPERSTEP),
            *when("the run saves checkpoints", names.CHECKPOINT_ID),
        ),
    ),
    _mirrored(
        names.RUN_RESUMED_EVENT,
        "A run goes on from a checkpoint.",
        (
            *recommended(names.RESUMED_FROM_CHECKPOINT),
            *when("it brings answers", names.RESUMED_FROM_INTERRUPT),
            *when("it brings answers to questions with a known time", names.RESUMED_FROM_WAITED),
        ),
    ),
    _mirrored(names.TURN_TAKEN_EVENT, "A run of a graph whose runs take turns has its turn.", required(names.WAITED_S)),
    _mirrored(
        names.RUN_DRAINED_EVENT,
        "A run stops between two supersteps because it was asked to.",
        required(names.NEXT_NODES),
        also=(*_OF_A_RUN, *required(names.RUN_REASON, names.SUPERSTEP)),
    ),
    _mirrored(
        names.JOIN_STARVED_EVENT,
        "A run ended with a join that some, but not all, of its sources reached.",
        required(names.JOIN_NAME, names.JOIN_TARGET, names.JOIN_WAITING_FOR),
        "WARN",
    ),
    _logged(
        names.STATE_UPDATED_EVENT,
        "The state changed. Which keys, never their values; only if asked for.",
        (*_OF_A_RUN, *required(names.SUPERSTEP, names.STATE_SOURCE, names.STATE_CHANGED_COUNT, names.STATE_CHANGED_KEYS)),
        "DEBUG",
    ),
    _logged(
        names.KEY_IGNORED_EVENT,
        "A node, or the input, wrote a key that is no channel.",
        (*_OF_A_RUN, *required(names.STEP_NAME, names.SUPERSTEP, names.IGNORED_KEY)),
        "WARN",
    ),
    _logged(
        names.OBSERVER_FAILED_EVENT,
        "An observer raised; told once for each.",
        (*_OF_A_RUN, *required(names.OBSERVER_NAME, names.OBSERVED_EVENT, names.ERROR_TYPE), *_EXCEPTION),
        "WARN",
    ),
    _logged(names.CHECKPOINT_SAVED_EVENT, "A checkpoint was stored. Never its values.", _SAVED, "DEBUG"),
    _logged(names.CHECKPOINT_FAILED_EVENT, "A checkpoint could not be stored.", (*_OF_A_SAVE, *_FAILED), "ERROR"),
)

_OF_TASKS: Final = (
    _mirrored(
        names.TASK_RETRY_EVENT,
        "A try failed, and another one follows.",
        required(names.ATTEMPT_NUMBER, names.RETRY_DELAY_S, names.ERROR_TYPE),
        "WARN",
        (*_OF_A_TASK, *_EXCEPTION),
    ),
    _logged(
        names.TASK_FAILED_EVENT,
        "A task failed for good.",
        (*_OF_A_TASK, *required(names.TASK_STATUS, names.ERROR_TYPE), *_EXCEPTION, *recommended(names.TASK_REASON)),
        "ERROR",
    ),
    _logged(
        names.TASK_CANCELLED_EVENT,
        "A task was stopped, or left behind in its thread.",
        (*_OF_A_TASK, *required(names.TASK_STATUS), *recommended(names.TASK_REASON)),
    ),
    _logged(
        names.ERROR_HANDLED_EVENT,
        "A failed task's error handler takes over.",
        (*_OF_A_TASK, *required(names.TASK_ERROR_HANDLER, names.ERROR_TYPE)),
    ),
    _logged(
        names.REPORT_IGNORED_EVENT,
        "A result came too late to count.",
        (*_OF_A_TASK, *required(names.ATTEMPT_NUMBER, names.IGNORED_REPORT)),
        "DEBUG",
    ),
)

_OF_A_NAMED_CALL: Final = (
    *recommended(names.TOOL_NAME, names.TOOL_TYPE, names.TOOL_CALL_ID, names.TOOL_DESCRIPTION, names.RETRIEVER_NAME),
    *recommended(names.MEMORY_STORE_NAME, names.MEMORY_STORE_ID, names.MEMORY_RECORD_ID),
)
_OF_A_REQUEST: Final = (
    *required(names.OPERATION_NAME),
    *when("it is a model's", names.PROVIDER_NAME),
    *MODEL_REQUEST,
    *_OF_A_NAMED_CALL,
)
_OF_CALLS: Final = (
    Event(
        names.INFERENCE_DETAILS_EVENT,
        "A model call with all that is on its span, messages included, so that content can be kept apart from traces.",
        "genai",
        next(span.attributes for span in SPANS if span.id == names.CHAT),
        on_spans=False,
        in_logs=True,
    ),
    Event(
        names.OPERATION_DETAILS_EVENT,
        "The same of a run, task, tool call, retrieval or memory call.",
        "tracegraph",
        (
            *required(names.OPERATION_NAME),
            *when("it is a run", names.RUN_ID, names.WORKFLOW_NAME),
            *when("it is a task", names.STEP_NAME, names.TASK_ID, names.SUPERSTEP),
            *when("the run is on a thread", names.CONVERSATION_ID),
            *_OF_A_NAMED_CALL,
            *opt_in(
                names.RUN_INPUT,
                names.RUN_OUTPUT,
                names.TASK_INPUT,
                names.TASK_OUTPUT,
                names.TOOL_CALL_ARGUMENTS,
                names.TOOL_CALL_RESULT,
                names.RETRIEVAL_QUERY_TEXT,
                names.RETRIEVAL_DOCUMENTS,
                names.MEMORY_QUERY_TEXT,
                names.MEMORY_RECORDS,
                names.LEFT_OUT,
            ),
        ),
        on_spans=False,
        in_logs=True,
    ),
    Event(
        names.OPERATION_EXCEPTION_EVENT,
        "A call of a model, tool, retriever or store failed.",
        "genai",
        (*_OF_A_RUN, *required(names.SUPERSTEP, names.ERROR_TYPE), *_EXCEPTION, *_OF_A_REQUEST),
        on_spans=False,
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

EVENTS: Final = (*_OF_RUNS, *_OF_TASKS, *_OF_CALLS)
