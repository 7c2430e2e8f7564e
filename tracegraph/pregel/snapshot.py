"""The state of a thread as a snapshot: the engine's own planning tells what would run next."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from uuid import UUID

from tracegraph.checkpoint.base import BaseCheckpointSaver
from tracegraph.config import RunSpec, ensure_config
from tracegraph.constants import ERROR, INTERRUPT, NULL_TASK_ID, SKIPPED_WRITES, UNFINISHED_WRITES
from tracegraph.drivers.effects import Flow, GetTuple, ask
from tracegraph.engine.apply import ChannelStore
from tracegraph.engine.identity import task_namespace, without_ids
from tracegraph.engine.nesting import NestedKeys
from tracegraph.engine.plan import plan_step
from tracegraph.engine.task import Superstep, Task
from tracegraph.engine.views import read
from tracegraph.errors import InvalidInputError
from tracegraph.pregel.addressing import graph_at
from tracegraph.records import CheckpointTuple, Write
from tracegraph.types import PregelTask, StateSnapshot

if TYPE_CHECKING:
    from tracegraph.pregel.graph import Pregel

__all__ = ["saver_of", "snapshot", "state_flow", "thread_config"]


def saver_of(graph: Pregel) -> BaseCheckpointSaver:
    """Return the graph's own saver.

    Raises:
        InvalidInputError: it has none.
    """
    if graph.checkpointer is None or isinstance(graph.checkpointer, bool):
        raise InvalidInputError("there is no state to read without a checkpointer: compile(checkpointer=...)")
    return graph.checkpointer  # type: ignore[no-any-return]  # checked at compile


def thread_config(graph: Pregel, config: Any) -> tuple[RunSpec, dict[str, Any]]:
    """Return what *config* says, and the config that addresses its thread in the saver.

    Raises:
        InvalidInputError: it names no thread.
    """
    spec = RunSpec.of(ensure_config(graph.config, config))
    if spec.thread_id is None:
        raise InvalidInputError('state is read by thread: get_state({"configurable": {"thread_id": "..."}})')
    address: dict[str, Any] = {**spec.configurable, "thread_id": spec.thread_id, "checkpoint_ns": spec.checkpoint_ns}
    return spec, {"configurable": address}


def state_flow(graph: Pregel, config: Any, *, subgraphs: bool) -> Flow[StateSnapshot]:
    """Load a thread's snapshot; an empty one if nothing was saved. *subgraphs* puts nested snapshots into the tasks."""
    saver = saver_of(graph)
    spec, address = thread_config(graph, config)
    saved = yield from ask(GetTuple(saver, address))
    if saved is None:
        return StateSnapshot({}, (), address, None, None, None, (), ())
    return (yield from _snapshot_flow(graph_at(graph, spec.checkpoint_ns), saver, saved, spec.checkpoint_id is None, subgraphs))


def _snapshot_flow(
    graph: Pregel, saver: BaseCheckpointSaver, saved: CheckpointTuple, is_live: bool, subgraphs: bool
) -> Flow[StateSnapshot]:
    nested: dict[str, Any] = {}
    where = saved.config["configurable"]
    for task in _plan(graph, saved)[1] if subgraphs else ():
        child = task.node.subgraph
        if child is not None:
            ns = _child_ns(where.get("checkpoint_ns", ""), task, child)
            inner = {"configurable": {"thread_id": where["thread_id"], "checkpoint_ns": ns}}
            found = yield from ask(GetTuple(saver, inner))
            if found is not None:
                nested[task.id] = yield from _snapshot_flow(child, saver, found, True, subgraphs)
    return snapshot(graph, saved, is_live=is_live, nested=nested)


def _child_ns(ns: str, task: Task, child: Pregel) -> str:
    """Return where the state of a task's subgraph is filed: without ids if it lives on between calls."""
    found = task_namespace(ns, task.node.name, task.id)
    return without_ids(found) if child.checkpointer is True else found


