"""The closed union of lifecycle events: one slotted record each.

They are not frozen: a frozen dataclass costs three times as much to build, and nobody mutates them.
``seq`` and nothing else is set later, by the Hub that publishes them. Readers ``match`` with mypy's
``exhaustive-match`` on, so an event nobody handles fails the type check.

Every event carries the run it belongs to (``run_id``, checkpoint namespace ``ns``, ``""`` at the root),
the superstep, and a nanosecond wall-clock time that the driver passed in. Intervals (``...Started`` and
``...Ended``) nest along run, superstep and task ids; the log as a whole is no stack, since a background
save of step n may end in step n+1.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, get_args
from uuid import UUID

from tracegraph.events.base import BaseEvent
from tracegraph.events.calls import (
    MemoryEnded,
    MemoryOperation,
    MemoryStarted,
    ModelEnded,
    ModelStarted,
    ModelToken,
    RetrievalEnded,
    RetrievalStarted,
    ToolEnded,
    ToolStarted,
)
from tracegraph.events.waits import Wait
from tracegraph.records import Write

if TYPE_CHECKING:
    from tracegraph.types import Interrupt, TracePolicy

__all__ = [
    "CALL_KINDS",
    "MEMORY_KINDS",
    "AttemptEnded",
    "AttemptStarted",
    "BaseEvent",
    "BranchEnded",
    "BranchStarted",
    "CacheLooked",
    "CheckpointReached",
    "CheckpointSaved",
    "CheckpointStarted",
    "CheckpointTask",
    "CustomEmitted",
    "Drained",
    "ErrorHandled",
    "Event",
    "Interrupted",
    "JoinStarved",
    "MemoryEnded",
    "MemoryOperation",
    "MemoryStarted",
    "MessagePushed",
    "ModelEnded",
    "ModelStarted",
    "ModelToken",
    "ObserverFailed",
    "ReportIgnored",
    "Resumed",
    "RetrievalEnded",
    "RetrievalStarted",
    "RunEnded",
    "RunStarted",
    "RunStatus",
    "StateUpdated",
    "SuperstepEnded",
    "SuperstepStarted",
    "TaskEnded",
    "TaskPlanned",
    "TaskStarted",
    "TaskStatus",
    "ToolEnded",
    "ToolStarted",
    "TurnTaken",
    "UnknownKeyIgnored",
    "Wait",
    "every_kind",
    "kinds",
]

RunStatus: TypeAlias = Literal[
    "completed", "interrupted", "failed", "cancelled", "abandoned", "step_limit", "drained", "handed_over"
]
"""How a run ended; ``abandoned``: its consumer left, ``handed_over``: a ParentCommand left the graph."""

TaskStatus: TypeAlias = Literal["completed", "interrupted", "failed", "cancelled", "abandoned", "handed_over", "cached"]


@dataclass(slots=True)
class RunStarted(BaseEvent):
    """A run, root or nested, began. ``parent_task_id`` is the task whose code started a nested run."""

    parent_run_id: UUID | None
    parent_task_id: str | None
    name: str
    input: Any
    thread_id: str | None
    tags: Sequence[str]
    metadata: Mapping[str, Any]
    durability: str | None
    is_resume: bool
    checkpoint_id: str | None
    output_keys: str | tuple[str, ...] = ()
    """Channels of its output."""
    stream_keys: str | tuple[str, ...] = ()
    """Channels that its streams and snapshots show."""
    workflow_name: str | None = None
    """What its workflow is called; None if nobody chose a name."""
    trace_policies: Mapping[str, TracePolicy] | None = None
    """Of its nodes, by name; None if none has one."""


@dataclass(slots=True)
class RunEnded(BaseEvent):
    """A run ended, in whatever way; published exactly once for each RunStarted."""

    name: str
    status: RunStatus
    output: Any
    error: BaseException | None
    interrupts: tuple[Interrupt, ...]
    reason: str | None
    dropped: int = 0
    """How many parts its stream's readers had lost by then, as they were too slow."""


@dataclass(slots=True)
class TaskPlanned:
    """A task of a superstep, as planned (not an event: an item of :class:`SuperstepStarted`)."""

    task_id: str
    name: str
    path: tuple[Any, ...]
    triggers: tuple[str, ...]
    input: Any
    is_hidden: bool
    metadata: Mapping[str, Any] | None
    tags: Sequence[str]
    mapper: Callable[[Any], Any] | None = None
    """Makes what the node gets of ``input``, where that is a dataclass or a Pydantic model; it may raise."""


