"""Mode ``checkpoints``: each checkpoint a run comes to, in the form of ``get_state_history``."""

from __future__ import annotations

from typing import Any, ClassVar

from tracegraph.constants import ERROR, INTERRUPT, UNFINISHED_WRITES
from tracegraph.engine.views import read
from tracegraph.events import CheckpointReached, CheckpointTask, kinds
from tracegraph.stream.modes.base import Emit, ShownRun
from tracegraph.stream.modes.results import question_dicts, written

__all__ = ["CheckpointsMode"]


class CheckpointsMode:
    """Shows each checkpoint once the tasks that follow from it are planned; nothing in a run without a checkpointer."""

    wants: ClassVar[int] = kinds(CheckpointReached)

    def __init__(self, emit: Emit) -> None:
        self._emit = emit

    def observe(self, event: CheckpointReached, run: ShownRun) -> None:
        """Show a checkpoint."""
        shown = {
            "config": _config(event, run, event.checkpoint_id),
            "parent_config": None if event.parent_id is None else _config(event, run, event.parent_id),
            "values": read(event.values, run.started.stream_keys),
            "metadata": {key: value for key, value in event.metadata.items() if not key.startswith("__")},
            "next": [task.name for task in event.tasks],
            "tasks": [_task(task, run) for task in event.tasks],
        }
        self._emit(run, event, shown)


def _config(event: CheckpointReached, run: ShownRun, checkpoint_id: str) -> dict[str, Any]:
    where: dict[str, Any] = {
        "thread_id": run.started.thread_id,
        "checkpoint_ns": event.ns,
        "checkpoint_id": checkpoint_id,
    }
    if parents := event.metadata.get("parents"):
        where["checkpoint_map"] = {**parents, event.ns: checkpoint_id}
    return {"configurable": where}


def _task(task: CheckpointTask, run: ShownRun) -> dict[str, Any]:
    state = None
    if task.state_ns is not None:
        state = {"configurable": {"thread_id": run.started.thread_id, "checkpoint_ns": task.state_ns}}
    shown: dict[str, Any] = {"id": task.task_id, "name": task.name}
    error = next((value for channel, value in task.stored if channel == ERROR), None)
    if error is not None:
        return {**shown, "error": error, "state": state}
    if any(channel not in UNFINISHED_WRITES for channel, _ in task.stored):
        keys = run.started.stream_keys
        result = written(task.stored, keys)
        shown["result"] = result.get(keys) if isinstance(keys, str) else result
        if not shown["result"]:
            del shown["result"]
    asked = [question for channel, value in task.stored if channel == INTERRUPT for question in value]
    return {**shown, "interrupts": tuple(question_dicts(asked)), "state": state}
