"""Stopping what need not go on: siblings of a failure, calls of an attempt that has ended."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracegraph.engine.actions import CancelTask, Decision
from tracegraph.engine.task import Task
from tracegraph.errors import NodeCancelledError

if TYPE_CHECKING:
    from tracegraph.engine.engine import Engine

__all__ = ["drop_calls", "settle_cancelled", "stop_calls", "stop_others"]


def stop_others(engine: Engine, decision: Decision, at_ns: int) -> None:
    """Fail fast: what has not begun never begins; what can be cancelled is."""
    while engine.queue:
        settle_cancelled(engine, decision, engine.queue.popleft(), at_ns)
    for task in engine.everyone():
        if task.is_running and not task.is_orphan:
            decision.actions.append(CancelTask(task))
        elif task.retry_at_ns is not None:
            task.retry_at_ns = None
            settle_cancelled(engine, decision, task, at_ns)


def settle_cancelled(engine: Engine, decision: Decision, task: Task, at_ns: int) -> None:
    """Close a task that has stopped because something else ended."""
    stop_calls(engine, decision, task, at_ns)
    task.writes = []
    cause, reason = ("its caller ended", "caller_ended") if task.is_orphan else ("a sibling ended the run", "sibling_error")
    task.error = NodeCancelledError(task.node.name, f"node {task.node.name!r} was cancelled because {cause}")
    engine.settle(decision, task, "cancelled", at_ns, reason=reason)


def stop_calls(engine: Engine, decision: Decision, caller: Task, at_ns: int) -> None:
    """Stop what a failed or cancelled attempt called, as siblings of a failure are stopped: what ends all the same counts.

    A thread cannot be stopped, and what it does is done: the next attempt, or a resumed run, finds its result.
    """
    for call in caller.children or ():
        if call.is_running and not call.is_orphan:
            call.is_orphan = True
            decision.actions.append(CancelTask(call))
        elif not call.is_running and not call.is_finished:
            call.is_orphan = True
            call.retry_at_ns = None
            if call in engine.queue:
                engine.queue.remove(call)
            settle_cancelled(engine, decision, call, at_ns)


def drop_calls(engine: Engine, decision: Decision, caller: Task, at_ns: int) -> None:
    """Abandon what an attempt called that is not waited for any longer; its reports will be ignored."""
    for call in caller.children or ():
        if call.is_finished:
            continue
        if call in engine.queue:
            engine.queue.remove(call)
        elif call.is_running:
            engine.leave(call)
            decision.actions.append(CancelTask(call))
        call.retry_at_ns = None
        drop_calls(engine, decision, call, at_ns)
        engine.settle(decision, call, "cancelled", at_ns, reason="caller_ended")
    caller.children = None
