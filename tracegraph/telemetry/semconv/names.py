"""Every name telemetry uses, written once; what each one means stands in the registry beside this file.

``gen_ai.*`` names follow the GenAI conventions as of October 2026 (all of stability *Development*: they
will move, and this file is where). ``tracegraph.*`` is for what the conventions have no word for; the one
exception is ``run_step`` with ``gen_ai.step.name``, a proposal whose shape fits a graph node exactly.
"""

from __future__ import annotations

from typing import Final

from tracegraph.version import VERSION

SCOPE_NAME: Final = "tracegraph"
SCOPE_VERSION: Final = VERSION
SCHEMA_URL: Final = "https://opentelemetry.io/schemas/1.41.1"
"""The last released conventions that define ``gen_ai.*``; the repository they moved to has no release yet."""

# Span names; the first word of a GenAI span's name is its operation.
INVOKE_WORKFLOW: Final = "invoke_workflow"
RUN_STEP: Final = "run_step"
CHAT: Final = "chat"
TEXT_COMPLETION: Final = "text_completion"
EXECUTE_TOOL: Final = "execute_tool"
RETRIEVAL: Final = "retrieval"
SEARCH_MEMORY: Final = "search_memory"
CREATE_MEMORY: Final = "create_memory"
UPDATE_MEMORY: Final = "update_memory"
UPSERT_MEMORY: Final = "upsert_memory"
DELETE_MEMORY: Final = "delete_memory"
CREATE_MEMORY_STORE: Final = "create_memory_store"
DELETE_MEMORY_STORE: Final = "delete_memory_store"
SUPERSTEP_SPAN: Final = "superstep"
ATTEMPT_SPAN: Final = "attempt"
CHECKPOINT_PUT_SPAN: Final = "checkpoint put"
TRACE_PART_SPAN: Final = "trace part"

# Stable names of the core conventions.
ERROR_TYPE: Final = "error.type"
EXCEPTION_EVENT: Final = "exception"
EXCEPTION_TYPE: Final = "exception.type"
EXCEPTION_MESSAGE: Final = "exception.message"
EXCEPTION_STACKTRACE: Final = "exception.stacktrace"

# GenAI conventions.
OPERATION_NAME: Final = "gen_ai.operation.name"
PROVIDER_NAME: Final = "gen_ai.provider.name"
WORKFLOW_NAME: Final = "gen_ai.workflow.name"
CONVERSATION_ID: Final = "gen_ai.conversation.id"
STEP_NAME: Final = "gen_ai.step.name"
REQUEST_MODEL: Final = "gen_ai.request.model"
REQUEST_MAX_TOKENS: Final = "gen_ai.request.max_tokens"
REQUEST_TEMPERATURE: Final = "gen_ai.request.temperature"
REQUEST_TOP_P: Final = "gen_ai.request.top_p"
REQUEST_TOP_K: Final = "gen_ai.request.top_k"
REQUEST_FREQUENCY_PENALTY: Final = "gen_ai.request.frequency_penalty"
REQUEST_PRESENCE_PENALTY: Final = "gen_ai.request.presence_penalty"
REQUEST_STOP_SEQUENCES: Final = "gen_ai.request.stop_sequences"
REQUEST_SEED: Final = "gen_ai.request.seed"
REQUEST_CHOICE_COUNT: Final = "gen_ai.request.choice.count"
REQUEST_STREAM: Final = "gen_ai.request.stream"
OUTPUT_TYPE: Final = "gen_ai.output.type"
RESPONSE_ID: Final = "gen_ai.response.id"
RESPONSE_MODEL: Final = "gen_ai.response.model"
RESPONSE_FINISH_REASONS: Final = "gen_ai.response.finish_reasons"
RESPONSE_TIME_TO_FIRST_CHUNK: Final = "gen_ai.response.time_to_first_chunk"
"""Seconds, as a float."""