def _plan(graph: Pregel, saved: CheckpointTuple) -> tuple[ChannelStore, list[Task]]:
    """Load a checkpoint's channels and plan its superstep, nodes in definition order."""
    store = ChannelStore(graph.topology, lambda current: current or 1)
    found = saved.checkpoint
    store.load(found["channel_values"], found["channel_versions"], found["versions_seen"])
    if commands := [(c, v) for t, c, v in saved.pending_writes or () if t == NULL_TASK_ID and c not in SKIPPED_WRITES]:
        store.apply((), [("a command", commands)], is_step=False)
    store.updated = None
    ns = saved.config["configurable"].get("checkpoint_ns", "")
    step = saved.metadata.get("step", -1) + 1
    at = Superstep(UUID(found["id"]).bytes, ns, step, step, graph.topology, store.values, store.states)
    return store, plan_step(store, at)


def snapshot(graph: Pregel, saved: CheckpointTuple, *, is_live: bool, nested: dict[str, Any]) -> StateSnapshot:
    """Return a checkpoint as a snapshot.

    Live, the writes of finished tasks count and only open questions show; addressed (history), the values are those at
    the start of the superstep, with what its tasks then did.
    """
    store, tasks = _plan(graph, saved)
    by_task: dict[str, list[Write]] = {}
    for task_id, channel, value in saved.pending_writes or ():
        by_task.setdefault(task_id, []).append((channel, value))
    finished = [task for task in tasks if any(c not in UNFINISHED_WRITES for c, _ in by_task.get(task.id, ()))]
    values = store.values
    if is_live and finished:
        groups = [(task.node.name, by_task[task.id]) for task in sorted(finished, key=lambda t: t.path_str)]
        try:
            values = store.preview(finished, groups)
        except Exception:  # noqa: BLE001  # reducers are user code
            # The step failed because its writes cannot be applied; the state before it must stay readable.
            finished = []
    states = {task.id: nested.get(task.id) or _address_of(saved, task) for task in tasks}
    shown = tuple(_shown(graph, t, by_task.get(t.id, []), states[t.id], is_live, t in finished) for t in tasks)
    names = tuple(task.node.name for task in tasks if not (is_live and task in finished))
    return StateSnapshot(
        values=read(values, graph.stream_channels),
        next=names,
        config=_mapped(saved, saved.config),
        metadata={key: value for key, value in saved.metadata.items() if not key.startswith("__")},
        created_at=saved.checkpoint["ts"],
        parent_config=None if saved.parent_config is None else _mapped(saved, saved.parent_config),
        tasks=shown,
        interrupts=tuple({i.id: i for task in shown for i in task.interrupts}.values()),
    )


def _mapped(saved: CheckpointTuple, config: dict[str, Any]) -> dict[str, Any]:
    """Return a checkpoint's config with the ones of the graphs around it, without which it cannot be gone back to."""
    parents = saved.metadata.get("parents")
    if not parents:
        return config
    where = config["configurable"]
    return {**config, "configurable": {**where, "checkpoint_map": {**parents, where["checkpoint_ns"]: where["checkpoint_id"]}}}


def _address_of(saved: CheckpointTuple, task: Task) -> Any:
    """Return the config that reads the state of a task's subgraph, None if it has none."""
    if task.node.subgraph is None:
        return None
    ns = _child_ns(task.ns, task, task.node.subgraph)
    return {"configurable": {"thread_id": saved.config["configurable"]["thread_id"], "checkpoint_ns": ns}}


def _shown(graph: Pregel, task: Task, writes: list[Write], state: Any, is_live: bool, is_finished: bool) -> PregelTask:
    error = next((value for channel, value in writes if channel == ERROR), None)
    asked = tuple(question for channel, value in writes if channel == INTERRUPT for question in value)
    return PregelTask(
        id=task.id,
        name=task.node.name,
        path=task.path,
        error=error,
        interrupts=() if is_live and is_finished else asked,
        state=state,
        result=_result(graph, writes) if is_finished else None,
    )


def _result(graph: Pregel, writes: list[Write]) -> Any:
    """Return what a finished task wrote to streamed channels; several writes to one are listed under ``$writes``.

    Where the state is one bare value, so is the result.
    """
    found: dict[str, Any] = {}
    keys = graph.stream_channels_list
    nest = graph.stream_channels
    for channel in dict.fromkeys(c for c, _ in writes if c in keys):
        several = [value for c, value in writes if c == channel]
        found[channel] = several[0] if len(several) == 1 else {"$writes": several}
    if type(nest) is NestedKeys:
        return nest.show_writes(found)
    return found.get(nest) if isinstance(nest, str) else found
