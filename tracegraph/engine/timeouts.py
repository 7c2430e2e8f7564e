"""Time limits of attempts: the engine keeps the deadlines, the driver the clock, the body and the time of its last progress."""

from __future__ import annotations

from tracegraph.engine.actions import Decision, TimeOut, WakeAt
from tracegraph.engine.settings import nanoseconds
from tracegraph.engine.task import Task
from tracegraph.errors import NodeTimeoutError

__all__ = ["arm_timeout", "check_timeout"]


def arm_timeout(decision: Decision, task: Task, at_ns: int) -> None:
    """Set the deadline of an attempt that begins now, unless its run's time is up."""
    if task.timeout is not None and task.is_running:
        task.began_ns = at_ns
        _set_deadline(decision, task, at_ns)


def _set_deadline(decision: Decision, task: Task, progress_ns: int) -> None:
    """Ask to be woken when the first of the attempt's limits is reached, if nothing is heard of it until then."""
    policy = task.timeout
    assert policy is not None
    dues = [
        began_ns + nanoseconds(limit)  # type: ignore[arg-type]  # the policy made seconds of a timedelta
        for began_ns, limit in ((task.began_ns, policy.run_timeout), (progress_ns, policy.idle_timeout))
        if limit is not None
    ]
    task.deadline_ns = min(dues)
    decision.actions.append(WakeAt(task.deadline_ns))


def check_timeout(decision: Decision, task: Task, at_ns: int, progress_ns: int) -> None:
    """Order a running attempt abandoned if its time is up, else ask to be woken again.

    *progress_ns* is when it last gave a sign of progress, 0 if it has given none.
    """
    policy, deadline_ns = task.timeout, task.deadline_ns
    assert policy is not None
    assert deadline_ns is not None
    if at_ns < deadline_ns:
        decision.actions.append(WakeAt(deadline_ns))
        return
    for kind, limit, since_ns in (
        ("run", policy.run_timeout, task.began_ns),
        ("idle", policy.idle_timeout, max(task.began_ns, progress_ns)),
    ):
        if limit is not None and at_ns - since_ns >= nanoseconds(limit):  # type: ignore[arg-type]  # see above
            task.deadline_ns = None
            error = NodeTimeoutError(
                task.node.name,
                (at_ns - since_ns) / 1e9,
                kind=kind,  # type: ignore[arg-type]  # one of the two above
                idle_timeout=policy.idle_timeout,  # type: ignore[arg-type]
                run_timeout=policy.run_timeout,  # type: ignore[arg-type]
                step=task.step,
            )
            decision.actions.append(TimeOut(task, task.attempt, error))
            return
    _set_deadline(decision, task, max(task.began_ns, progress_ns))
