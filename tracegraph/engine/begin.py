"""The first moves of a run: load, take the input or the command, decide whether it resumes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from tracegraph.constants import BRANCH_PREFIX, END, INPUT, INTERRUPT, NULL_TASK_ID, START, TASKS
from tracegraph.engine.actions import Decision
from tracegraph.engine.identity import path_text
from tracegraph.engine.settings import Begin
from tracegraph.engine.state_size import told_of_step
from tracegraph.engine.topology import Topology
from tracegraph.engine.updates import command_pairs
from tracegraph.engine.views import isolated
from tracegraph.errors import EmptyInputError, InvalidUpdateError, UnknownTargetError
from tracegraph.events import StateUpdated, UnknownKeyIgnored
from tracegraph.records import Write
from tracegraph.refused_values import about, described
from tracegraph.types import Command, Send

if TYPE_CHECKING:
    from tracegraph.engine.engine import Engine

__all__ = ["begin_run", "command_writes", "input_writes"]


def begin_run(engine: Engine, decision: Decision, begin: Begin, at_ns: int) -> None:
    """Bring the engine to the point where its first superstep can be planned.

    The step arithmetic is part of the API: a fresh run's input is step -1 and its start node step 0, so that
    ``recursion_limit`` L allows L node supersteps, the last of which must find nothing left to do.
    """
    saved = begin.saved
    if saved is not None:
        found = saved.checkpoint
        engine.store.load(found["channel_values"], found["channel_versions"], found["versions_seen"])
        updated = found.get("updated_channels")
        engine.store.updated = None if updated is None else frozenset(updated)
        engine.step = saved.metadata["step"] + 1
        if begin.is_foreign:
            engine.store.changed.update(engine.store.versions)
    engine.stop = engine.step + engine.settings.recursion_limit + 1
    has_state = bool(engine.store.versions)
    if writes := engine.pending.of_commands():
        _apply_outside_step(engine, "a stored command", writes)
    if has_state and (begin.is_resume or begin.command is not None or begin.input is None):
        _resume(engine, decision, begin, at_ns)
        return
    ignored: list[str] = []
    writes = _first_writes(engine, begin, ignored)
    if not writes:
        given, channels = begin.command or begin.input, engine.topology.input_channels
        text = f"the input, {described(given)}, has nothing for {channels!r}, and there is no run to resume"
        raise about(EmptyInputError(text), given)
    _announce_ignored(engine, decision, ignored, at_ns)
    # What an earlier run left pending is dropped: its triggers count as seen, its writes as none.
    discarded = engine.plan() if has_state else []
    with told_of_step(engine.step):
        updated_now = engine.store.apply(discarded, [(INPUT, writes)], is_step=bool(discarded))
    engine.store.seen[INPUT] = {}
    engine.pending.clear()
    engine.is_touched = engine.is_touched or bool(updated_now & engine.topology.output_keys)
    if engine.saving.is_on:
        engine.saving.save_checkpoint(decision, engine.store, "input", engine.step, at_ns, sorted(updated_now))
    engine.step += 1


def _first_writes(engine: Engine, begin: Begin, ignored: list[str]) -> list[Write]:
    """Return the writes of an input; a command is the start node's to read, where there is one."""
    is_strict = engine.settings.is_strict
    if begin.command is not None and START not in engine.topology.nodes:
        return command_writes(engine.topology, begin.command, is_strict=is_strict, ignored=ignored)
    return input_writes(engine.topology, begin.command or begin.input, is_strict=is_strict, ignored=ignored)