USAGE_INPUT_TOKENS: Final = "gen_ai.usage.input_tokens"
USAGE_OUTPUT_TOKENS: Final = "gen_ai.usage.output_tokens"
USAGE_CACHE_READ_INPUT_TOKENS: Final = "gen_ai.usage.cache_read.input_tokens"
USAGE_CACHE_WRITE_INPUT_TOKENS: Final = "gen_ai.usage.cache_write.input_tokens"
USAGE_REASONING_OUTPUT_TOKENS: Final = "gen_ai.usage.reasoning.output_tokens"
TOOL_NAME: Final = "gen_ai.tool.name"
TOOL_TYPE: Final = "gen_ai.tool.type"
TOOL_CALL_ID: Final = "gen_ai.tool.call.id"
TOOL_DESCRIPTION: Final = "gen_ai.tool.description"
MEMORY_STORE_ID: Final = "gen_ai.memory.store.id"
MEMORY_RECORD_ID: Final = "gen_ai.memory.record.id"
MEMORY_RECORD_COUNT: Final = "gen_ai.memory.record.count"

# Model, tool, retriever and store calls, where the conventions have no word.
MEMORY_STORE_NAME: Final = "tracegraph.memory.store.name"
RETRIEVER_NAME: Final = "tracegraph.retriever.name"
RETRIEVAL_COUNT: Final = "tracegraph.retrieval.documents"

# A run.
RUN_ID: Final = "tracegraph.run.id"
RUN_STATUS: Final = "tracegraph.run.status"
RUN_REASON: Final = "tracegraph.run.reason"
RUN_TAGS: Final = "tracegraph.run.tags"
DURABILITY: Final = "tracegraph.durability"
RESUMED_FROM_CHECKPOINT: Final = "tracegraph.resumed_from.checkpoint.id"
RESUMED_FROM_INTERRUPT: Final = "tracegraph.resumed_from.interrupt.id"
RESUMED_FROM_WAITED: Final = "tracegraph.resumed_from.waited"
"""Seconds that each of these questions waited, in the same order."""

OBSERVERS_FAILED: Final = "tracegraph.observers.failed"

# Totals of a run and the runs inside it, on the root: not `gen_ai.usage.*`, which a sum over the trace would count twice.
RUN_USAGE_INPUT_TOKENS: Final = "tracegraph.usage.input_tokens"
RUN_USAGE_OUTPUT_TOKENS: Final = "tracegraph.usage.output_tokens"
RUN_USAGE_CACHE_READ_INPUT_TOKENS: Final = "tracegraph.usage.cache_read.input_tokens"
RUN_USAGE_CACHE_WRITE_INPUT_TOKENS: Final = "tracegraph.usage.cache_write.input_tokens"
RUN_USAGE_REASONING_OUTPUT_TOKENS: Final = "tracegraph.usage.reasoning.output_tokens"
RUN_USAGE_MODEL_CALLS: Final = "tracegraph.usage.model_calls"
RUN_USAGE_TOOL_CALLS: Final = "tracegraph.usage.tool_calls"
RUN_USAGE_TOKENS: Final = (
    RUN_USAGE_INPUT_TOKENS,
    RUN_USAGE_OUTPUT_TOKENS,
    RUN_USAGE_CACHE_READ_INPUT_TOKENS,
    RUN_USAGE_CACHE_WRITE_INPUT_TOKENS,
    RUN_USAGE_REASONING_OUTPUT_TOKENS,
)

# A superstep and its checkpoint.
SUPERSTEP: Final = "tracegraph.superstep"
SUPERSTEP_TASKS: Final = "tracegraph.superstep.tasks"
SUPERSTEP_COMMIT_MS: Final = "tracegraph.superstep.commit_ms"
"""From the last task's end to the end of the superstep: apply and an awaited save."""

SUPERSTEP_STATUS: Final = "tracegraph.superstep.status"
SUPERSTEPS_COLLAPSED: Final = "tracegraph.supersteps.collapsed"
"""On the root run: how many superstep spans the budget of the trace left no room for."""

