"""Every attribute, once: type, unit, values and meaning."""

from __future__ import annotations

from typing import Final, get_args

from tracegraph.events import MemoryOperation, RunStatus, TaskStatus
from tracegraph.telemetry.semconv import names
from tracegraph.telemetry.semconv.model import Attribute, AttributeType

__all__ = ["ATTRIBUTES"]

_OPERATIONS: Final = (
    names.INVOKE_WORKFLOW,
    names.RUN_STEP,
    names.CHAT,
    names.TEXT_COMPLETION,
    names.EXECUTE_TOOL,
    names.RETRIEVAL,
    *get_args(MemoryOperation),
)


def _genai(name: str, type: AttributeType, description: str, unit: str = "", values: tuple[str, ...] = ()) -> Attribute:
    return Attribute(name, type, description, "genai", unit=unit, values=values)


def _content(name: str, description: str, type: AttributeType = "any") -> Attribute:
    return Attribute(name, type, description, "genai", is_content=True)


def _ours(name: str, type: AttributeType, description: str, unit: str = "", values: tuple[str, ...] = ()) -> Attribute:
    return Attribute(name, type, description, unit=unit, values=values)


def _core(name: str, description: str) -> Attribute:
    return Attribute(name, "string", description, "core", "stable")


_CORE: Final = (
    _core(names.ERROR_TYPE, "Class of the exception that was the failure, with its module unless that is `builtins`."),
    _core(names.EXCEPTION_TYPE, "The same, on the event that records the exception."),
    _core(names.EXCEPTION_MESSAGE, "What the exception says, shortened."),
    _core(names.EXCEPTION_STACKTRACE, "The traceback; of a long one its beginning and its end."),
    _core(names.CODE_FILE_PATH, "On a forwarded log line: the file it was written in."),
    _core(names.CODE_FUNCTION_NAME, "On a forwarded log line: the function it was written in."),
    Attribute(names.CODE_LINE_NUMBER, "int", "On a forwarded log line: the line it was written on.", "core", "stable"),
    Attribute(names.PROCESS_ID, "int", "The process that died before the span had ended.", "core"),
)

_GENAI: Final = (
    _genai(names.OPERATION_NAME, "string", "What the span does, in the conventions' words.", values=_OPERATIONS),
    _genai(names.PROVIDER_NAME, "string", "Who serves the model; `_OTHER` if the model's class does not say."),
    _genai(names.WORKFLOW_NAME, "string", "The graph's name, if somebody gave it one."),
    _genai(names.CONVERSATION_ID, "string", "The thread id: what runs of one conversation share."),
    Attribute(names.STEP_NAME, "string", "The node's name.", "proposal"),
    _genai(names.REQUEST_MODEL, "string", "The model that was asked for."),
    _genai(names.REQUEST_MAX_TOKENS, "int", "How many tokens the answer may have.", "{token}"),
    _genai(names.REQUEST_TEMPERATURE, "double", "The sampling temperature asked for."),
    _genai(names.REQUEST_TOP_P, "double", "Sampling from the likeliest tokens that together have this probability."),
    _genai(names.REQUEST_TOP_K, "int", "Sampling from so many of the likeliest tokens."),
    _genai(names.REQUEST_FREQUENCY_PENALTY, "double", "Penalty on tokens by how often they were used."),
    _genai(names.REQUEST_PRESENCE_PENALTY, "double", "Penalty on tokens that were used at all."),
    _genai(names.REQUEST_STOP_SEQUENCES, "string[]", "Texts at which the model stops."),
    _genai(names.REQUEST_SEED, "int", "The seed asked for, so that an answer can be had again."),
    _genai(names.REQUEST_CHOICE_COUNT, "int", "How many answers were asked for, if not one.", "{choice}"),
    _genai(names.REQUEST_STREAM, "boolean", "The answer was asked for in pieces; absent if it was not.", values=("true",)),
    _genai(names.OUTPUT_TYPE, "string", "The form of answer asked for.", values=("text", "json", "image", "speech")),
    _genai(names.RESPONSE_ID, "string", "The answer's id."),
    _genai(names.RESPONSE_MODEL, "string", "The model that answered."),
    _genai(
        names.RESPONSE_FINISH_REASONS, "string[]", "Why each answer ended; `error` if its stream broke off before its last piece."
    ),
    _genai(names.RESPONSE_TIME_TO_FIRST_CHUNK, "double", "From the request to the first piece of the answer.", "s"),
    _genai(names.USAGE_INPUT_TOKENS, "int", "Tokens of the request, cached ones included.", "{token}"),
    _genai(names.USAGE_OUTPUT_TOKENS, "int", "Tokens of the answer, those of its reasoning included.", "{token}"),
    _genai(names.USAGE_CACHE_READ_INPUT_TOKENS, "int", "Of the request's tokens, those the provider's cache had.", "{token}"),
    _genai(names.USAGE_CACHE_WRITE_INPUT_TOKENS, "int", "Of the request's tokens, those put into that cache.", "{token}"),
    Attribute(
        names.USAGE_CACHE_CREATION_INPUT_TOKENS,
        "int",
        f"The released name of `{names.USAGE_CACHE_WRITE_INPUT_TOKENS}`, instead of it in the 1.41 profile.",
        "genai 1.41",
        unit="{token}",
    ),
    _genai(names.USAGE_REASONING_OUTPUT_TOKENS, "int", "Of the answer's tokens, those of its reasoning.", "{token}"),
    _genai(names.TOOL_NAME, "string", "The tool's name."),
    _genai(names.TOOL_TYPE, "string", "Where the tool runs.", values=("function", "extension", "datastore")),
    _genai(names.TOOL_CALL_ID, "string", "The id that the model gave the call."),
    _genai(names.TOOL_DESCRIPTION, "string", "What the tool says of itself."),
    _genai(names.MEMORY_STORE_ID, "string", "What the store of memories calls itself. Nothing about users: never a namespace."),
    _genai(names.MEMORY_RECORD_ID, "string", "The key of the one record that is meant, shortened."),
    _genai(names.MEMORY_RECORD_COUNT, "int", "How many records were found, written or, of a deletion, meant.", "{record}"),
)

