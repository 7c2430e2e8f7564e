"""Starting and ending a superstep."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tracegraph.constants import INTERRUPT, RESUME, TASKS
from tracegraph.engine.actions import Decision
from tracegraph.engine.apply import WriteGroup
from tracegraph.engine.ending import finish, finish_stopped_step
from tracegraph.engine.handlers import hand_to_handler
from tracegraph.engine.limits import check_limits
from tracegraph.engine.task import Task
from tracegraph.engine.task_limit import count_tasks, tasks_to_count
from tracegraph.errors import GraphDrained, GraphRecursionError, InvalidUpdateError, StateSizeError
from tracegraph.events import Drained, Interrupted, StateUpdated, TaskStarted

if TYPE_CHECKING:
    from tracegraph.engine.engine import Engine

__all__ = ["end_superstep", "start_superstep"]


def start_superstep(engine: Engine, decision: Decision, at_ns: int) -> None:
    """Plan the next superstep, or find that there is none, that the limit is reached, or that the run must stop here."""
    if engine.step > engine.stop:
        _stop_at_limit(engine, decision, at_ns)
        return
    tasks = engine.plan()
    if engine.announce.wants_checkpoints:
        engine.announce.checkpoint_reached(engine, decision, tasks, at_ns)
    if not tasks:
        finish(engine, decision, "completed", at_ns)
        return
    engine.tasks = tasks
    if _stops_before(engine, decision, tasks, at_ns):
        return
    if engine.announce.wants_steps:
        engine.announce.superstep_started(decision, tasks, engine.saving.checkpoint_id, at_ns)
    engine.phase = "running"  # once that is said: Ctrl-C may come in between
    engine.open_tasks = len(tasks)
    if engine.finished_calls:
        engine.finished_calls = {}
    for task in tasks:
        task.planned_at_ns = at_ns
    for task, producer_id in zip(tasks, engine.producers, strict=False) if engine.producers else ():
        task.producer_id = producer_id
    if engine.is_resuming:
        _recall(engine, decision, tasks, at_ns)
    else:
        engine.queue.extend(tasks)


def _stops_before(engine: Engine, decision: Decision, tasks: Sequence[Task], at_ns: int) -> bool:
    """Stop the run before a planned superstep if it must: a breakpoint, a drain, a limit; say whether it does."""
    if engine.settings.interrupt_before and _is_breakpoint(engine, engine.settings.interrupt_before, tasks):
        _pause(engine, decision, "interrupt_before", at_ns)
        return True
    if engine.drain_reason is not None:
        _drain(engine, decision, tasks, at_ns)
        return True
    if engine.limits is not None:
        engine.limits.step_began_ns = None
        if check_limits(engine, decision, at_ns):
            return True
    refusal = None if engine.settings.count_tasks is None else count_tasks(engine, tasks_to_count(engine, tasks))
    if refusal is not None:
        finish(engine, decision, "failed", at_ns, error=refusal)
    return refusal is not None


def _recall(engine: Engine, decision: Decision, tasks: Sequence[Task], at_ns: int) -> None:
    """Hand back what tasks of this superstep did before the run stopped; queue the others."""
    for task in list(tasks):  # handlers join the list meanwhile
        answered = len(task.answers)
        if engine.pending.recall(task):
            engine.settle(decision, task, "cached", at_ns)
            continue
        error = engine.pending.handled_failure(task)
        if error is not None and task.node.error_handler is not None:
            # It failed for good before the stop: only its handler, unless that had finished too, has anything left to do.
            task.error = error
            engine.settle(decision, task, "failed", at_ns)
            if not hand_to_handler(engine, decision, task, error, at_ns):
                engine.failures.append(task)
            continue
        if len(task.answers) > answered and not task.is_answer_held:
            # Stored before the task runs again: an answer given once must survive a crash.
            engine.saving.save_writes(decision, task.id, task.path_str, [(RESUME, list(task.answers))])
        engine.queue.append(task)


def end_superstep(engine: Engine, decision: Decision, at_ns: int) -> None:
    """Apply a settled superstep's writes and move on, or stop the run if a task failed, paused or left the graph."""
    tasks = engine.tasks
    if engine.failures or engine.is_interrupted or engine.is_cut_short or engine.handed_over is not None:
        finish_stopped_step(engine, decision, at_ns)
        return
    store, settings = engine.store, engine.settings
    if len(tasks) > 1:
        # Task-path order, not arrival order: a reducer need not commute, and a replay must give the same values.
        tasks = sorted(tasks, key=_path)
    groups: list[WriteGroup] = [(task.node.name, task.writes) for task in tasks]
    try:
        updated = store.apply(tasks, groups, is_step=True)
    except Exception as error:  # noqa: BLE001  # reducers are user code
        if isinstance(error, InvalidUpdateError | StateSizeError):
            error.step = engine.step
        finish(engine, decision, "failed", at_ns, error=error)
        return
    if engine.is_resuming:
        engine.is_resuming = False
        engine.pending.clear()
    if not engine.is_touched:
        engine.is_touched = not updated.isdisjoint(engine.topology.output_keys)
    producers = _producers(tasks) if settings.wants & TaskStarted.bit and TASKS in updated else ()
    if engine.saving.is_on:
        engine.saving.save_checkpoint(decision, store, "loop", engine.step, at_ns, updated)
    if settings.wants & StateUpdated.bit:
        decision.events.append(StateUpdated(settings.run_id, settings.ns, engine.step, at_ns, store.values, updated, "loop"))
    if engine.announce.wants_steps:
        engine.announce.superstep_ended(decision, tasks, updated, engine.saving.checkpoint_id, at_ns)
    engine.step += 1
    engine.phase = "between"
    engine.tasks = []
    engine.producers = producers
    if settings.interrupt_after and _is_breakpoint(engine, settings.interrupt_after, tasks):
        if engine.announce.wants_checkpoints:
            engine.announce.checkpoint_reached(engine, decision, engine.plan(), at_ns)
        _pause(engine, decision, "interrupt_after", at_ns)