TRACE_PART: Final = "tracegraph.trace.part"
"""On the root of a further trace of a large run: which part of it that is, from 2."""
TRACE_PARTS: Final = "tracegraph.trace.parts"
"""On the root run: in how many traces its spans are."""
TRACE_CONTINUED_IN: Final = "tracegraph.trace.continued_in"
"""On the root of a part: the id of the trace that the next one is."""

CHECKPOINT_ID: Final = "tracegraph.checkpoint.id"
CHECKPOINT_PARENT_ID: Final = "tracegraph.checkpoint.parent_id"
CHECKPOINT_NS: Final = "tracegraph.checkpoint.ns"
CHECKPOINT_SOURCE: Final = "tracegraph.checkpoint.source"
CHECKPOINT_CHANGED: Final = "tracegraph.checkpoint.changed"
"""How many channels the checkpoint stores anew."""

CHECKPOINT_BYTES: Final = "tracegraph.checkpoint.bytes"
"""What the saver wrote for it; absent where it does not tell."""

CHECKPOINT_STATUS: Final = "tracegraph.checkpoint.status"
"""``unknown`` on a save that the run did not see the end of; else absent."""

# A task and its attempts.
TASK_ID: Final = "tracegraph.task.id"
TASK_PATH: Final = "tracegraph.task.path"
TASK_TRIGGER: Final = "tracegraph.task.trigger"
TASK_STATUS: Final = "tracegraph.task.status"
TASK_REASON: Final = "tracegraph.task.reason"
TASK_QUEUED_MS: Final = "tracegraph.task.queued_ms"
TASK_ATTEMPTS: Final = "tracegraph.task.attempts"
TASK_CALLER: Final = "tracegraph.task.caller_id"
TASK_PRODUCER: Final = "tracegraph.task.producer_id"
TASK_ERROR_HANDLER: Final = "tracegraph.task.error_handler"
ATTEMPT_NUMBER: Final = "tracegraph.attempt.number"
RETRY_DELAY_S: Final = "tracegraph.retry.delay_s"
CACHE_HIT: Final = "tracegraph.cache.hit"
STREAM_CHUNKS: Final = "tracegraph.stream.chunks"
STREAM_DROPPED: Final = "tracegraph.stream.dropped"
CALL_STATUS: Final = "tracegraph.call.status"
"""Set on a call of a model, tool, retriever or store that ended in neither a result nor an error of its own."""

LINK_KIND: Final = "tracegraph.link"
"""Why a span links to another: ``producer`` (who sent the Send) or ``resumed`` (what this run goes on with)."""

# Span events: a short closed list, since backends without a log store show nothing else.
RUN_INTERRUPTED_EVENT: Final = "tracegraph.run.interrupted"
RUN_RESUMED_EVENT: Final = "tracegraph.run.resumed"
TURN_TAKEN_EVENT: Final = "tracegraph.run.turn_taken"
WAITED_S: Final = "tracegraph.run.waited_s"
RUN_DRAINED_EVENT: Final = "tracegraph.run.drained"
JOIN_STARVED_EVENT: Final = "tracegraph.join.starved"
TASK_RETRY_EVENT: Final = "tracegraph.task.retry"
FIRST_CHUNK_EVENT: Final = "tracegraph.stream.first_chunk"
INTERRUPT_ID: Final = "tracegraph.interrupt.id"
INTERRUPT_REASON: Final = "tracegraph.interrupt.reason"
JOIN_NAME: Final = "tracegraph.join.name"
JOIN_TARGET: Final = "tracegraph.join.target"
JOIN_WAITING_FOR: Final = "tracegraph.join.waiting_for"
NEXT_NODES: Final = "tracegraph.run.next_nodes"

# Log records: EventNames beside those above, and what only records say.
RUN_STARTED_EVENT: Final = "tracegraph.run.started"
RUN_ENDED_EVENT: Final = "tracegraph.run.ended"
TASK_FAILED_EVENT: Final = "tracegraph.task.failed"
TASK_CANCELLED_EVENT: Final = "tracegraph.task.cancelled"
"""A task that was stopped (``cancelled``) or left behind in its thread (``abandoned``), and why."""

