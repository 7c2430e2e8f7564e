"""Content of runs that have no spans: log events and uploads do not depend on whether a run is sampled."""

from __future__ import annotations

from typing import ClassVar

from tracegraph.events import (
    Event,
    MemoryEnded,
    MemoryStarted,
    ModelEnded,
    ModelStarted,
    RetrievalEnded,
    RetrievalStarted,
    RunEnded,
    RunStarted,
    TaskEnded,
    TaskStarted,
    ToolEnded,
    ToolStarted,
    kinds,
)
from tracegraph.telemetry.content.recorder import ContentRecorder

__all__ = ["ContentObserver"]


class ContentObserver:
    """Feeds a recorder from the events alone; where there are spans, their observer does."""

    wants: ClassVar[int] = kinds(
        RunStarted,
        RunEnded,
        TaskStarted,
        TaskEnded,
        ModelStarted,
        ModelEnded,
        ToolStarted,
        ToolEnded,
        RetrievalStarted,
        RetrievalEnded,
        MemoryStarted,
        MemoryEnded,
    )

    def __init__(self, recorder: ContentRecorder) -> None:
        self._recorder = recorder

    def observe(self, event: Event) -> None:
        """Hand the event to the recorder."""
        match event:
            case RunStarted():
                self._recorder.run_started(event, None)
            case RunEnded():
                self._recorder.run_ended(event, None)
            case TaskStarted(is_hidden=False):
                self._recorder.task_started(event, None)
            case TaskEnded(is_hidden=False):
                self._recorder.task_ended(event, None)
            case ModelStarted() | ToolStarted() | RetrievalStarted() | MemoryStarted():
                self._recorder.call_started(event, None)
            case ModelEnded() | ToolEnded() | RetrievalEnded() | MemoryEnded():
                self._recorder.call_ended(event)
            case _:
                pass
