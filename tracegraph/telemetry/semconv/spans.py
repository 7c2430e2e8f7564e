"""Every span: its name, its place in the tree, what it carries and when its status is an error."""

from __future__ import annotations

from typing import Final, get_args

from tracegraph.events import MemoryOperation
from tracegraph.telemetry.semconv import names
from tracegraph.telemetry.semconv.model import ANY_PARENT, SpanType, Use, opt_in, recommended, required, when

__all__ = ["MODEL_REQUEST", "SPANS"]

_ON_A_THREAD: Final = when("the run is on a thread", names.CONVERSATION_ID)
_FAILED: Final = when("the span's status is ERROR", names.ERROR_TYPE)
_ANY_SPAN: Final = (
    *when("its process died before it had ended", names.SPAN_ABANDONED, names.PROCESS_ID),
    *opt_in(names.OPENINFERENCE_SPAN_KIND, names.SESSION_ID),
)
_CAPTURED: Final = opt_in(names.TRUNCATED, names.LEFT_OUT)
_RUN_CODE: Final = (
    names.RUN_STEP,
    names.ATTEMPT_SPAN,
    names.CHAT,
    names.TEXT_COMPLETION,
    names.EXECUTE_TOOL,
    names.RETRIEVAL,
    *get_args(MemoryOperation),
)
"""Where node code, and what it calls, may stand."""

MODEL_REQUEST: Final = (
    *when("it is known", names.REQUEST_MODEL),
    *when("asked for", names.REQUEST_STREAM, names.REQUEST_SEED, names.REQUEST_TOP_K, names.OUTPUT_TYPE),
    *when("asked for, and not 1", names.REQUEST_CHOICE_COUNT),
    *recommended(
        names.REQUEST_MAX_TOKENS,
        names.REQUEST_TEMPERATURE,
        names.REQUEST_TOP_P,
        names.REQUEST_FREQUENCY_PENALTY,
        names.REQUEST_PRESENCE_PENALTY,
        names.REQUEST_STOP_SEQUENCES,
    ),
)
"""What is said of a model call when it begins, beside who serves the model."""

_MODEL_ANSWER: Final = (
    *recommended(
        names.RESPONSE_ID,
        names.RESPONSE_MODEL,
        names.RESPONSE_FINISH_REASONS,
        names.USAGE_INPUT_TOKENS,
        names.USAGE_OUTPUT_TOKENS,
        names.USAGE_CACHE_READ_INPUT_TOKENS,
        names.USAGE_CACHE_WRITE_INPUT_TOKENS,
        names.USAGE_REASONING_OUTPUT_TOKENS,
    ),
    *opt_in(names.USAGE_CACHE_CREATION_INPUT_TOKENS),
    *when("the answer was streamed", names.RESPONSE_TIME_TO_FIRST_CHUNK, names.STREAM_CHUNKS),
)
_CUT_SHORT: Final = when("it ended without a result or an error of its own", names.CALL_STATUS)
_MODEL_CALL: Final[tuple[Use, ...]] = (
    *required(names.OPERATION_NAME, names.PROVIDER_NAME),
    *_ON_A_THREAD,
    *MODEL_REQUEST,
    *_MODEL_ANSWER,
    *_CUT_SHORT,
    *_FAILED,
    *_ANY_SPAN,
    *opt_in(
        names.SYSTEM_INSTRUCTIONS,
        names.INPUT_MESSAGES,
        names.OUTPUT_MESSAGES,
        names.TOOL_DEFINITIONS,
        names.SYSTEM_INSTRUCTIONS_REF,
        names.INPUT_MESSAGES_REF,
        names.OUTPUT_MESSAGES_REF,
        names.TOOL_DEFINITIONS_REF,
    ),
    *_CAPTURED,
)

_RUN: Final = SpanType(
    id=names.INVOKE_WORKFLOW,
    subject=names.WORKFLOW_NAME,
    kinds=("INTERNAL",),
    description="A run of a graph: invoked, streamed or resumed, at the root or nested below the node that called it.",
    source="genai",
    attributes=(
        *required(names.OPERATION_NAME, names.RUN_ID, names.RUN_STATUS, names.CHECKPOINT_NS),
        *when("the graph has a name", names.WORKFLOW_NAME),
        *_ON_A_THREAD,
        *when("it saves checkpoints", names.DURABILITY),
        *when("something other than its nodes ended it", names.RUN_REASON),
        *when("it goes on from a checkpoint", names.RESUMED_FROM_CHECKPOINT),
        *when("it brings answers", names.RESUMED_FROM_INTERRUPT),
        *when("it brings answers to questions with a known time", names.RESUMED_FROM_WAITED),
        *when("it is the root and models told their usage", *names.RUN_USAGE_TOKENS),
        *when("it is the root and models or tools were called", names.RUN_USAGE_MODEL_CALLS, names.RUN_USAGE_TOOL_CALLS),
        *when("it has tags", names.RUN_TAGS),
        *when("it is the root and an observer raised", names.OBSERVERS_FAILED),
        *when("it is the root and the trace is large", names.SUPERSTEPS_COLLAPSED),
        *when("it is the root and its spans are in several traces", names.TRACE_PARTS, names.TRACE_CONTINUED_IN),
        *when("a reader's buffer dropped parts", names.STREAM_DROPPED),
        *_FAILED,
        *_ANY_SPAN,
        *opt_in(names.RUN_INPUT, names.RUN_OUTPUT, names.UPLOADS_DROPPED),
        *_CAPTURED,
    ),
    parents=(ANY_PARENT, names.INVOKE_WORKFLOW, names.TRACE_PART_SPAN, *_RUN_CODE),
    events=(
        names.RUN_INTERRUPTED_EVENT,
        names.RUN_RESUMED_EVENT,
        names.TURN_TAKEN_EVENT,
        names.RUN_DRAINED_EVENT,
        names.JOIN_STARVED_EVENT,
        names.EXCEPTION_EVENT,
    ),
    links=("resumed",),
    status=names.RUN_STATUS,
    failures=("failed", "step_limit"),
)

