"""What the engine tells a driver to do, and the decision that carries it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, TypeAlias

from tracegraph.engine.task import Task
from tracegraph.errors import NodeTimeoutError
from tracegraph.events import AttemptStarted, Event, RunStatus, TaskStarted
from tracegraph.records import NewCheckpoint, TaskWrites
from tracegraph.types import Interrupt

__all__ = [
    "Action",
    "CancelTask",
    "Decision",
    "Finish",
    "ResolveCall",
    "RunTask",
    "SaveCheckpoint",
    "SaveWrites",
    "StopRun",
    "TimeOut",
    "WakeAt",
]


@dataclass(slots=True)
class RunTask:
    """Run one attempt of *task*. ``started`` are the events to publish inside the task's own Context."""

    task: Task
    started: tuple[TaskStarted | AttemptStarted, ...] = ()


@dataclass(slots=True)
class CancelTask:
    """Stop *task* if it has not begun or can be stopped; report :class:`TaskCancelled` once it has."""

    task: Task


@dataclass(slots=True)
class TimeOut:
    """Abandon an attempt whose time is up: stop its body if that can be stopped, and report it failed with *error*."""

    task: Task
    attempt: int
    error: NodeTimeoutError


@dataclass(slots=True)
class StopRun:
    """Abandon these tasks' attempts, then report :class:`CloseRequested`: a time limit of the run is reached.

    The engine has given them up already, so none of their reports counts.
    """

    tasks: tuple[Task, ...]
    error: BaseException
    reason: str


@dataclass(slots=True, kw_only=True)
class SaveCheckpoint(NewCheckpoint):
    """Store a checkpoint. Saves are carried out in the order of ``order``."""

    order: int = 0
    is_awaited: bool
    """The engine waits for the SaveEnded report before it goes on."""
    started: Event | None = None


@dataclass(slots=True, kw_only=True)
class SaveWrites(TaskWrites):
    """Store the writes of one task under a checkpoint."""

    order: int = 0
    is_awaited: bool


@dataclass(slots=True)
class WakeAt:
    """Report :class:`Woke` at this wall-clock time (nanoseconds)."""

    at_ns: int


@dataclass(slots=True)
class ResolveCall:
    """Give a called task's future its result, error or interrupt (they stand on the task)."""

    task: Task


@dataclass(slots=True)
class Finish:
    """The run is over. The driver waits for background saves, publishes ``RunEnded``, then returns or raises."""

    status: RunStatus
    output: Any = None
    error: BaseException | None = None
    interrupts: tuple[Interrupt, ...] = ()
    reason: str | None = None
    starved: tuple[tuple[str, str, tuple[str, ...]], ...] = ()
    """Joins that some of their sources never reached: (channel, target, sources waited for)."""
    errors: tuple[BaseException, ...] = field(default=())
    """Every failure of the last superstep, in task order; ``error`` is the first."""


Action: TypeAlias = RunTask | CancelTask | TimeOut | StopRun | SaveCheckpoint | SaveWrites | WakeAt | ResolveCall | Finish


class Decision:
    """Actions to carry out and events to publish, in order."""

    __slots__ = ("actions", "events")

    def __init__(self) -> None:
        self.actions: list[Action] = []
        self.events: list[Event] = []

    def __repr__(self) -> str:
        return f"Decision(actions={self.actions!r}, events={self.events!r})"
