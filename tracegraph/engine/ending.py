"""How a run ends: in order, stopped in the middle of a superstep, or closed from outside."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tracegraph.constants import MISSING
from tracegraph.engine.actions import CancelTask, Decision, Finish
from tracegraph.engine.apply import WriteGroup
from tracegraph.engine.task import Task
from tracegraph.engine.views import read
from tracegraph.errors import GraphDrained
from tracegraph.events import Interrupted, RunStatus, StateUpdated, SuperstepEnded, SuperstepStarted, TaskEnded, TaskStatus
from tracegraph.types import Interrupt

if TYPE_CHECKING:
    from tracegraph.engine.engine import Engine

__all__ = ["catch_up", "finish", "finish_stopped_step", "first_failures"]


def first_failures(engine: Engine) -> list[BaseException]:
    """Return what the superstep's tasks failed with for good, in task order, each handler's before what it was to handle.

    Of several failures the first in task order is raised, not the first to arrive: runs can be compared. What a task fails
    with because it was cancelled for another's failure comes last.
    """
    failed = sorted(engine.failures, key=lambda task: (task.is_stopped, task.path_str))
    return [
        error
        for task in failed
        for error in (task.error, None if task.handles is None else task.handles.error)
        if error is not None
    ]


def finish_stopped_step(engine: Engine, decision: Decision, at_ns: int) -> None:
    """End a run whose superstep settled without being applied: failure, hand-over, cancellation, pause, in this order."""
    if engine.failures:
        errors = first_failures(engine)
        finish(engine, decision, "failed", at_ns, error=errors[0], errors=tuple(errors))
    elif engine.handed_over is not None:
        status: RunStatus = "drained" if isinstance(engine.handed_over, GraphDrained) else "handed_over"
        finish(engine, decision, status, at_ns, error=engine.handed_over)
    elif engine.is_cut_short:
        finish(engine, decision, "cancelled", at_ns, reason="a task was cancelled")
    else:
        _finish_interrupted(engine, decision, at_ns)


def _finish_interrupted(engine: Engine, decision: Decision, at_ns: int) -> None:
    settings = engine.settings
    asked = tuple(question for task in engine.tasks for question in task.interrupts)
    interrupts = tuple({question.id: question for question in asked}.values())
    values: dict[str, Any] | None = None
    finished = sorted((task for task in engine.tasks if task.status in ("completed", "cached")), key=lambda t: t.path_str)
    if finished:
        # Shown, not stored: what finished siblings wrote is in the output, while the checkpoint stays where it is.
        groups: list[WriteGroup] = [(task.node.name, task.writes) for task in finished]
        values = _previewed(engine, finished, groups)
    if values is not None:
        groups = [(task.node.name, task.writes) for task in finished]
        changed = frozenset(channel for _, writes in groups for channel, _ in writes) & values.keys()
        engine.is_touched = engine.is_touched or not changed.isdisjoint(engine.topology.output_keys)
        if settings.wants & StateUpdated.bit:
            decision.events.append(
                StateUpdated(settings.run_id, settings.ns, engine.step, at_ns, values, frozenset(changed), "pending")
            )
    if settings.wants & Interrupted.bit:
        decision.events.append(
            Interrupted(settings.run_id, settings.ns, engine.step, at_ns, "pending", interrupts, engine.saving.checkpoint_id)
        )
    finish(engine, decision, "interrupted", at_ns, interrupts=interrupts, values=values)


def _previewed(engine: Engine, finished: list[Task], groups: list[WriteGroup]) -> dict[str, Any] | None:
    try:
        return engine.store.preview(finished, groups)
    except Exception:  # noqa: BLE001  # what siblings wrote cannot be merged: the pause is shown without it
        return None


def finish(
    engine: Engine,
    decision: Decision,
    status: RunStatus,
    at_ns: int,
    *,
    error: BaseException | None = None,
    errors: tuple[BaseException, ...] = (),
    interrupts: tuple[Interrupt, ...] = (),
    reason: str | None = None,
    values: dict[str, Any] | None = None,
) -> None:
    """Close the run: open tasks are announced as ended, exit saves and the Finish action are ordered."""
    _close_open_tasks(engine, decision, "abandoned" if status == "abandoned" else "cancelled", reason or status, at_ns)
    if engine.phase == "running":
        engine.announce.superstep_ended(decision, engine.tasks, None, engine.saving.checkpoint_id, at_ns)
    engine.phase = "closed"
    engine.queue.clear()
    try:
        engine.saving.save_at_exit(decision, engine.store, at_ns)
    except Exception as failure:  # noqa: BLE001  # a channel of the user's own that cannot be dumped
        status, error = "failed", error or failure
    output = None
    if engine.is_touched:
        output = read(engine.store.values if values is None else values, engine.topology.output_channels)
    starved = _starved_joins(engine) if status == "completed" else ()
    decision.actions.append(Finish(status, output, error, interrupts, reason, starved, errors))


def _close_open_tasks(engine: Engine, decision: Decision, status: TaskStatus, reason: str, at_ns: int) -> None:
    for task in _innermost_first(engine.tasks):
        if task.is_finished or engine.phase != "running":
            continue
        if task.is_running:
            task.is_running = False
            decision.actions.append(CancelTask(task))
        engine.settle(decision, task, status, at_ns, reason)


def catch_up(engine: Engine, decision: Decision) -> None:
    """Take what is announced as done: Ctrl-C came before it was noted, and nothing may be announced twice, or left open."""
    told = {event.task_id for event in decision.events if isinstance(event, TaskEnded)}
    for task in _innermost_first(engine.tasks):
        task.is_finished = task.is_finished or task.id in told
    for event in decision.events:
        if engine.phase != "closed" and isinstance(event, SuperstepStarted | SuperstepEnded):
            engine.phase = "running" if isinstance(event, SuperstepStarted) else "between"


def _innermost_first(tasks: list[Task]) -> list[Task]:
    found: list[Task] = []
    for task in tasks:
        if task.children:
            found.extend(_innermost_first(task.children))
        found.append(task)
    return found


def _starved_joins(engine: Engine) -> tuple[tuple[str, str, tuple[str, ...]], ...]:
    """Return the joins that some, but not all, of their sources reached: what follows them never ran."""
    starved = []
    for channel, (starts, target) in engine.topology.joins.items():
        state = engine.store.states.get(channel, MISSING)
        seen = engine.topology.channels[channel].dump(state)
        names = seen[0] if isinstance(seen, tuple) else seen
        if names is not MISSING and names and len(names) < len(starts):
            starved.append((channel, target, tuple(start for start in starts if start not in names)))
    return tuple(starved)
