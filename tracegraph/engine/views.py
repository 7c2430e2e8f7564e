"""Readings of the channel values: node inputs, fresh reads, outputs.

Isolation is one level deep: exact lists, dicts, sets and deques are copied for each reader, so that a
node which changes its input in place changes nobody else's (case C06). Deeper mutation is the node's own
risk; deep copies would cost more than most nodes. A value is not copied for a reader that is known to
leave it alone (:mod:`tracegraph.graph.sparing`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from tracegraph.constants import MISSING, UNCHANGED
from tracegraph.engine.nesting import NestedKeys

if TYPE_CHECKING:
    from tracegraph.engine.task import Task

__all__ = ["NOTHING", "fresh", "isolated", "read", "task_input"]

NOTHING: Final[frozenset[str]] = frozenset()
COPIES: Final[dict[type, Callable[[Any], Any]]] = {list: list.copy, dict: dict.copy, set: set.copy, deque: deque.copy}


def isolated(value: Any) -> Any:
    """Return a shallow copy of an exact list, dict, set or deque; anything else as it is."""
    copy = COPIES.get(type(value))
    return value if copy is None else copy(value)


def read(values: Mapping[str, Any], names: str | Sequence[str], spared: frozenset[str] = NOTHING) -> Any:
    """Return the values of *names*: a dict without the empty ones, or for a single name its value or None.

    Sub-fields are in dicts of their own; one that has none to show is left out as well. *spared* ones are not copied.
    """
    if type(names) is str:
        return isolated(values.get(names))
    found: dict[str, Any] = {}
    copies = COPIES
    for name in names:
        if name in values:
            value = values[name]
            copy = copies.get(type(value))
            found[name] = value if copy is None or name in spared else copy(value)
    return names.show(found) if type(names) is NestedKeys else found


def task_input(task: Task) -> Any:
    """Return a task's input anew: what its node reads, managed values included, or what a Send carries.

    MISSING if the node's one channel is empty.
    """
    source = task.failed or task
    if not source.is_mapped:
        return isolated(source.sent)
    reads = source.node.reads
    if type(reads) is str:
        return isolated(source.view[reads]) if reads in source.view else MISSING
    found: dict[str, Any] = read(source.view, reads, source.node.spared if source is task else NOTHING)
    for key, manager in source.node.managed:
        found[key] = manager.get(task)
    return found


def fresh(task: Task, names: Sequence[str], spared: frozenset[str]) -> Any:
    """Return *names* as a task leaves them: with its own writes applied, siblings' unseen, short-lived channels cleared.

    *spared* ones are not copied.
    """
    topology, view = task.topology, task.view
    mine: dict[str, list[Any]] = {}
    for channel, value in task.writes:
        if channel in mine:
            mine[channel].append(value)
        else:
            mine[channel] = [value]
    found: dict[str, Any] = {}
    replaces, clears, states = topology.replaces, topology.clears, task.states
    for name in names:
        batch = mine.get(name)
        if batch is not None and name in replaces and len(batch) == 1:
            found[name] = batch[0] if name in spared else isolated(batch[0])
        elif batch is None and name not in clears:
            if name in view:
                found[name] = view[name] if name in spared else isolated(view[name])
        else:
            rule = topology.channels[name]
            state = states[name] if name in states else view.get(name, MISSING)
            after = rule.cleared(state) if batch is None else rule.fold(state, batch)
            if batch is not None and type(after) is list:
                # The superstep, if it has no other writer, need not fold a long list again.
                task.folded = {**(task.folded or {}), name: (state, batch, after)}
            value = rule.peek(state if after is UNCHANGED else after)
            if value is not MISSING:
                found[name] = value if name in spared else isolated(value)
    return names.show(found) if type(names) is NestedKeys else found
