"""Building the engine's events, each only if somebody listens."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from tracegraph.engine.actions import Decision
from tracegraph.engine.identity import task_namespace, without_ids
from tracegraph.engine.retry import policies_of
from tracegraph.engine.settings import RunSettings
from tracegraph.engine.task import Task
from tracegraph.events import (
    QUESTIONS,
    AttemptEnded,
    AttemptStarted,
    CheckpointReached,
    CheckpointTask,
    ReportIgnored,
    SuperstepEnded,
    SuperstepStarted,
    TaskEnded,
    TaskPlanned,
    TaskStarted,
    TaskStatus,
    UnknownKeyIgnored,
)

if TYPE_CHECKING:
    from tracegraph.engine.engine import Engine

__all__ = ["Announcer"]

_EVERY_END: Final = TaskEnded.bit & ~QUESTIONS
"""Somebody listens to the ends of all tasks."""


class Announcer:
    """Makes the events of one run. The ``wants_...`` flags let the hot path skip a call that would build nothing."""

    __slots__ = ("ns", "run_id", "settings", "wants", "wants_checkpoints", "wants_starts", "wants_steps", "wants_tasks")

    def __init__(self, settings: RunSettings) -> None:
        self.settings = settings
        self.run_id = settings.run_id
        self.ns = settings.ns
        self.wants = settings.wants
        self.wants_checkpoints = bool(settings.wants & CheckpointReached.bit)
        self.wants_steps = bool(settings.wants & (SuperstepStarted.bit | SuperstepEnded.bit))
        self.wants_starts = bool(settings.wants & (TaskStarted.bit | AttemptStarted.bit))
        self.wants_tasks = bool(settings.wants & (TaskEnded.bit | AttemptEnded.bit | UnknownKeyIgnored.bit))

    def superstep_started(self, decision: Decision, tasks: Sequence[Task], checkpoint_id: str | None, at_ns: int) -> None:
        """Announce a planned superstep."""
        if self.wants & SuperstepStarted.bit:
            settings = self.settings
            planned = tuple(
                TaskPlanned(
                    t.id, t.node.name, t.path, t.triggers, t.input, t.node.is_hidden, t.node.metadata, t.node.tags,
                    t.node.mapper if t.is_mapped else None,
                )
                for t in tasks
            )  # fmt: skip
            has_span = len(tasks) > 1 or (settings.does_io and settings.durability == "sync")
            decision.events.append(SuperstepStarted(self.run_id, self.ns, tasks[0].step, at_ns, planned, has_span, checkpoint_id))

    def checkpoint_reached(self, engine: Engine, decision: Decision, tasks: Sequence[Task], at_ns: int) -> None:
        """Announce that the run stands at a checkpoint, and that *tasks* follow from it."""
        saving = engine.saving
        if not saving.is_on or saving.checkpoint_id is None:
            return
        metadata, parent_id = saving.current()
        planned = tuple(CheckpointTask(t.id, t.node.name, engine.pending.stored(t), _state_ns(t)) for t in tasks)
        decision.events.append(
            CheckpointReached(
                self.run_id,
                self.ns,
                metadata["step"],
                at_ns,
                saving.checkpoint_id,
                parent_id,
                metadata,
                engine.store.values,
                planned,
            )
        )

    def superstep_ended(
        self, decision: Decision, tasks: Sequence[Task], updated: frozenset[str] | None, checkpoint_id: str | None, at_ns: int
    ) -> None:
        """Announce that a superstep was applied (*updated* given) or stopped before that."""
        if tasks and self.wants & SuperstepEnded.bit:
            status = "stopped" if updated is None else "completed"
            names = tuple(sorted(updated or ()))
            decision.events.append(
                SuperstepEnded(self.run_id, self.ns, tasks[0].step, at_ns, status, len(tasks), names, checkpoint_id)  # type: ignore[arg-type]
            )

    def has_attempts(self, task: Task) -> bool:
        """Whether the task's tries are announced one by one."""
        return bool(policies_of(task, self.settings.default_retry))

    def task_started(self, task: Task) -> tuple[TaskStarted | AttemptStarted, ...]:
        """Return the events that the driver publishes inside the task's Context; it fills in the time."""
        node = task.node
        has_attempts = self.has_attempts(task)
        events: list[TaskStarted | AttemptStarted] = []
        if task.attempt == 1 and self.wants & TaskStarted.bit:
            caller_id = None if task.caller is None else task.caller.id
            events.append(
                TaskStarted(
                    self.run_id, self.ns, task.step, 0, task.id, node.name, task.path, task.triggers, task.input,
                    task.planned_at_ns, task.producer_id, caller_id, node.is_hidden, node.tags, node.metadata, has_attempts,
                )
            )  # fmt: skip
        if has_attempts and self.wants & AttemptStarted.bit:
            events.append(AttemptStarted(self.run_id, self.ns, task.step, 0, task.id, node.name, task.attempt))
        return tuple(events)

    def attempt_ended(
        self, decision: Decision, task: Task, error: BaseException | None, delay_s: float | None, at_ns: int
    ) -> None:
        """Announce the end of one try of a task that has a retry policy."""
        if self.wants & AttemptEnded.bit and self.has_attempts(task):
            decision.events.append(
                AttemptEnded(
                    self.run_id,
                    self.ns,
                    task.step,
                    at_ns,
                    task.id,
                    task.node.name,
                    task.attempt,
                    error,
                    delay_s is not None,
                    delay_s or 0.0,
                )
            )

    def task_ended(self, decision: Decision, task: Task, status: TaskStatus, at_ns: int, reason: str | None) -> None:
        """Announce that a task settled, with the attempt that ended with it and the keys it wrote in vain."""
        node = task.node
        if task.unknown_keys and self.wants & UnknownKeyIgnored.bit:
            for key in task.unknown_keys:
                decision.events.append(UnknownKeyIgnored(self.run_id, self.ns, task.step, at_ns, node.name, key))
        if status != "failed" and status != "cached":
            self.attempt_ended(decision, task, None, None, at_ns)
        if self.wants & _EVERY_END or (status == "interrupted" and self.wants & QUESTIONS):
            error = task.error if status in ("failed", "cancelled") else None
            decision.events.append(
                TaskEnded(
                    self.run_id, self.ns, task.step, at_ns, task.id, node.name, status, task.writes, task.result, error,
                    task.interrupts, node.is_hidden, task.attempt, reason, task.call is not None,
                    None if task.caller is None else task.caller.id,
                )
            )  # fmt: skip

    def ignored(self, decision: Decision, task: Task, attempt: int, report: str, at_ns: int) -> None:
        """Announce a report that came too late to count."""
        if self.wants & ReportIgnored.bit:
            decision.events.append(
                ReportIgnored(self.run_id, self.ns, task.step, at_ns, task.id, task.node.name, attempt, report)
            )


def _state_ns(task: Task) -> str | None:
    """Return where the state of a task's subgraph is filed: without ids if it lives on between calls."""
    child = task.node.subgraph
    if child is None:
        return None
    found = task_namespace(task.ns, task.node.name, task.id)
    return without_ids(found) if child.checkpointer is True else found