ERROR_HANDLED_EVENT: Final = "tracegraph.task.error_handled"
CHECKPOINT_SAVED_EVENT: Final = "tracegraph.checkpoint.saved"
CHECKPOINT_FAILED_EVENT: Final = "tracegraph.checkpoint.failed"
KEY_IGNORED_EVENT: Final = "tracegraph.key.ignored"
REPORT_IGNORED_EVENT: Final = "tracegraph.report.ignored"
OBSERVER_FAILED_EVENT: Final = "tracegraph.observer.failed"
STATE_UPDATED_EVENT: Final = "tracegraph.state.updated"
OPERATION_EXCEPTION_EVENT: Final = "gen_ai.client.operation.exception"
IGNORED_KEY: Final = "tracegraph.key"
IGNORED_REPORT: Final = "tracegraph.report"
OBSERVER_NAME: Final = "tracegraph.observer.name"
OBSERVED_EVENT: Final = "tracegraph.observer.event"
STATE_SOURCE: Final = "tracegraph.state.source"
STATE_CHANGED_COUNT: Final = "tracegraph.state.changed_key.count"
STATE_CHANGED_KEYS: Final = "tracegraph.state.changed_keys"
TELEMETRY_LOST: Final = "tracegraph.telemetry.lost"
"""How many spans and log records the process is known to have lost while the run went on, its own or others'."""

IS_RESUME: Final = "tracegraph.run.is_resume"
CODE_FILE_PATH: Final = "code.file.path"
CODE_FUNCTION_NAME: Final = "code.function.name"
CODE_LINE_NUMBER: Final = "code.line.number"

# Content: recorded only as far as the content policy says.
INPUT_MESSAGES: Final = "gen_ai.input.messages"
OUTPUT_MESSAGES: Final = "gen_ai.output.messages"
SYSTEM_INSTRUCTIONS: Final = "gen_ai.system_instructions"
TOOL_DEFINITIONS: Final = "gen_ai.tool.definitions"
TOOL_CALL_ARGUMENTS: Final = "gen_ai.tool.call.arguments"
TOOL_CALL_RESULT: Final = "gen_ai.tool.call.result"
RETRIEVAL_QUERY_TEXT: Final = "gen_ai.retrieval.query.text"
RETRIEVAL_DOCUMENTS: Final = "gen_ai.retrieval.documents"
MEMORY_QUERY_TEXT: Final = "gen_ai.memory.query.text"
MEMORY_RECORDS: Final = "gen_ai.memory.records"
INPUT_MESSAGES_REF: Final = "gen_ai.input.messages_ref"
"""Where the messages were uploaded to; this and the next three are named as OpenTelemetry's GenAI utilities name them."""

OUTPUT_MESSAGES_REF: Final = "gen_ai.output.messages_ref"
SYSTEM_INSTRUCTIONS_REF: Final = "gen_ai.system_instructions_ref"
TOOL_DEFINITIONS_REF: Final = "gen_ai.tool.definitions_ref"
RUN_INPUT: Final = "tracegraph.run.input"
RUN_OUTPUT: Final = "tracegraph.run.output"
TASK_INPUT: Final = "tracegraph.task.input"
TASK_OUTPUT: Final = "tracegraph.task.output"
TRUNCATED: Final = "tracegraph.truncated"
"""Names of the attributes of this span that were cut or left out to keep it small."""

LEFT_OUT: Final = "tracegraph.left_out"
"""Names of the attributes that are missing because a redactor, or a TracePolicy's function, failed."""

UPLOADS_DROPPED: Final = "tracegraph.uploads.dropped"
"""On the root run: how much of its content found the upload queue full."""

INFERENCE_DETAILS_EVENT: Final = "gen_ai.client.inference.operation.details"
OPERATION_DETAILS_EVENT: Final = "tracegraph.operation.details"
"""The same for what is no inference: content of a run, task, tool call, retrieval or memory call."""

