"""Mode ``events``: the lifecycle events themselves."""

from __future__ import annotations

from typing import ClassVar

from tracegraph.events import Event, every_kind
from tracegraph.stream.modes.base import Emit, ShownRun

__all__ = ["EventsMode"]


class EventsMode:
    """Shows every event of the run as it is; nobody may change one."""

    wants: ClassVar[int] = every_kind()

    def __init__(self, emit: Emit) -> None:
        self._emit = emit

    def observe(self, event: Event, run: ShownRun) -> None:
        """Show an event."""
        self._emit(run, event, event)
