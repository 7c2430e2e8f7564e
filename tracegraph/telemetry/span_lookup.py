"""Which span something belongs to: what other signals, links and streams ask of those who make the spans."""

from __future__ import annotations

from uuid import UUID

from opentelemetry.context import Context
from opentelemetry.trace import NonRecordingSpan, set_span_in_context

from tracegraph.telemetry.calls import Call
from tracegraph.telemetry.open_spans import RunRecord
from tracegraph.telemetry.traceparent import format_traceparent

__all__ = ["SpanLookup"]


class SpanLookup:
    """The records of a root run and of those inside it, to be asked; they are only read here, so no lock is needed."""

    def __init__(self, root: RunRecord, root_id: UUID) -> None:
        self._root = root
        self._runs: dict[UUID, RunRecord] = {root_id: root}

    def traceparent(self, task_id: str | None = None) -> str | None:
        """Return the W3C traceparent of a task's span, or of the root run's.

        A task is known until the superstep after its own has ended; of others, the answer is None.
        """
        if task_id is None:
            return format_traceparent(self._root.span.get_span_context())
        for run in tuple(self._runs.values()):
            if (context := run.context_of(task_id)) is not None:
                return format_traceparent(context)
        return None

    def span_of(self, run_id: UUID, task_id: str | None = None, call_id: UUID | None = None) -> str | None:
        """Return the W3C traceparent of a call's span, else of its task's, else of the run's; None after the run's end."""
        run = self._runs.get(run_id)
        if run is None:
            return None
        context = run.span.get_span_context() if task_id is None else run.context_of(task_id) or run.span.get_span_context()
        if call_id is not None and task_id is not None and (call := (self._calls(run_id, task_id) or {}).get(call_id)):
            context = call.span.get_span_context()
        return format_traceparent(context)

    def context_of(self, run_id: UUID, task_id: str | None = None, call_id: UUID | None = None) -> Context | None:
        """Return the context of a call's span while it is open, else of its task's, else of the run's; None after the run's end.

        For signals that must name the span they belong to. At a thing's ``...Started`` its span is there already, at its
        ``...Ended`` it is over: a task is known for a superstep more, of a call it must be asked in time.
        """
        run = self._runs.get(run_id)
        if run is None:
            return None
        task = run.tasks.get(task_id) if task_id is not None else None
        if call_id is not None and (call := ((task or run).calls or {}).get(call_id)) is not None:
            return call.context(run.context)
        if task is not None:
            return task.context(run)
        ended = run.context_of(task_id) if task_id is not None else None
        return run.context if ended is None else set_span_in_context(NonRecordingSpan(ended), run.context)

    def context_of_save(self, run_id: UUID, checkpoint_id: str) -> Context | None:
        """Return the context of the span that a checkpoint's save is part of: its own, else the superstep's, else the run's."""
        run = self._runs.get(run_id)
        if run is None:
            return None
        put = run.puts.get(checkpoint_id)
        return run.step_context if put is None else set_span_in_context(put, run.context)

    def _calls(self, run_id: UUID, task_id: str) -> dict[UUID, Call] | None:
        if (run := self._runs.get(run_id)) is None:
            return None
        return (run.tasks.get(task_id) or run).calls
