"""Mode ``tools``: calls of tools, by the id that the model gave them."""

from __future__ import annotations

from typing import Any, ClassVar
from uuid import UUID

from tracegraph.constants import TAG_NOSTREAM
from tracegraph.errors import GraphBubbleUp
from tracegraph.events import ToolEnded, ToolStarted, kinds
from tracegraph.stream.modes.base import Emit, ShownRun

__all__ = ["ToolsMode"]


class ToolsMode:
    """Shows each call's start and end; one that pauses has no end, for it runs again on resume."""

    wants: ClassVar[int] = kinds(ToolStarted, ToolEnded)

    def __init__(self, emit: Emit) -> None:
        self._emit = emit
        self._open: dict[UUID, str] = {}
        """Calls under way: whatever is told of one later is told under the model's id of it."""

    def observe(self, event: ToolStarted | ToolEnded, run: ShownRun) -> None:
        """Show the start or the end of a call."""
        if isinstance(event, ToolStarted):
            self._started(event, run)
        elif (tool_call_id := self._open.pop(event.call_id, None)) is not None:
            self._ended(event, run, tool_call_id)

    def _started(self, event: ToolStarted, run: ShownRun) -> None:
        if TAG_NOSTREAM in event.tags:
            return
        tool_call_id = self._open[event.call_id] = event.tool_call_id or str(event.call_id)
        start: dict[str, Any] = {"event": "tool-started", "tool_call_id": tool_call_id, "tool_name": event.name}
        if isinstance(event.input, dict):
            start["input"] = event.input
        self._emit(run, event, start)

    def _ended(self, event: ToolEnded, run: ShownRun, tool_call_id: str) -> None:
        if event.error is None:
            self._emit(run, event, {"event": "tool-finished", "tool_call_id": tool_call_id, "output": event.output})
        elif not isinstance(event.error, GraphBubbleUp):
            self._emit(run, event, {"event": "tool-error", "tool_call_id": tool_call_id, "message": str(event.error)})
