"""Content of one root run and what is in it: taken, redacted, and put on spans, log events and into uploads.

Everything is taken when it happens, in the publishing thread: afterwards a state or a list of messages may be another.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import TYPE_CHECKING, Any
from uuid import UUID

from opentelemetry.context import Context
from opentelemetry.trace import Span, set_span_in_context

from tracegraph.events import (
    MemoryEnded,
    MemoryStarted,
    ModelEnded,
    ModelStarted,
    RunEnded,
    RunStarted,
    TaskEnded,
    TaskStarted,
    ToolEnded,
    ToolStarted,
)
from tracegraph.telemetry import semconv
from tracegraph.telemetry.content.blobs import with_stored_blobs
from tracegraph.telemetry.content.details import emit_details
from tracegraph.telemetry.content.documents import document_shapes
from tracegraph.telemetry.content.entry import Entry
from tracegraph.telemetry.content.memories import record_shapes
from tracegraph.telemetry.content.messages import input_messages, output_messages, system_instructions, tool_definitions
from tracegraph.telemetry.content.policy import ContentPolicy
from tracegraph.telemetry.content.snapshot import is_message
from tracegraph.types import TracePolicy

if TYPE_CHECKING:
    from opentelemetry._logs import Logger

    from tracegraph.telemetry.calls import CallEnded, CallStarted

__all__ = ["ContentRecorder"]

RequestOf = Callable[["CallStarted"], dict[str, Any]]
AnswerOf = Callable[[Any], Mapping[str, Any]]
"""What the span of a call says of its start, and of a model's response; a log event says the same."""

_UPLOADED = (
    (semconv.INPUT_MESSAGES, semconv.INPUT_MESSAGES_REF, "inputs", False),
    (semconv.OUTPUT_MESSAGES, semconv.OUTPUT_MESSAGES_REF, "outputs", False),
    (semconv.SYSTEM_INSTRUCTIONS, semconv.SYSTEM_INSTRUCTIONS_REF, "system_instruction", True),
    (semconv.TOOL_DEFINITIONS, semconv.TOOL_DEFINITIONS_REF, "tool.definitions", True),
)
"""Attribute, the one that refers to its upload, the word for its file, and whether equal ones share a file."""