_CONTENT: Final = (
    _content(names.SYSTEM_INSTRUCTIONS, "What the model was told to be."),
    _content(names.INPUT_MESSAGES, "The messages sent to the model."),
    _content(names.OUTPUT_MESSAGES, "The messages it answered."),
    _content(names.TOOL_DEFINITIONS, "The tools it was offered."),
    _content(names.TOOL_CALL_ARGUMENTS, "What the tool was called with."),
    _content(names.TOOL_CALL_RESULT, "What it returned."),
    _content(names.RETRIEVAL_QUERY_TEXT, "What was searched for.", "string"),
    _content(names.RETRIEVAL_DOCUMENTS, "What was found."),
    _content(names.MEMORY_QUERY_TEXT, "What was searched for in memory.", "string"),
    _content(names.MEMORY_RECORDS, "What was found there, or is written, with the namespaces it is in."),
    Attribute(names.RUN_INPUT, "any", "What the run was called with.", is_content=True),
    Attribute(names.RUN_OUTPUT, "any", "What it returned.", is_content=True),
    Attribute(names.TASK_INPUT, "any", "What the node got.", is_content=True),
    Attribute(names.TASK_OUTPUT, "any", "What it returned.", is_content=True),
    _genai(names.INPUT_MESSAGES_REF, "string", "Where the messages sent to the model were uploaded to."),
    _genai(names.OUTPUT_MESSAGES_REF, "string", "Where its answers were uploaded to."),
    _genai(names.SYSTEM_INSTRUCTIONS_REF, "string", "Where its instructions were uploaded to."),
    _genai(names.TOOL_DEFINITIONS_REF, "string", "Where the definitions of its tools were uploaded to."),
    _ours(names.TRUNCATED, "string[]", "Attributes of the span that were cut, or left out to keep it small."),
    _ours(names.LEFT_OUT, "string[]", "Attributes that are missing because a redactor, or a `TracePolicy`'s function, failed."),
    _ours(names.UPLOADS_DROPPED, "int", "How much content found the queue of uploads full.", "{upload}"),
)

