"""Mode ``graph-tasks``, of runs as objects: those of the tasks' starts and ends that tell of graphs inside."""

from __future__ import annotations

from typing_extensions import override

from tracegraph.constants import NS_END
from tracegraph.events import SuperstepStarted, TaskEnded, TaskPlanned, TaskStarted
from tracegraph.stream.modes.base import Emit, ShownRun
from tracegraph.stream.modes.tasks import TasksMode
from tracegraph.stream.v3.graphs_inside import tool_call_id

__all__ = ["GraphTasksMode"]


class GraphTasksMode(TasksMode):
    """Shows the first task of each graph inside, tasks that are tool calls, and the end of tasks that ran a graph.

    That is all that :class:`~tracegraph.stream.v3.graphs_inside.GraphsInside` makes anything of. Most tasks are none of
    these, and nothing is made of them.
    """

    def __init__(self, emit: Emit) -> None:
        super().__init__(emit)
        self._inside: set[tuple[str, ...]] = set()
        """Namespaces of the graphs inside whose first task was shown."""
        self._calls: set[tuple[str, ...]] = set()
        """Namespaces that graphs would have that tool calls run; the calls were shown."""

    @override
    def observe(self, event: SuperstepStarted | TaskStarted | TaskEnded, run: ShownRun) -> None:
        """Show what tells of a graph inside."""
        if not isinstance(event, TaskEnded):
            super().observe(event, run)
        elif self._inside or self._calls:
            below = _below(event, run)
            if below in self._inside or below in self._calls:
                self._inside.discard(below)
                self._calls.discard(below)
                super().observe(event, run)

    @override
    def _show_start(self, task: TaskPlanned | TaskStarted, event: SuperstepStarted | TaskStarted, run: ShownRun) -> None:
        is_first = bool(run.ns) and run.ns not in self._inside
        is_call = tool_call_id(task.input) is not None
        if is_first:
            self._inside.add(run.ns)
        if is_call:
            self._calls.add(_below(task, run))
        if is_first or is_call:
            super()._show_start(task, event, run)


def _below(task: TaskPlanned | TaskStarted | TaskEnded, run: ShownRun) -> tuple[str, ...]:
    """Return the namespace of a graph that the task runs."""
    return (*run.ns, f"{task.name}{NS_END}{task.task_id}")
