"""Time limits of attempts: the engine keeps the deadlines, the driver the clock and the body."""

from __future__ import annotations

from tracegraph.engine.actions import Decision, TimeOut, WakeAt
from tracegraph.engine.task import Task
from tracegraph.errors import NodeTimeoutError

__all__ = ["arm_timeout", "check_timeout"]


def _limit_s(task: Task) -> float | None:
    limit = None if task.timeout is None else task.timeout.run_timeout
    return None if limit is None else float(limit)  # type: ignore[arg-type]  # the policy made seconds of a timedelta


def arm_timeout(decision: Decision, task: Task, at_ns: int) -> None:
    """Set the deadline of an attempt that begins now."""
    limit_s = _limit_s(task)
    if limit_s is not None:
        task.deadline_ns = at_ns + int(limit_s * 1e9)
        decision.actions.append(WakeAt(task.deadline_ns))


def check_timeout(decision: Decision, task: Task, at_ns: int) -> None:
    """Order a running attempt abandoned if its time is up, else ask to be woken again."""
    deadline_ns, limit_s = task.deadline_ns, _limit_s(task)
    assert deadline_ns is not None
    assert limit_s is not None
    if at_ns < deadline_ns:
        decision.actions.append(WakeAt(deadline_ns))
        return
    task.deadline_ns = None
    elapsed_s = limit_s + (at_ns - deadline_ns) / 1e9
    error = NodeTimeoutError(task.node.name, elapsed_s, kind="run", run_timeout=limit_s)
    decision.actions.append(TimeOut(task, task.attempt, error))
