"""Readings of the channel values: node inputs, fresh reads, outputs.

Isolation is one level deep: exact lists, dicts, sets and deques are copied for each reader, so that a
node which changes its input in place changes nobody else's (case C06). Deeper mutation is the node's own
risk; deep copies would cost more than most nodes.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from tracegraph.constants import MISSING, UNCHANGED

if TYPE_CHECKING:
    from tracegraph.engine.task import Task
    from tracegraph.engine.topology import Topology

__all__ = ["fresh", "isolated", "read", "task_input"]

COPIES: Final[dict[type, Callable[[Any], Any]]] = {list: list.copy, dict: dict.copy, set: set.copy, deque: deque.copy}


def isolated(value: Any) -> Any:
    """Return a shallow copy of an exact list, dict, set or deque; anything else as it is."""
    copy = COPIES.get(type(value))
    return value if copy is None else copy(value)


def read(values: Mapping[str, Any], names: str | Sequence[str]) -> Any:
    """Return the values of *names*: a dict without the empty ones, or for a single name its value or None."""
    if type(names) is str:
        return isolated(values.get(names))
    found: dict[str, Any] = {}
    copies = COPIES
    for name in names:
        if name in values:
            value = values[name]
            copy = copies.get(type(value))
            found[name] = value if copy is None else copy(value)
    return found


def task_input(task: Task) -> Any:
    """Return what the task's node reads, managed values included, or MISSING if its one channel is empty."""
    reads = task.node.reads
    if type(reads) is str:
        return isolated(task.view[reads]) if reads in task.view else MISSING
    found: dict[str, Any] = read(task.view, reads)
    for key, manager in task.node.managed:
        found[key] = manager.get(task)
    return found


def fresh(topology: Topology, view: Mapping[str, Any], writes: Sequence[tuple[str, Any]], names: Sequence[str]) -> dict[str, Any]:
    """Return *names* as one task sees them after its own writes; siblings' writes stay invisible."""
    found: dict[str, Any] = read(view, names)
    if not writes:
        return found
    mine: dict[str, list[Any]] = {}
    for channel, value in writes:
        if channel in mine:
            mine[channel].append(value)
        else:
            mine[channel] = [value]
    for name in names:
        if name in mine and (rule := topology.channels.get(name)) is not None:
            # A held channel has no raw state in a view; its rule starts from scratch, as for a first write.
            state = view.get(name, MISSING) if rule.is_plain else rule.initial()
            state = rule.fold(state, mine[name])
            if state is UNCHANGED:
                continue
            value = rule.peek(state)
            if value is MISSING:
                found.pop(name, None)
            else:
                found[name] = isolated(value)
    return found
