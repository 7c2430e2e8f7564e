"""Planning a superstep: which tasks follow from channel versions and pending Sends. Changes nothing."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tracegraph.constants import MISSING, PUSH, TASKS
from tracegraph.engine.apply import ChannelStore
from tracegraph.engine.identity import path_text, send_suffix, task_id
from tracegraph.engine.node import Node
from tracegraph.engine.task import Task
from tracegraph.engine.topology import Topology
from tracegraph.engine.views import isolated, task_input
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
                id=task_id(checkpoint, ns, step, node.name, node.id_suffix),
                node=node,
                ns=ns,
                path=node.path,
                path_str=node.path_str,
                input=None,
                triggers=node.triggers,
                view=values,
                step=step,
                stop=stop,
                topology=topology,
            )
            found = task_input(task)
            if found is not MISSING:
                task.input = found
                tasks.append(task)
    return tasks


def _candidates(topology: Topology, store: ChannelStore) -> Iterable[Node]:
    updated = store.updated
    if updated:
        index = topology.trigger_to_nodes
        if len(updated) == 1:
            (only,) = updated
            found = index.get(only, ())
            return found if len(found) < 2 else sorted(found, key=_name)
        by_name = {node.name: node for channel in updated if channel in index for node in index[channel]}
        return by_name.values() if len(by_name) < 2 else [by_name[name] for name in sorted(by_name)]
    return topology.nodes.values() if store.versions else ()


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
    task = Task(
        id=task_id(checkpoint, ns, step, send.node, send_suffix(send.node, index)),
        node=topology.nodes[send.node],
        ns=ns,
        path=path,
        path_str=path_text(path),
        input=isolated(send.arg),
        triggers=(PUSH,),
        view=store.values,
        step=step,
        stop=stop,
        topology=topology,
    )
    if (timeout := getattr(send, "timeout", None)) is not None:
        task.timeout = timeout
    return task
