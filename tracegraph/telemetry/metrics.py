"""Lifecycle events become measurements, through the OpenTelemetry API only.

Attributes are names that a program's author chose (graph, node, model, tool), how a thing ended, and ``error.type``:
never an id, for each value of an attribute is a time series of its own. Each measurement is recorded in the context of
the span it belongs to, so that the SDK can keep some as exemplars, which name that span.

Whatever is open when the thing around it ends, ends with it, as in :mod:`tracegraph.telemetry.spans`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar
from uuid import UUID

from opentelemetry.context import Context, get_current

from tracegraph import events
from tracegraph.events import Event, kinds
from tracegraph.telemetry import semconv
from tracegraph.telemetry.calls import CallEnded, CallStarted
from tracegraph.telemetry.failure import error_type, is_failure
from tracegraph.telemetry.instruments import Instruments
from tracegraph.telemetry.open_measures import CallMeasure, RunMeasure, TaskMeasure, of_wait, outcome_of
from tracegraph.telemetry.open_spans import Attributes
from tracegraph.telemetry.options import current_options
from tracegraph.telemetry.spans import SpanObserver

__all__ = ["MetricsObserver"]

Calls = dict[UUID, CallMeasure]


class MetricsObserver:
    """Measures one root run and the runs nested in it; called under the Hub's lock, after the observer that makes the spans."""

    ignored: ClassVar[frozenset[type[Event]]] = frozenset(
        {
            events.StateUpdated,  # of these the volume is the caller's own, and a span or a record tells more
            events.BranchStarted,
            events.BranchEnded,
            events.CheckpointReached,
            events.ErrorHandled,
            events.Drained,
            events.TurnTaken,
            events.JoinStarved,
            events.UnknownKeyIgnored,
            events.ReportIgnored,
            events.ObserverFailed,
            events.CustomEmitted,
            events.MessagePushed,
        }
    )

    def __init__(self, instruments: Instruments, spans: SpanObserver | None, context: Context) -> None:
        self._instruments = instruments
        self._spans = spans
        self._context = context
        self._root_id: UUID | None = None
        self._runs: dict[UUID, RunMeasure] = {}
        self._options = current_options()
        self._answered: set[str] = set()
        """Ids of the questions whose wait was recorded: runs inside resume with the same answers."""
        self._asked: set[str] = set()
        """Ids of the questions that were counted: a question passes through every run and task around its node."""

    @classmethod
    def open(
        cls, started: events.RunStarted, instruments: Instruments, spans: SpanObserver | None, context: Context | None
    ) -> MetricsObserver:
        """Begin to measure a root run, below the ambient span if its own makes none (``context`` is None)."""
        observer = cls(instruments, spans, get_current() if context is None else context)
        observer._root_id = started.run_id
        observer._begin(started, is_nested=False)
        return observer

    def observe(self, event: Event) -> None:
        """Take note of what *event* starts, and record what it ends."""
        handler = self.handlers.get(type(event))
        if handler is not None:
            handler(self, event)

    def _context_of(self, run_id: UUID, task_id: str | None = None, call_id: UUID | None = None) -> Context:
        spans = self._spans
        return (spans.context_of(run_id, task_id, call_id) if spans is not None else None) or self._context

    # -- runs

    def _begin(self, event: events.RunStarted, *, is_nested: bool) -> None:
        run = RunMeasure(event, self._context_of(event.run_id), is_nested=is_nested)
        self._runs[event.run_id] = run
        self._instruments.runs_active.add(1, run.of_run())

    def _run_started(self, event: events.RunStarted) -> None:
        if event.run_id in self._runs or not self._runs or event.parent_run_id is None:
            return  # the root is measured from the start; nothing starts after its end
        self._begin(event, is_nested=True)
        parent = self._runs.get(event.parent_run_id)
        task = parent.tasks.get(event.parent_task_id) if parent is not None and event.parent_task_id else None
        if task is not None:
            task.children = [*(task.children or ()), event.run_id]

    def _run_ended(self, event: events.RunEnded) -> None:
        outcome: Attributes = {}
        if event.status in {"failed", "step_limit"} and is_failure(event.error):
            outcome[semconv.ERROR_TYPE] = error_type(event.error)
        if event.dropped and (run := self._runs.get(event.run_id)) is not None:
            self._instruments.stream_dropped.add(event.dropped, run.attributes, run.context)
        self._end_run(event.run_id, event.status, event.at_ns, outcome)

    def _end_run(self, run_id: UUID, status: str, at_ns: int, outcome: Attributes) -> None:
        run = self._runs.pop(run_id, None)
        if run is None:
            return
        below = "cancelled" if status == "cancelled" else "abandoned"
        if run_id == self._root_id:
            for child_id in reversed(tuple(self._runs)):
                self._end_run(child_id, below, at_ns, {})
        for task_id in reversed(tuple(run.tasks)):
            self._end_task(run, task_id, below, at_ns)
        _end_calls(run, below, at_ns)
        self._end_superstep(run, "stopped", at_ns)
        attributes = run.of_run()
        instruments, context = self._instruments, run.context
        instruments.runs_active.add(-1, attributes)
        ended = {**attributes, semconv.RUN_STATUS: status, **outcome}
        instruments.workflow_duration.record((at_ns - run.started_ns) / 1e9, ended, context)
        if run.inference_calls or run.tool_calls:
            # Of graphs that call neither, the two would say nothing but zero.
            instruments.inference_calls.record(run.inference_calls, attributes, context)
            instruments.tool_calls.record(run.tool_calls, attributes, context)
            around = self._runs.get(run.parent_id) if run.parent_id is not None else None
            if around is not None:
                around.inference_calls += run.inference_calls
                around.tool_calls += run.tool_calls

    # -- supersteps and checkpoints

    def _superstep_started(self, event: events.SuperstepStarted) -> None:
        if (run := self._runs.get(event.run_id)) is not None:
            self._end_superstep(run, "stopped", event.at_ns)
            if event.has_span:  # of the others, the lone task's duration says it all
                run.step_ns = event.at_ns

    def _superstep_ended(self, event: events.SuperstepEnded) -> None:
        if (run := self._runs.get(event.run_id)) is not None:
            self._end_superstep(run, event.status, event.at_ns)

    def _end_superstep(self, run: RunMeasure, status: str, at_ns: int) -> None:
        started_ns, run.step_ns = run.step_ns, None
        if started_ns is not None:
            self._instruments.superstep_duration.record((at_ns - started_ns) / 1e9, run.of_superstep(status), run.context)

    def _checkpoint_started(self, event: events.CheckpointStarted) -> None:
        # As with spans: a save that goes to a dict in memory is not worth its measurement.
        if event.does_io and (run := self._runs.get(event.run_id)) is not None:
            run.puts[event.checkpoint_id] = event.at_ns

    def _checkpoint_saved(self, event: events.CheckpointSaved) -> None:
        run = self._runs.get(event.run_id)
        if run is not None and event.written_bytes is not None:
            self._instruments.checkpoint_size.record(event.written_bytes, run.attributes, run.context)
        started_ns = run.puts.pop(event.checkpoint_id, None) if run is not None else None
        if run is None or started_ns is None:
            return
        attributes = run.attributes
        if is_failure(event.error):
            attributes = {**attributes, semconv.ERROR_TYPE: error_type(event.error)}
        self._instruments.checkpoint_duration.record((event.at_ns - started_ns) / 1e9, attributes, run.context)

    # -- tasks

    def _task_started(self, event: events.TaskStarted) -> None:
        run = self._runs.get(event.run_id)
        if run is None or event.is_hidden:
            return
        if event.task_id in run.tasks:  # an abandoned body started the same nested task before
            self._end_task(run, event.task_id, "abandoned", event.at_ns)
        context = self._context_of(event.run_id, event.task_id)
        run.tasks[event.task_id] = TaskMeasure(event.name, event.at_ns, context)

    def _task_ended(self, event: events.TaskEnded) -> None:
        if (run := self._runs.get(event.run_id)) is None:
            return
        if event.status == "interrupted":
            self._count_questions(run, event)
        if event.task_id not in run.tasks:
            if event.status == "cached" and not event.is_hidden:
                self._instruments.step_duration.record(0.0, run.of_node(event.name, event.status), run.context)
            return
        error = event.error if event.status == "failed" else None
        self._end_task(run, event.task_id, event.status, event.at_ns, error)

    def _end_task(self, run: RunMeasure, task_id: str, status: str, at_ns: int, error: BaseException | None = None) -> None:
        task = run.tasks.pop(task_id)
        self._end_below(task, "cancelled" if status == "cancelled" else "abandoned", at_ns)
        attributes = run.of_node(task.node, status)
        if is_failure(error):
            attributes = {**attributes, semconv.ERROR_TYPE: error_type(error)}
        self._instruments.step_duration.record((at_ns - task.started_ns) / 1e9, attributes, task.context)

    def _end_below(self, task: TaskMeasure, status: str, at_ns: int) -> None:
        children, task.children = task.children, None
        for child_id in children or ():
            self._end_run(child_id, status, at_ns, {})
        _end_calls(task, status, at_ns)

    def _attempt_started(self, event: events.AttemptStarted) -> None:
        if (task := self._task_of(event)) is not None:
            _end_calls(task, "abandoned", event.at_ns)

    def _attempt_ended(self, event: events.AttemptEnded) -> None:
        task = self._task_of(event)
        if task is None:
            return
        self._end_below(task, "abandoned", event.at_ns)
        if event.will_retry:
            attributes = self._runs[event.run_id].of_node(event.name)
            if is_failure(event.error):
                attributes = {**attributes, semconv.ERROR_TYPE: error_type(event.error)}
            self._instruments.task_retries.add(1, attributes, task.context)

    def _task_of(self, event: events.AttemptStarted | events.AttemptEnded) -> TaskMeasure | None:
        run = self._runs.get(event.run_id)
        return run.tasks.get(event.task_id) if run is not None else None

    def _cache_looked(self, event: events.CacheLooked) -> None:
        if (run := self._runs.get(event.run_id)) is not None:
            attributes = {**run.of_node(event.name), semconv.CACHE_HIT: event.is_hit}
            self._instruments.cache_lookups.add(1, attributes, self._context_of(event.run_id, event.task_id))

    # -- pauses

    def _count_questions(self, run: RunMeasure, event: events.TaskEnded) -> None:
        new = {question.id for question in event.interrupts} - self._asked
        if new:
            self._asked |= new
            task = run.tasks.get(event.task_id)
            attributes = {**run.of_node(event.name), semconv.INTERRUPT_REASON: "human_input"}
            self._instruments.interrupts.add(len(new), attributes, run.context if task is None else task.context)

    def _interrupted(self, event: events.Interrupted) -> None:
        run = self._runs.get(event.run_id)
        if run is not None and event.status != "pending":  # those have been counted at the nodes that ask
            attributes = {**run.attributes, semconv.INTERRUPT_REASON: event.status}
            self._instruments.interrupts.add(1, attributes, run.context)

    def _resumed(self, event: events.Resumed) -> None:
        run = self._runs.get(event.run_id)
        for wait in event.waits if run is not None else ():
            if wait.seconds is not None and wait.node is not None and wait.interrupt_id not in self._answered:
                self._answered.add(wait.interrupt_id)
                self._instruments.interrupt_wait.record(wait.seconds, of_wait(wait), self._context_of(event.run_id))

    # -- calls of models, tools, retrievers, stores

    def _call_started(self, event: CallStarted) -> None:
        if (run := self._runs.get(event.run_id)) is None:
            return
        if isinstance(event, events.ModelStarted):
            run.inference_calls += 1
            if not self._options.measures_models:
                return  # whoever makes their spans measures them too: twice would be twice the tokens
        elif isinstance(event, events.ToolStarted):
            run.tool_calls += 1
        task = run.tasks.get(event.task_id)
        owner = task or run
        calls = owner.calls = owner.calls or {}
        around = run.attributes if task is None else run.of_node(task.node)
        context = self._context_of(event.run_id, event.task_id, event.call_id)
        calls[event.call_id] = CallMeasure.open(event, around, context, self._instruments, self._options)

    def _call_ended(self, event: CallEnded) -> None:
        calls = self._calls(event.run_id, event.task_id)
        if calls and (call := calls.pop(event.call_id, None)) is not None:
            call.close(event.at_ns, outcome_of(event.error), event.response if isinstance(event, events.ModelEnded) else None)

    def _model_token(self, event: events.ModelToken) -> None:
        calls = self._calls(event.run_id, event.task_id)
        if calls and (call := calls.get(event.call_id)) is not None:
            call.chunk(event)

    def _calls(self, run_id: UUID, task_id: str) -> Calls | None:
        if (run := self._runs.get(run_id)) is None:
            return None
        return (run.tasks.get(task_id) or run).calls

    handlers: ClassVar[dict[type[Event], Callable[[MetricsObserver, Any], None]]] = {
        events.RunStarted: _run_started,
        events.RunEnded: _run_ended,
        events.SuperstepStarted: _superstep_started,
        events.SuperstepEnded: _superstep_ended,
        events.TaskStarted: _task_started,
        events.TaskEnded: _task_ended,
        events.AttemptStarted: _attempt_started,
        events.AttemptEnded: _attempt_ended,
        events.CacheLooked: _cache_looked,
        events.CheckpointStarted: _checkpoint_started,
        events.CheckpointSaved: _checkpoint_saved,
        events.Interrupted: _interrupted,
        events.Resumed: _resumed,
        events.ModelStarted: _call_started,
        events.ModelToken: _model_token,
        events.ModelEnded: _call_ended,
        events.ToolStarted: _call_started,
        events.ToolEnded: _call_ended,
        events.RetrievalStarted: _call_started,
        events.RetrievalEnded: _call_ended,
        events.MemoryStarted: _call_started,
        events.MemoryEnded: _call_ended,
    }
    """What is done with each kind of event; a test holds it against the union."""

    wants: ClassVar[int] = kinds(*handlers)


def _end_calls(owner: TaskMeasure | RunMeasure, status: str, at_ns: int) -> None:
    """Record the calls of *owner* that are open, and whose end nobody will announce."""
    calls, owner.calls = owner.calls, None
    for call in (calls or {}).values():
        call.close(at_ns, {semconv.CALL_STATUS: status})