def _resume(engine: Engine, decision: Decision, begin: Begin, at_ns: int) -> None:
    """Go on from the loaded checkpoint: breakpoints met so far are passed, a command's writes join in."""
    engine.is_resuming = True
    engine.is_touched = True
    if begin.command is not None:
        ignored: list[str] = []
        writes = command_writes(engine.topology, begin.command, is_strict=engine.settings.is_strict, ignored=ignored)
        _announce_ignored(engine, decision, ignored, at_ns)
        if writes:
            _apply_outside_step(engine, "the command", writes)
        if writes and not begin.is_fork:  # a fork is saved with them, and what it branches off stays as it is
            # Slots count from 0 for each save and keep their first value, so earlier commands' writes go in front again.
            engine.saving.save_writes(decision, NULL_TASK_ID, path_text(()), [*engine.pending.of_commands(), *writes])
    engine.store.seen[INTERRUPT] = dict(engine.store.versions)
    if begin.is_fork:
        # A branch of its own: the tasks get new ids, and the history that was replayed stays as it is.
        engine.saving.save_checkpoint(decision, engine.store, "fork", engine.step, at_ns, None)
        engine.step += 1
    settings = engine.settings
    if settings.wants & StateUpdated.bit:
        decision.events.append(
            StateUpdated(settings.run_id, settings.ns, engine.step - 1, at_ns, engine.store.values, frozenset(), "resume")
        )


def _announce_ignored(engine: Engine, decision: Decision, ignored: Iterable[str], at_ns: int) -> None:
    settings = engine.settings
    if settings.wants & UnknownKeyIgnored.bit:
        for key in ignored:
            decision.events.append(UnknownKeyIgnored(settings.run_id, settings.ns, engine.step, at_ns, INPUT, key))


def _apply_outside_step(engine: Engine, writer: str, writes: list[Write]) -> None:
    before = engine.store.updated
    with told_of_step(engine.step):
        updated = engine.store.apply((), [(writer, writes)], is_step=False)
    # Both what the last step and what this command changed can trigger nodes now.
    engine.store.updated = None if before is None else before | updated


def input_writes(topology: Topology, given: Any, *, is_strict: bool, ignored: list[str]) -> list[Write]:
    """Return the channel writes of a run's input; unknown keys are put into *ignored*.

    Raises:
        InvalidUpdateError: a low-level graph with several input channels got no dict, or, in strict mode, an unknown key.
    """
    channels = topology.input_channels
    if given is None:
        return []
    if isinstance(channels, str):
        return [(channels, isolated(given))]
    if not isinstance(given, Mapping):
        raise InvalidUpdateError(f"the input must be a dict with keys among {channels!r}, not {type(given).__name__}", node=INPUT)
    writes: list[Write] = []
    for key, value in given.items():
        if key in channels:
            writes.append((key, isolated(value)))
        else:
            _ignore(key, channels, is_strict, ignored)
    return writes


def command_writes(topology: Topology, command: Command[Any], *, is_strict: bool, ignored: list[str]) -> list[Write]:
    """Return the writes of a command given as input: where to go first, then the update; unknown keys are put into *ignored*.

    Raises:
        InvalidUpdateError: the command is for a parent graph. UnknownTargetError: a goto names no node.
        TypeError: a goto is neither a node name nor a Send.
    """
    if command.graph == Command.PARENT:
        raise InvalidUpdateError("a command for the parent graph was given to a run that has no parent", node=INPUT)
    writes: list[Write] = []
    for target in command.targets():
        if not isinstance(target, (str, Send)):
            raise about(TypeError(f"goto takes node names and Sends, not {described(target)}"), target)
        name = target if isinstance(target, str) else target.node
        if name == END:
            continue
        if not topology.has_node(name):
            raise UnknownTargetError(name, node=None, known=topology.node_names())
        writes.append((f"{BRANCH_PREFIX}{name}", None) if isinstance(target, str) else (TASKS, target))
    for channel, value in command_pairs(command.update, ()):
        if channel in topology.nested:
            unknown: list[str] = []
            writes += topology.nested[channel].split(value, INPUT, unknown)
            for name in unknown:
                _ignore(name, topology.paths, is_strict, ignored)
        elif channel in topology.channels and channel not in topology.paths and channel != START:
            writes.append((channel, value))
        else:
            known = (topology.channels.keys() - topology.paths.keys()) | topology.nested.keys()
            _ignore(channel, known, is_strict, ignored)
    return writes


def _ignore(key: str, known: Iterable[str], is_strict: bool, ignored: list[str]) -> None:
    """Note a key of the input that is no channel: subgraphs are called with more than they know."""
    if is_strict:
        raise UnknownTargetError(key, node=INPUT, known=known, what="channel")
    ignored.append(key)
