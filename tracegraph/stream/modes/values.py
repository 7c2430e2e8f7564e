"""Mode ``values``: the state after each superstep."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar
from uuid import UUID

from tracegraph.engine.views import read
from tracegraph.events import QUESTIONS, StateUpdated, TaskEnded, kinds
from tracegraph.stream.modes.base import Emit, ShownRun

__all__ = ["ValuesMode"]


class ValuesMode:
    """Shows the values after each superstep, as loaded by a resumed run, and beside each question that is asked."""

    wants: ClassVar[int] = kinds(StateUpdated) | QUESTIONS

    def __init__(self, emit: Emit) -> None:
        self._emit = emit
        self._last: dict[UUID, Mapping[str, Any]] = {}
        """Last known values of each run: what a question is shown with."""

    def observe(self, event: StateUpdated | TaskEnded, run: ShownRun) -> None:
        """Show new values, or the known ones with a question."""
        if isinstance(event, StateUpdated):
            self._last[event.run_id] = event.values
            self._emit(run, event, read(event.values, run.keys))
        elif event.status == "interrupted" and event.interrupts and not event.is_call:
            self._emit(run, event, read(self._last.get(event.run_id, {}), run.keys), event.interrupts)
