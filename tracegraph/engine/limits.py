"""Time limits of supersteps and of whole runs, which hold for every node: what can be stopped is, the rest is left behind.

When a limit is reached the engine gives up on every running attempt at once, so that none of their reports counts any
more. The driver then closes what those attempts had started and closes the run: in this order, for what runs inside a
task ends before the task does.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tracegraph.engine.actions import Decision, StopRun, WakeAt
from tracegraph.engine.ending import finish, first_failures
from tracegraph.engine.failures import add_note
from tracegraph.engine.settings import Deadline, nanoseconds
from tracegraph.errors import RunDeadlineError, StepTimeoutError

if TYPE_CHECKING:
    from tracegraph.engine.engine import Engine
    from tracegraph.engine.settings import RunSettings

__all__ = ["Limits", "check_limits", "note_began"]


@dataclass(slots=True)
class Limits:
    """The time limits of one run, and what they count from."""

    step_timeout: float | None
    """In seconds, for each superstep."""
    deadline: Deadline | None
    step_began_ns: int | None = None
    """When the first task of the superstep began: time in which a reader holds the run back does not count."""
    is_reached: bool = False

    @classmethod
    def of(cls, settings: RunSettings) -> Limits | None:
        """Return the run's limits; None, which costs nothing to look at, if it has none."""
        if settings.step_timeout is None and settings.deadline is None:
            return None
        return cls(settings.step_timeout, settings.deadline)

    @property
    def step_due_ns(self) -> int | None:
        """When the superstep's time is up, if it has begun and has a limit."""
        if self.step_timeout is None or self.step_began_ns is None:
            return None
        return self.step_began_ns + nanoseconds(self.step_timeout)

    @property
    def due_ns(self) -> int | None:
        """When the first of the limits that are known now is reached."""
        dues = (self.step_due_ns, None if self.deadline is None else self.deadline.due_ns)
        return min((due_ns for due_ns in dues if due_ns is not None), default=None)

    def ask_to_wake(self, decision: Decision) -> None:
        """Ask to be woken when the next limit may be reached."""
        for due_ns in (self.step_due_ns, None if self.deadline is None else self.deadline.due_ns):
            if due_ns is not None:
                decision.actions.append(WakeAt(due_ns))


def note_began(engine: Engine, decision: Decision, at_ns: int) -> None:
    """Take note that a task is about to begin: with the first one, its superstep does. After the deadline none may."""
    limits = engine.limits
    if limits is None:
        return
    is_first = limits.step_began_ns is None
    if is_first:
        limits.step_began_ns = at_ns
    if is_first or (limits.deadline is not None and at_ns >= limits.deadline.due_ns):
        check_limits(engine, decision, at_ns)


def check_limits(engine: Engine, decision: Decision, at_ns: int) -> bool:
    """Stop the run if one of its limits is reached, else ask to be woken again; say whether one is."""
    limits = engine.limits
    if limits is None or limits.is_reached:
        return limits is not None
    deadline, step_due_ns = limits.deadline, limits.step_due_ns
    if deadline is not None and at_ns >= deadline.due_ns:
        limits.is_reached = True
        facts = {"step": engine.step, "limit": deadline.limit_s, "elapsed": (at_ns - deadline.began_ns) / 1e9}
        _stop(engine, decision, RunDeadlineError(**facts, **_unfinished(engine)), "run_deadline", at_ns)  # type: ignore[arg-type]
    elif step_due_ns is not None and at_ns >= step_due_ns and engine.phase == "running":
        limits.is_reached = True
        assert limits.step_timeout is not None
        assert limits.step_began_ns is not None
        facts = {"step": engine.step, "limit": limits.step_timeout, "elapsed": (at_ns - limits.step_began_ns) / 1e9}
        _stop(engine, decision, StepTimeoutError(**facts, **_unfinished(engine)), "step_timeout", at_ns)  # type: ignore[arg-type]
    else:
        limits.ask_to_wake(decision)
    return limits.is_reached


def _unfinished(engine: Engine) -> dict[str, Any]:
    """Return the names of the nodes that were at work and of those that waited, each once, in task order."""
    unfinished = [] if engine.phase != "running" else [task for task in engine.everyone() if not task.is_finished]
    at_work = {task: task.is_running and task.has_begun for task in unfinished}
    return {
        "running": tuple(dict.fromkeys(task.node.name for task, is_at_work in at_work.items() if is_at_work)),
        "waiting": tuple(dict.fromkeys(task.node.name for task, is_at_work in at_work.items() if not is_at_work)),
    }


def _stop(engine: Engine, decision: Decision, error: Exception, reason: str, at_ns: int) -> None:
    if failures := first_failures(engine):
        # What went wrong before the time was up is the reason to stop; the limit only says when.
        add_note(failures[0], str(error))
        error, reason = failures[0], type(failures[0]).__name__  # type: ignore[assignment]
    given_up = []
    for task in engine.everyone() if engine.phase == "running" else ():
        task.retry_at_ns = task.deadline_ns = None
        if task.is_running:
            task.is_running = False
            given_up.append(task)
    engine.running = 0
    engine.queue.clear()
    if given_up:
        decision.actions.append(StopRun(tuple(given_up), error, reason))
    else:
        finish(engine, decision, "failed", at_ns, error=error, errors=tuple(failures), reason=reason)