def _path(task: Task) -> str:
    return task.path_str


def _producers(tasks: Sequence[Task]) -> tuple[str, ...]:
    """Return, for each pending Send, the id of the task that sent it."""
    return tuple(task.id for task in tasks for channel, _ in task.writes if channel == TASKS)


def _is_breakpoint(engine: Engine, names: frozenset[str] | str, tasks: Sequence[Task]) -> bool:
    """Say whether a static breakpoint hits: one of *names* is here, and something changed since the last stop."""
    hit = any(not t.node.is_hidden for t in tasks) if names == "*" else any(t.node.name in names for t in tasks)
    if not hit:
        return False
    seen = engine.store.seen.get(INTERRUPT, {})
    versions = engine.store.versions
    return any(name not in seen or version > seen[name] for name, version in versions.items())  # type: ignore[operator]


def _pause(engine: Engine, decision: Decision, status: str, at_ns: int) -> None:
    settings = engine.settings
    if settings.wants & Interrupted.bit:
        decision.events.append(
            Interrupted(settings.run_id, settings.ns, engine.step, at_ns, status, (), engine.saving.checkpoint_id)  # type: ignore[arg-type]
        )
    finish(engine, decision, "interrupted", at_ns, reason=status)


def _drain(engine: Engine, decision: Decision, tasks: Sequence[Task], at_ns: int) -> None:
    settings = engine.settings
    reason = engine.drain_reason or ""
    if settings.wants & Drained.bit:
        names = tuple(task.node.name for task in tasks)
        decision.events.append(Drained(settings.run_id, settings.ns, engine.step, at_ns, reason, names))
    finish(engine, decision, "drained", at_ns, error=GraphDrained(reason), reason=reason)


def _stop_at_limit(engine: Engine, decision: Decision, at_ns: int) -> None:
    limit = engine.settings.recursion_limit
    tasks = engine.plan()
    if engine.announce.wants_checkpoints:
        engine.announce.checkpoint_reached(engine, decision, tasks, at_ns)
    names = tuple(task.node.name for task in tasks)
    error = GraphRecursionError(
        f"{limit} supersteps were not enough to finish; next would be {', '.join(map(repr, names)) or 'nothing'} in step "
        f"{engine.step}. Raise recursion_limit in the config, or check the condition that should end the loop",
        limit=limit,
        step=engine.step,
        next_nodes=names,
    )
    finish(engine, decision, "step_limit", at_ns, error=error)
