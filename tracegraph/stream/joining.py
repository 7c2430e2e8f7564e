"""What ties a part to the trace: the event it is made of, and the span that was open then."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final
from uuid import UUID

from tracegraph.events import Event, ModelEnded, RunEnded, ToolEnded
from tracegraph.stream.modes import ShownRun
from tracegraph.types import PartMeta

__all__ = ["Joining"]

_NO_SPAN: Final[tuple[str | None, str | None]] = (None, None)


class Joining:
    """Tells of each part what it belongs to; ``span_of`` is the Hub's."""

    def __init__(self, span_of: Callable[[UUID, str | None, UUID | None], str | None]) -> None:
        self._span_of = span_of
        # Kept, because a span is known no longer when its own end is told of.
        self._of_runs: dict[UUID, tuple[str | None, str | None]] = {}
        self._of_calls: dict[UUID, tuple[str | None, str | None]] = {}

    def __call__(self, event: Event, run: ShownRun) -> PartMeta:
        """Return what a part made of *event* belongs to; its own number is the reader's to give."""
        trace_id, span_id = self._span(event)
        return PartMeta(0, event.seq, run.id_text, trace_id, span_id, event.step)

    def _span(self, event: Event) -> tuple[str | None, str | None]:
        if (call_id := getattr(event, "call_id", None)) is not None:
            found = self._of_calls.get(call_id)
            if found is None:
                found = self._of_calls[call_id] = self._look(event.run_id, getattr(event, "task_id", None), call_id)
            if isinstance(event, (ModelEnded, ToolEnded)):
                del self._of_calls[call_id]
            return found
        if (task_id := getattr(event, "task_id", None)) is not None:
            return self._look(event.run_id, task_id, None)
        if event.run_id not in self._of_runs and not isinstance(event, RunEnded):
            self._of_runs[event.run_id] = self._look(event.run_id, None, None)
        return self._of_runs.get(event.run_id, _NO_SPAN)

    def _look(self, run_id: UUID, task_id: str | None, call_id: UUID | None) -> tuple[str | None, str | None]:
        traceparent = self._span_of(run_id, task_id, call_id)
        if traceparent is None:
            return _NO_SPAN
        _, trace_id, span_id, _ = traceparent.split("-")
        return trace_id, span_id
