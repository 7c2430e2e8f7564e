"""What the engine and the drivers know of a node."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from tracegraph.engine.identity import path_text, pull_path, pull_suffix
from tracegraph.managed.base import ManagedValue
from tracegraph.types import CachePolicy, RetryPolicy, TimeoutPolicy, TracePolicy

if TYPE_CHECKING:
    from tracegraph.engine.task import Task

__all__ = ["Node", "NodeWriter", "PathCall"]


@dataclass(slots=True)
class PathCall:
    """A node writer's order to call a conditional edge's path function; its answer is what the path returned."""

    name: str
    path: Any
    """The driver's ``Body`` of the path function."""
    input: Any


class NodeWriter(Protocol):
    """Turns what a node returned into channel writes."""

    def write(self, task: Task, returned: Any) -> Generator[PathCall, Any, None]:
        """Append ``(channel, value)`` pairs to ``task.writes``; yield a :class:`PathCall` per conditional edge.

        Raises:
            InvalidUpdateError: *returned* is nothing a node may return, or addresses an unknown target.
            ParentCommand: the command is for the enclosing graph.
        """


@dataclass(slots=True, kw_only=True, eq=False)
class Node:
    """One node of a compiled graph. The engine reads the names; body, mapper and writer run in the driver."""

    name: str
    triggers: tuple[str, ...]
    """Channels whose change runs this node, sorted."""
    reads: str | tuple[str, ...]
    """Input channels: a tuple makes a dict input, a single name its bare value."""
    spared: frozenset[str] = frozenset()
    """Those of ``reads`` whose values the body leaves as they are: it gets the channel's own, not a copy."""
    managed: tuple[tuple[str, type[ManagedValue[Any]]], ...] = ()
    """Managed values of the input: (key, class)."""
    mapper: Callable[[Any], Any] | None = None
    """Makes the node's input of the dict (a dataclass or Pydantic schema); runs in the task, for it may raise."""
    body: Any = None
    """The driver's ``Body``; None if there are only writers (the start node)."""
    writer: NodeWriter
    retry_policies: tuple[RetryPolicy, ...] = ()
    cache_policy: CachePolicy | None = None
    timeout: TimeoutPolicy | None = None
    trace_policy: TracePolicy | None = None
    error_handler: str | None = None
    """Name of the node that takes over when this one has failed for good."""
    tags: tuple[str, ...] = ()
    metadata: Mapping[str, Any] | None = None
    is_hidden: bool = False
    is_deferred: bool = False
    subgraph: Any = None
    """The compiled graph found in the body, if any."""
    path: tuple[Any, ...] = field(init=False)
    path_str: str = field(init=False)
    id_suffix: bytes = field(init=False)
    """The constant tail of what a PULL task's id is hashed from."""

    def __post_init__(self) -> None:
        self.triggers = tuple(sorted(self.triggers))
        self.path = pull_path(self.name)
        self.path_str = path_text(self.path)
        self.id_suffix = pull_suffix(self.name, self.triggers)
