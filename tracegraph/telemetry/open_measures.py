"""What of a run is being measured: since when each open thing is, and what will be recorded of it.

The times are those of the events that start and end the spans, so a span and its measurement always agree.
"""

from __future__ import annotations

from typing import Final
from uuid import UUID

from opentelemetry.context import Context
from opentelemetry.metrics import Histogram
from opentelemetry.trace import INVALID_SPAN, set_span_in_context

from tracegraph.events import MemoryStarted, ModelStarted, ModelToken, RetrievalStarted, RunStarted, ToolStarted
from tracegraph.events.waits import Wait
from tracegraph.telemetry import semconv
from tracegraph.telemetry.failure import error_type, is_failure
from tracegraph.telemetry.instruments import Instruments
from tracegraph.telemetry.model_calls import model_named, model_used
from tracegraph.telemetry.open_spans import Attributes
from tracegraph.telemetry.options import DEFAULT_OPTIONS, TelemetryOptions

__all__ = ["CallMeasure", "RunMeasure", "TaskMeasure", "of_wait", "outcome_of"]

_NO_SPAN: Final = set_span_in_context(INVALID_SPAN, Context())
"""An empty context would be taken for none, and the current span for the measurement's."""

_TOKEN_TYPES = (("input", semconv.USAGE_INPUT_TOKENS), ("output", semconv.USAGE_OUTPUT_TOKENS))
"""The released conventions know no others: what was read from a cache is a part of the input."""


def outcome_of(error: BaseException | None) -> Attributes:
    """Return what a measurement says of how a call ended, as its span does: nothing if it ended well.

    >>> outcome_of(None), outcome_of(TimeoutError())
    ({}, {'error.type': 'TimeoutError'})
    """
    if error is None:
        return {}
    return {semconv.ERROR_TYPE: error_type(error)} if is_failure(error) else {semconv.CALL_STATUS: "interrupted"}


def of_wait(wait: Wait) -> Attributes:
    """Return whose question waited: the graph and node that asked, as when it was counted."""
    attributes: Attributes = {} if wait.workflow_name is None else {semconv.WORKFLOW_NAME: wait.workflow_name}
    return {**attributes, semconv.STEP_NAME: wait.node or "", semconv.INTERRUPT_REASON: "human_input"}


class CallMeasure:
    """An open call of a model, tool, retriever or store."""

    __slots__ = (
        "_attributes", "_duration", "_first_chunk_ns", "_instruments", "_last_chunk_ns", "_longest_gap_ns", "_options",
        "_started_ns", "context",
    )  # fmt: skip

    def __init__(
        self,
        duration: Histogram,
        attributes: Attributes,
        at_ns: int,
        context: Context,
        instruments: Instruments,
        options: TelemetryOptions = DEFAULT_OPTIONS,
    ) -> None:
        self.context = context
        self._duration = duration
        self._attributes = attributes
        self._instruments = instruments
        self._options = options
        self._started_ns = at_ns
        self._first_chunk_ns = 0
        self._last_chunk_ns = 0
        self._longest_gap_ns = -1

    @classmethod
    def open(
        cls,
        event: ModelStarted | ToolStarted | RetrievalStarted | MemoryStarted,
        around: Attributes,
        context: Context,
        instruments: Instruments,
        options: TelemetryOptions = DEFAULT_OPTIONS,
    ) -> CallMeasure:
        """Begin to measure a call made in the graph and node that *around* names."""
        match event:
            case ModelStarted():
                attributes = around | model_named(event)
            case RetrievalStarted():
                attributes = around | {semconv.OPERATION_NAME: semconv.RETRIEVAL}
            case MemoryStarted():
                attributes = around | {semconv.OPERATION_NAME: event.operation}
            case ToolStarted():
                attributes = around | {semconv.TOOL_NAME: event.name, semconv.TOOL_TYPE: "function"}
                return cls(instruments.tool_duration, attributes, event.at_ns, context, instruments)
        return cls(instruments.operation_duration, attributes, event.at_ns, context, instruments, options)

    def chunk(self, event: ModelToken) -> None:
        """Measure the time since the chunk before; the first one waits for the call's end, which tells more of it."""
        at_ns = event.at_ns
        if self._first_chunk_ns == 0:
            self._first_chunk_ns = at_ns
        else:
            gap_ns = at_ns - self._last_chunk_ns
            context = _NO_SPAN
            if gap_ns > self._longest_gap_ns:
                # Exemplars are of the slow ones: to keep one of each costs a fifth of the whole measurement.
                self._longest_gap_ns, context = gap_ns, self.context
            self._instruments.time_per_output_chunk.record(gap_ns / 1e9, self._attributes, context)
        self._last_chunk_ns = at_ns

    def close(self, at_ns: int, outcome: Attributes, response: object = None) -> None:
        """Record how long the call took and, of a model's *response*, what it used."""
        attributes, context = self._attributes, self.context
        answer = model_used(response) if response is not None else {}
        if (model := answer.get(semconv.RESPONSE_MODEL)) is not None:
            attributes = {**attributes, semconv.RESPONSE_MODEL: model}
        if answer:
            self._record_tokens(answer, attributes)
        attributes = attributes | outcome
        if self._first_chunk_ns:
            waited_s = (self._first_chunk_ns - self._started_ns) / 1e9
            self._instruments.time_to_first_chunk.record(waited_s, attributes, context)
        self._duration.record((at_ns - self._started_ns) / 1e9, attributes, context)

    def _record_tokens(self, answer: Attributes, attributes: Attributes) -> None:
        if self._options.semconv == "1.41":
            for token_type, name in _TOKEN_TYPES:
                count = answer.get(name)
                if isinstance(count, int) and count >= 0:
                    typed = {**attributes, semconv.TOKEN_TYPE: token_type}
                    self._instruments.token_usage.record(count, typed, self.context)
            return
        # Answers tell totals, and not always of which modality they are.
        with_modality = {**attributes, semconv.MODALITY: "unknown"}
        for name, tally in self._instruments.usage.items():
            count = answer.get(name)
            if isinstance(count, int) and count > 0:
                tally.add(count, with_modality)
        for name, histogram in self._instruments.operation_tokens.items():
            count = answer.get(name)
            if isinstance(count, int) and count >= 0:
                histogram.record(count, attributes, self.context)


