"""Mode ``message-events``, of runs as objects: what models say as events of content blocks instead of chunks."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from typing_extensions import override

from tracegraph.events import ModelEnded, ModelToken
from tracegraph.stream.modes.base import Emit, ShownRun
from tracegraph.stream.modes.found_messages import piece_of
from tracegraph.stream.modes.messages import MessagesMode
from tracegraph.stream.v3.messages.answer import Answer

__all__ = ["MessageEventsMode"]


class MessageEventsMode(MessagesMode):
    """Shows ``(message event, metadata)`` of answers that are streamed, and whole messages as ``messages`` does."""

    def __init__(self, emit: Emit) -> None:
        super().__init__(emit)
        self._answers: dict[UUID, Answer] = {}

    @override
    def _token(self, event: ModelToken, run: ShownRun) -> None:
        known = self._calls.get(event.call_id)
        if known is None or (piece := piece_of(event.token, event.chunk)) is None:
            return
        if piece.id is None:  # the pieces of one answer, and their sum in the state, are one message
            piece.id = f"run-{event.call_id}"
        self._seen.add(piece.id)
        metadata = {**known, "run_id": str(event.call_id)}
        answer = self._answers.get(event.call_id)
        if answer is None:
            answer = self._answers[event.call_id] = Answer()
            self._emit(run, event, (answer.start(piece), metadata))
        for data in answer.take(piece):
            self._emit(run, event, (data, metadata))

    @override
    def _call_ended(self, event: ModelEnded, run: ShownRun) -> None:
        answer, known = self._answers.pop(event.call_id, None), self._calls.get(event.call_id)
        if answer is not None and known is not None:
            metadata: dict[str, Any] = {**known, "run_id": str(event.call_id)}
            failed = {"event": "error", "message": str(event.error)}
            for data in answer.end() if event.error is None else (failed,):
                self._emit(run, event, (data, metadata))
        super()._call_ended(event, run)
