"""Mode ``debug``: tasks and checkpoints in one stream, each with its superstep and time."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, ClassVar

from tracegraph.events import CheckpointReached, Event, TaskEnded
from tracegraph.stream.modes.base import Emit, ShownRun
from tracegraph.stream.modes.checkpoints import CheckpointsMode
from tracegraph.stream.modes.tasks import TasksMode

__all__ = ["DebugMode"]


class DebugMode:
    """Wraps what the modes ``tasks`` and ``checkpoints`` show."""

    wants: ClassVar[int] = TasksMode.wants | CheckpointsMode.wants

    def __init__(self, emit: Emit) -> None:
        self._emit = emit
        self._tasks = TasksMode(self._wrap)
        self._checkpoints = CheckpointsMode(self._wrap)

    def observe(self, event: Any, run: ShownRun) -> None:
        """Show what either mode makes of the event."""
        if isinstance(event, CheckpointReached):
            self._checkpoints.observe(event, run)
        else:
            self._tasks.observe(event, run)

    def _wrap(self, run: ShownRun, event: Event, data: Any, interrupts: tuple[Any, ...] = ()) -> None:  # noqa: ARG002  # as all emit
        kind = "checkpoint" if isinstance(event, CheckpointReached) else "task_result" if isinstance(event, TaskEnded) else "task"
        at = datetime.fromtimestamp(event.at_ns / 1e9, UTC).isoformat()
        self._emit(run, event, {"step": event.step, "timestamp": at, "type": kind, "payload": data})
