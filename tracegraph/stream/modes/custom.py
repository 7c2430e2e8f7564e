"""Mode ``custom``: what node code writes to the stream."""

from __future__ import annotations

from typing import ClassVar

from tracegraph.events import CustomEmitted, kinds
from tracegraph.stream.modes.base import Emit, ShownRun

__all__ = ["CustomMode"]


class CustomMode:
    """Shows each chunk as it was written; named events are for callbacks."""

    wants: ClassVar[int] = kinds(CustomEmitted)

    def __init__(self, emit: Emit) -> None:
        self._emit = emit

    def observe(self, event: CustomEmitted, run: ShownRun) -> None:
        """Show a chunk."""
        if event.name is None:
            self._emit(run, event, event.data)
