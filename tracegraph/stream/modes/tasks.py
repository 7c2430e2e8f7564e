"""Mode ``tasks``: each task as it is planned, and as it ends."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Final
from uuid import UUID

from tracegraph.checkpoint.base.metadata import EXCLUDED_METADATA_KEYS
from tracegraph.constants import RETURN
from tracegraph.engine.views import isolated
from tracegraph.events import SuperstepStarted, TaskEnded, TaskPlanned, TaskStarted, kinds
from tracegraph.stream.modes.base import Emit, ShownRun
from tracegraph.stream.modes.results import question_dicts, written

__all__ = ["TasksMode", "user_tags"]

_SEQUENCE_TAG: Final = "seq:step"


def user_tags(tags: Sequence[str]) -> list[str]:
    """Return *tags* without those that only count the steps of a sequence.

    >>> user_tags(["seq:step:1", "mine"])
    ['mine']
    """
    return [tag for tag in tags if not tag.startswith(_SEQUENCE_TAG)]


class TasksMode:
    """Shows all starts of a superstep before any of its tasks runs; of what is called or takes over later, when it starts."""

    wants: ClassVar[int] = kinds(SuperstepStarted, TaskStarted, TaskEnded)

    def __init__(self, emit: Emit) -> None:
        self._emit = emit
        self._planned: dict[UUID, set[str]] = {}
        """Tasks whose start was shown, of each run's superstep."""

    def observe(self, event: SuperstepStarted | TaskStarted | TaskEnded, run: ShownRun) -> None:
        """Show starts, or an end."""
        match event:
            case SuperstepStarted():
                self._planned[event.run_id] = {task.task_id for task in event.tasks}
                for task in event.tasks:
                    if not task.is_hidden:
                        self._show_start(task, event, run)
            case TaskStarted():
                known = self._planned.setdefault(event.run_id, set())
                if event.task_id not in known:
                    known.add(event.task_id)
                    self._show_start(event, event, run)
            case TaskEnded():
                if not event.is_hidden and (result := _result(event, run)) is not None:
                    self._emit(run, event, result)

    def _show_start(self, task: TaskPlanned | TaskStarted, event: SuperstepStarted | TaskStarted, run: ShownRun) -> None:
        self._emit(run, event, _start(task, run))


def _start(task: TaskPlanned | TaskStarted, run: ShownRun) -> dict[str, Any]:
    given = task.input
    mapper = task.mapper if isinstance(task, TaskPlanned) else None
    start = {"id": task.task_id, "name": task.name, "input": _input(given, mapper), "triggers": task.triggers}
    if metadata := _metadata(task, run):
        start["metadata"] = metadata
    return start


def _input(given: Any, mapper: Callable[[Any], Any] | None) -> Any:
    """Return a task's input as the reader's own: the node may change what it gets in place."""
    if type(given) is dict:
        given = {key: isolated(value) for key, value in given.items()}
    if mapper is None:
        return isolated(given)
    try:
        return mapper(given)
    except Exception:  # noqa: BLE001  # the task will fail with it
        return given


def _metadata(task: TaskPlanned | TaskStarted, run: ShownRun) -> dict[str, Any]:
    """Return what the user said of the run and the node."""
    both: Mapping[str, Any] = {**run.started.metadata, **(task.metadata or {})}
    shown = {key: value for key, value in both.items() if key not in EXCLUDED_METADATA_KEYS}
    if tags := user_tags([*run.started.tags, *task.tags]):
        shown["tags"] = tags
    return shown


def _result(event: TaskEnded, run: ShownRun) -> dict[str, Any] | None:
    """Return how a task ended, None if it neither finished, failed nor asked by itself."""
    result: dict[str, Any] = {}
    if event.status == "completed":
        result = {RETURN: event.result} if event.is_call else written(event.writes, run.started.stream_keys)
    elif event.status != "failed" and (event.status != "interrupted" or event.is_call):
        return None
    return {
        "id": event.task_id,
        "name": event.name,
        "error": event.error if event.status == "failed" else None,
        "result": result,
        "interrupts": question_dicts(event.interrupts) if event.status == "interrupted" else [],
    }
