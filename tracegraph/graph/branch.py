"""Conditional edges: what a path function may say, and how its answer becomes writes."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tracegraph.constants import END, ROOT, START, TASKS
from tracegraph.engine.node import PathCall
from tracegraph.engine.views import fresh
from tracegraph.errors import InvalidUpdateError, UnknownTargetError
from tracegraph.graph.annotations import literal_return, parameter_schema, path_name
from tracegraph.graph.schema import Schemas, nested_fields
from tracegraph.graph.sparing import spared_keys
from tracegraph.graph.specs import BranchSpec
from tracegraph.refused_values import about, described, nearest
from tracegraph.types import Send

if TYPE_CHECKING:
    from tracegraph.engine.task import Task
    from tracegraph.records import Write

__all__ = ["Branch", "InvalidPathResultError", "Targets", "UnmappedPathError", "branch_spec"]


class UnmappedPathError(UnknownTargetError, KeyError):
    """A path function returned something that its ``path_map`` does not list."""

    def __init__(self, result: object, *, node: str, branch: str, known: Sequence[object]) -> None:
        super().__init__(result, node=node, known=(), what="label")
        self.branch = branch
        self.known = tuple(map(str, known))
        self._text = (
            f"conditional edge {branch!r} of node {node!r} returned {described(result)}, which its path_map does not list"
            f"{nearest(result, self.known)}; known: {', '.join(map(repr, known))}"
        )

    def __str__(self) -> str:
        return f"[{self.code}] {self._text}"


class InvalidPathResultError(InvalidUpdateError, ValueError):
    """A path function returned ``None`` or START, which is no place to go."""


def branch_spec(path: Any, path_map: Mapping[Hashable, str] | Sequence[str] | None) -> BranchSpec:
    """Return the record of a conditional edge; a list maps names to themselves, and so does a ``Literal`` return annotation."""
    labels: Sequence[Any] | None = path_map if not isinstance(path_map, Mapping) else None
    if path_map is None:
        labels = literal_return(path)
    ends = dict(path_map) if isinstance(path_map, Mapping) else None if labels is None else {label: label for label in labels}
    return BranchSpec(name=path_name(path), path=path, ends=ends, input_schema=parameter_schema(path))


class Targets:
    """The nodes of a graph that routing may address, and the channel that runs each."""

    __slots__ = ("channels",)

    def __init__(self, channels: Mapping[str, str]) -> None:
        self.channels = channels

    def route(self, target: Any, source: str, writes: list[Write]) -> None:
        """Append the write that runs *target*, a node name or a Send; none for END.

        Raises:
            UnknownTargetError: there is no such node.
        """
        if isinstance(target, Send):
            self.send(target, source, writes)
            return
        if target == END:
            return
        try:
            channel = self.channels[target]
        except (KeyError, TypeError):
            raise UnknownTargetError(target, node=source, known=(*self.channels, END)) from None
        writes.append((channel, None))

    def send(self, packet: Send, source: str, writes: list[Write]) -> None:
        """Append the write of a Send."""
        if packet.node == END:
            text = f"node {source!r} sent a packet to END, which takes none; return END, or Command(goto=END), to stop there"
            raise about(InvalidUpdateError(text, node=source), packet)
        if packet.node not in self.channels:
            raise UnknownTargetError(packet.node, node=source, known=self.channels)
        writes.append((TASKS, packet))


class Branch:
    """One conditional edge of a compiled graph."""

    __slots__ = (
        "_body",
        "_ends",
        "_is_root",
        "_managed",
        "_mapper",
        "_name",
        "_names",
        "_nested",
        "_passes_extras",
        "_source",
        "_spared",
        "_targets",
    )

    def __init__(self, source: str, spec: BranchSpec, body: Any, schema: Any, schemas: Schemas, targets: Targets) -> None:
        self._source = source
        self._name = spec.name
        self._body = body
        self._ends = spec.ends or None
        self._targets = targets
        reads = schemas.reads(schema)
        self._is_root = reads == ROOT
        self._names = (reads,) if isinstance(reads, str) else reads
        self._managed = schemas.managed_of(schema)
        self._mapper = schemas.mapper(schema)
        self._spared = spared_keys(spec.path, reads) if self._mapper is None else frozenset()
        # What a node returned beside the state's fields is still of use to a path that declared no schema.
        self._passes_extras = spec.input_schema is None and self._mapper is None and not self._is_root
        # What was written to these is in the state; what was returned for them may be an Overwrite, or nothing at all.
        self._nested = frozenset(nested_fields(schemas.fields[schema]))

    def call(self, task: Task, returned: Any) -> PathCall:
        """Return the call of the path function, on the state as it is with the task's own writes applied."""
        value: Any = fresh(task, self._names, self._spared)
        if self._is_root:
            return PathCall(self._name, self._body, value.get(ROOT))
        for key, manager in self._managed:
            value[key] = manager.get(task)
        if self._passes_extras:
            if isinstance(returned, dict):
                extras = {key: returned[key] for key in returned if key not in self._nested} if self._nested else returned
                value = {**extras, **value}
        elif self._mapper is not None:
            value = self._mapper(value)
        return PathCall(self._name, self._body, value)

    def follow(self, result: Any, writes: list[Write]) -> None:
        """Append the writes that run what the path function named.

        Raises:
            InvalidUpdateError: it named nothing, START, or what does not exist.
        """
        ends = self._ends
        for item in result if isinstance(result, (list, tuple)) else (result,):
            target = item
            if ends is not None and not isinstance(item, Send):
                try:
                    target = ends[item]
                except (KeyError, TypeError):
                    raise UnmappedPathError(item, node=self._source, branch=self._name, known=tuple(ends)) from None
            if target is None or target == START:
                raise InvalidPathResultError(
                    f"conditional edge {self._name!r} of node {self._source!r} returned {target!r}, which is no destination; "
                    "return a node's name, a Send, a list of these, or END to stop here",
                    node=self._source,
                )
            self._targets.route(target, self._source, writes)