class TaskMeasure:
    """An open task, and what its code has started."""

    __slots__ = ("calls", "children", "context", "node", "started_ns")

    def __init__(self, node: str, at_ns: int, context: Context) -> None:
        self.node = node
        self.started_ns = at_ns
        self.context = context
        self.calls: dict[UUID, CallMeasure] | None = None
        self.children: list[UUID] | None = None
        """Ids of the runs that this task's code started, ended ones included."""


class RunMeasure:
    """An open run and everything open in it that is no run of its own."""

    __slots__ = (
        "_nodes", "_steps", "attributes", "calls", "context", "inference_calls", "is_nested", "parent_id", "puts", "started_ns",
        "step_ns", "tasks", "tool_calls",
    )  # fmt: skip

    def __init__(self, event: RunStarted, context: Context, *, is_nested: bool) -> None:
        self.context = context
        self.started_ns = event.at_ns
        self.parent_id = event.parent_run_id
        self.is_nested = is_nested
        self.attributes: Attributes = {}
        """What names the graph, on everything that is measured in the run."""
        if event.workflow_name is not None:
            self.attributes[semconv.WORKFLOW_NAME] = event.workflow_name
        self.tasks: dict[str, TaskMeasure] = {}
        self.calls: dict[UUID, CallMeasure] | None = None
        self.puts: dict[str, int] = {}
        """Checkpoint id -> when its save began."""
        self.step_ns: int | None = None
        self.inference_calls = 0
        self.tool_calls = 0
        self._nodes: dict[tuple[str, str | None], Attributes] = {}
        self._steps: dict[str, Attributes] = {}

    def of_run(self) -> Attributes:
        """Return the attributes of what is measured of the run itself."""
        return {**self.attributes, semconv.NESTED: True} if self.is_nested else self.attributes

    def of_node(self, node: str, status: str | None = None) -> Attributes:
        """Return what names the graph and *node*, and how a task of it ended; put together once, so never to be changed."""
        key = (node, status)
        made = self._nodes.get(key)
        if made is None:
            made = self._nodes[key] = {**self.attributes, semconv.STEP_NAME: node}
            if status is not None:
                made[semconv.TASK_STATUS] = status
        return made

    def of_superstep(self, status: str) -> Attributes:
        """Return what names the graph, and how a superstep ended; put together once, as above."""
        made = self._steps.get(status)
        if made is None:
            made = self._steps[status] = {**self.attributes, semconv.SUPERSTEP_STATUS: status}
        return made
