"""Mode ``messages``: what models say, while they say it, and the messages that nodes return."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar
from uuid import uuid4

from tracegraph.callbacks.runs import Run, node_of
from tracegraph.constants import TAG_NOSTREAM
from tracegraph.events import MessagePushed, ModelEnded, ModelStarted, ModelToken, TaskEnded, TaskStarted, kinds
from tracegraph.stream.modes.base import Emit, ShownRun
from tracegraph.stream.modes.found_messages import answer_of, messages_in_state, messages_returned, piece_of
from tracegraph.stream.modes.tasks import user_tags

__all__ = ["MessagesMode"]


class MessagesMode:
    """Shows ``(message, metadata)``: tokens of chat models as they come, and whole messages nobody has seen yet.

    A message is known by its id, so one without an id gets one, on the object itself: the state has the same.
    """

    wants: ClassVar[int] = kinds(TaskStarted, TaskEnded, MessagePushed, ModelStarted, ModelToken, ModelEnded)

    def __init__(self, emit: Emit) -> None:
        self._emit = emit
        self._emit_piece: Callable[[ShownRun, ModelToken, tuple[Any, dict[str, Any]]], None] = emit
        """Hands on ``(piece, metadata)`` of an answer that is streamed."""
        self._seen: set[str] = set()
        self._calls: dict[int, tuple[str, dict[str, Any]]] = {}
        """Of the model calls under way that are shown, by the number that their id is: the id of an answer that has none, and
        metadata."""
        self._tasks: dict[tuple[int, str], TaskStarted] = {}

    def observe(self, event: Any, run: ShownRun) -> None:
        """Show a token or a message, or take note of what is known already."""
        match event:
            case ModelToken():
                self._token(event, run)
            case ModelStarted():
                self._call_started(event)
            case ModelEnded():
                self._call_ended(event, run)
            case TaskStarted():
                if not event.is_hidden:
                    self._tasks[event.run_id.int, event.task_id] = event
                    self._seen.update(m.id for m in messages_in_state(event.input) if m.id is not None)
            case TaskEnded():
                self._task_ended(event, run)
            case MessagePushed():
                self._show(event, run, event.message, dict(event.metadata))
            case _:
                pass

    def _call_started(self, event: ModelStarted) -> None:
        if not event.is_chat or TAG_NOSTREAM in event.tags:
            return
        metadata = {**event.metadata}
        if tags := user_tags(event.tags):
            metadata["tags"] = tags
        # The pieces of one answer, and their sum in the state, are one message.
        self._calls[event.call_id.int] = (f"run-{event.call_id}", metadata)

    def _token(self, event: ModelToken, run: ShownRun) -> None:
        call = self._calls.get(event.call_id.int)
        if call is None or (piece := piece_of(event.token, event.chunk)) is None:
            return
        if piece.id is None:
            piece.id = call[0]
        self._seen.add(piece.id)
        self._emit_piece(run, event, (piece, call[1]))

    def _call_ended(self, event: ModelEnded, run: ShownRun) -> None:
        call = self._calls.pop(event.call_id.int, None)
        if call is None or event.error is not None or (answer := answer_of(event.response)) is None:
            return
        if answer.id is None:
            answer.id = call[0]
        if answer.id not in self._seen:
            self._show(event, run, answer, call[1])

    def _task_ended(self, event: TaskEnded, run: ShownRun) -> None:
        started = self._tasks.pop((event.run_id.int, event.task_id), None)
        if started is None or event.status != "completed":
            return
        metadata: dict[str, Any] | None = None
        for message in messages_returned(event.result):
            if message.id is None or message.id not in self._seen:
                metadata = metadata or _metadata(started, run)
                self._show(event, run, message, metadata)

    def _show(self, event: Any, run: ShownRun, message: Any, metadata: dict[str, Any]) -> None:
        if message.id is None:
            message.id = str(uuid4())
        self._seen.add(message.id)
        self._emit(run, event, (message, metadata))


def _metadata(started: TaskStarted, run: ShownRun) -> dict[str, Any]:
    around = Run(started.run_id, None, metadata={"ls_integration": "langgraph", **run.started.metadata})
    return node_of(started, around).metadata
