"""What a run begins with: the checkpoint it continues from, and which question each answer is for."""

from __future__ import annotations

import re
from collections.abc import Container, Sequence
from typing import Any
from uuid import UUID

from tracegraph.constants import ASKED, INTERRUPT, STRICT_RESUME, TRACE, UNFINISHED_WRITES
from tracegraph.drivers.effects import Flow, GetTuple, ask
from tracegraph.drivers.launch import Launch
from tracegraph.drivers.travel import Start, at_namespace, load_start
from tracegraph.engine.apply import ChannelStore
from tracegraph.engine.plan import plan_step
from tracegraph.engine.settings import Begin
from tracegraph.engine.task import Superstep
from tracegraph.errors import UnknownInterruptError
from tracegraph.events.waits import asked_in
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
    carried: CheckpointTuple | None = None
    if saved is not None and not start.is_replay and (launch.hub.answers or (command is not None and command.resume is not None)):
        carried = yield from _asked_before(launch, saved)
    if not start.is_replay:  # else what was asked then is asked anew
        for before in (saved, carried):
            _note_asked(launch, before)
    if command is not None and command.resume is not None:
        answers = _answers(command.resume, (yield from _questions(launch, start, carried)))
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
        carried=carried,
        reopened={} if launch.travel is None else launch.travel.chosen,
    )
    return begin, _links(saved)


def _asked_before(launch: Launch, saved: CheckpointTuple) -> Flow[CheckpointTuple | None]:
    """Return the checkpoint whose questions were open when the state was updated, None if it was not, or none were.

    Who is asked, changes the state and then answers means the question that was seen, which the update has not answered.
    """
    assert launch.saver is not None
    found: CheckpointTuple | None = saved
    while found is not None and not pending_interrupts(found):
        if found.metadata.get("source") not in ("update", "fork") or found.parent_config is None:
            return None
        found = yield from ask(GetTuple(launch.saver.saver, found.parent_config))
    return None if found is saved else found


def _still_asked(launch: Launch, saved: CheckpointTuple, asked: CheckpointTuple) -> list[Any]:
    """Return the questions of an updated checkpoint whose tasks run after the update too."""
    store = ChannelStore(launch.topology, lambda current: current or 1)
    found = saved.checkpoint
    store.load(found["channel_values"], found["channel_versions"], found["versions_seen"])
    step, then = saved.metadata["step"] + 1, asked.metadata["step"] + 1
    at = Superstep(UUID(found["id"]).bytes, launch.ns, step, step, launch.topology, store.values, store.states)
    before = UUID(asked.checkpoint["id"]).bytes
    standing = {task.id_at(before, launch.ns, then) for task in plan_step(store, at)}
    return pending_interrupts(asked, standing)


def _questions(launch: Launch, start: Start, carried: CheckpointTuple | None) -> Flow[list[Any]]:
    """Return the questions that can be answered.

    At an addressed checkpoint a question may be answered again, be it one of a graph inside; at the head, only what is
    still open can be.
    """
    if not start.is_addressed:
        if carried is None or start.saved is None:
            return pending_interrupts(start.saved)
        return _still_asked(launch, start.saved, carried)
    found = _every_question(start.saved)
    if not found and carried is not None and start.saved is not None:
        found = _still_asked(launch, start.saved, carried)
    travel, port = launch.travel, launch.saver
    if travel is not None and travel.chosen and port is not None:
        ns = max(travel.chosen, key=len)
        inner = yield from ask(GetTuple(port.saver, at_namespace(port, ns, travel.chosen[ns])))
        _note_asked(launch, inner)
        found = _every_question(inner) or found
    return found


def _note_asked(launch: Launch, saved: CheckpointTuple | None) -> None:
    """Let the run tree know when the questions of a checkpoint were asked: they are answered, or asked once more."""
    for _, channel, value in (saved.pending_writes or ()) if saved is not None else ():
        if channel == ASKED:
            for interrupt_id, asked_at in asked_in(value).items():
                launch.hub.asked.setdefault(interrupt_id, asked_at)


def pending_interrupts(saved: CheckpointTuple | None, tasks: Container[str] | None = None) -> list[Any]:
    """Return the questions of a checkpoint's unfinished tasks, of *tasks* alone if given, each once."""
    writes = (saved.pending_writes or []) if saved is not None else []
    finished = {task_id for task_id, channel, _ in writes if channel not in UNFINISHED_WRITES}
    found: dict[str, Any] = {}
    for task_id, channel, value in writes:
        if channel == INTERRUPT and task_id not in finished and (tasks is None or task_id in tasks):
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
