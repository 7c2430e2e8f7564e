"""Mode ``message-events``, of runs as objects: what models say as events of content blocks instead of chunks."""

from __future__ import annotations

from typing import Any

from typing_extensions import override

from tracegraph.events import ModelEnded, ModelToken
from tracegraph.stream.modes.base import Emit, ShownRun
from tracegraph.stream.modes.messages import MessagesMode
from tracegraph.stream.v3.messages.answer import Answer

__all__ = ["MessageEventsMode"]


class MessageEventsMode(MessagesMode):
    """Shows ``(message event, metadata)`` of answers that are streamed, and whole messages as ``messages`` does."""

    def __init__(self, emit: Emit) -> None:
        super().__init__(emit)
        self._emit_piece = self._emit_events
        self._answers: dict[int, tuple[Answer, dict[str, Any]]] = {}
        """Answers that are being streamed, with what is said of all their events."""

    def _emit_events(self, run: ShownRun, event: ModelToken, data: tuple[Any, dict[str, Any]]) -> None:
        piece, metadata = data
        known = self._answers.get(event.call_id.int)
        if known is None:
            known = self._answers[event.call_id.int] = (Answer(), {**metadata, "run_id": str(event.call_id)})
            self._emit(run, event, (known[0].start(piece), known[1]))
        for made in known[0].take(piece):
            self._emit(run, event, (made, known[1]))

    @override
    def _call_ended(self, event: ModelEnded, run: ShownRun) -> None:
        if (known := self._answers.pop(event.call_id.int, None)) is not None:
            failed = {"event": "error", "message": str(event.error)}
            for data in known[0].end() if event.error is None else (failed,):
                self._emit(run, event, (data, known[1]))
        super()._call_ended(event, run)
