"""What drivers tell the engine: past facts, each about one attempt of one task or one save."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from tracegraph.engine.node import Node
from tracegraph.engine.task import Task
from tracegraph.events import RunStatus
from tracegraph.types import Interrupt, RetryPolicy

__all__ = [
    "AnswerTaken",
    "CloseRequested",
    "Report",
    "SaveEnded",
    "TaskAborted",
    "TaskBegan",
    "TaskCalled",
    "TaskCancelled",
    "TaskFailed",
    "TaskHandedOver",
    "TaskInterrupted",
    "TaskSucceeded",
    "Woke",
]


@dataclass(slots=True)
class TaskBegan:
    """An attempt with a time limit began to run: its limit counts from here, not from when it was ordered."""

    task: Task
    attempt: int


@dataclass(slots=True)
class AnswerTaken:
    """An attempt took the answer that was held for it: it fits, so it may be stored."""

    task: Task
    attempt: int


@dataclass(slots=True)
class TaskSucceeded:
    """An attempt returned; its writes stand in ``task.writes``. ``result`` is what a called task returned."""

    task: Task
    attempt: int
    result: Any = None


@dataclass(slots=True)
class TaskFailed:
    """An attempt raised. ``policy`` is the retry policy that covers it, ``jitter`` a number from 0 to 1 that the driver drew."""

    task: Task
    attempt: int
    error: BaseException
    policy: RetryPolicy | None = None
    jitter: float = 0.0
    trace: tuple[str, ...] = ()
    """W3C traceparents of the task's span and of the root's, for whoever resumes this."""
    is_stopped: bool = False
    """It was being cancelled, and failed for that: in its clean-up, say."""
    is_given_up: bool = False
    """Its own time was up, so its code and what that called are left to themselves: their reports will not count."""


@dataclass(slots=True)
class TaskInterrupted:
    """An attempt asked a question that has no answer yet."""

    task: Task
    attempt: int
    interrupts: tuple[Interrupt, ...]
    trace: tuple[str, ...] = ()
    """As in :class:`TaskFailed`."""


@dataclass(slots=True)
class TaskHandedOver:
    """An attempt raised a command for an enclosing graph: this run ends, nothing failed."""

    task: Task
    attempt: int
    error: BaseException


@dataclass(slots=True)
class TaskCancelled:
    """A task that was told to stop has stopped (or never began)."""

    task: Task
    attempt: int


@dataclass(slots=True)
class TaskAborted:
    """An attempt raised something no program handles (KeyboardInterrupt, SystemExit): the run goes down, nothing is recorded."""

    task: Task
    attempt: int
    error: BaseException


@dataclass(slots=True)
class TaskCalled:
    """Code of *caller* called a task function; ``index`` counts its calls within this attempt from 0."""

    caller: Task
    attempt: int
    index: int
    node: Node
    call: tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]
    child: Task | None = None
    """Set by the engine: the task that stands for this call."""


@dataclass(slots=True)
class SaveEnded:
    """A save was carried out, or failed with *error*. ``order`` is the action's."""

    order: int
    error: BaseException | None = None
    written_bytes: int | None = None
    """What the saver wrote for a checkpoint; None where it does not tell."""


@dataclass(slots=True)
class Woke:
    """The time a :class:`~tracegraph.engine.actions.WakeAt` asked for has come."""

    progress: Mapping[Task, int] = field(default_factory=dict)
    """When attempts with an idle limit last gave a sign of progress: asked for here, and not told of at each sign."""


@dataclass(slots=True)
class CloseRequested:
    """The run must stop now: its consumer left, it was cancelled, or its driver broke."""

    status: RunStatus
    reason: str
    error: BaseException | None = None


Report: TypeAlias = (
    AnswerTaken
    | TaskBegan
    | TaskSucceeded
    | TaskFailed
    | TaskInterrupted
    | TaskHandedOver
    | TaskCancelled
    | TaskAborted
    | TaskCalled
    | SaveEnded
    | Woke
    | CloseRequested
)
