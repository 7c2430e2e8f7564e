"""One task: a node in a superstep, or a call that a node made."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tracegraph.engine.identity import task_id, task_namespace
from tracegraph.engine.node import Node
from tracegraph.errors import NodeError
from tracegraph.events import TaskStatus
from tracegraph.records import Write
from tracegraph.types import Interrupt, TimeoutPolicy

if TYPE_CHECKING:
    from tracegraph.engine.topology import Topology

__all__ = ["Superstep", "Task"]


@dataclass(slots=True)
class Superstep:
    """Where the tasks of one superstep stand, and what they see."""

    checkpoint: bytes
    """The 16 raw bytes of the checkpoint's (or run's) UUID, which task ids are hashed from."""
    ns: str
    step: int
    stop: int
    topology: Topology
    values: Mapping[str, Any]
    states: Mapping[str, Any]


class Task:
    """What the engine hands out and gets back. ``writes`` belongs to the running attempt until its report.

    One is built for every task of every step, so what most tasks never need is a class attribute, and the id,
    which a run without saver and observers never asks for, is hashed on first use.
    """

    unknown_keys: list[str] | None = None
    """Keys a return value had that are no channels (set by the node writer)."""
    attempt = 1
    answers: tuple[Any, ...] = ()
    """Answers to this task's interrupts, in the order of the questions."""
    is_answer_held = False
    """The newest answer is not stored before the node has taken it, which alone can check it."""
    interrupts: tuple[Interrupt, ...] = ()
    error: BaseException | None = None
    result: Any = None
    """What a called task returned."""
    status: TaskStatus | None = None
    is_running = False
    is_finished = False
    is_follow_up = False
    """It runs because of something in its superstep (a call, a retry, a failure, a free slot), not to begin one."""
    is_handled = False
    """It failed, and its node's error handler took over."""
    handles: NodeError | None = None
    """The failure that this task, an error handler, takes care of."""
    failed: Task | None = None
    """The task whose error handler this is: its input is that task's."""
    sent: Any = None
    """What a Send carries, as it was sent."""
    is_mapped = True
    """The node's schema makes its input; what a Send carries is the input as it is."""
    retry_at_ns: int | None = None
    began_ns = 0
    """When the current attempt began, if its time is limited."""
    deadline_ns: int | None = None
    planned_at_ns = 0
    producer_id: str | None = None
    """The task that sent the Send this one runs for."""
    caller: Task | None = None
    is_stopped = False
    """It failed because it was cancelled, so for the failure of another."""
    has_begun = False
    """In a run with a limit of time: its attempt is at work, not only handed out."""
    is_orphan = False
    """The attempt that called it has ended before it did."""
    children: list[Task] | None = None
    folded: dict[str, tuple[Any, list[Any], Any]] | None = None
    """Lists as this task's own writes leave them, by channel: what they were folded from, the writes, the outcome."""
    call: tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]] | None = None
    """Function, arguments and keywords of a called task."""
    _id: str | None = None

    def __init__(
        self, at: Superstep, node: Node, path: tuple[Any, ...], path_str: str, triggers: tuple[str, ...], id_suffix: bytes
    ) -> None:
        self.at = at
        self.node = node
        self.path = path
        self.path_str = path_str
        self.triggers = triggers
        self._id_suffix = id_suffix
        self.input: Any = None
        """Raw until the driver has mapped it."""
        self.timeout: TimeoutPolicy | None = node.timeout
        self.writes: list[Write] = []

    @property
    def ns(self) -> str:
        """Checkpoint namespace of the *graph* this task runs in; that of a called task is its caller's own."""
        return self.at.ns

    @property
    def step(self) -> int:
        """Number of the superstep."""
        return self.at.step

    @property
    def stop(self) -> int:
        """The last superstep the recursion limit allows, plus one."""
        return self.at.stop

    @property
    def topology(self) -> Topology:
        """The graph."""
        return self.at.topology

    @property
    def view(self) -> Mapping[str, Any]:
        """Channel values as of the start of the superstep; never changed."""
        return self.at.values

    @property
    def states(self) -> Mapping[str, Any]:
        """Raw states of the channels whose state is not their value; never changed either."""
        return self.at.states

    @property
    def id(self) -> str:
        """The task's id: says checkpoint, namespace, superstep, node and position."""
        if self._id is None:
            self._id = task_id(self.at.checkpoint, self.at.ns, self.at.step, self.node.name, self._id_suffix)
        return self._id

    def id_at(self, checkpoint: bytes, ns: str, step: int) -> str:
        """Return the id that the same task has in another superstep of the graph at *ns*: one that is done again."""
        if self.caller is not None:
            ns = self.caller.namespace_at(checkpoint, ns, step)
        return task_id(checkpoint, ns, step, self.node.name, self._id_suffix)

    def namespace_at(self, checkpoint: bytes, ns: str, step: int) -> str:
        """Return the namespace that goes with :meth:`id_at`."""
        outer = ns if self.caller is None else self.caller.namespace_at(checkpoint, ns, step)
        return task_namespace(outer, self.node.name, self.id_at(checkpoint, ns, step))

    def has_open_calls(self) -> bool:
        """Say whether something that it called, or that was called there, has not ended."""
        return any(not child.is_finished or child.has_open_calls() for child in self.children or ())

    @property
    def name(self) -> str:
        """The node's name."""
        return self.node.name

    def __repr__(self) -> str:
        return f"<Task {self.node.name!r} step {self.step} {self.id[:8]} {self.status or 'open'}>"