class ContentRecorder:
    """Records the content of one root run; whoever makes spans calls it, with the span while that is open.

    Without spans, because the run is sampled out or nobody traces, *span* is None throughout.
    """

    def __init__(self, policy: ContentPolicy, logger: Logger | None, request_of: RequestOf, answer_of: AnswerOf) -> None:
        self._policy = policy
        self._logger = logger if policy.emits_events else None
        self._takes_for_events = self._logger is not None and policy.on_events
        self._request_of = request_of
        self._answer_of = answer_of
        self._open: dict[Hashable, Entry] = {}
        self._threads: dict[UUID, str | None] = {}
        self._trace_policies: dict[UUID, Mapping[str, TracePolicy]] = {}
        self._root_id: UUID | None = None
        self.context: Context | None = None
        """Where log events belong that have no span."""
        self._dropped_count = 0

    @property
    def is_useful_without_spans(self) -> bool:
        """Whether content goes anywhere but to spans."""
        return self._logger is not None or self._policy.upload is not None

    @property
    def _takes_state(self) -> bool:
        return self._policy.state and (self._policy.on_spans or self._takes_for_events)

    # -- runs and tasks

    def run_started(self, event: RunStarted, span: Span | None) -> None:
        """Take a run's input."""
        self._root_id = self._root_id or event.run_id
        self._threads[event.run_id] = event.thread_id
        if event.trace_policies:
            self._trace_policies[event.run_id] = event.trace_policies
        if not self._takes_state:
            return
        facts: dict[str, Any] = {semconv.OPERATION_NAME: semconv.INVOKE_WORKFLOW, semconv.RUN_ID: str(event.run_id)}
        if event.workflow_name is not None:
            facts[semconv.WORKFLOW_NAME] = event.workflow_name
        entry = self._enter(event.run_id, event.run_id, span, facts)
        entry.put(semconv.RUN_INPUT, event.input)

    def run_ended(self, event: RunEnded, span: Span | None) -> None:
        """Take a run's output; the root's end is the last chance of whatever has not ended."""
        entry = self._open.pop(event.run_id, None)
        if entry is not None:
            entry.put(semconv.RUN_OUTPUT, event.output)
            self._emit(entry, semconv.OPERATION_DETAILS_EVENT, event.at_ns)
        if event.run_id == self._root_id:
            if self._dropped_count and span is not None:
                span.set_attribute(semconv.UPLOADS_DROPPED, self._dropped_count)
            self.close(event.at_ns)

    def close(self, at_ns: int) -> None:
        """Let go of what was left open, with what is known of it."""
        left, self._open = self._open, {}
        for entry in left.values():
            self._finish(entry, at_ns)

    def task_started(self, event: TaskStarted, span: Span | None) -> None:
        """Take a task's input, as its node's TracePolicy shows it."""
        if not self._takes_state:
            return
        entry = self._enter((event.run_id, event.task_id), event.run_id, span, _step_facts(event))
        policy = self._trace_policy(event)
        entry.put(semconv.TASK_INPUT, event.input, None if policy is None else policy.process_inputs)

    def task_ended(self, event: TaskEnded, span: Span | None) -> None:
        """Take a task's output, as its node's TracePolicy shows it."""
        if not self._takes_state:
            return
        entry = self._open.pop((event.run_id, event.task_id), None)
        if entry is None:  # its result was cached, so it did not start
            entry = self._entry(event.run_id, span, _step_facts(event))
        policy = self._trace_policy(event)
        if event.status in ("completed", "cached"):
            entry.put(semconv.TASK_OUTPUT, event.result, None if policy is None else policy.process_outputs)
        self._emit(entry, semconv.OPERATION_DETAILS_EVENT, event.at_ns)

    def _trace_policy(self, event: TaskStarted | TaskEnded) -> TracePolicy | None:
        return self._trace_policies.get(event.run_id, {}).get(event.name)

    # -- calls

    def call_started(self, event: CallStarted, span: Span | None) -> None:
        """Take what a model, tool, retriever or store is asked."""
        match event:
            case ModelStarted():
                self._model_started(event, span)
            case ToolStarted():
                if self._policy.on_spans or self._takes_for_events:
                    entry = self._enter(event.call_id, event.run_id, span, self._request_of(event))
                    entry.put(semconv.TOOL_CALL_ARGUMENTS, event.input)
            case MemoryStarted():
                if self._policy.on_spans or self._logger is not None:
                    entry = self._enter(event.call_id, event.run_id, span, self._request_of(event))
                    entry.put(semconv.MEMORY_QUERY_TEXT, event.query, is_text=True)
                    entry.put(semconv.MEMORY_RECORDS, event.records, record_shapes)
            case _:
                if self._policy.on_spans or self._takes_for_events:
                    entry = self._enter(event.call_id, event.run_id, span, self._request_of(event))
                    entry.put(semconv.RETRIEVAL_QUERY_TEXT, event.query, is_text=True)

    def _model_started(self, event: ModelStarted, span: Span | None) -> None:
        entry = self._enter(event.call_id, event.run_id, span, self._request_of(event))
        entry.is_inference = True
        entry.put(semconv.SYSTEM_INSTRUCTIONS, event.params, system_instructions)
        entry.put(semconv.INPUT_MESSAGES, event.messages, self._shape(input_messages))
        if self._policy.tool_definitions:
            entry.put(semconv.TOOL_DEFINITIONS, event.params, tool_definitions)

    def call_ended(self, event: CallEnded) -> None:
        """Take what a model, tool, retriever or store answered."""
        entry = self._open.pop(event.call_id, None)
        if entry is None:
            return
        match event:
            case ModelEnded():
                entry.facts |= self._answer_of(event.response)
                entry.put(semconv.OUTPUT_MESSAGES, event.response, self._shape(output_messages))
            case ToolEnded():
                output = event.output
                entry.put(semconv.TOOL_CALL_RESULT, output.content if is_message(output) else output)
            case MemoryEnded():
                entry.put(semconv.MEMORY_RECORDS, event.records, record_shapes)
            case _:
                entry.put(semconv.RETRIEVAL_DOCUMENTS, event.documents, document_shapes)
        self._finish(entry, event.at_ns)

    def _shape(self, shape: Callable[[Any], list[dict[str, Any]]]) -> Callable[[Any], list[dict[str, Any]]]:
        """Return what makes messages of a value, their binary data stored if the policy says where."""
        store = self._policy.store_blob
        return shape if store is None else lambda value: with_stored_blobs(shape(value), store)

    # -- where it goes

    def _enter(self, key: Hashable, run_id: UUID, span: Span | None, facts: dict[str, Any]) -> Entry:
        entry = self._open[key] = self._entry(run_id, span, facts)
        return entry

    def _entry(self, run_id: UUID, span: Span | None, facts: dict[str, Any]) -> Entry:
        if (thread_id := self._threads.get(run_id)) is not None:
            facts[semconv.CONVERSATION_ID] = thread_id
        return Entry(self._policy, span, facts)

    def _finish(self, entry: Entry, at_ns: int) -> None:
        if not entry.is_inference:
            self._emit(entry, semconv.OPERATION_DETAILS_EVENT, at_ns)
            return
        if self._policy.upload is not None:
            self._upload(entry)
        self._emit(entry, semconv.INFERENCE_DETAILS_EVENT, at_ns)

    def _upload(self, entry: Entry) -> None:
        assert self._policy.upload is not None
        call_id = self._policy.upload.new_id()
        for attribute, ref_attribute, kind, is_shared in _UPLOADED:
            data = entry.content.get(attribute)
            if not isinstance(data, list):
                continue
            ref = self._policy.upload.submit(kind, data, call_id, is_shared=is_shared)
            if ref is None:
                self._dropped_count += 1
            else:
                entry.refer(ref_attribute, ref)

    def _emit(self, entry: Entry, name: str, at_ns: int) -> None:
        content = entry.content if self._takes_for_events else {}
        # Of a model call the facts alone are worth an event, if one was asked for.
        if self._logger is None or not (content or (entry.is_inference and self._policy.emit_event)):
            return
        context = self.context if entry.span is None else set_span_in_context(entry.span, Context())
        emit_details(self._logger, name, {**entry.facts, **content}, context, at_ns)


def _step_facts(event: TaskStarted | TaskEnded) -> dict[str, Any]:
    return {
        semconv.OPERATION_NAME: semconv.RUN_STEP,
        semconv.STEP_NAME: event.name,
        semconv.TASK_ID: event.task_id,
        semconv.SUPERSTEP: event.step,
    }