_RUN: Final = (
    _ours(names.RUN_ID, "string", "The run's id."),
    _ours(
        names.RUN_STATUS,
        "string",
        "How the run ended; `abandoned`: its reader left, `handed_over`: it jumped to the parent graph.",
        values=get_args(RunStatus),
    ),
    _ours(names.RUN_REASON, "string", "Why it ended so: `consumer_closed`, `step_timeout`, what a drain was called with, ..."),
    _ours(names.RUN_TAGS, "string[]", "The tags in its config."),
    _ours(
        names.DURABILITY,
        "string",
        "When it saves: every step at once, behind the run, or at the end.",
        values=("sync", "async", "exit"),
    ),
    _ours(names.RESUMED_FROM_CHECKPOINT, "string", "Id of the checkpoint it goes on from."),
    _ours(names.RESUMED_FROM_INTERRUPT, "string[]", "Ids of the questions it brings the answers to."),
    _ours(names.RESUMED_FROM_WAITED, "double[]", "How long each of these questions waited, from being asked to this run.", "s"),
    _ours(
        names.RUN_USAGE_INPUT_TOKENS, "int", "Input tokens of all model calls, runs inside included; cached ones too.", "{token}"
    ),
    _ours(names.RUN_USAGE_OUTPUT_TOKENS, "int", "Output tokens of all model calls, those of reasoning included.", "{token}"),
    _ours(names.RUN_USAGE_CACHE_READ_INPUT_TOKENS, "int", "Of the input tokens, those read from a provider's cache.", "{token}"),
    _ours(names.RUN_USAGE_CACHE_WRITE_INPUT_TOKENS, "int", "Of the input tokens, those written to such a cache.", "{token}"),
    _ours(names.RUN_USAGE_REASONING_OUTPUT_TOKENS, "int", "Of the output tokens, those spent on reasoning.", "{token}"),
    _ours(names.RUN_USAGE_MODEL_CALLS, "int", "How many model calls it made, runs inside included.", "{call}"),
    _ours(names.RUN_USAGE_TOOL_CALLS, "int", "How many tool calls it made, runs inside included.", "{call}"),
    _ours(names.OBSERVERS_FAILED, "string[]", "Classes of the observers that raised during it."),
    _ours(names.IS_RESUME, "boolean", "Whether the run goes on from a checkpoint."),
    _ours(names.OBSERVER_NAME, "string", "Class of the observer that raised."),
    _ours(names.OBSERVED_EVENT, "string", "Kind of the lifecycle event on which it did."),
    _ours(names.TELEMETRY_LOST, "int", "Spans and log records known to be lost in the process during the run.", "{item}"),
    _ours(names.SPAN_ABANDONED, "boolean", "The embedded store ended the span, as its process had died.", values=("true",)),
    _ours(names.WAITED_S, "double", "How long the run waited for those before it on its thread.", "s"),
    _ours(names.NEXT_NODES, "string[]", "The nodes that would have come next."),
    _ours(names.INTERRUPT_ID, "string[]", "Ids of the questions that are open."),
    _ours(
        names.INTERRUPT_REASON,
        "string",
        "What the run waits for: a person, or a breakpoint set beside a node.",
        values=("human_input", "interrupt_before", "interrupt_after"),
    ),
    _ours(names.JOIN_NAME, "string", "The channel behind a join that never got all of its sources."),
    _ours(names.JOIN_TARGET, "string", "The node that it would have started."),
    _ours(names.JOIN_WAITING_FOR, "string[]", "The sources that never came."),
)

_SUPERSTEP: Final = (
    _ours(names.SUPERSTEP, "int", "The number of the superstep."),
    _ours(names.SUPERSTEP_TASKS, "int", "How many tasks it has.", "{task}"),
    _ours(names.SUPERSTEP_COMMIT_MS, "double", "From the end of its last task to its own: apply, and an awaited save.", "ms"),
    _ours(names.SUPERSTEP_STATUS, "string", "Whether its writes were applied.", values=("completed", "stopped")),
    _ours(names.SUPERSTEPS_COLLAPSED, "int", "How many supersteps got no span, as the trace was large already.", "{superstep}"),
    _ours(names.TRACE_PART, "int", "Which part of a large run's spans this trace has, from 2."),
    _ours(names.TRACE_PARTS, "int", "In how many traces a large run's spans are.", "{trace}"),
    _ours(names.TRACE_CONTINUED_IN, "string", "The id of the trace with the next part of a large run's spans."),
    _ours(names.CHECKPOINT_ID, "string", "The checkpoint's id."),
    _ours(names.CHECKPOINT_PARENT_ID, "string", "Id of the checkpoint before it."),
    _ours(names.CHECKPOINT_NS, "string", "Where the graph stands among nested ones; empty at the root."),
    _ours(names.CHECKPOINT_SOURCE, "string", "What made it.", values=("input", "loop", "update", "fork")),
    _ours(names.CHECKPOINT_CHANGED, "int", "How many channels it stores anew.", "{channel}"),
    _ours(names.CHECKPOINT_BYTES, "int", "What the saver wrote for it: record, metadata, new values.", "By"),
    _ours(names.STATE_SOURCE, "string", "Where the new state comes from.", values=("loop", "resume", "pending")),
    _ours(names.STATE_CHANGED_COUNT, "int", "How many keys of the state changed.", "{key}"),
    _ours(names.STATE_CHANGED_KEYS, "string[]", "Which keys did."),
    _ours(names.IGNORED_KEY, "string", "The key that a node wrote and that is no channel, shortened."),
    _ours(names.CHECKPOINT_STATUS, "string", "The run did not see the end of the save; else absent.", values=("unknown",)),
)

