"""Planning a superstep: which tasks follow from channel versions and pending Sends. Changes nothing."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tracegraph.constants import MISSING, PUSH, TASKS
from tracegraph.engine.apply import ChannelStore
from tracegraph.engine.identity import path_text, send_suffix
from tracegraph.engine.node import Node
from tracegraph.engine.task import Superstep, Task
from tracegraph.engine.topology import Topology
from tracegraph.engine.views import task_input
from tracegraph.errors import InvalidUpdateError, UnknownTargetError
from tracegraph.refused_values import about, described
from tracegraph.types import Send

__all__ = ["plan_step"]


def plan_step(store: ChannelStore, at: Superstep) -> list[Task]:
    """Return the tasks of the next superstep: Sends by index, then triggered nodes.

    Nodes come sorted by name where it is known what the last step updated, else in definition order.

    Raises:
        UnknownTargetError: a pending Send names a node that does not exist.
    """
    tasks: list[Task] = []
    if TASKS in at.values:
        tasks.extend(_push_task(at, send, index) for index, send in enumerate(at.values[TASKS]))
    for node in _candidates(at.topology, store):
        if _is_triggered(node, store):
            task = Task(at, node, node.path, node.path_str, node.triggers, node.id_suffix)
            found = task_input(task)
            if found is not MISSING:
                task.input = found
                tasks.append(task)
    return tasks


def _candidates(topology: Topology, store: ChannelStore) -> Iterable[Node]:
    updated = store.updated
    if not updated:
        return topology.nodes.values() if store.versions else ()
    index = topology.trigger_to_nodes
    found: tuple[Node, ...] = ()
    for channel in updated & index.keys() if len(updated) > 3 else updated:
        if channel in index:
            found = index[channel] if not found else found + index[channel]
    # Two channels may trigger one node.
    return found if len(found) < 2 else sorted(set(found), key=_name)


def _name(node: Node) -> str:
    return node.name


def _is_triggered(node: Node, store: ChannelStore) -> bool:
    values, versions = store.values, store.versions
    seen = store.seen.get(node.name)
    for channel in node.triggers:
        if channel in values:
            if seen is None or channel not in seen:
                return True
            if versions[channel] > seen[channel]:  # type: ignore[operator]  # versions of one saver are of one type
                return True
    return False


def _push_task(at: Superstep, send: Any, index: int) -> Task:
    if type(send) is not Send and not (hasattr(send, "node") and hasattr(send, "arg")):
        text = f"{described(send)} was sent as a task; only Send packets can be"
        raise about(InvalidUpdateError(text, channel=TASKS, step=at.step), send)
    if not at.topology.has_node(send.node):
        raise UnknownTargetError(send.node, node=None, known=at.topology.node_names())
    path = (PUSH, index, False)
    task = Task(at, at.topology.nodes[send.node], path, path_text(path), (PUSH,), send_suffix(send.node, index))
    task.sent = send.arg
    task.is_mapped = False
    task.input = task_input(task)
    if (timeout := getattr(send, "timeout", None)) is not None:
        task.timeout = timeout
    return task
