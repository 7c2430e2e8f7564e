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

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, TypeAlias, get_args
from uuid import UUID

from tracegraph.records import Write
from tracegraph.types import Interrupt

__all__ = [
    "AttemptEnded",
    "AttemptStarted",
    "BranchEnded",
    "BranchStarted",
    "CacheLooked",
    "CheckpointSaved",
    "CheckpointStarted",
    "CustomEmitted",
    "Drained",
    "ErrorHandled",
    "Event",
    "Interrupted",
    "JoinStarved",
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
    "every_kind",
    "kinds",
]

RunStatus: TypeAlias = Literal[
    "completed", "interrupted", "failed", "cancelled", "abandoned", "step_limit", "drained", "handed_over"
]
"""How a run ended; ``abandoned``: its consumer left, ``handed_over``: a ParentCommand left the graph."""

TaskStatus: TypeAlias = Literal["completed", "interrupted", "failed", "cancelled", "abandoned", "handed_over", "cached"]


@dataclass(slots=True)
class _Event:
    bit: ClassVar[int] = 0
    run_id: UUID
    ns: str
    step: int
    at_ns: int
    seq: int = field(init=False, default=0)


@dataclass(slots=True)
class RunStarted(_Event):
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
    workflow_name: str | None = None
    """What its workflow is called; None if nobody chose a name."""


@dataclass(slots=True)
class RunEnded(_Event):
    """A run ended, in whatever way; published exactly once for each RunStarted."""

    name: str
    status: RunStatus
    output: Any
    error: BaseException | None
    interrupts: tuple[Interrupt, ...]
    reason: str | None


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


@dataclass(slots=True)
class SuperstepStarted(_Event):
    """A superstep was planned. ``has_span``: worth a span of its own (several tasks, or awaited saver I/O)."""

    tasks: tuple[TaskPlanned, ...]
    has_span: bool
    checkpoint_id: str | None


@dataclass(slots=True)
class SuperstepEnded(_Event):
    """A superstep's writes were applied (``completed``), or it stopped before that."""

    status: Literal["completed", "stopped"]
    task_count: int
    updated: tuple[str, ...]
    checkpoint_id: str | None


@dataclass(slots=True)
class TaskStarted(_Event):
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
class TaskEnded(_Event):
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
class AttemptStarted(_Event):
    """One try of a task with a retry policy began; delivered inside the attempt's own Context."""

    task_id: str
    name: str
    attempt: int


@dataclass(slots=True)
class AttemptEnded(_Event):
    """One try ended; if ``will_retry`` the next one starts ``delay_s`` seconds later."""

    task_id: str
    name: str
    attempt: int
    error: BaseException | None
    will_retry: bool
    delay_s: float


@dataclass(slots=True)
class BranchStarted(_Event):
    """A conditional edge's path function is called, inside its node's task. ``position`` counts branches from 0."""

    task_id: str
    name: str
    position: int
    input: Any


@dataclass(slots=True)
class BranchEnded(_Event):
    """The path function returned where to go, or raised."""

    task_id: str
    name: str
    position: int
    output: Any
    error: BaseException | None


@dataclass(slots=True)
class CacheLooked(_Event):
    """The node cache was asked for a task's result."""

    task_id: str
    name: str
    is_hit: bool


@dataclass(slots=True)
class StateUpdated(_Event):
    """Channel values after a superstep (or as loaded by a resumed run). ``values`` is a mapping nobody changes.

    ``source``: ``loop`` (a superstep), ``resume`` (as loaded), ``pending`` (in memory only: what finished
    siblings of an interrupted task wrote).
    """

    values: Mapping[str, Any]
    updated: frozenset[str]
    source: Literal["loop", "resume", "pending"]


@dataclass(slots=True)
class CheckpointStarted(_Event):
    """A checkpoint was handed to the saver."""

    checkpoint_id: str
    parent_id: str | None
    source: str
    changed: tuple[str, ...]
    does_io: bool
    is_awaited: bool


@dataclass(slots=True)
class CheckpointSaved(_Event):
    """The saver stored the checkpoint, or failed to (``error``)."""

    checkpoint_id: str
    parent_id: str | None
    source: str
    changed: tuple[str, ...]
    error: BaseException | None