_TRACE_PART: Final = SpanType(
    id=names.TRACE_PART_SPAN,
    subject="",
    kinds=("INTERNAL",),
    description="The root of a further trace of a run with more spans than one should have; the run's own span is in the first.",
    source="tracegraph",
    attributes=(
        *required(names.RUN_ID, names.TRACE_PART),
        *when("the graph has a name", names.WORKFLOW_NAME),
        *_ON_A_THREAD,
        *when("another part follows", names.TRACE_CONTINUED_IN),
        *when("it is the last part", names.RUN_STATUS),
        *_ANY_SPAN,
    ),
    parents=(ANY_PARENT,),
    links=("run", "part"),
)

_SUPERSTEP: Final = SpanType(
    id=names.SUPERSTEP_SPAN,
    subject="",
    kinds=("INTERNAL",),
    description="One superstep, where it has more than one task or its save is awaited and does I/O.",
    source="tracegraph",
    attributes=(
        *required(names.SUPERSTEP, names.SUPERSTEP_TASKS, names.SUPERSTEP_STATUS, names.CHECKPOINT_NS),
        *_ON_A_THREAD,
        *when("the run saves checkpoints", names.CHECKPOINT_ID, names.CHECKPOINT_PARENT_ID),
        *recommended(names.SUPERSTEP_COMMIT_MS),
        *_ANY_SPAN,
    ),
    parents=(names.INVOKE_WORKFLOW, names.TRACE_PART_SPAN),
    status=names.SUPERSTEP_STATUS,
)

_TASK: Final = SpanType(
    id=names.RUN_STEP,
    subject=names.STEP_NAME,
    kinds=("INTERNAL",),
    description="A task: one node in one superstep, all of its tries included. Of no length if its result came from the cache.",
    source="proposal",
    attributes=(
        *required(names.OPERATION_NAME, names.STEP_NAME, names.TASK_ID, names.TASK_STATUS, names.SUPERSTEP, names.CHECKPOINT_NS),
        *_ON_A_THREAD,
        *when("it was started, not served from the cache", names.TASK_PATH, names.TASK_TRIGGER, names.TASK_QUEUED_MS),
        *when("it is a call of a task function", names.TASK_CALLER),
        *when("a task sent it", names.TASK_PRODUCER),
        *when("it has a retry policy", names.TASK_ATTEMPTS),
        *when("the node cache was asked", names.CACHE_HIT),
        *when("something other than its code ended it", names.TASK_REASON),
        *when("it failed and a handler took over", names.TASK_ERROR_HANDLER),
        *_FAILED,
        *_ANY_SPAN,
        *opt_in(names.GRAPH_NODE_ID, names.GRAPH_NODE_NAME, names.GRAPH_NODE_PARENT_ID),
        *opt_in(names.TASK_INPUT, names.TASK_OUTPUT),
        *_CAPTURED,
    ),
    parents=(names.INVOKE_WORKFLOW, names.TRACE_PART_SPAN, names.SUPERSTEP_SPAN, names.RUN_STEP, names.ATTEMPT_SPAN),
    events=(names.TASK_RETRY_EVENT, names.EXCEPTION_EVENT),
    links=("producer",),
    status=names.TASK_STATUS,
    failures=("failed",),
)

_ATTEMPT: Final = SpanType(
    id=names.ATTEMPT_SPAN,
    subject="",
    kinds=("INTERNAL",),
    description="One try of a task that has a retry policy. The exception of the last try stands on the task's span.",
    source="tracegraph",
    attributes=(
        *required(names.ATTEMPT_NUMBER, names.CHECKPOINT_NS),
        *_ON_A_THREAD,
        *when("its task ended before it", names.TASK_STATUS),
        *_FAILED,
        *_ANY_SPAN,
    ),
    parents=(names.RUN_STEP,),
    events=(names.EXCEPTION_EVENT,),
)

