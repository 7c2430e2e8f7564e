"""Planning a superstep: which tasks follow from channel versions and pending Sends. Changes nothing."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tracegraph.constants import MISSING, PUSH, TASKS
from tracegraph.engine.apply import ChannelStore
from tracegraph.engine.identity import path_text, send_suffix
from tracegraph.engine.node import Node
from tracegraph.engine.task import Task
from tracegraph.engine.topology import Topology
from tracegraph.engine.views import task_input
from tracegraph.errors import InvalidUpdateError, UnknownTargetError
from tracegraph.types import Send

__all__ = ["plan_step"]


def plan_step(topology: Topology, store: ChannelStore, *, checkpoint: bytes, ns: str, step: int, stop: int) -> list[Task]:
    """Return the tasks of the next superstep: Sends by index, then triggered nodes.

    Nodes come sorted by name where it is known what the last step updated, else in definition order.

    *checkpoint* are the 16 raw bytes of the UUID that task ids are hashed from; *stop* is the last step that may run,
    which managed values are computed from.

    Raises:
        UnknownTargetError: a pending Send names a node that does not exist.
    """
    tasks: list[Task] = []
    values = store.values
    if TASKS in values:
        for index, send in enumerate(values[TASKS]):
            tasks.append(_push_task(topology, store, send, index, checkpoint, ns, step, stop))
    for node in _candidates(topology, store):
        if _is_triggered(node, store):
            task = Task(
                checkpoint,
                node.id_suffix,
                node,
                ns,
                node.path,
                node.path_str,
                node.triggers,
                values,
                store.states,
                step,
                stop,
                topology,
            )
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
    for channel in updated:
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


def _push_task(
    topology: Topology, store: ChannelStore, send: Any, index: int, checkpoint: bytes, ns: str, step: int, stop: int
) -> Task:
    if type(send) is not Send and not (hasattr(send, "node") and hasattr(send, "arg")):
        raise InvalidUpdateError(f"{send!r} was sent as a task; only Send packets can be", channel=TASKS, step=step)
    if not topology.has_node(send.node):
        raise UnknownTargetError(send.node, node=None, known=topology.node_names())
    path = (PUSH, index, False)
    node = topology.nodes[send.node]
    suffix = send_suffix(send.node, index)
    task = Task(checkpoint, suffix, node, ns, path, path_text(path), (PUSH,), store.values, store.states, step, stop, topology)
    task.sent = send.arg
    task.is_mapped = False
    task.input = task_input(task)
    if (timeout := getattr(send, "timeout", None)) is not None:
        task.timeout = timeout
    return task
