"""Lifecycle events become OpenTelemetry log records with an EventName, through the API only.

A record belongs to the span of what it is about, carries that span's attributes and never a value, message
or question. It has the event's own time. Where nothing is traced it belongs to whatever span was current
where the root run began.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar
from uuid import UUID

from opentelemetry._logs import Logger, LogRecord, SeverityNumber
from opentelemetry.context import Context, get_current

from tracegraph import events
from tracegraph.events import Event, kinds
from tracegraph.telemetry import points, semconv
from tracegraph.telemetry.calls import CallEnded, CallStarted, request_of
from tracegraph.telemetry.failure import error_type, exception_attributes, is_failure, reason_text
from tracegraph.telemetry.losses import lost_so_far
from tracegraph.telemetry.mirroring import has_state_records
from tracegraph.telemetry.open_spans import Attributes
from tracegraph.telemetry.run_usage import RunUsage

if TYPE_CHECKING:
    from tracegraph.telemetry.spans import SpanObserver

__all__ = ["LogsObserver"]

_DEBUG, _INFO = SeverityNumber.DEBUG, SeverityNumber.INFO
_WARN, _ERROR = SeverityNumber.WARN, SeverityNumber.ERROR


class _OpenRun:
    """A run whose end has not been told: the context of its span, and the attributes of all its records."""

    __slots__ = ("base", "context", "name")

    def __init__(self, event: events.RunStarted, context: Context) -> None:
        self.context = context
        self.name = event.workflow_name or "run"
        self.base: Attributes = {semconv.RUN_ID: str(event.run_id), semconv.CHECKPOINT_NS: event.ns}
        if event.workflow_name is not None:
            self.base[semconv.WORKFLOW_NAME] = event.workflow_name
        if event.thread_id is not None:
            self.base[semconv.CONVERSATION_ID] = event.thread_id


class LogsObserver:
    """Observes one root run and the runs nested in it; stands behind the observer that makes their spans, if there is one.

    It keeps a context for each open run, save and call, since at their end their spans are over already.
    """

    def __init__(self, logger: Logger, context: Context | None, spans: SpanObserver | None) -> None:
        self._emit = logger.emit
        self._spans = spans
        self._usage = RunUsage() if spans is None else spans.usage
        # Asked here, in the caller's context: events are published from wherever a node runs.
        self._root = context if context is not None else get_current()
        self._root_id: UUID | None = None
        self._runs: dict[UUID, _OpenRun] = {}
        self._saves: dict[str, Context] = {}
        self._calls: dict[UUID, tuple[CallStarted, Context]] = {}
        self._failed_observers: tuple[str, ...] = ()
        self._lost_before = lost_so_far()
        self.wants = _WANTS | (events.StateUpdated.bit if has_state_records() else 0)

    def observe(self, event: Event) -> None:
        """Make the record of *event*, if it has one."""
        handler = self.handlers.get(type(event))
        if handler is not None:
            handler(self, event)

    def _record(
        self,
        name: str,
        severity: SeverityNumber,
        event: Event,
        body: str,
        attributes: Attributes,
        *,
        context: Context | None = None,
    ) -> None:
        run = self._runs.get(event.run_id)
        self._emit(
            LogRecord(
                timestamp=event.at_ns,
                context=context or (self._root if run is None else run.context),
                severity_number=severity,
                severity_text=severity.name,
                body=body,
                attributes=attributes if run is None else {**run.base, **attributes},
                event_name=name,
            )
        )

    def _context_of(self, run_id: UUID, task_id: str | None = None, call_id: UUID | None = None) -> Context:
        found = None if self._spans is None else self._spans.context_of(run_id, task_id, call_id)
        return self._root if found is None else found

    # -- runs

    def _run_started(self, event: events.RunStarted) -> None:
        self._root_id = self._root_id or event.run_id
        run = self._runs[event.run_id] = _OpenRun(event, self._context_of(event.run_id))
        attributes: Attributes = {semconv.IS_RESUME: event.is_resume}
        if event.durability is not None:
            attributes[semconv.DURABILITY] = event.durability
        if event.tags:
            attributes[semconv.RUN_TAGS] = tuple(event.tags)
        if event.is_resume and event.checkpoint_id is not None:
            attributes[semconv.RESUMED_FROM_CHECKPOINT] = event.checkpoint_id
        self._record(semconv.RUN_STARTED_EVENT, _INFO, event, f"{run.name} started", attributes)

    def _run_ended(self, event: events.RunEnded) -> None:
        run = self._runs.get(event.run_id)
        attributes: Attributes = {semconv.RUN_STATUS: event.status}
        if event.reason is not None:
            attributes[semconv.RUN_REASON] = reason_text(event.reason)
        has_failed = event.status in {"failed", "step_limit"} and is_failure(event.error)
        if has_failed and event.error is not None:
            attributes |= _failure(event.error)
        if event.run_id == self._root_id:
            attributes |= self._gaps() | self._usage.attributes()
        body = f"{'run' if run is None else run.name} ended: {event.status}"
        try:
            self._record(semconv.RUN_ENDED_EVENT, _ERROR if has_failed else _INFO, event, body, attributes)
        finally:
            self._runs.pop(event.run_id, None)

    def _gaps(self) -> Attributes:
        """Return what is missing from the root run's telemetry; nothing, mostly."""
        gaps: Attributes = {}
        if self._failed_observers:
            gaps[semconv.OBSERVERS_FAILED] = self._failed_observers
        if self._spans is not None and self._spans.collapsed:
            gaps[semconv.SUPERSTEPS_COLLAPSED] = self._spans.collapsed
        if (lost := lost_so_far() - self._lost_before) > 0:
            gaps[semconv.TELEMETRY_LOST] = lost
        return gaps

    def _interrupted(self, event: events.Interrupted) -> None:
        attributes = points.of_interrupted(event)
        self._record(semconv.RUN_INTERRUPTED_EVENT, _INFO, event, f"run pauses: {event.status}", attributes)

    def _resumed(self, event: events.Resumed) -> None:
        self._record(semconv.RUN_RESUMED_EVENT, _INFO, event, "run goes on", points.of_resumed(event))

    def _drained(self, event: events.Drained) -> None:
        attributes = {**points.of_drained(event), semconv.RUN_REASON: reason_text(event.reason), semconv.SUPERSTEP: event.step}
        self._record(semconv.RUN_DRAINED_EVENT, _INFO, event, "run stops between two supersteps", attributes)

    def _join_starved(self, event: events.JoinStarved) -> None:
        body = f"{event.target} never ran: its join still waits for {', '.join(event.waiting_for)}"
        self._record(semconv.JOIN_STARVED_EVENT, _WARN, event, body, points.of_join_starved(event))

    def _turn_taken(self, event: events.TurnTaken) -> None:
        self._record(semconv.TURN_TAKEN_EVENT, _INFO, event, "run has its turn on the thread", points.of_turn_taken(event))

    def _observer_failed(self, event: events.ObserverFailed) -> None:
        self._failed_observers += (event.observer,)
        attributes: Attributes = {semconv.OBSERVER_NAME: event.observer, semconv.OBSERVED_EVENT: event.event}
        attributes |= _failure(event.error)
        self._record(semconv.OBSERVER_FAILED_EVENT, _WARN, event, f"observer {event.observer} failed", attributes)

    def _key_ignored(self, event: events.UnknownKeyIgnored) -> None:
        # Cut, since a key that is no channel may be anything.
        key = str(event.key)[:200]
        attributes: Attributes = {semconv.STEP_NAME: event.node, semconv.SUPERSTEP: event.step, semconv.IGNORED_KEY: key}
        self._record(semconv.KEY_IGNORED_EVENT, _WARN, event, f"{event.node} wrote a key that is no channel", attributes)

    def _state_updated(self, event: events.StateUpdated) -> None:
        if not event.updated:
            return
        attributes: Attributes = {
            semconv.SUPERSTEP: event.step,
            semconv.STATE_SOURCE: event.source,
            semconv.STATE_CHANGED_COUNT: len(event.updated),
            semconv.STATE_CHANGED_KEYS: tuple(sorted(event.updated)),
        }
        self._record(semconv.STATE_UPDATED_EVENT, _DEBUG, event, "state updated", attributes)

    # -- checkpoints

    def _checkpoint_started(self, event: events.CheckpointStarted) -> None:
        if self._spans is not None:
            context = self._spans.context_of_save(event.run_id, event.checkpoint_id)
            if context is not None:
                self._saves[event.checkpoint_id] = context

    def _checkpoint_saved(self, event: events.CheckpointSaved) -> None:
        context = self._saves.pop(event.checkpoint_id, None)
        attributes: Attributes = {
            semconv.CHECKPOINT_ID: event.checkpoint_id,
            semconv.CHECKPOINT_SOURCE: event.source,
            semconv.CHECKPOINT_CHANGED: len(event.changed),
            semconv.SUPERSTEP: event.step,
        }
        if event.parent_id is not None:
            attributes[semconv.CHECKPOINT_PARENT_ID] = event.parent_id
        if event.written_bytes is not None:
            attributes[semconv.CHECKPOINT_BYTES] = event.written_bytes
        if event.error is None:
            self._record(semconv.CHECKPOINT_SAVED_EVENT, _DEBUG, event, "checkpoint saved", attributes, context=context)
            return
        is_error = is_failure(event.error)
        attributes |= _failure(event.error) if is_error else {}
        severity = _ERROR if is_error else _INFO
        self._record(semconv.CHECKPOINT_FAILED_EVENT, severity, event, "checkpoint not saved", attributes, context=context)

    # -- tasks

    def _task_ended(self, event: events.TaskEnded) -> None:
        if event.status in ("completed", "cached", "interrupted", "handed_over"):
            return
        has_failed = event.status == "failed" and is_failure(event.error)
        attributes = _task(event)
        attributes[semconv.TASK_STATUS] = event.status
        if event.reason is not None:
            attributes[semconv.TASK_REASON] = event.reason
        if has_failed and event.error is not None:
            attributes |= _failure(event.error)
        self._record(
            semconv.TASK_FAILED_EVENT if has_failed else semconv.TASK_CANCELLED_EVENT,
            _ERROR if has_failed else _INFO,
            event,
            f"task {event.name} {event.status}",
            attributes,
            context=self._context_of(event.run_id, event.task_id),
        )

    def _attempt_ended(self, event: events.AttemptEnded) -> None:
        if not event.will_retry or event.error is None:
            return
        attributes = {**_task(event), **points.of_retry(event, event.error), **exception_attributes(event.error)}
        body = f"task {event.name} failed and is tried again in {event.delay_s:.3g} s"
        context = self._context_of(event.run_id, event.task_id)
        self._record(semconv.TASK_RETRY_EVENT, _WARN, event, body, attributes, context=context)

    def _error_handled(self, event: events.ErrorHandled) -> None:
        attributes = _task(event)
        attributes[semconv.TASK_ERROR_HANDLER] = event.handler
        attributes[semconv.ERROR_TYPE] = error_type(event.error)
        context = self._context_of(event.run_id, event.task_id)
        body = f"{event.handler} takes over from task {event.name}"
        self._record(semconv.ERROR_HANDLED_EVENT, _INFO, event, body, attributes, context=context)

    def _report_ignored(self, event: events.ReportIgnored) -> None:
        attributes = _task(event)
        attributes[semconv.ATTEMPT_NUMBER] = event.attempt
        attributes[semconv.IGNORED_REPORT] = event.report
        context = self._context_of(event.run_id, event.task_id)
        body = f"a report of task {event.name} came too late to count"
        self._record(semconv.REPORT_IGNORED_EVENT, _DEBUG, event, body, attributes, context=context)

    # -- calls of models, tools, retrievers, stores

    def _call_started(self, event: CallStarted) -> None:
        if self._spans is None:  # else that has counted it
            self._usage.started(event)
        self._calls[event.call_id] = event, self._context_of(event.run_id, event.task_id, event.call_id)

    def _call_ended(self, event: CallEnded) -> None:
        # The place for gen_ai.client.inference.operation.details, which carries content: both ends are at hand here.
        if self._spans is None:
            self._usage.ended(event)
        started, context = self._calls.pop(event.call_id, (None, None))
        if not is_failure(event.error):
            return
        attributes = {semconv.SUPERSTEP: event.step, **_failure(event.error)}
        if started is not None:
            attributes = {**request_of(started)[2], **attributes}
        body = f"{event.name} failed"
        self._record(semconv.OPERATION_EXCEPTION_EVENT, _WARN, event, body, attributes, context=context)

    handlers: ClassVar[dict[type[Event], Callable[[LogsObserver, Any], None]]] = {
        events.RunStarted: _run_started,
        events.RunEnded: _run_ended,
        events.TaskEnded: _task_ended,
        events.AttemptEnded: _attempt_ended,
        events.StateUpdated: _state_updated,
        events.CheckpointStarted: _checkpoint_started,
        events.CheckpointSaved: _checkpoint_saved,
        events.Interrupted: _interrupted,
        events.Resumed: _resumed,
        events.ErrorHandled: _error_handled,
        events.Drained: _drained,
        events.TurnTaken: _turn_taken,
        events.JoinStarved: _join_starved,
        events.UnknownKeyIgnored: _key_ignored,
        events.ReportIgnored: _report_ignored,
        events.ObserverFailed: _observer_failed,
        events.ModelStarted: _call_started,
        events.ModelEnded: _call_ended,
        events.ToolStarted: _call_started,
        events.ToolEnded: _call_ended,
        events.RetrievalStarted: _call_started,
        events.RetrievalEnded: _call_ended,
        events.MemoryStarted: _call_started,
        events.MemoryEnded: _call_ended,
    }
    """What is done with each kind of event; a test holds it against the union."""

    ignored: ClassVar[frozenset[type[Event]]] = frozenset(
        {
            events.SuperstepStarted,  # a span's matter: they have a duration, and their number is on every record
            events.SuperstepEnded,
            events.TaskStarted,
            events.AttemptStarted,
            events.BranchStarted,
            events.BranchEnded,
            events.CacheLooked,
            events.CheckpointReached,
            events.CustomEmitted,  # content, in any volume
            events.MessagePushed,
            events.ModelToken,
        }
    )


_WANTS = kinds(*LogsObserver.handlers) & ~events.StateUpdated.bit


def _task(event: events.TaskEnded | events.AttemptEnded | events.ErrorHandled | events.ReportIgnored) -> Attributes:
    return {semconv.STEP_NAME: event.name, semconv.TASK_ID: event.task_id, semconv.SUPERSTEP: event.step}


def _failure(error: BaseException) -> Attributes:
    return {semconv.ERROR_TYPE: error_type(error), **exception_attributes(error)}