_TASK: Final = (
    _ours(names.TASK_ID, "string", "The task's id, the same when a run goes on from the same checkpoint."),
    _ours(names.TASK_PATH, "string", "Its position in the superstep, in a form that sorts."),
    _ours(names.TASK_TRIGGER, "string[]", "The channels that started it."),
    _ours(names.TASK_STATUS, "string", "How it ended.", values=get_args(TaskStatus)),
    _ours(names.TASK_REASON, "string", "Why it ended so: `sibling_error`, `run_deadline`, ..."),
    _ours(names.TASK_QUEUED_MS, "double", "How long it waited between being planned and being run.", "ms"),
    _ours(names.TASK_ATTEMPTS, "int", "How often it was tried, if it has a retry policy.", "{attempt}"),
    _ours(names.TASK_CALLER, "string", "Id of the task that called it."),
    _ours(names.TASK_PRODUCER, "string", "Id of the task that sent the `Send` it runs for."),
    _ours(names.TASK_ERROR_HANDLER, "string", "The node that took over when it had failed."),
    _ours(names.ATTEMPT_NUMBER, "int", "Which try it is, from 1."),
    _ours(names.IGNORED_REPORT, "string", "What came too late to count."),
    _ours(names.RETRY_DELAY_S, "double", "How long until the next try.", "s"),
    _ours(names.CACHE_HIT, "boolean", "Whether the node cache had its result; absent if it was not asked."),
    _ours(names.LINK_KIND, "string", "On a link: what it leads to.", values=("producer", "resumed", "run", "part")),
)

_CALL: Final = (
    _ours(names.RETRIEVER_NAME, "string", "The retriever's name."),
    _ours(names.MEMORY_STORE_NAME, "string", "The class of the store of memories, or the name it was announced under."),
    _ours(names.RETRIEVAL_COUNT, "int", "How many documents were found.", "{document}"),
    _ours(names.STREAM_CHUNKS, "int", "In how many pieces the answer came.", "{chunk}"),
    _ours(names.STREAM_DROPPED, "int", "How many parts slow readers of its streams lost.", "{part}"),
    _ours(
        names.CALL_STATUS,
        "string",
        "The call ended in neither a result nor an error of its own; else absent.",
        values=("interrupted", "cancelled", "abandoned"),
    ),
)

_METRIC: Final = (
    _genai(names.MODALITY, "string", "What the tokens stand for.", values=("text", "image", "audio", "unknown")),
    Attribute(names.TOKEN_TYPE, "string", "Whether they went in or came out.", "genai 1.41", values=("input", "output")),
    _ours(names.NESTED, "boolean", "The run lies inside another one's node; absent if it does not.", values=("true",)),
    _ours(names.TELEMETRY_SIGNAL, "string", "What was lost.", values=("traces", "logs")),
    _ours(names.TELEMETRY_SINK, "string", "Where it would have gone: an exporter's name, or class if a program made it itself."),
    _ours(
        names.TELEMETRY_REASON,
        "string",
        "Too slow an exporter, or one that failed; the others are the spool's.",
        values=("queue_full", "export_failed", "spool_full", "too_large", "refused", "rejected"),
    ),
)

_OPENINFERENCE: Final = (
    Attribute(
        names.OPENINFERENCE_SPAN_KIND,
        "string",
        "What the span does, in OpenInference's words.",
        "openinference",
        values=("CHAIN", "LLM", "TOOL", "RETRIEVER"),
    ),
    Attribute(names.SESSION_ID, "string", "The thread id, where OpenInference looks for it.", "openinference"),
    Attribute(names.GRAPH_NODE_ID, "string", "The node's name, below those of the nodes around its graph.", "openinference"),
    Attribute(names.GRAPH_NODE_NAME, "string", "The node's name.", "openinference"),
    Attribute(names.GRAPH_NODE_PARENT_ID, "string", "The node that made it run.", "openinference"),
)

ATTRIBUTES: Final = (*_CORE, *_GENAI, *_CONTENT, *_RUN, *_SUPERSTEP, *_TASK, *_CALL, *_METRIC, *_OPENINFERENCE)