@dataclass(slots=True)
class SuperstepStarted(BaseEvent):
    """A superstep was planned. ``has_span``: worth a span of its own (several tasks, or awaited saver I/O)."""

    tasks: tuple[TaskPlanned, ...]
    has_span: bool
    checkpoint_id: str | None


@dataclass(slots=True)
class SuperstepEnded(BaseEvent):
    """A superstep's writes were applied (``completed``), or it stopped before that."""

    status: Literal["completed", "stopped"]
    task_count: int
    updated: tuple[str, ...]
    checkpoint_id: str | None


@dataclass(slots=True)
class TaskStarted(BaseEvent):
    """A node task began; delivered inside the task's own Context.

    ``at_ns - planned_at_ns`` is its time in the queue. ``producer_id`` is the task that sent a Send.
    ``has_attempts``: it has a retry policy, so its tries are announced one by one.
    """

    task_id: str
    name: str
    path: tuple[Any, ...]
    triggers: tuple[str, ...]
    input: Any
    planned_at_ns: int
    producer_id: str | None
    caller_id: str | None
    is_hidden: bool
    tags: Sequence[str]
    metadata: Mapping[str, Any] | None
    has_attempts: bool


@dataclass(slots=True)
class TaskEnded(BaseEvent):
    """A node task ended for good. ``writes`` are what it wrote, routing included."""

    task_id: str
    name: str
    status: TaskStatus
    writes: Sequence[Write]
    result: Any
    error: BaseException | None
    interrupts: tuple[Interrupt, ...]
    is_hidden: bool
    attempts: int
    reason: str | None
    is_call: bool = False
    """It is a call of a task function: ``result`` is what that returned."""
    caller_id: str | None = None
    """The task that made the call."""


@dataclass(slots=True)
class AttemptStarted(BaseEvent):
    """One try of a task with a retry policy began; delivered inside the attempt's own Context."""

    task_id: str
    name: str
    attempt: int


@dataclass(slots=True)
class AttemptEnded(BaseEvent):
    """One try ended; if ``will_retry`` the next one starts ``delay_s`` seconds later."""

    task_id: str
    name: str
    attempt: int
    error: BaseException | None
    will_retry: bool
    delay_s: float


@dataclass(slots=True)
class BranchStarted(BaseEvent):
    """A conditional edge's path function is called, inside its node's task. ``position`` counts branches from 0."""

    task_id: str
    name: str
    position: int
    input: Any


@dataclass(slots=True)
class BranchEnded(BaseEvent):
    """The path function returned where to go, or raised."""

    task_id: str
    name: str
    position: int
    output: Any
    error: BaseException | None


@dataclass(slots=True)
class CacheLooked(BaseEvent):
    """The node cache was asked for a task's result."""

    task_id: str
    name: str
    is_hit: bool


@dataclass(slots=True)
class StateUpdated(BaseEvent):
    """Channel values after a superstep (or as loaded by a resumed run). ``values`` is a mapping nobody changes.

    ``source``: ``loop`` (a superstep), ``resume`` (as loaded), ``pending`` (in memory only: what finished
    siblings of an interrupted task wrote).
    """

    values: Mapping[str, Any]
    updated: frozenset[str]
    source: Literal["loop", "resume", "pending"]


@dataclass(slots=True)
class CheckpointStarted(BaseEvent):
    """A checkpoint was handed to the saver."""

    checkpoint_id: str
    parent_id: str | None
    source: str
    changed: tuple[str, ...]
    does_io: bool
    is_awaited: bool


@dataclass(slots=True)
class CheckpointSaved(BaseEvent):
    """The saver stored the checkpoint, or failed to (``error``). It may tell how many bytes it wrote for it."""

    checkpoint_id: str
    parent_id: str | None
    source: str
    changed: tuple[str, ...]
    error: BaseException | None
    written_bytes: int | None = None


@dataclass(slots=True)
class CheckpointTask:
    """A task that follows from a checkpoint, with what is stored of it (an item of :class:`CheckpointReached`).

    ``state_ns`` is where the state of the graph inside it is filed, None if there is none.
    """

    task_id: str
    name: str
    stored: Sequence[Write]
    state_ns: str | None


@dataclass(slots=True)
class CheckpointReached(BaseEvent):
    """The run stands at a checkpoint and has planned what follows from it; ``step`` is the checkpoint's.

    Told of each checkpoint the run makes and of the one it goes on from; ``metadata`` is all that is stored as such.
    """

    checkpoint_id: str
    parent_id: str | None
    metadata: Mapping[str, Any]
    values: Mapping[str, Any]
    tasks: tuple[CheckpointTask, ...]


