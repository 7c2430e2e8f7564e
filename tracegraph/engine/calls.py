"""Task calls: functions that node code starts inside its own task (design 6.6)."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from tracegraph.constants import PUSH, RESUME
from tracegraph.engine.actions import Decision, ResolveCall
from tracegraph.engine.identity import call_suffix, path_text, task_namespace
from tracegraph.engine.reports import TaskCalled
from tracegraph.engine.task import Task
from tracegraph.engine.task_limit import count_tasks

if TYPE_CHECKING:
    from tracegraph.engine.engine import Engine

__all__ = ["adopt_call"]


def adopt_call(engine: Engine, decision: Decision, report: TaskCalled, at_ns: int) -> None:
    """Run a called function as a child of its caller, or hand back what a task of that id returned before.

    Where the limit of tasks allows no more, the call fails and was none.

    Ids count from 0 in every attempt, so a retry and a resume find the children that finished.
    """
    caller = report.caller
    child = _child(engine, report)
    report.child = child
    if not caller.is_running or caller.attempt != report.attempt:
        engine.announce.ignored(decision, caller, report.attempt, "TaskCalled", at_ns)
        child.status = "cancelled"
        decision.actions.append(ResolveCall(child))
        return
    if (known := engine.finished_calls.get(child.id)) is not None:
        report.child = known
        decision.actions.append(ResolveCall(known))
        return
    is_known = engine.pending.recall(child)
    if not is_known and (refusal := count_tasks(engine, [child])) is not None:
        child.status, child.error = "failed", refusal
        decision.actions.append(ResolveCall(child))
        return
    has_unfinished = any(not other.is_finished for other in caller.children or ())
    caller.children = [*(caller.children or ()), child]
    child.planned_at_ns = at_ns
    engine.open_tasks += 1
    if not has_unfinished:
        # A caller that waits for its children holds no slot of max_concurrency, else a limit of 1 would hang.
        engine.running -= 1
    if is_known:
        engine.settle(decision, child, "cached", at_ns)
        return
    if child.answers and not child.is_answer_held:
        # Stored before the task runs again: an answer given once must survive a crash.
        engine.saving.save_writes(decision, child.id, child.path_str, [(RESUME, list(child.answers))])
    engine.queue.append(child)
    engine.hand_out(decision)


def _child(engine: Engine, report: TaskCalled) -> Task:
    caller, node = report.caller, report.node
    ns = task_namespace(caller.ns, caller.node.name, caller.id)
    path = (PUSH, caller.path, report.index, True)
    # A called task's ids are hashed from its caller's namespace.
    at = dataclasses.replace(caller.at, checkpoint=engine.saving.checkpoint_bytes, ns=ns)
    child = Task(at, node, path, path_text(path), (PUSH,), call_suffix(node.name, caller.path, report.index))
    child.input = report.call[1:]
    child.caller = caller
    child.is_follow_up = True
    child.call = report.call
    return child
