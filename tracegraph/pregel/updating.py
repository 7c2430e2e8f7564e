"""Writing a thread's state from outside: what a node would have returned is written as if it had, and saved.

A superstep of updates is one flow, whatever its colour: load the checkpoint, let each node's own writer make channel
writes (conditional edges included), apply them, put the new checkpoint.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, cast
from uuid import UUID, uuid5

from tracegraph.config import RunnableConfig, RunSpec
from tracegraph.constants import (
    DETOURS,
    END,
    INPUT,
    INTERRUPT,
    MISSING,
    NULL_TASK_ID,
    SKIPPED_WRITES,
    START,
    TRACE,
    UNFINISHED_WRITES,
)
from tracegraph.current import CURRENT
from tracegraph.drivers.effects import CallPath, Flow, GetTuple, Save, arun_flow, ask, run_flow
from tracegraph.drivers.saves import SaverPort
from tracegraph.drivers.size_limit import size_limit_of
from tracegraph.drivers.turns import give_back, take_turn
from tracegraph.engine.actions import SaveCheckpoint, SaveWrites
from tracegraph.engine.apply import ChannelStore
from tracegraph.engine.begin import input_writes
from tracegraph.engine.identity import path_text
from tracegraph.engine.node import Node
from tracegraph.engine.plan import plan_step
from tracegraph.engine.saving import checkpoint_metadata, checkpoint_record
from tracegraph.engine.state_size import StateSize, told_of_step
from tracegraph.engine.task import Superstep, Task
from tracegraph.errors import GraphInterrupt, InvalidInputError, InvalidUpdateError, ParentCommand
from tracegraph.pregel.addressing import graph_at
from tracegraph.pregel.bystander import bystander
from tracegraph.pregel.snapshot import saver_of, thread_config
from tracegraph.records import CheckpointTuple, Detour, Write
from tracegraph.refused_values import about, described
from tracegraph.types import StateUpdate

if TYPE_CHECKING:
    from tracegraph.pregel.graph import Pregel
    from tracegraph.records import CheckpointMetadata

__all__ = ["abulk_update_state", "aupdate_state", "bulk_update_state", "update_flow", "update_state"]

COPY = "__copy__"
_NO_CHECKPOINT = UUID(int=0)

Updates = Sequence[StateUpdate]


def update_state(
    self: Pregel, config: RunnableConfig, values: Any, as_node: str | None = None, task_id: str | None = None
) -> RunnableConfig:
    """Write *values* to a thread as if node *as_node* had returned them, and return the new checkpoint's config.

    The node's edges are followed, so what comes after it is next; reducers apply. Without *as_node* it is the node that
    ran last. Whatever else was pending at that checkpoint is dropped, results of finished siblings included. Updating an
    older checkpoint makes a branch, which is the thread's newest state from then on.

    Args:
        values: what a node may return: a dict, a ``Command``, None to only follow the edges.
        as_node: or ``"__end__"`` with None (nothing is next any more), ``"__input__"`` (*values* are a run's input),
            ``"__copy__"`` (a sibling of the checkpoint; *values* may list ``(values, as_node)`` to apply to it).
        task_id: under which history shows the result; by default that of the node's pending task.

    Raises:
        InvalidUpdateError: the node does not exist or cannot be told, or a channel refuses what it wrote.
        InvalidInputError: no checkpointer, no thread, or no such checkpoint or subgraph.
        StateSizeError: the state would become larger than the graph's ``max_state_bytes``; nothing is written.
        ConcurrentRunError: a run moved the thread on in the meantime.
        TypeError: a path function is async, which only the async twins can call.

    >>> from typing import TypedDict
    >>> from tracegraph.checkpoint.memory import InMemorySaver
    >>> from tracegraph.graph import StateGraph
    >>> State = TypedDict("State", {"text": str})
    >>> graph = StateGraph(State).add_sequence(
    ...     [("draft", lambda s: {"text": "a"}), ("send", lambda s: {"text": s["text"] + "!"})]
    ... )
    >>> app = graph.set_entry_point("draft").compile(checkpointer=InMemorySaver(), interrupt_before=["send"])
    >>> thread = {"configurable": {"thread_id": "1"}}
    >>> paused = app.invoke({"text": ""}, thread)
    >>> made = app.update_state(thread, {"text": "b"}, as_node="draft")
    >>> app.get_state(thread).next, app.invoke(None, thread)
    (('send',), {'text': 'b!'})
    """
    return bulk_update_state(self, config, [[StateUpdate(values, as_node, task_id)]])


async def aupdate_state(
    self: Pregel, config: RunnableConfig, values: Any, as_node: str | None = None, task_id: str | None = None
) -> RunnableConfig:
    """Do what :meth:`update_state` does, awaiting saver and path functions."""
    return await abulk_update_state(self, config, [[StateUpdate(values, as_node, task_id)]])


def bulk_update_state(self: Pregel, config: RunnableConfig, supersteps: Sequence[Updates]) -> RunnableConfig:
    """Do several updates, superstep by superstep; each makes one checkpoint. See :meth:`update_state`.

    Raises:
        InvalidInputError: there is nothing to do.
    """
    return run_flow(update_flow(self, config, supersteps))


async def abulk_update_state(self: Pregel, config: RunnableConfig, supersteps: Sequence[Updates]) -> RunnableConfig:
    """Do what :meth:`bulk_update_state` does, awaiting saver and path functions."""
    return await arun_flow(update_flow(self, config, supersteps))


def update_flow(graph: Pregel, config: RunnableConfig, supersteps: Sequence[Updates]) -> Flow[RunnableConfig]:
    """Carry the supersteps out, in turn with the thread's runs if those take turns; return the last checkpoint's config."""
    spec, _ = thread_config(graph, config)
    is_inside = CURRENT.get() is not None  # a node that updates its own thread would wait for itself
    if graph.concurrent_runs != "queue" or is_inside:
        return (yield from _update(graph, config, supersteps))
    assert spec.thread_id is not None
    turn = yield from take_turn(saver_of(graph), spec.thread_id)
    try:
        made = yield from _update(graph, config, supersteps)
    except BaseException as error:
        yield from give_back(turn, error)
        raise
    yield from turn.leave()
    return made


def _update(graph: Pregel, config: RunnableConfig, supersteps: Sequence[Updates]) -> Flow[RunnableConfig]:
    """Carry the supersteps out and return the config of the last checkpoint made.

    The first of an addressed call may make a branch; any other must find the thread where it was read.
    """
    steps = [[StateUpdate(*update) for update in updates] for updates in supersteps]
    if not steps or not all(steps):
        raise InvalidInputError("there is nothing to update: every superstep needs at least one StateUpdate")
    saver = saver_of(graph)
    spec, _ = thread_config(graph, config)
    assert spec.thread_id is not None
    ns = spec.checkpoint_ns
    port = SaverPort(saver, thread_id=spec.thread_id, ns=ns, configurable=spec.configurable, metadata=spec.metadata)
    target = graph_at(graph, ns)
    if target.store is not graph.store:
        target = target.copy({"store": graph.store})  # as in a run, where a subgraph has the store of the graph around it
    checkpoint_id = spec.checkpoint_id or spec.checkpoint_map.get(ns)
    is_addressed = checkpoint_id is not None
    for updates in steps:
        edit = yield from _load(target, spec, port, checkpoint_id, is_addressed=is_addressed)
        checkpoint_id = yield from _superstep(edit, updates)
        is_addressed = False
    address: dict[str, Any] = {"thread_id": spec.thread_id, "checkpoint_ns": ns, "checkpoint_id": checkpoint_id}
    if edit.parents:
        address["checkpoint_map"] = {**edit.parents, ns: checkpoint_id}
    return {"configurable": address}


@dataclass(slots=True)
class _Edit:
    """One superstep of updates under way."""

    graph: Pregel
    spec: RunSpec
    port: SaverPort
    saved: CheckpointTuple | None
    is_addressed: bool
    head_id: str | None
    """The thread's newest checkpoint when this one was read."""
    store: ChannelStore
    step: int
    """Of the checkpoint to make."""

    @property
    def parents(self) -> dict[str, str]:
        """The enclosing graphs' checkpoints, by namespace."""
        return self.saved.metadata.get("parents", {}) if self.saved is not None else {}

    @property
    def base_id(self) -> str | None:
        """The checkpoint that is updated."""
        return None if self.saved is None else self.saved.checkpoint["id"]

    def detours(self, made: str) -> list[Detour]:
        """Return what the checkpoint to make passes over: of a branch, also what came after the one it branches off."""
        found = [] if self.saved is None else [Detour(*each) for each in self.saved.metadata.get(DETOURS, ())]
        if self.is_addressed and self.base_id is not None and self.base_id != self.head_id:
            found.append(Detour(self.base_id, made))
        return found

    def superstep(self) -> Superstep:
        """Return the superstep that follows the checkpoint, as a run would plan it."""
        checkpoint = _NO_CHECKPOINT if self.base_id is None else UUID(self.base_id)
        store = self.store
        return Superstep(checkpoint.bytes, self.port.ns, self.step, self.step + 2, store.topology, store.values, store.states)

    def pending(self) -> list[tuple[str, str, Any]]:
        """Return the writes stored beside the checkpoint."""
        return [] if self.saved is None else list(self.saved.pending_writes or ())


class _UpdateTask(Task):
    """An update, as the task that applies it: no trigger ran it, so its node has seen nothing by it."""

    def __init__(self, at: Superstep, node: Node, position: int, task_id: str) -> None:
        path = (INTERRUPT, position)
        super().__init__(at, node, path, path_text(path), (INTERRUPT,), b"")
        self._id = task_id


def _load(graph: Pregel, spec: RunSpec, port: SaverPort, checkpoint_id: str | None, *, is_addressed: bool) -> Flow[_Edit]:
    saved = yield from ask(GetTuple(port.saver, port.config(checkpoint_id)))
    limit = size_limit_of(graph.max_state_bytes, port.saver, port.thread_id)
    size = None if limit is None else StateSize(limit, graph.topology.channels)
    store = ChannelStore(graph.topology, port.next_version, size=size)
    if saved is None:
        if checkpoint_id is not None:
            # LangGraph starts the thread anew here, and what it held is no longer its newest state.
            raise InvalidInputError(f"thread {port.thread_id!r} has no checkpoint {checkpoint_id!r} to update")
        return _Edit(graph, spec, port, None, is_addressed, None, store, 0)
    # A run that goes on from here links to the run that got the thread here, not to nothing.
    port.trace = tuple(saved.metadata.get(TRACE, ()))
    head = (yield from ask(GetTuple(port.saver, port.config(None)))) if is_addressed else saved
    for around in saved.metadata.get("parents", {}).values():
        port.newest.note(around)
    found = saved.checkpoint
    store.load(found["channel_values"], found["channel_versions"], found["versions_seen"])
    step = saved.metadata.get("step", -1) + 1
    return _Edit(graph, spec, port, saved, is_addressed, None if head is None else head.checkpoint["id"], store, step)


def _superstep(edit: _Edit, updates: Updates) -> Flow[str]:
    """Carry one superstep out and return the id of its checkpoint."""
    values, as_node, _ = updates[0]
    special = as_node if as_node in (INPUT, COPY) or (as_node == END and values is None) else None
    if special is not None and len(updates) > 1:
        raise InvalidUpdateError(f"an update as {special!r} has a superstep to itself, but came with {len(updates) - 1} more")
    match special:
        case "__end__":
            return (yield from _clear(edit))
        case "__input__":
            return (yield from _input(edit, values))
        case "__copy__":
            return (yield from _copy(edit, values))
        case _:
            return (yield from _write(edit, updates))


def _clear(edit: _Edit) -> Flow[str]:
    """End the superstep as it stands: what finished counts, what did not is dropped."""
    store, pending = edit.store, edit.pending()
    if commands := [(c, v) for task_id, c, v in pending if task_id == NULL_TASK_ID and c not in SKIPPED_WRITES]:
        store.apply((), [("a command", commands)], is_step=False)
        store.updated = None
    writes: dict[str, list[Write]] = {}
    for task_id, channel, value in pending:
        if channel not in UNFINISHED_WRITES:
            writes.setdefault(task_id, []).append((channel, value))
    tasks = sorted(plan_step(store, edit.superstep()), key=lambda task: task.path_str)
    with told_of_step(edit.step):
        store.apply(tasks, [(task.node.name, writes.get(task.id, ())) for task in tasks], is_step=bool(tasks))
    return (yield from _save(edit, "update", edit.step))


def _input(edit: _Edit, values: Any) -> Flow[str]:
    """Store *values* as a run's input; the start node is next."""
    writes = input_writes(edit.graph.topology, values, is_strict=edit.graph.strict, ignored=[])
    if not writes:
        text = f"the input, {described(values)}, has nothing for {edit.graph.input_channels!r}"
        raise about(InvalidUpdateError(text, node=INPUT), values)
    with told_of_step(edit.step):
        edit.store.apply((), [(INPUT, writes)], is_step=False)
    edit.store.seen[INPUT] = {}
    return (yield from _save(edit, "input", -1 if edit.saved is None else edit.step))


def _copy(edit: _Edit, values: Any) -> Flow[str]:
    """Make a sibling of the checkpoint, and update it if *values* say how."""
    if edit.saved is None:
        raise InvalidUpdateError(f"thread {edit.port.thread_id!r} has no checkpoint to copy")
    by_node: dict[str | None, list[StateUpdate]] = {}
    for item in values or ():
        if isinstance(values, dict) or isinstance(item, str) or not isinstance(item, Sequence) or len(item) < 2:
            raise about(InvalidUpdateError(f"a copy takes a list of (values, as_node), not {described(values)}"), values)
        by_node.setdefault(item[1], []).append(StateUpdate(item[0], item[1]))
    parent = edit.saved.parent_config
    # A sibling of the head is a branch: there is no head to check it against.
    edit.is_addressed = True
    parent_id = None if parent is None else parent["configurable"]["checkpoint_id"]
    copied = yield from _save(edit, "fork", edit.step, parent_id=parent_id)
    if not by_node:
        return copied
    again = yield from _load(edit.graph, edit.spec, edit.port, copied, is_addressed=False)
    return (yield from _write(again, [update for group in by_node.values() for update in group]))


def _write(edit: _Edit, updates: Updates) -> Flow[str]:
    """Let the nodes' writers write, apply it, save it."""
    names = _as_nodes(edit, updates)
    at = edit.superstep()
    planned: dict[str, list[str]] = {}
    for waiting in plan_step(edit.store, at):
        planned.setdefault(waiting.node.name, []).append(waiting.id)
    tasks: list[_UpdateTask] = []
    for position, (name, update) in enumerate(zip(names, updates, strict=True)):
        known = planned.get(name)
        task_id = update.task_id or (known.pop(0) if known else _fresh_id(edit, position))
        task = _UpdateTask(at, edit.graph.nodes[name], position, task_id)
        yield from _follow(edit, task, update.values)
        tasks.append(task)
    with told_of_step(edit.step):
        edit.store.apply(tasks, [(task.node.name, task.writes) for task in tasks], is_step=True)
    made = yield from _save(edit, "update", edit.step)
    yield from _note_results(edit, tasks)
    return made


def _note_results(edit: _Edit, tasks: Sequence[Task]) -> Flow[None]:
    """Store what updates wrote as the results of the superstep they stand for, which is what history shows.

    After the checkpoint, for if that is refused these must not count. A superstep that has its results already, or that
    the thread has left behind, keeps its record.
    """
    if edit.base_id is None or edit.base_id != edit.head_id:
        return
    finished = {task_id for task_id, channel, _ in edit.pending() if channel not in UNFINISHED_WRITES}
    for task in tasks:
        if task.writes and task.id not in finished:
            order = SaveWrites(
                checkpoint_id=edit.base_id, task_id=task.id, task_path=task.path_str, writes=list(task.writes), is_awaited=True
            )
            yield from ask(Save(edit.port, [order]))


def _fresh_id(edit: _Edit, position: int) -> str:
    base = _NO_CHECKPOINT if edit.base_id is None else UUID(edit.base_id)
    return str(uuid5(base, f"{INTERRUPT}:{position}" if position else INTERRUPT))


def _as_nodes(edit: _Edit, updates: Updates) -> list[str]:
    """Return the node of each update.

    Raises:
        InvalidUpdateError: it does not exist, or nothing says which one is meant.
    """
    names: list[str] = []
    for update in updates:
        name = update.as_node
        if name is None:
            if len(updates) > 1:
                text = f"{len(updates)} updates in one superstep, so each needs as_node; one has none"
                raise about(InvalidUpdateError(text), update)
            name = _last_node(edit)
        if name not in edit.graph.nodes:
            known = ", ".join(map(repr, edit.graph.nodes))
            raise InvalidUpdateError(f"as_node={name!r} names no node; known: {known}", node=name)
        names.append(name)
    return names


def _last_node(edit: _Edit) -> str:
    """Return the node that ran last, by the versions it has seen."""
    nodes = edit.graph.nodes
    if len(nodes) == 1:
        return next(iter(nodes))
    tops: dict[str, Any] = {name: max(seen.values()) for name, seen in edit.store.seen.items() if name in nodes and seen}
    if not tops and START in nodes:
        return START
    last = [name for name, top in tops.items() if top == max(tops.values())]
    if len(last) != 1:
        who = f"{', '.join(map(repr, last))} ran last, in one superstep" if last else "no node has run"
        raise InvalidUpdateError(f"ambiguous update: {who}; say which node it is from with as_node=")
    return last[0]


def _follow(edit: _Edit, task: Task, values: Any) -> Flow[None]:
    """Let a node's writer write *values*, calling the path functions of its conditional edges."""
    name = task.node.name
    writing = task.node.writer.write(task, values)
    try:
        call = next(writing)
        here = bystander(edit.graph, edit.spec, edit.port, edit.base_id, edit.parents, task)
        while True:
            args = (call.input, here.config()) if call.path.takes_config else (call.input,)
            found = yield from ask(CallPath(here, call.path, args, call.path.arguments(here)))
            call = writing.send(found)
    except StopIteration:
        return
    # Neither may pass: in node code that updates another thread they would be taken for the node's own.
    except ParentCommand as command:
        raise InvalidUpdateError(
            f"the update as {name!r} is a Command for the parent graph; update that one, by its own config", node=name
        ) from command
    except GraphInterrupt as pause:
        raise InvalidUpdateError(
            f"a path function of {name!r} called interrupt(), but an update cannot wait for an answer", node=name
        ) from pause


def _save(edit: _Edit, source: Literal["input", "update", "fork"], step: int, *, parent_id: str | None = None) -> Flow[str]:
    """Put the edited channels as a new checkpoint and return its id; a fork hangs on *parent_id*."""
    store, port = edit.store, edit.port
    made = port.new_checkpoint_id(edit.head_id, step)
    hangs_on = parent_id if source == "fork" else edit.base_id
    changed, grown = store.take_changes()
    about = checkpoint_metadata(source, step, edit.parents, edit.detours(made))
    order = SaveCheckpoint(
        checkpoint=checkpoint_record(store, made, time.time_ns(), None),
        metadata=cast("CheckpointMetadata", {**port.extras, **about}),
        new_versions=changed,
        parent_id=hangs_on,
        expect_head=MISSING if edit.is_addressed else hangs_on,
        based_on=edit.base_id if edit.is_addressed else None,
        is_whole=True,
        increments=grown,
        is_awaited=True,
    )
    yield from ask(Save(port, [order]))
    return made
