"""Spans of supersteps and of the saves of checkpoints."""

from __future__ import annotations

from uuid import UUID

from opentelemetry.trace import Span, Tracer

from tracegraph import events
from tracegraph.telemetry import semconv
from tracegraph.telemetry.failure import is_failure, mark_failed
from tracegraph.telemetry.open_spans import Attributes, RunRecord, end_all
from tracegraph.telemetry.span_lookup import SpanLookup
from tracegraph.telemetry.trace_parts import TraceParts

__all__ = ["SuperstepSpans"]


class SuperstepSpans(SpanLookup):
    """What an observer does at the events of supersteps and checkpoints."""

    def __init__(self, root: RunRecord, root_id: UUID, tracer: Tracer, parts: TraceParts) -> None:
        super().__init__(root, root_id)
        self._tracer = tracer
        self._parts = parts
        self.collapsed = 0
        """How many superstep spans the trace had no room for."""

    def superstep_started(self, event: events.SuperstepStarted) -> None:
        """Start a superstep's span, if it is to have one and the trace is not large."""
        if (run := self._runs.get(event.run_id)) is None:
            return
        if (left := run.leave_superstep()) is not None:
            end_all([(left, semconv.SUPERSTEP_STATUS, "stopped")], event.at_ns)
        span = None
        if event.has_span and self._parts.is_large:
            self.collapsed += 1
        elif event.has_span:
            self._parts.add()
            attributes: Attributes = {semconv.SUPERSTEP: event.step, semconv.SUPERSTEP_TASKS: len(event.tasks), **run.base}
            if event.checkpoint_id is not None:
                attributes[semconv.CHECKPOINT_PARENT_ID] = event.checkpoint_id
            span = self._tracer.start_span(semconv.SUPERSTEP_SPAN, run.context, attributes=attributes, start_time=event.at_ns)
        run.enter_superstep(span)

    def superstep_ended(self, event: events.SuperstepEnded) -> None:
        """End it, or hold it open for the save that it waits for."""
        run = self._runs.get(event.run_id)
        if run is None or (span := run.leave_superstep()) is None:
            return
        if not run.hold_superstep(span, event):
            self._end_superstep(run, span, event, event.at_ns)

    def _end_superstep(self, run: RunRecord, span: Span, event: events.SuperstepEnded, at_ns: int) -> None:
        try:
            if event.checkpoint_id is not None:
                span.set_attribute(semconv.CHECKPOINT_ID, event.checkpoint_id)
            if event.status == "completed" and run.last_task_end_ns:
                span.set_attribute(semconv.SUPERSTEP_COMMIT_MS, (at_ns - run.last_task_end_ns) / 1e6)
        finally:
            end_all([(span, semconv.SUPERSTEP_STATUS, event.status)], at_ns)

    def checkpoint_started(self, event: events.CheckpointStarted) -> None:
        """Start the span of a save, if the saver does I/O."""
        if (run := self._runs.get(event.run_id)) is None:
            return
        if run.superstep is not None:
            run.superstep.set_attribute(semconv.CHECKPOINT_ID, event.checkpoint_id)
        if not event.does_io:
            return
        attributes: Attributes = {
            semconv.CHECKPOINT_ID: event.checkpoint_id,
            semconv.CHECKPOINT_SOURCE: event.source,
            semconv.CHECKPOINT_CHANGED: len(event.changed),
            semconv.SUPERSTEP: event.step,
            **run.base,
        }
        if event.parent_id is not None:
            attributes[semconv.CHECKPOINT_PARENT_ID] = event.parent_id
        self._parts.add()
        context = run.context
        if event.is_awaited and run.superstep is not None:
            context, run.saved_by_superstep = run.step_context, event.checkpoint_id
        run.puts[event.checkpoint_id] = self._tracer.start_span(
            semconv.CHECKPOINT_PUT_SPAN, context, attributes=attributes, start_time=event.at_ns
        )

    def checkpoint_saved(self, event: events.CheckpointSaved) -> None:
        """End it, and the superstep that waited for it."""
        run = self._runs.get(event.run_id)
        if run is None or (span := run.puts.pop(event.checkpoint_id, None)) is None:
            return
        try:
            if event.written_bytes is not None:
                span.set_attribute(semconv.CHECKPOINT_BYTES, event.written_bytes)
            if is_failure(event.error):
                mark_failed(span, event.error, event.at_ns)
        finally:
            span.end(event.at_ns)
            # A superstep's end is announced before the save that it waits for, and its span lasts until that is done.
            if (held := run.release_superstep(event.checkpoint_id)) is not None:
                self._end_superstep(run, *held, event.at_ns)
