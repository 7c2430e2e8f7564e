"""The low-level way to make nodes: subscribe to channels, do something, write the result to channels."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from datetime import timedelta
from typing import Any, Self

from tracegraph.drivers.body import Body
from tracegraph.engine.node import Node, PathCall
from tracegraph.engine.task import Task
from tracegraph.errors import GraphDefinitionError, UnknownTargetError
from tracegraph.types import CachePolicy, RetryPolicy, TimeoutPolicy

__all__ = ["ChannelWriter", "NodeBuilder"]


class ChannelWriter:
    """Writes a node's result to channels: as it is, a constant, or what a function makes of it."""

    __slots__ = ("_targets", "channels")

    def __init__(self, targets: Sequence[tuple[str, Any]]) -> None:
        self._targets = tuple(targets)
        self.channels = tuple(dict.fromkeys(name for name, _ in targets))

    def write(self, task: Task, returned: Any) -> Generator[PathCall, Any, None]:
        """Append the writes; a result of None writes nothing to channels that pass it through."""
        for channel, value in self._targets:
            if channel not in task.topology.channels:
                raise UnknownTargetError(channel, node=task.node.name, known=task.topology.channels, what="channel")
            if value is _PASS:
                if returned is not None:
                    task.writes.append((channel, returned))
            elif callable(value):
                if (made := value(returned)) is not None:
                    task.writes.append((channel, made))
            else:
                task.writes.append((channel, value))
        yield from ()


_PASS = object()


class NodeBuilder:
    """Builds a node of a low-level :class:`~tracegraph.pregel.Pregel`.

    >>> from tracegraph.channels import EphemeralValue, LastValue
    >>> from tracegraph.pregel import Pregel
    >>> double = NodeBuilder().subscribe_only("a").do(lambda x: x * 2).write_to("b")
    >>> app = Pregel(
    ...     nodes={"double": double},
    ...     channels={"a": EphemeralValue(int), "b": LastValue(int)},
    ...     input_channels="a",
    ...     output_channels="b",
    ... )
    >>> app.invoke(4)
    8
    """

    def __init__(self) -> None:
        self._triggers: list[str] = []
        self._reads: str | list[str] = []
        self._bodies: list[Body] = []
        self._targets: list[tuple[str, Any]] = []
        self._tags: list[str] = []
        self._metadata: dict[str, Any] = {}
        self._retry: list[RetryPolicy] = []
        self._cache: CachePolicy | None = None
        self._timeout: TimeoutPolicy | None = None

    def subscribe_only(self, channel: str) -> Self:
        """Run on a change of this one channel; the input is its bare value."""
        if self._reads:
            raise GraphDefinitionError("subscribe_only() excludes other subscriptions: use subscribe_to() for several channels")
        self._reads = channel
        self._triggers.append(channel)
        return self

    def subscribe_to(self, *channels: str, read: bool = True) -> Self:
        """Run on a change of these channels; the input is a dict (without them if ``read`` is false)."""
        if isinstance(self._reads, str):
            raise GraphDefinitionError("subscribe_to() cannot follow subscribe_only()")
        if read:
            self._reads.extend(c for c in channels if c not in self._reads)
        self._triggers.extend(channels)
        return self

    def read_from(self, *channels: str) -> Self:
        """Also read these channels, without being run by them."""
        if isinstance(self._reads, str):
            raise GraphDefinitionError("read_from() cannot follow subscribe_only(), whose input is one bare value")
        self._reads.extend(c for c in channels if c not in self._reads)
        return self

    def do(self, node: Callable[..., Any] | Any) -> Self:
        """Append a step to what the node computes; each gets what the one before returned."""
        self._bodies.append(Body.of(node))
        return self

    def write_to(self, *channels: str, **values: Any) -> Self:
        """Write the result to these channels; keywords write a constant, or what a function makes of the result."""
        self._targets.extend((channel, _PASS) for channel in channels)
        self._targets.extend(values.items())
        return self

    def meta(self, *tags: str, **metadata: Any) -> Self:
        """Add tags and metadata."""
        self._tags.extend(tags)
        self._metadata.update(metadata)
        return self

    def add_retry_policies(self, *policies: RetryPolicy) -> Self:
        """Add retry policies; the first that covers an error decides."""
        self._retry.extend(policies)
        return self

    def add_cache_policy(self, policy: CachePolicy) -> Self:
        """Set the cache policy."""
        self._cache = policy
        return self

    def set_timeout(self, timeout: float | timedelta | TimeoutPolicy | None) -> Self:
        """Set the time limits of one attempt."""
        self._timeout = TimeoutPolicy.coerce(timeout)
        return self

    def build(self, name: str = "") -> Node:
        """Return the finished node.

        Raises:
            GraphDefinitionError: it subscribes to nothing, so nothing could run it.
        """
        if not self._triggers:
            raise GraphDefinitionError(f"node {name!r} subscribes to no channel, so nothing would ever run it")
        return Node(
            name=name,
            triggers=tuple(dict.fromkeys(self._triggers)),
            reads=self._reads if isinstance(self._reads, str) else tuple(self._reads),
            body=_chained(self._bodies),
            writer=ChannelWriter(self._targets),
            retry_policies=tuple(self._retry),
            cache_policy=self._cache,
            timeout=self._timeout,
            tags=tuple(self._tags),
            metadata=_or_none(self._metadata),
        )


def _or_none(metadata: Mapping[str, Any]) -> Mapping[str, Any] | None:
    return dict(metadata) or None


def _chained(bodies: Sequence[Body]) -> Body | None:
    """Return one body that runs the steps in a row."""
    if len(bodies) < 2:
        return bodies[0] if bodies else None
    if any(body.inject or body.takes_config for body in bodies[1:]):
        raise GraphDefinitionError(
            "only the first step of a node may take config, runtime and the like; combine the steps in one function"
        )
    first, rest = bodies[0], bodies[1:]

    def run(value: Any, *args: Any, **kwargs: Any) -> Any:
        value = first.fn(value, *args, **kwargs)  # type: ignore[misc]  # checked below
        for body in rest:
            value = body.fn(value)  # type: ignore[misc]
        return value

    async def arun(value: Any, *args: Any, **kwargs: Any) -> Any:
        for position, body in enumerate(bodies):
            more, named = (args, kwargs) if position == 0 else ((), {})
            function = body.afn or body.fn
            value = function(value, *more, **named)  # type: ignore[misc]
            if hasattr(value, "__await__"):
                value = await value
        return value

    is_sync = all(body.has_sync for body in bodies)
    return Body(
        run if is_sync else arun,
        name=first.name,
        fn=run if is_sync else None,
        afn=None if is_sync else arun,
        inject=first.inject,
        takes_config=first.takes_config,
        needs_store=first.needs_store,
    )