@dataclass(slots=True)
class Interrupted(_Event):
    """A run pauses: ``pending`` questions, or a static breakpoint with no questions."""

    status: Literal["pending", "interrupt_before", "interrupt_after"]
    interrupts: tuple[Interrupt, ...]
    checkpoint_id: str | None


@dataclass(slots=True)
class Resumed(_Event):
    """A run goes on from a checkpoint. ``links`` are W3C traceparents of what it resumes, newest first."""

    checkpoint_id: str | None
    interrupt_ids: tuple[str, ...]
    links: tuple[str, ...]


@dataclass(slots=True)
class ErrorHandled(_Event):
    """A failed task's error handler takes over."""

    task_id: str
    name: str
    handler: str
    error: BaseException


@dataclass(slots=True)
class TurnTaken(_Event):
    """A run of a graph whose runs take turns has its turn on the thread, after waiting so long for those before it."""

    waited_ns: int


@dataclass(slots=True)
class Drained(_Event):
    """The run stops between two supersteps because it was asked to."""

    reason: str
    next_nodes: tuple[str, ...]


@dataclass(slots=True)
class JoinStarved(_Event):
    """A run ended with a join that some, but not all, of its sources reached."""

    join: str
    target: str
    waiting_for: tuple[str, ...]


@dataclass(slots=True)
class UnknownKeyIgnored(_Event):
    """A node (or the input) wrote a key that is no channel."""

    node: str
    key: str


@dataclass(slots=True)
class ReportIgnored(_Event):
    """A report came too late to count: its attempt was cancelled or timed out.

    The one event that may follow its run's end: what a time limit of the run has left behind reports whenever it is done.
    """

    task_id: str
    name: str
    attempt: int
    report: str


@dataclass(slots=True)
class ObserverFailed(_Event):
    """An observer raised; published once per observer and run."""

    observer: str
    error: BaseException
    event: str


@dataclass(slots=True)
class CustomEmitted(_Event):
    """Node code wrote to the stream, or dispatched a named event (``name``, else None)."""

    task_id: str
    node: str
    name: str | None
    data: Any
    tags: Sequence[str] = ()
    metadata: Mapping[str, Any] | None = None


@dataclass(slots=True)
class _Call(_Event):
    task_id: str
    call_id: UUID
    parent_call_id: UUID | None
    name: str


@dataclass(slots=True)
class ModelStarted(_Call):
    """A model call began. ``messages``: list of message lists of a chat model, or list of prompts."""

    serialized: Mapping[str, Any] | None
    is_chat: bool
    messages: Any
    params: Mapping[str, Any]
    tags: Sequence[str]
    metadata: Mapping[str, Any]


@dataclass(slots=True)
class ModelToken(_Call):
    """A model streamed a piece of its answer."""

    token: Any
    chunk: Any


@dataclass(slots=True)
class ModelEnded(_Call):
    """A model call ended with a response or an error."""

    response: Any
    error: BaseException | None


@dataclass(slots=True)
class ToolStarted(_Call):
    """A tool call began."""

    serialized: Mapping[str, Any] | None
    input: Any
    tool_call_id: str | None
    tags: Sequence[str]
    metadata: Mapping[str, Any]


@dataclass(slots=True)
class ToolEnded(_Call):
    """A tool call ended with an output or an error."""

    output: Any
    error: BaseException | None


@dataclass(slots=True)
class RetrievalStarted(_Call):
    """A retriever was asked."""

    serialized: Mapping[str, Any] | None
    query: Any
    tags: Sequence[str]
    metadata: Mapping[str, Any]


@dataclass(slots=True)
class RetrievalEnded(_Call):
    """A retriever answered with documents, or failed."""

    documents: Any
    error: BaseException | None


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
    | ModelStarted
    | ModelToken
    | ModelEnded
    | ToolStarted
    | ToolEnded
    | RetrievalStarted
    | RetrievalEnded
)

for _position, _kind in enumerate(get_args(Event)):
    _kind.bit = 1 << _position


def kinds(*types: type[Event]) -> int:
    """Return the set of event kinds as a bit mask, which is how an observer says what it wants.

    >>> bool(kinds(RunStarted, RunEnded) & RunEnded.bit), bool(kinds(RunStarted) & RunEnded.bit)
    (True, False)
    """
    mask = 0
    for kind in types:
        mask |= kind.bit
    return mask


def every_kind() -> int:
    """Return the mask of all kinds."""
    return kinds(*get_args(Event))
