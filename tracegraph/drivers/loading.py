"""What a run begins with: the checkpoint it continues from, and which question each answer is for."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from tracegraph.constants import INTERRUPT, STRICT_RESUME, TRACE, UNFINISHED_WRITES
from tracegraph.drivers.effects import Flow, GetTuple, ask
from tracegraph.drivers.launch import Launch
from tracegraph.drivers.travel import Start, at_namespace, load_start
from tracegraph.engine.settings import Begin
from tracegraph.errors import UnknownInterruptError
from tracegraph.records import CheckpointTuple
from tracegraph.types import Command

__all__ = ["load_begin", "pending_interrupts"]

_INTERRUPT_ID = re.compile(r"[0-9a-f]{32}")


def load_begin(launch: Launch) -> Flow[tuple[Begin, tuple[str, ...]]]:
    """Load what the run continues from; return it with the trace contexts of what it resumes, newest first.

    Raises:
        UnknownInterruptError: an answer cannot be matched to a pending question; nothing has been written.
        InvalidInputError: ``Command(resume=...)`` without a checkpointer.
    """
    command = launch.input if isinstance(launch.input, Command) else None
    given = None if command is not None else launch.input
    start = yield from load_start(launch)
    saved = start.saved
    if command is not None and command.resume is not None and launch.saver is None:
        raise UnknownInterruptError(
            "Command(resume=...) needs a checkpointer, for without one nothing of the paused run is left",
            reason="no_checkpointer",
        )
    if command is not None and command.resume is not None:
        answers = _answers(command.resume, (yield from _questions(launch, start)))
        if not answers and command.resume == {} and launch.spec.configurable.get(STRICT_RESUME) and not launch.is_nested:
            raise UnknownInterruptError(
                "the map of answers is empty, so every question would be asked again (strict resume)",
                reason="empty_map",
                pending_ids=[question.id for question in pending_interrupts(saved)],
            )
        launch.hub.answers.update(answers)
    begin = Begin(
        input=given,
        command=command,
        saved=saved,
        answers=launch.hub.answers,
        is_resume=start.is_resume,
        is_addressed=start.is_addressed,
        is_replay=start.is_replay,
        is_fork=start.is_fork,
        is_foreign=start.is_foreign,
        detours=start.detours,
        reopened={} if launch.travel is None else launch.travel.chosen,
    )
    return begin, _links(saved)


def _questions(launch: Launch, start: Start) -> Flow[list[Any]]:
    """Return the questions that can be answered.

    At an addressed checkpoint a question may be answered again, be it one of a graph inside; at the head, only what is
    still open can be.
    """
    if not start.is_addressed:
        return pending_interrupts(start.saved)
    found = _every_question(start.saved)
    travel, port = launch.travel, launch.saver
    if travel is not None and travel.chosen and port is not None:
        ns = max(travel.chosen, key=len)
        inner = yield from ask(GetTuple(port.saver, at_namespace(port, ns, travel.chosen[ns])))
        found = _every_question(inner) or found
    return found


def pending_interrupts(saved: CheckpointTuple | None) -> list[Any]:
    """Return the questions of a checkpoint's unfinished tasks, each once."""
    writes = (saved.pending_writes or []) if saved is not None else []
    finished = {task_id for task_id, channel, _ in writes if channel not in UNFINISHED_WRITES}
    found: dict[str, Any] = {}
    for task_id, channel, value in writes:
        if channel == INTERRUPT and task_id not in finished:
            for question in value:
                found[question.id] = question
    return list(found.values())


def _every_question(saved: CheckpointTuple | None) -> list[Any]:
    """Return the questions of all of a checkpoint's tasks, answered or not, each once."""
    writes = (saved.pending_writes or []) if saved is not None else []
    return list({question.id: question for _, channel, value in writes if channel == INTERRUPT for question in value}.values())


def _answers(resume: Any, questions: Sequence[Any]) -> dict[str, Any]:
    """Return *resume* as a map from interrupt id to answer."""
    pending = [question.id for question in questions]
    if isinstance(resume, dict) and all(isinstance(key, str) and _INTERRUPT_ID.fullmatch(key) for key in resume):
        unknown = [key for key in resume if key not in pending]
        if unknown:
            raise UnknownInterruptError(
                f"nobody asks {', '.join(map(repr, unknown))}; pending: {', '.join(map(repr, pending)) or 'none'}. "
                "The question was answered already, or belongs to another thread: read get_state(config).interrupts",
                reason="not_pending",
                interrupt_ids=unknown,
                pending_ids=pending,
            )
        return resume
    if len(pending) > 1:
        raise UnknownInterruptError(
            f"{len(pending)} questions are pending, so one plain answer is ambiguous: "
            f"resume with a dict from interrupt id to answer, Command(resume={{{pending[0]!r}: ...}})",
            reason="ambiguous",
            pending_ids=pending,
        )
    return {pending[0]: resume} if pending else {}


def _links(saved: CheckpointTuple | None) -> tuple[str, ...]:
    """Return the traceparents stored beside what a checkpoint's tasks left open, else that of the run that saved it."""
    if saved is None:
        return ()
    beside = dict.fromkeys(
        link for _, channel, value in reversed(saved.pending_writes or []) if channel == TRACE for link in value
    )
    return tuple(beside) or tuple(saved.metadata.get(TRACE, ()))
