"""What a node of a StateGraph returned, as channel writes."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tracegraph.constants import ROOT, START
from tracegraph.engine.nesting import NestedField
from tracegraph.engine.node import PathCall
from tracegraph.engine.updates import command_pairs, instance_pairs, root_pairs
from tracegraph.errors import ErrorCode, InvalidUpdateError, ParentCommand
from tracegraph.graph.branch import Branch, Targets
from tracegraph.refused_values import about, described
from tracegraph.types import Command, Send

if TYPE_CHECKING:
    from tracegraph.engine.task import Task
    from tracegraph.records import Write

__all__ = ["StateWriter"]


class StateWriter:
    """Writes of one node, in this order: state updates, Sends and gotos, edges, joins, conditional edges.

    Edges and branches are followed whatever the node returned, ``None`` and a ``Command`` with goto included.
    Everything that does not depend on the returned value is made once, at compile.

    Args:
        keys: the fields the node may write; those of the input schema for the start node.
        nested: those of them that are no channel, but whose sub-fields are.
        edges: the constant writes of its edges and joins.
    """

    __slots__ = (
        "_branches",
        "_edges",
        "_is_root",
        "_is_strict",
        "_keys",
        "_name",
        "_nested",
        "_order",
        "_takes_dict",
        "_targets",
    )

    def __init__(
        self,
        name: str,
        keys: Sequence[str],
        *,
        targets: Targets,
        nested: Mapping[str, NestedField] | None = None,
        edges: Iterable[Write] = (),
        branches: Iterable[Branch] = (),
        is_strict: bool = False,
    ) -> None:
        self._name = name
        self._order = tuple(keys)
        self._nested = dict(nested or {})
        self._keys = frozenset(keys).difference(self._nested)
        self._is_root = self._order == (ROOT,)
        self._takes_dict = not self._is_root
        self._targets = targets
        self._edges = tuple(edges)
        self._branches = tuple(branches)
        self._is_strict = is_strict

    def write(self, task: Task, returned: Any) -> Generator[PathCall, Any, None]:
        """Append the writes to ``task.writes``; see :class:`~tracegraph.engine.node.NodeWriter`."""
        writes = task.writes
        if type(returned) is dict and self._takes_dict:
            keys = self._keys
            for pair in returned.items():
                if pair[0] in keys:
                    writes.append(pair)
                else:
                    self._write_no_channel(task, *pair)
        elif returned is not None:
            self._write_other(task, returned)
        if self._edges:
            writes += self._edges
        for branch in self._branches:
            branch.follow((yield branch.call(task, returned)), writes)

    def _write_other(self, task: Task, returned: Any) -> None:
        parts: Sequence[Any] = (returned,)
        if isinstance(returned, (list, tuple)) and any(isinstance(part, Command) for part in returned):
            parts = returned
        for part in parts:
            if isinstance(part, Command) and part.graph == Command.PARENT:
                raise ParentCommand(part)
        for part in parts:
            for pair in self._updates(part):
                if pair[0] in self._keys:
                    task.writes.append(pair)
                else:
                    self._write_no_channel(task, *pair)
        # Control follows all updates, as if the node had returned one update and one goto.
        for part in parts:
            if isinstance(part, Send):
                self._targets.send(part, self._name, task.writes)
            elif isinstance(part, Command):
                for target in _gotos(part):
                    self._targets.route(target, self._name, task.writes)

    def _updates(self, part: Any) -> Iterable[tuple[str, Any]]:
        if part is None or isinstance(part, Send):
            return ()
        if self._is_root:
            return root_pairs(part)
        if isinstance(part, Command):
            return command_pairs(part.update, self._order)
        if isinstance(part, dict):
            return part.items()
        if type(part).__module__.partition(".")[0] == "langgraph":
            # An annotated class like any other, so its fields would be looked for in the state, and dropped without a word.
            name = type(part).__name__
            raise InvalidUpdateError(
                f"node {self._name!r} returned a {name} of langgraph; import it from tracegraph.types instead", node=self._name
            )
        if (pairs := instance_pairs(part, self._order)) is None:
            raise self._refusal(part)
        return pairs

    def _write_no_channel(self, task: Task, key: Any, value: Any) -> None:
        """Append the writes to a nested field's channels, or note a key that is no field."""
        field = self._nested.get(key)
        if field is None:
            self._ignore(task, key, self._order)
            return
        unknown: list[str] = []
        task.writes += field.split(value, self._name, unknown)
        for name in unknown:
            self._ignore(task, name, field.channel_names())

    def _ignore(self, task: Task, key: Any, known: Iterable[str]) -> None:
        """Note a key that is no field: subgraphs with keys of their own depend on these being ignored."""
        if self._is_strict:
            who = "the input" if self._name == START else f"node {self._name!r}"
            raise InvalidUpdateError(
                f"{who} wrote {key!r}, which is no key of the state; known: {', '.join(map(repr, known))} "
                "(an error because the graph was compiled with strict=True)",
                node=self._name,
                channel=str(key),
            )
        if task.unknown_keys is None:
            task.unknown_keys = []
        task.unknown_keys.append(key)

    def _refusal(self, value: Any) -> InvalidUpdateError:
        if self._name == START:
            text = f"the input, {described(value)}, is no state; give a dict with keys of the input schema, or an instance of it"
        else:
            text = (
                f"node {self._name!r} returned {described(value)}; return a dict of state updates, a Command, "
                "a Send, a list with at least one Command, an instance of an annotated class, or None"
            )
        error = InvalidUpdateError(text, node=self._name, error_code=ErrorCode.INVALID_GRAPH_NODE_RETURN_VALUE)
        return about(error, value)


def _gotos(command: Command[Any]) -> Iterable[Any]:
    goto: Any = command.goto
    if isinstance(goto, (list, tuple, set, frozenset)):
        return goto
    return () if goto is None else (goto,)
