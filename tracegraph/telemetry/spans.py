"""Lifecycle events become spans, through the OpenTelemetry API only.

::

    invoke_workflow {graph}            the run; a nested run's span lies below the span its caller was in
      superstep                        only where the engine says so (several tasks, or an awaited save)
        run_step {node}                a task; hidden ones have none
          attempt                      only for tasks with a retry policy
            chat {model} | execute_tool {tool} | retrieval | invoke_workflow {subgraph} | the user's own spans
        checkpoint put                 only if the saver does I/O; below the run if nobody waits for it

Every span is started from one record (:mod:`tracegraph.telemetry.open_spans`) that owns its single end:
its own ``...Ended`` event, or the end of whatever encloses it, on every way out of a run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from time import time_ns
from typing import TYPE_CHECKING, Any, ClassVar
from uuid import UUID

from opentelemetry.context import Context, attach, get_current
from opentelemetry.trace import Link, Tracer, get_current_span, set_span_in_context

from tracegraph import events
from tracegraph.events import AttemptStarted, Event, TaskStarted, kinds
from tracegraph.telemetry import semconv
from tracegraph.telemetry.calls import Call, CallEnded, CallStarted
from tracegraph.telemetry.failure import is_failure, mark_failed, reason_text
from tracegraph.telemetry.instrumentors import warn_if_doubled
from tracegraph.telemetry.marks import (
    mark_drained,
    mark_interrupted,
    mark_join_starved,
    mark_resumed,
    mark_retry,
    mark_task,
    mark_turn_taken,
)
from tracegraph.telemetry.open_spans import Attributes, End, RunRecord, TaskRecord, end_all, start_run_span
from tracegraph.telemetry.openinference import GraphNodes
from tracegraph.telemetry.options import TelemetryOptions, current_options
from tracegraph.telemetry.run_usage import RunUsage
from tracegraph.telemetry.superstep_spans import SuperstepSpans
from tracegraph.telemetry.trace_parts import TraceParts

if TYPE_CHECKING:
    from tracegraph.telemetry.content.recorder import ContentRecorder

__all__ = ["SpanObserver"]


class SpanObserver(SuperstepSpans):
    """Observes one root run and the runs nested in it.

    ``observe`` is called under the Hub's lock, by whichever thread publishes; ``scope`` and ``traceparent``
    only read, so they need no lock. Exceptions of the application's span processors pass through to the
    Hub, which counts them; no span stays open for it.
    """

    ignored: ClassVar[frozenset[type[Event]]] = frozenset(
        {
            events.StateUpdated,  # values are content
            events.BranchStarted,  # routing costs no time of its own; where it led shows in the next step
            events.BranchEnded,
            events.CheckpointReached,  # as the ones above: values, and what the next step will show
            events.CustomEmitted,  # content, in any volume
            events.MessagePushed,
            events.UnknownKeyIgnored,  # a matter for logs, as the next one
            events.ReportIgnored,
        }
    )

    def __init__(
        self,
        tracer: Tracer,
        started: events.RunStarted,
        root: RunRecord,
        options: TelemetryOptions,
        content: ContentRecorder | None = None,
    ) -> None:
        self._content = content
        self._options = options
        parts = TraceParts(tracer, root.span, started, options.span_budget)
        super().__init__(root, started.run_id, tracer, parts)
        self._root_id = started.run_id
        self._failed_observers: tuple[str, ...] = ()
        self.usage = RunUsage()
        """What calls of models and tools come to, in the whole tree."""

    @classmethod
    def open(
        cls, started: events.RunStarted, tracer: Tracer, content: ContentRecorder | None = None
    ) -> tuple[SpanObserver | None, Context]:
        """Start the root span below the ambient one; no observer if it does not record. *content* gets the spans to fill."""
        options, ambient = current_options(), get_current()
        span = start_run_span(started, tracer, ambient, options)
        context = set_span_in_context(span, ambient)
        if not span.is_recording():
            return None, context
        nodes = GraphNodes() if options.profile == "openinference" else None
        if content is not None:
            content.run_started(started, span)
        return cls(tracer, started, RunRecord(span, context, started, nodes), options, content), context

    def observe(self, event: Event) -> None:
        """Start, mark or end the spans that *event* is about."""
        handler = self.handlers.get(type(event))
        if handler is not None:
            handler(self, event)

    def scope(self, event: TaskStarted | AttemptStarted) -> None:
        """Make the task's (or attempt's) span current in the running Context, which is the task's own."""
        run = self._runs.get(event.run_id)
        task = run.tasks.get(event.task_id) if run is not None else None
        if run is not None and task is not None:
            attach(task.context(run))

    def close(self, at_ns: int | None = None, *, status: str = "abandoned") -> None:
        """End whatever is still open. Harmless after RunEnded, so a driver may call it on every way out."""
        if self._runs:
            if self._content is not None:
                self._content.close(at_ns or time_ns())
            end_all(self._ends(self._root_id, status), at_ns)

    # -- runs

    def _run_started(self, event: events.RunStarted) -> None:
        if event.run_id in self._runs or not self._runs or event.parent_run_id is None:
            return  # the root's span was started before its context was made; nothing starts after its end
        parent = self._runs.get(event.parent_run_id)
        task = parent.tasks.get(event.parent_task_id) if parent is not None and event.parent_task_id else None
        around = parent.graph_nodes if parent is not None else None
        nodes = None if self._root.graph_nodes is None else GraphNodes.of(event, around)
        context = self._context_below(parent, task)
        self._parts.add()
        span = start_run_span(event, self._tracer, context, self._options)
        run = self._runs[event.run_id] = RunRecord(
            span, set_span_in_context(span, context), event, nodes, (task or parent or self._root).part
        )
        if task is not None:
            task.children = [*(task.children or ()), event.run_id]
        if self._content is not None:
            self._content.run_started(event, run.span)

    def _run_ended(self, event: events.RunEnded) -> None:
        run = self._runs.get(event.run_id)
        if run is None:
            return
        try:
            if event.reason is not None:
                run.span.set_attribute(semconv.RUN_REASON, reason_text(event.reason))
            if event.dropped:
                run.span.set_attribute(semconv.STREAM_DROPPED, event.dropped)
            if run is self._root and (totals := self.usage.attributes()):
                run.span.set_attributes(totals)
            if self.collapsed and run is self._root:
                run.span.set_attribute(semconv.SUPERSTEPS_COLLAPSED, self.collapsed)
            if event.status in {"failed", "step_limit"} and is_failure(event.error):
                mark_failed(run.span, event.error, event.at_ns)
            if self._content is not None:
                self._content.run_ended(event, run.span)
        finally:
            end_all(self._ends(event.run_id, event.status), event.at_ns)

    def _ends(self, run_id: UUID, status: str) -> Iterator[End]:
        """Yield what is still open of a run, its own span last; forget it. The root run takes all others along."""
        run = self._runs.pop(run_id, None)
        if run is None:
            return
        below = "cancelled" if status == "cancelled" else "abandoned"
        if run_id == self._root_id:
            for child_id in reversed(tuple(self._runs)):
                yield from self._ends(child_id, below)
        for task in run.tasks.values():
            yield from self._ends_of_children(task, below)
        yield from run.ends_below(below)
        if run is self._root:
            yield from self._parts.ends(status)
        yield run.span, semconv.RUN_STATUS, status

    def _ends_of_children(self, task: TaskRecord, status: str) -> Iterator[End]:
        children, task.children = task.children, None
        for child_id in children or ():
            yield from self._ends(child_id, status)

    def _context_below(self, run: RunRecord | None, task: TaskRecord | None) -> Context:
        """Return the parent context of what node code starts: the span it is in, else its task's.

        A span of this trace may be current and yet not below the task: the run's own, where no scope was set.
        """
        ambient = get_current_span()
        run = run or self._root
        if ambient is not run.span and ambient.get_span_context().trace_id in self._parts.trace_ids:
            return get_current()
        return run.context if task is None else task.context(run)

    def _marked(
        self, event: events.Interrupted | events.Resumed | events.Drained | events.JoinStarved | events.TurnTaken
    ) -> None:
        if (run := self._runs.get(event.run_id)) is None:
            return
        match event:
            case events.Interrupted():
                mark_interrupted(run.span, event)
            case events.Resumed():
                mark_resumed(run.span, event)
            case events.Drained():
                mark_drained(run.span, event)
            case events.JoinStarved():
                mark_join_starved(run.span, event)
            case events.TurnTaken():
                mark_turn_taken(run.span, event)

    def _observer_failed(self, event: events.ObserverFailed) -> None:
        if self._runs:
            self._failed_observers += (event.observer,)
            self._root.span.set_attribute(semconv.OBSERVERS_FAILED, self._failed_observers)

    # -- tasks and attempts

    def _task_started(self, event: TaskStarted) -> None:
        run = self._runs.get(event.run_id)
        if run is None or event.is_hidden:
            return
        if event.task_id in run.tasks:  # an abandoned body started the same nested task before
            end_all(self._ends_of_task(run, event.task_id, "abandoned"), event.at_ns)
        caller = run.tasks.get(event.caller_id) if event.caller_id is not None else None
        context = self._room_for_task(run, caller, event.at_ns)
        names = run.names_of(event.name)
        attributes = names.of(event)
        if run.graph_nodes is not None:
            attributes |= run.graph_nodes.started(event)
        links: tuple[Link, ...] = ()
        if event.producer_id is not None:
            attributes[semconv.TASK_PRODUCER] = event.producer_id
            if (producer := run.context_of(event.producer_id)) is not None:
                links = (Link(producer, {semconv.LINK_KIND: "producer"}),)
        if run.lookups and (hit := run.lookups.pop(event.task_id, None)) is not None:
            attributes[semconv.CACHE_HIT] = hit
        span = self._tracer.start_span(names.span_name, context, attributes=attributes, links=links, start_time=event.at_ns)
        run.tasks[event.task_id] = TaskRecord(span, self._parts.number)
        if self._content is not None:
            self._content.task_started(event, span)

    def _room_for_task(self, run: RunRecord, caller: TaskRecord | None, at_ns: int) -> Context:
        """Return the parent context of a task that starts, in a new part of the trace if this one is full."""
        parts = self._parts
        parts.turn(at_ns)
        parts.add()
        if run.part != parts.number:
            run.move_to(parts.number, parts.context(run.context))
        return run.step_context if caller is None or caller.part != parts.number else caller.context(run)

    def _task_ended(self, event: events.TaskEnded) -> None:
        run = self._runs.get(event.run_id)
        task = run.tasks.get(event.task_id) if run is not None else None
        if run is None:
            return
        run.last_task_end_ns = event.at_ns
        if run.graph_nodes is not None:
            run.graph_nodes.ended(event)
        if task is None:
            if event.status == "cached" and not event.is_hidden:
                self._mark_cached(run, event)
            return
        try:
            if event.status != "completed":
                mark_task(task.span, event)
            if task.attempt is not None:
                task.span.set_attribute(semconv.TASK_ATTEMPTS, event.attempts)
            if self._content is not None:
                self._content.task_ended(event, task.span)
        finally:
            end_all(self._ends_of_task(run, event.task_id, event.status), event.at_ns)

    def _mark_cached(self, run: RunRecord, event: events.TaskEnded) -> None:
        """Leave a span of no length for a task whose result came from the cache before it could start."""
        run.lookups.pop(event.task_id, None)
        names = run.names_of(event.name)
        attributes = names.of_cached(event)
        caller = run.tasks.get(event.caller_id) if event.caller_id is not None else None
        context = self._room_for_task(run, caller, event.at_ns)
        span = self._tracer.start_span(names.span_name, context, attributes=attributes, start_time=event.at_ns)
        try:
            if self._content is not None:
                self._content.task_ended(event, span)
        finally:
            span.end(event.at_ns)

    def _ends_of_task(self, run: RunRecord, task_id: str, status: str) -> Iterator[End]:
        """Yield what is still open of a task, its own span last; forget it."""
        task = run.tasks.pop(task_id)
        run.ended[task_id] = task.span.get_span_context()
        below = "cancelled" if status == "cancelled" else "abandoned"
        if task.children is not None:
            yield from self._ends_of_children(task, below)
        if task.calls or task.attempt is not None:
            yield from task.ends_below(below)
        yield task.span, semconv.TASK_STATUS, status

    def _attempt_started(self, event: AttemptStarted) -> None:
        run = self._runs.get(event.run_id)
        task = run.tasks.get(event.task_id) if run is not None else None
        if run is None or task is None:
            return
        end_all(task.ends_below("abandoned"), event.at_ns)
        self._parts.add()
        attributes: Attributes = {semconv.ATTEMPT_NUMBER: event.attempt, **run.base}
        task.attempt = self._tracer.start_span(
            semconv.ATTEMPT_SPAN, task.context(run), attributes=attributes, start_time=event.at_ns
        )

    def _attempt_ended(self, event: events.AttemptEnded) -> None:
        run = self._runs.get(event.run_id)
        task = run.tasks.get(event.task_id) if run is not None else None
        if run is None or task is None or task.attempt is None:
            return
        attempt, task.attempt = task.attempt, None
        try:
            # A timed-out body may still be running what it started; nobody will announce those ends.
            end_all((*self._ends_of_children(task, "abandoned"), *task.ends_below("abandoned")), event.at_ns)
            if is_failure(event.error):
                # The last failure's exception stands on the task's span; one that is retried, only here.
                mark_failed(attempt, event.error, event.at_ns, is_recorded=event.will_retry)
                if event.will_retry:
                    mark_retry(task.span, event, event.error)
            task.span.set_attribute(semconv.TASK_ATTEMPTS, event.attempt)
        finally:
            attempt.end(event.at_ns)

    def _cache_looked(self, event: events.CacheLooked) -> None:
        if (run := self._runs.get(event.run_id)) is None:
            return
        task = run.tasks.get(event.task_id)
        if task is None:
            run.lookups[event.task_id] = event.is_hit
        else:
            task.span.set_attribute(semconv.CACHE_HIT, event.is_hit)

    def _error_handled(self, event: events.ErrorHandled) -> None:
        run = self._runs.get(event.run_id)
        task = run.tasks.get(event.task_id) if run is not None else None
        if task is not None:
            task.span.set_attribute(semconv.TASK_ERROR_HANDLER, event.handler)

    # -- calls of models, tools, retrievers, stores

    def _call_started(self, event: CallStarted) -> None:
        if (run := self._runs.get(event.run_id)) is None:
            return
        self.usage.started(event)
        if isinstance(event, events.ModelStarted):
            if self._options.model_spans == "never":
                return
            warn_if_doubled()
        task = run.tasks.get(event.task_id)
        owner = task or run
        calls = owner.calls = owner.calls or {}
        caller = calls.get(event.parent_call_id) if event.parent_call_id is not None else None
        context = self._context_below(run, task) if caller is None else caller.context(run.context)
        self._parts.add()
        call = calls[event.call_id] = Call.open(event, self._tracer, context, run.thread_id, self._options)
        if self._content is not None:
            self._content.call_started(event, call.span)

    def _call_ended(self, event: CallEnded) -> None:
        self.usage.ended(event)
        calls = self._calls(event.run_id, event.task_id)
        if calls and (call := calls.pop(event.call_id, None)) is not None:
            try:
                if self._content is not None:
                    self._content.call_ended(event)
            finally:
                call.close(event)

    def _model_token(self, event: events.ModelToken) -> None:
        calls = self._calls(event.run_id, event.task_id)
        if calls and (call := calls.get(event.call_id)) is not None:
            call.chunk(event)

    handlers: ClassVar[dict[type[Event], Callable[[SpanObserver, Any], None]]] = {
        events.RunStarted: _run_started,
        events.RunEnded: _run_ended,
        events.SuperstepStarted: SuperstepSpans.superstep_started,
        events.SuperstepEnded: SuperstepSpans.superstep_ended,
        events.TaskStarted: _task_started,
        events.TaskEnded: _task_ended,
        events.AttemptStarted: _attempt_started,
        events.AttemptEnded: _attempt_ended,
        events.CacheLooked: _cache_looked,
        events.CheckpointStarted: SuperstepSpans.checkpoint_started,
        events.CheckpointSaved: SuperstepSpans.checkpoint_saved,
        events.Interrupted: _marked,
        events.Resumed: _marked,
        events.ErrorHandled: _error_handled,
        events.Drained: _marked,
        events.JoinStarved: _marked,
        events.TurnTaken: _marked,
        events.ObserverFailed: _observer_failed,
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
