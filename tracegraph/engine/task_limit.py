"""The limit of the tasks that a run tree begins: they are counted before any of them is."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import TYPE_CHECKING

from tracegraph.constants import START
from tracegraph.engine.task import Task
from tracegraph.errors import TaskLimitError

if TYPE_CHECKING:
    from tracegraph.engine.engine import Engine

__all__ = ["count_tasks", "tasks_to_count"]


def count_tasks(engine: Engine, tasks: Sequence[Task]) -> TaskLimitError | None:
    """Count tasks that are about to begin; return what is wrong if they may not, of which none is counted then."""
    count = engine.settings.count_tasks
    if count is None or not tasks:
        return None
    found = count(len(tasks))
    if found is None:
        return None
    limit, begun = found
    names = [task.node.name for task in tasks]
    return TaskLimitError(limit=limit, begun=begun, step=engine.step, planned=len(tasks), nodes=names)


def tasks_to_count(engine: Engine, tasks: Sequence[Task]) -> list[Task]:
    """Return those of a planned superstep's tasks that will be run, and so are counted.

    Not the start node, which runs no code; nor, in a resumed superstep, what had finished, or failed with only its error
    handler left, which is counted when it takes over.
    """
    pending = engine.pending
    return [
        task
        for task in tasks
        if task.node.name != START
        # A copy, for being recalled leaves its marks on a task.
        and not (engine.is_resuming and (pending.recall(copy(task)) or _is_left_to_handler(engine, task)))
    ]


def _is_left_to_handler(engine: Engine, task: Task) -> bool:
    return task.node.error_handler is not None and engine.pending.handled_failure(task) is not None
