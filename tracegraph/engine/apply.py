"""Applying a superstep's writes: all new values are computed first, then swapped in.

Source: "Pregel", SIGMOD 2010, section 2: a superstep sees only what earlier supersteps wrote.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from operator import is_
from typing import Any

from tracegraph.channels.base import BaseChannel
from tracegraph.channels.delta import DeltaLog, DeltaSnapshot
from tracegraph.constants import MISSING, SKIPPED_WRITES, TASKS, UNCHANGED
from tracegraph.engine.failures import add_note
from tracegraph.engine.reshaping import reshaped
from tracegraph.engine.state_size import StateSize
from tracegraph.engine.task import Task
from tracegraph.engine.topology import Topology
from tracegraph.errors import InvalidUpdateError, UnknownTargetError
from tracegraph.records import ChannelVersions, Growth, Increment, Version, Write

__all__ = ["ChannelStore", "WriteGroup"]

WriteGroup = tuple[str, Sequence[Write]]
"""(writer's name, its writes)"""

Folded = Mapping[str, tuple[Any, list[Any], Any]]
"""See :attr:`Task.folded`."""


class ChannelStore:
    """The channels of one run: values, raw states, versions, and what each node has seen.

    ``values`` is replaced once per superstep and never mutated, so every task keeps the view it started with.
    """

    __slots__ = (
        "_grown_now",
        "_wrapped",
        "changed",
        "growing",
        "grown",
        "is_saved",
        "live",
        "next_version",
        "seen",
        "size",
        "states",
        "top",
        "topology",
        "updated",
        "values",
        "versions",
    )

    def __init__(
        self,
        topology: Topology,
        next_version: Callable[[Version | None], Version],
        *,
        is_saved: bool = True,
        size: StateSize | None = None,
    ) -> None:
        self.topology = topology
        self.is_saved = is_saved
        self.size = size
        """What admits changes, where there is a limit."""
        self.growing = topology.growing if is_saved or size is not None else frozenset()
        """Channels of which it matters what was added: savers may store that instead, and sizes are counted by it."""
        self.next_version = next_version
        self.values: dict[str, Any] = topology.fresh_values()
        self.states: dict[str, Any] = {name: topology.channels[name].initial() for name in topology.held}
        self.versions: ChannelVersions = {}
        self.seen: dict[str, ChannelVersions] = {}
        self.top: Version | None = None
        self.updated: frozenset[str] | None = None
        """Channels the last step changed that hold a value; None if that is not known."""
        self.changed: set[str] = set()
        """Channels whose version grew since the last checkpoint."""
        self.grown: dict[str, Increment] = {}
        """Those of them that only had something added."""
        self._grown_now: dict[str, tuple[Growth, list[Any]] | None] = {}
        self._wrapped: set[str] = set()
        """Lists that are stored as a delta channel's log or snapshot, so that nothing can be put behind them there."""
        self.live: AbstractSet[str] = frozenset()
        """Plain channels that must be cleared by a step that does not write them."""

    def load(self, saved: Mapping[str, Any], versions: ChannelVersions, seen: Mapping[str, ChannelVersions]) -> None:
        """Take over a checkpoint's channels."""
        rules = self.topology.channels
        if not saved.keys() <= rules.keys():
            saved, versions, moved = reshaped(saved, versions, self.topology)
            self.changed.update(moved)
        values: dict[str, Any] = {}
        for name, rule in rules.items():
            found = saved.get(name, MISSING)
            state = rule.load(found)
            if type(found) is DeltaLog or type(found) is DeltaSnapshot:
                _refuse_unfolded(name, rule, state)
                self._wrapped.add(name)
            if name in self.states:
                self.states[name] = state
            if (value := rule.peek(state)) is not MISSING:
                values[name] = value
        self.values = values
        self.versions = dict(versions)
        self.seen = {name: dict(found) for name, found in seen.items()}
        # Versions of one saver are of one type; the lowest possible value only starts the comparison.
        self.top = max(versions.values(), default=None)
        self.live = {name for name in values if name in self.topology.short_lived}

    def apply(self, tasks: Sequence[Task], groups: Sequence[WriteGroup], *, is_step: bool) -> frozenset[str]:
        """Apply *groups* in the given order and return the changed channels that hold a value.

        Args:
            tasks: whose triggers are consumed and seen; none for input and commands.
            groups: the writes by writer, in the order in which reducers get them.
            is_step: a superstep ran, so unwritten channels are told too, and deferred ones may be released.

        Raises:
            InvalidUpdateError: a channel cannot take its writes; no channel is changed then.
            StateSizeError: the state would become too large; nor then.
        """
        overlay: dict[str, Any] = {}
        for task in tasks if self.topology.node_consumes else ():
            for name in self.topology.node_consumes.get(task.node.name, ()) if task.triggers else ():
                self._note(overlay, name, self.topology.channels[name].consumed(self._state(overlay, name)))
        written = self._fold_writes(overlay, groups, tasks[0].folded if len(tasks) == 1 else None)
        if is_step:
            self._clear_idle(overlay, written)
        if is_step and self.topology.finishes and not self._triggers_anything(overlay):
            for name in self.topology.finishes:
                self._note(overlay, name, self.topology.channels[name].finished(self._state(overlay, name)))
        seen = self._seen_by(tasks)
        if self.size is not None and overlay:
            self.size.admit(overlay, self._grown_now, self.versions, self._state)
        updated = self._commit(overlay, is_step=is_step)
        self.seen.update(seen)
        return updated

    def _fold_writes(self, overlay: dict[str, Any], groups: Sequence[WriteGroup], folded: Folded | None) -> dict[str, list[Any]]:
        written: dict[str, list[Any]] = {}
        self._grown_now = {}
        for writer, writes in groups:
            for channel, value in writes:
                if channel in written:
                    written[channel].append(value)
                elif channel in self.topology.channels:
                    written[channel] = [value]
                elif channel in self.topology.nested:
                    # Stored by a task that finished before the field was nested.
                    for name, part in self.topology.nested[channel].split(value, writer, []):
                        written.setdefault(name, []).append(part)
                elif channel not in SKIPPED_WRITES:
                    raise UnknownTargetError(channel, node=writer, known=self.topology.channels, what="channel")
        rules, values, held, replaces = self.topology.channels, self.values, self.topology.held, self.topology.replaces
        growing = self.growing
        for channel, batch in written.items():
            if channel in replaces and len(batch) == 1:
                overlay[channel] = batch[0]
                continue
            state = self._state(overlay, channel) if channel in overlay or channel in held else values.get(channel, MISSING)
            try:
                new = _known(folded, channel, state, batch)
                if new is MISSING:
                    new = rules[channel].fold(state, batch)
            except Exception as error:
                _name_writers(error, channel, groups)
                raise
            if new is not UNCHANGED:
                overlay[channel] = new
                if channel in growing:
                    self._grown_now[channel] = rules[channel].increment(state, new, batch)
        return written

    def _clear_idle(self, overlay: dict[str, Any], written: Mapping[str, Any]) -> None:
        rules = self.topology.channels
        for name in self.live:
            if name not in written and (state := rules[name].cleared(self._state(overlay, name))) is not UNCHANGED:
                overlay[name] = state
        for name in self.topology.always_clears:
            if name not in written:
                self._note(overlay, name, rules[name].cleared(self._state(overlay, name)))

    def _state(self, overlay: Mapping[str, Any], name: str) -> Any:
        if name in overlay:
            return overlay[name]
        return self.states[name] if name in self.states else self.values.get(name, MISSING)

    @staticmethod
    def _note(overlay: dict[str, Any], name: str, state: Any) -> None:
        if state is not UNCHANGED:
            overlay[name] = state

    def _triggers_anything(self, overlay: Mapping[str, Any]) -> bool:
        """Say whether what changed runs a node next step; pending Sends do (LangGraph overlooks them)."""
        rules, index = self.topology.channels, self.topology.trigger_to_nodes
        return any((name in index or name == TASKS) and rules[name].peek(state) is not MISSING for name, state in overlay.items())

    def _seen_by(self, tasks: Sequence[Task]) -> dict[str, ChannelVersions]:
        """Return, by node, the versions of the triggers it has now run with, as they are before this step's changes."""
        versions = self.versions
        found: dict[str, ChannelVersions] = {}
        for task in tasks:
            # New dicts each time: checkpoints share the old ones. A task that a Send made has seen nothing, and must
            # not wipe what a triggered task of the same node has.
            seen = {t: versions[t] for t in task.triggers if t in versions}
            if seen or (task.node.name not in self.seen and task.node.name not in found):
                found[task.node.name] = seen
        return found

    def _commit(self, overlay: dict[str, Any], *, is_step: bool) -> frozenset[str]:
        if not overlay:
            self.updated = frozenset()
            return self.updated
        self.top = version = self.next_version(self.top)
        if self.growing and self.is_saved:
            self._note_growth(overlay)
        self.changed.update(overlay)
        self.versions.update(dict.fromkeys(overlay, version))
        held = self.topology.held
        if held and not held.isdisjoint(overlay):
            overlay = self._take_states(overlay)
        values = self.values.copy()
        values.update(overlay)
        updated = frozenset(overlay)
        emptied = [name for name, value in overlay.items() if value is MISSING]
        if emptied:
            for name in emptied:
                del values[name]
            updated = updated.difference(emptied)
        self.values, self.updated = values, updated
        live = updated & self.topology.short_lived
        # A step has cleared what it did not write; anything else leaves the channels of the step before alone.
        self.live = live if is_step else live | (self.live & values.keys())
        return updated

    def _note_growth(self, overlay: Mapping[str, Any]) -> None:
        """Keep what channels grew by since the last checkpoint, for as long as they did nothing else."""
        for name in self.growing & overlay.keys():
            now, before = self._grown_now.get(name), self.grown.pop(name, None)
            if now is None or (base := self.versions.get(name)) is None:
                continue
            growth, items = now
            if growth == "append" and name in self._wrapped:
                continue
            if name not in self.changed:
                self.grown[name] = Increment(growth, base, items)
            elif before is not None and before.growth == growth:
                before.items.extend(items)
                self.grown[name] = before

    def take_changes(self) -> tuple[ChannelVersions, dict[str, Increment]]:
        """Return what to store with the next checkpoint: versions of the changed channels, and which only grew."""
        changed, grown = {name: self.versions[name] for name in sorted(self.changed)}, self.grown
        self._wrapped.difference_update(self.changed.difference(grown))
        self.changed.clear()
        self.grown = {}
        return changed, grown

    def _take_states(self, overlay: Mapping[str, Any]) -> dict[str, Any]:
        """Take over the raw states of held channels; return the overlay as values."""
        held, rules = self.topology.held, self.topology.channels
        # Replaced like the values: tasks of this step keep the states they started with.
        self.states = {**self.states, **{name: state for name, state in overlay.items() if name in held}}
        return {name: rules[name].peek(state) if name in held else state for name, state in overlay.items()}

    def preview(self, tasks: Sequence[Task], groups: Sequence[WriteGroup]) -> dict[str, Any]:
        """Return the values as they would be with *groups* applied; nothing changes."""
        trial = ChannelStore.__new__(ChannelStore)
        trial.topology, trial.next_version = self.topology, lambda current: current  # type: ignore[assignment,return-value]
        trial.values, trial.states, trial.live = self.values, self.states, self.live
        trial.changed, trial.grown, trial.growing, trial.size = set(), {}, frozenset(), None
        trial.versions, trial.seen, trial.top, trial.updated = dict(self.versions), dict(self.seen), self.top, self.updated
        trial.apply(tasks, groups, is_step=False)
        return trial.values


def _refuse_unfolded(name: str, rule: BaseChannel[Any, Any, Any], state: Any) -> None:
    """Refuse to hand out a delta channel's writes as if they were a value.

    Raises:
        InvalidUpdateError: the channel of that name cannot fold them.
    """
    if type(rule.peek(state)) is DeltaLog:
        raise InvalidUpdateError(
            f"the thread holds {name!r} as writes that only its DeltaChannel can fold, but the field has none any more; give "
            "it its DeltaChannel or a reducer again, overwrite it once, and take that away",
            channel=name,
        )


def _known(folded: Folded | None, channel: str, state: Any, batch: list[Any]) -> Any:
    """Return what the step's one task found *state* to become with this batch, ``MISSING`` if it did not ask."""
    if folded is None or channel not in folded:
        return MISSING
    before, writes, after = folded[channel]
    is_same = before is state and len(writes) == len(batch) and all(map(is_, writes, batch))
    return after if is_same else MISSING


def _name_writers(error: Exception, channel: str, groups: Sequence[WriteGroup]) -> None:
    """Say on the error which channel and nodes it is about: a reducer knows neither."""
    writers = tuple(dict.fromkeys(name for name, writes in groups if any(c == channel for c, _ in writes)))
    if isinstance(error, InvalidUpdateError):
        error.channel = error.channel or channel
        error.writers = error.writers or writers
    add_note(error, f"while channel {channel!r} took the writes of {', '.join(map(repr, writers))}; no channel was changed")
