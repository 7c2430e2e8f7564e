"""One task: a node in a superstep, or a call that a node made."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from tracegraph.engine.node import Node
from tracegraph.errors import NodeError
from tracegraph.records import Write
from tracegraph.types import Interrupt, TimeoutPolicy

if TYPE_CHECKING:
    from tracegraph.engine.topology import Topology

__all__ = ["Task"]


class Task:
    """What the engine hands out and gets back. Slotted by hand: one is built for every task of every step.

    ``input`` is raw; the driver maps it. ``writes`` belongs to the running attempt until its report.
    """

    __slots__ = (
        "answers",
        "attempt",
        "call",
        "caller",
        "children",
        "deadline_ns",
        "error",
        "handles",
        "id",
        "input",
        "interrupts",
        "is_finished",
        "is_handled",
        "is_running",
        "node",
        "ns",
        "path",
        "path_str",
        "planned_at_ns",
        "producer_id",
        "result",
        "retry_at_ns",
        "status",
        "step",
        "stop",
        "timeout",
        "topology",
        "triggers",
        "unknown_keys",
        "view",
        "writes",
    )

    def __init__(
        self,
        *,
        id: str,
        node: Node,
        ns: str,
        path: tuple[Any, ...],
        path_str: str,
        input: Any,
        triggers: tuple[str, ...],
        view: Mapping[str, Any],
        step: int,
        stop: int,
        topology: Topology,
    ) -> None:
        self.id = id
        self.node = node
        self.ns = ns
        """Checkpoint namespace of the *graph* this task runs in."""
        self.path = path
        self.path_str = path_str
        self.input = input
        self.triggers = triggers
        self.view = view
        """Channel values as of the start of the superstep; never changed."""
        self.step = step
        self.stop = stop
        self.topology = topology
        self.writes: list[Write] = []
        self.unknown_keys: list[str] | None = None
        """Keys a return value had that are no channels (set by the node writer)."""
        self.attempt = 1
        self.answers: list[Any] = []
        """Answers to this task's interrupts, in the order of the questions."""
        self.interrupts: tuple[Interrupt, ...] = ()
        self.error: BaseException | None = None
        self.result: Any = None
        self.status: str | None = None
        self.is_running = False
        self.is_finished = False
        self.is_handled = False
        self.handles: NodeError | None = None
        """The failure that this task, an error handler, takes care of."""
        self.retry_at_ns: int | None = None
        self.deadline_ns: int | None = None
        self.timeout: TimeoutPolicy | None = node.timeout
        self.planned_at_ns = 0
        self.producer_id: str | None = None
        self.caller: Task | None = None
        self.children: list[Task] | None = None
        self.call: tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]] | None = None

    @property
    def name(self) -> str:
        """The node's name."""
        return self.node.name

    def __repr__(self) -> str:
        return f"<Task {self.node.name!r} step {self.step} {self.id[:8]} {self.status or 'open'}>"