_PUT: Final = SpanType(
    id=names.CHECKPOINT_PUT_SPAN,
    subject="",
    kinds=("INTERNAL",),
    description="A checkpoint being saved, by a saver that does I/O: below the superstep that waits for it, else below the run.",
    source="tracegraph",
    attributes=(
        *required(names.CHECKPOINT_ID, names.CHECKPOINT_SOURCE, names.CHECKPOINT_CHANGED, names.SUPERSTEP, names.CHECKPOINT_NS),
        *_ON_A_THREAD,
        *when("it is not the thread's first", names.CHECKPOINT_PARENT_ID),
        *when("the run did not see its end", names.CHECKPOINT_STATUS),
        *when("the saver tells", names.CHECKPOINT_BYTES),
        *_FAILED,
        *_ANY_SPAN,
    ),
    parents=(names.INVOKE_WORKFLOW, names.TRACE_PART_SPAN, names.SUPERSTEP_SPAN),
    events=(names.EXCEPTION_EVENT,),
)

_CALLS: Final = (
    SpanType(
        id=names.CHAT,
        subject=names.REQUEST_MODEL,
        kinds=("CLIENT",),
        description="A call of a chat model. Where its model is not known, its class stands in the span's name.",
        source="genai",
        attributes=_MODEL_CALL,
        parents=(ANY_PARENT, names.INVOKE_WORKFLOW, names.TRACE_PART_SPAN, *_RUN_CODE),
        events=(names.FIRST_CHUNK_EVENT, names.EXCEPTION_EVENT),
    ),
    SpanType(
        id=names.TEXT_COMPLETION,
        subject=names.REQUEST_MODEL,
        kinds=("CLIENT",),
        description="The same of a model that takes a text.",
        source="genai",
        attributes=_MODEL_CALL,
        parents=(ANY_PARENT, names.INVOKE_WORKFLOW, names.TRACE_PART_SPAN, *_RUN_CODE),
        events=(names.FIRST_CHUNK_EVENT, names.EXCEPTION_EVENT),
    ),
    SpanType(
        id=names.EXECUTE_TOOL,
        subject=names.TOOL_NAME,
        kinds=("INTERNAL",),
        description="A call of a tool.",
        source="genai",
        attributes=(
            *required(names.OPERATION_NAME, names.TOOL_NAME),
            *_ON_A_THREAD,
            *recommended(names.TOOL_TYPE, names.TOOL_CALL_ID, names.TOOL_DESCRIPTION),
            *_CUT_SHORT,
            *_FAILED,
            *_ANY_SPAN,
            *opt_in(names.TOOL_CALL_ARGUMENTS, names.TOOL_CALL_RESULT),
            *_CAPTURED,
        ),
        parents=(ANY_PARENT, names.INVOKE_WORKFLOW, names.TRACE_PART_SPAN, *_RUN_CODE),
        events=(names.EXCEPTION_EVENT,),
    ),
    SpanType(
        id=names.RETRIEVAL,
        subject="",
        kinds=("CLIENT",),
        description="A retriever being asked.",
        source="genai",
        attributes=(
            *required(names.OPERATION_NAME),
            *_ON_A_THREAD,
            *recommended(names.RETRIEVER_NAME, names.RETRIEVAL_COUNT),
            *_CUT_SHORT,
            *_FAILED,
            *_ANY_SPAN,
            *opt_in(names.RETRIEVAL_QUERY_TEXT, names.RETRIEVAL_DOCUMENTS),
            *_CAPTURED,
        ),
        parents=(ANY_PARENT, names.INVOKE_WORKFLOW, names.TRACE_PART_SPAN, *_RUN_CODE),
        events=(names.EXCEPTION_EVENT,),
    ),
)


def _memory(operation: str, description: str) -> SpanType:
    return SpanType(
        id=operation,
        subject="",
        kinds=("INTERNAL", "CLIENT"),
        description=f"{description} INTERNAL if the store is in the process.",
        source="genai",
        attributes=(
            *required(names.OPERATION_NAME),
            *_ON_A_THREAD,
            *when("the store says it", names.MEMORY_STORE_ID),
            *when("one record is meant", names.MEMORY_RECORD_ID),
            *recommended(names.MEMORY_STORE_NAME, names.MEMORY_RECORD_COUNT),
            *_CUT_SHORT,
            *_FAILED,
            *_ANY_SPAN,
            *opt_in(names.MEMORY_QUERY_TEXT, names.MEMORY_RECORDS),
            *_CAPTURED,
        ),
        parents=(ANY_PARENT, names.INVOKE_WORKFLOW, names.TRACE_PART_SPAN, *_RUN_CODE),
        events=(names.EXCEPTION_EVENT,),
    )


_MEMORY: Final = (
    _memory(names.SEARCH_MEMORY, "Records being read from long-term memory: searched for, or one by its key."),
    _memory(names.CREATE_MEMORY, "New records being written."),
    _memory(names.UPDATE_MEMORY, "Records that exist being written."),
    _memory(names.UPSERT_MEMORY, "Records being written, new or not, as a store's `put` does."),
    _memory(names.DELETE_MEMORY, "Records being deleted."),
    _memory(names.CREATE_MEMORY_STORE, "A store of memories being made."),
    _memory(names.DELETE_MEMORY_STORE, "A store of memories being deleted."),
)

SPANS: Final = (_RUN, _TRACE_PART, _SUPERSTEP, _TASK, _ATTEMPT, _PUT, *_CALLS, *_MEMORY)