@dataclass(slots=True)
class Interrupted(BaseEvent):
    """A run pauses: ``pending`` questions, or a static breakpoint with no questions."""

    status: Literal["pending", "interrupt_before", "interrupt_after"]
    interrupts: tuple[Interrupt, ...]
    checkpoint_id: str | None


@dataclass(slots=True)
class Resumed(BaseEvent):
    """A run goes on from a checkpoint. ``links`` are W3C traceparents of what it resumes, newest first."""

    checkpoint_id: str | None
    interrupt_ids: tuple[str, ...]
    links: tuple[str, ...]
    waits: tuple[Wait, ...] = ()  # of these questions, in the same order


@dataclass(slots=True)
class ErrorHandled(BaseEvent):
    """A failed task's error handler takes over."""

    task_id: str
    name: str
    handler: str
    error: BaseException


@dataclass(slots=True)
class TurnTaken(BaseEvent):
    """A run of a graph whose runs take turns has its turn on the thread, after waiting so long for those before it."""

    waited_ns: int


@dataclass(slots=True)
class Drained(BaseEvent):
    """The run stops between two supersteps because it was asked to."""

    reason: str
    next_nodes: tuple[str, ...]


@dataclass(slots=True)
class JoinStarved(BaseEvent):
    """A run ended with a join that some, but not all, of its sources reached."""

    join: str
    target: str
    waiting_for: tuple[str, ...]


@dataclass(slots=True)
class UnknownKeyIgnored(BaseEvent):
    """A node (or the input) wrote a key that is no channel."""

    node: str
    key: str


@dataclass(slots=True)
class ReportIgnored(BaseEvent):
    """A report came too late to count: its attempt was cancelled or timed out.

    The one event that may follow its run's end: what a time limit of the run has left behind reports whenever it is done.
    """

    task_id: str
    name: str
    attempt: int
    report: str


@dataclass(slots=True)
class ObserverFailed(BaseEvent):
    """An observer raised; published once per observer and run."""

    observer: str
    error: BaseException
    event: str


@dataclass(slots=True)
class CustomEmitted(BaseEvent):
    """Node code wrote to the stream, or dispatched a named event (``name``, else None)."""

    task_id: str
    node: str
    name: str | None
    data: Any
    tags: Sequence[str] = ()
    metadata: Mapping[str, Any] | None = None


@dataclass(slots=True)
class MessagePushed(BaseEvent):
    """Node code put a message on the stream by itself."""

    task_id: str
    node: str
    message: Any
    metadata: Mapping[str, Any]


Event: TypeAlias = (
    RunStarted
    | RunEnded
    | SuperstepStarted
    | SuperstepEnded
    | TaskStarted
    | TaskEnded
    | AttemptStarted
    | AttemptEnded
    | BranchStarted
    | BranchEnded
    | CacheLooked
    | StateUpdated
    | CheckpointStarted
    | CheckpointSaved
    | CheckpointReached
    | Interrupted
    | Resumed
    | ErrorHandled
    | Drained
    | TurnTaken
    | JoinStarved
    | UnknownKeyIgnored
    | ReportIgnored
    | ObserverFailed
    | CustomEmitted
    | MessagePushed
    | ModelStarted
    | ModelToken
    | ModelEnded
    | ToolStarted
    | ToolEnded
    | RetrievalStarted
    | RetrievalEnded
    | MemoryStarted
    | MemoryEnded
)

for _position, _kind in enumerate(get_args(Event)):
    _kind.bit = 1 << _position

QUESTIONS: Final = 1 << len(get_args(Event))
"""Wish of an observer for the ends of tasks that ask something. It is told of all ends if somebody else wants all."""
TaskEnded.bit |= QUESTIONS


def kinds(*types: type[Event]) -> int:
    """Return the set of event kinds as a bit mask, which is how an observer says what it wants.

    >>> bool(kinds(RunStarted, RunEnded) & RunEnded.bit), bool(kinds(RunStarted) & RunEnded.bit)
    (True, False)
    """
    mask = 0
    for kind in types:
        mask |= kind.bit
    return mask


CALL_KINDS: Final = kinds(ModelStarted, ModelToken, ModelEnded, ToolStarted, ToolEnded, RetrievalStarted, RetrievalEnded)
"""What node code's calls of models, tools and retrievers are told by; LangChain's managers know these."""

MEMORY_KINDS: Final = kinds(MemoryStarted, MemoryEnded)
"""What node code's calls of its store are told by."""


def every_kind() -> int:
    """Return the mask of all kinds."""
    return kinds(*get_args(Event))