# Metrics of the GenAI conventions; `run_step` is the proposal that the span follows too.
METRIC_WORKFLOW_DURATION: Final = "gen_ai.invoke_workflow.duration"
METRIC_WORKFLOW_INFERENCE_CALLS: Final = "gen_ai.invoke_workflow.inference_calls"
METRIC_WORKFLOW_TOOL_CALLS: Final = "gen_ai.invoke_workflow.tool_calls"
METRIC_STEP_DURATION: Final = "gen_ai.run_step.duration"
METRIC_TOOL_DURATION: Final = "gen_ai.execute_tool.duration"
METRIC_OPERATION_DURATION: Final = "gen_ai.client.operation.duration"
METRIC_TIME_TO_FIRST_CHUNK: Final = "gen_ai.client.operation.time_to_first_chunk"
METRIC_TIME_PER_OUTPUT_CHUNK: Final = "gen_ai.client.operation.time_per_output_chunk"
METRIC_OPERATION_INPUT_TOKENS: Final = "gen_ai.client.inference.operation.input_tokens"
METRIC_OPERATION_OUTPUT_TOKENS: Final = "gen_ai.client.inference.operation.output_tokens"
METRIC_USAGE_INPUT_TOKENS: Final = "gen_ai.client.inference.usage.input_tokens"
METRIC_USAGE_OUTPUT_TOKENS: Final = "gen_ai.client.inference.usage.output_tokens"
METRIC_USAGE_CACHE_READ_INPUT_TOKENS: Final = "gen_ai.client.inference.usage.cache_read.input_tokens"
METRIC_USAGE_CACHE_WRITE_INPUT_TOKENS: Final = "gen_ai.client.inference.usage.cache_write.input_tokens"
METRIC_USAGE_REASONING_OUTPUT_TOKENS: Final = "gen_ai.client.inference.usage.reasoning.output_tokens"

# Metrics of ours.
METRIC_RUNS_ACTIVE: Final = "tracegraph.runs.active"
METRIC_SUPERSTEP_DURATION: Final = "tracegraph.superstep.duration"
METRIC_TASK_RETRIES: Final = "tracegraph.task.retries"
METRIC_CACHE_LOOKUPS: Final = "tracegraph.cache.lookups"
METRIC_CHECKPOINT_DURATION: Final = "tracegraph.checkpoint.duration"
METRIC_INTERRUPTS: Final = "tracegraph.interrupts"
METRIC_INTERRUPT_WAIT: Final = "tracegraph.interrupt.wait"
METRIC_CHECKPOINT_SIZE: Final = "tracegraph.checkpoint.size"
METRIC_STREAM_DROPPED: Final = "tracegraph.stream.dropped_parts"
METRIC_TELEMETRY_DROPPED: Final = "tracegraph.telemetry.dropped"

# Attributes that only metrics have.
MODALITY: Final = "gen_ai.token.modality"
NESTED: Final = "tracegraph.nested"
"""True on what is measured of a run inside another; else absent."""

TELEMETRY_SIGNAL: Final = "tracegraph.telemetry.signal"
TELEMETRY_SINK: Final = "tracegraph.telemetry.sink"
TELEMETRY_REASON: Final = "tracegraph.telemetry.reason"

# What a process that died left open. The embedded store writes these when it finds that process dead.
SPAN_ABANDONED: Final = "tracegraph.span.abandoned"
PROCESS_ID: Final = "process.pid"
"""The process that died; a name of the core conventions."""

# The semconv="1.41" profile: what the last released conventions call differently.
USAGE_CACHE_CREATION_INPUT_TOKENS: Final = "gen_ai.usage.cache_creation.input_tokens"
METRIC_TOKEN_USAGE: Final = "gen_ai.client.token.usage"  # noqa: S105  # no password
TOKEN_TYPE: Final = "gen_ai.token.type"  # noqa: S105

# The OpenInference profile.
OPENINFERENCE_SPAN_KIND: Final = "openinference.span.kind"
SESSION_ID: Final = "session.id"
GRAPH_NODE_ID: Final = "graph.node.id"
GRAPH_NODE_NAME: Final = "graph.node.name"
GRAPH_NODE_PARENT_ID: Final = "graph.node.parent_id"
