"""A stored checkpoint as the command shows it, with the graph that made it or without."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any

from tracegraph.channels.delta import DeltaLog, DeltaSnapshot
from tracegraph.checkpoint.base import BaseCheckpointSaver
from tracegraph.cli.database import no_thread
from tracegraph.cli.output import CliError, ExitCode, command_line, fail, local_time, safe_repr, to_plain_data
from tracegraph.constants import BRANCH_PREFIX, ERROR, JOIN_PREFIX, MISSING, ROOT, START, TASKS, UNFINISHED_WRITES
from tracegraph.drivers.loading import pending_interrupts
from tracegraph.records import CheckpointTuple
from tracegraph.types import Interrupt

__all__ = [
    "address",
    "error_text",
    "errors_of",
    "facts_of",
    "find_checkpoint",
    "plain_questions",
    "saved_at",
    "stop_style",
    "stopped_by",
    "values_of",
    "visible",
    "with_parents",
]

_INTERNAL = frozenset({START, TASKS})


def address(thread_id: str, checkpoint_id: str | None = None) -> dict[str, Any]:
    """Return the config of a thread's root graph, at its head or at a checkpoint."""
    found = {"thread_id": thread_id, "checkpoint_ns": ""}
    return {"configurable": found if checkpoint_id is None else found | {"checkpoint_id": checkpoint_id}}


def find_checkpoint(saver: BaseCheckpointSaver, thread_id: str, at: str | None, place: str) -> CheckpointTuple:
    """Return a thread's head, or the checkpoint whose id is or begins with *at*.

    Raises:
        CliError: there is no such thread or checkpoint, or several checkpoints begin so.
    """
    if (head := saver.get_tuple(address(thread_id))) is None:
        raise no_thread(thread_id, place)
    if at is None:
        return head
    if (named := saver.get_tuple(address(thread_id, at))) is not None:
        return named
    found = [saved for saved in saver.list(address(thread_id)) if saved.checkpoint["id"].startswith(at)]
    if not found:
        hint = f"`{command_line('state', [thread_id], ['--history'])}` lists them"
        raise CliError(f"thread {thread_id!r} has no checkpoint {at!r}; {hint}", ExitCode.NOT_FOUND)
    if len(found) > 1:
        fail(f"{len(found)} checkpoints of thread {thread_id!r} begin with {at!r}: give more of the id")
    return found[0]


def with_parents(
    saver: BaseCheckpointSaver, found: Iterable[CheckpointTuple]
) -> Iterator[tuple[CheckpointTuple, CheckpointTuple | None]]:
    """Yield each checkpoint with its parent, None if it has none (any more)."""
    previous: CheckpointTuple | None = None
    for saved in found:
        if previous is not None:
            yield previous, _parent(saver, previous, saved)
        previous = saved
    if previous is not None:
        yield previous, _parent(saver, previous, None)


def _parent(saver: BaseCheckpointSaver, saved: CheckpointTuple, older: CheckpointTuple | None) -> CheckpointTuple | None:
    """Return the parent of a checkpoint; mostly it is the next older one, which need not be read again."""
    if saved.parent_config is None:
        return None
    if older is not None and older.checkpoint["id"] == saved.parent_config["configurable"]["checkpoint_id"]:
        return older
    return saver.get_tuple(saved.parent_config)


def visible(saved: CheckpointTuple) -> dict[str, Any]:
    """Return the values of the channels that hold state; those that only steer the run are left out.

    What a delta channel holds is shown as a value and the writes since: only the graph knows how to fold them in.
    """
    found = saved.checkpoint["channel_values"]
    return {
        name: _unwrapped(value)
        for name, value in found.items()
        if name not in _INTERNAL and not name.startswith((BRANCH_PREFIX, JOIN_PREFIX))
    }


def _unwrapped(value: Any) -> Any:
    if isinstance(value, DeltaSnapshot):
        return value.value
    if isinstance(value, DeltaLog):
        return DeltaLog(None if value.base is MISSING else _unwrapped(value.base), value.writes)
    return value


def values_of(saved: CheckpointTuple) -> Any:
    """Return the state: a dict, or the one value of a graph whose state is not made of keys."""
    found = visible(saved)
    return found[ROOT] if [*found] == [ROOT] else found


def plain_questions(questions: Iterable[Interrupt]) -> list[dict[str, Any]]:
    """Return questions as JSON data, the way `tracegraph run` prints them."""
    return [{"id": question.id, "value": to_plain_data(question.value)} for question in questions]


def errors_of(saved: CheckpointTuple) -> list[str]:
    """Return what the tasks that have not finished failed with."""
    writes = saved.pending_writes or []
    finished = {task_id for task_id, channel, _ in writes if channel not in UNFINISHED_WRITES}
    return [error_text(value) for task_id, channel, value in writes if channel == ERROR and task_id not in finished]


def error_text(error: Any) -> str:
    """Return a stored error as text: a saver in memory keeps the error itself, the others what ``repr`` says of it."""
    return error if isinstance(error, str) else safe_repr(error)


def facts_of(saved: CheckpointTuple) -> dict[str, Any]:
    """Return as JSON data what a checkpoint says without its values."""
    parent = saved.parent_config
    return {
        "checkpoint_id": saved.checkpoint["id"],
        "parent_id": None if parent is None else parent["configurable"]["checkpoint_id"],
        "created_at": saved.checkpoint["ts"],
        "source": saved.metadata.get("source"),
        "step": saved.metadata.get("step"),
        "interrupts": plain_questions(pending_interrupts(saved)),
        "errors": errors_of(saved),
    }


def saved_at(saved: CheckpointTuple) -> str:
    """Return when a checkpoint was made, for a list."""
    return local_time(datetime.fromisoformat(saved.checkpoint["ts"]))


def stopped_by(saved: CheckpointTuple) -> str:
    """Say in a word or two what stopped the thread here, as far as the checkpoint alone tells."""
    asked, failed = len(pending_interrupts(saved)), len(errors_of(saved))
    counts = ((asked, "question"), (failed, "error"))
    return ", ".join(f"{count} {word}{'s' if count > 1 else ''}" for count, word in counts if count) or "-"


def stop_style(cell: str) -> str:
    """Return how a terminal shows what :func:`stopped_by` says."""
    return "dim" if cell == "-" else "bold red" if "error" in cell else "yellow"
