"""What a loaded checkpoint already knows of its superstep's tasks: results to hand back, questions, answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from tracegraph.constants import ERROR, ERROR_SOURCE_NODE, INTERRUPT, NS_SEP, NULL_TASK_ID, RESUME, RETURN, UNFINISHED_WRITES
from tracegraph.engine.identity import interrupt_id, task_namespace, without_ids
from tracegraph.engine.settings import Begin
from tracegraph.engine.task import Task
from tracegraph.records import CheckpointTuple, Write

__all__ = ["PendingWrites"]


class PendingWrites:
    """The pending writes of a checkpoint, by task, and the answers of this run, by interrupt id."""

    __slots__ = ("_answers", "_by_task", "_carried", "_reopened")

    def __init__(self, begin: Begin) -> None:
        self._by_task: dict[str, list[Write]] = {}
        for task_id, channel, value in (begin.saved.pending_writes or ()) if begin.saved is not None else ():
            if task_id == NULL_TASK_ID or not begin.is_replay:
                self._by_task.setdefault(task_id, []).append((channel, value))
        self._answers: Mapping[str, Any] = begin.answers
        self._reopened = tuple(begin.reopened)
        self._carried = begin.carried

    def stored(self, task: Task) -> Sequence[Write]:
        """Return what is stored of a task."""
        return self._by_task.get(task.id, ())

    def of_commands(self) -> list[Write]:
        """Return the stored writes that no task made."""
        return [(c, v) for c, v in self._by_task.get(NULL_TASK_ID, ()) if c != RESUME]

    def handled_failure(self, task: Task) -> BaseException | None:
        """Return what a task failed with, if its error handler had taken over; a saver may have kept only its text."""
        stored = dict(self._by_task.get(task.id, ()))
        if ERROR_SOURCE_NODE not in stored:
            return None
        error = stored[ERROR]
        return error if isinstance(error, BaseException) else RuntimeError(str(error))

    def clear(self) -> None:
        """Forget everything: the superstep these writes belong to is over."""
        self._by_task.clear()
        self._carried = None

    def _is_reopened(self, task: Task) -> bool:
        """Say whether a graph that the task runs goes back to an earlier checkpoint of its own."""
        if not self._reopened:
            return False
        ns = task_namespace(task.ns, task.node.name, task.id)
        inside = (f"{ns}{NS_SEP}", f"{without_ids(ns)}{NS_SEP}")
        return any(f"{key}{NS_SEP}".startswith(inside) for key in self._reopened)

    def _asked_before(self, task: Task, carried: CheckpointTuple) -> tuple[list[Write] | None, str]:
        """Return what the task had asked and been told before the state was updated, if that is answered now, and where."""
        top = task
        while top.caller is not None:
            top = top.caller
        then = (UUID(carried.checkpoint["id"]).bytes, top.ns, carried.metadata["step"] + 1)
        task_id = task.id_at(*then)
        found = [(c, v) for t, c, v in carried.pending_writes or () if t == task_id and c in (INTERRUPT, RESUME)]
        is_answered = any(question.id in self._answers for c, v in found if c == INTERRUPT for question in v)
        return (found if is_answered else None), task.namespace_at(*then)

    def recall(self, task: Task) -> bool:
        """Give a planned or called task what is stored of it; say whether it had finished.

        An answer addressed to one of the task's questions joins the answers before it. It outranks one that is stored,
        and what the task did with that one: a checkpoint can be resumed again, with another answer (case C38).
        """
        stored, ns = self._by_task.get(task.id), None
        if stored is None and self._carried is not None:
            stored, ns = self._asked_before(task, self._carried)
        if stored is None:
            return False
        ns = ns or task_namespace(task.ns, task.node.name, task.id)
        asked = {question.id: question for channel, value in stored if channel == INTERRUPT for question in value}
        task.answers = next((tuple(value) for channel, value in stored if channel == RESUME), ())
        finished = [(c, v) for c, v in stored if c not in UNFINISHED_WRITES]
        if finished and asked.keys().isdisjoint(self._answers) and not self._is_reopened(task):
            task.writes = finished
            task.result = next((v for c, v in finished if c == RETURN), None)
            return True
        for count in range(len(task.answers) + 1):
            question = interrupt_id(ns, count)
            if question in asked and question in self._answers:
                task.answers = (*task.answers[:count], self._answers[question])
                task.is_answer_held = asked[question].response_schema is not None
                break
        return False
