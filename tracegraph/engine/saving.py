"""Checkpoint records and the durability policy: what is stored, in which order, and what waits for it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, Literal, cast

from tracegraph.constants import MISSING
from tracegraph.engine.actions import Decision, SaveCheckpoint, SaveWrites
from tracegraph.engine.apply import ChannelStore
from tracegraph.engine.reports import SaveEnded
from tracegraph.engine.settings import Begin, RunSettings
from tracegraph.events import CheckpointSaved, CheckpointStarted
from tracegraph.records import Checkpoint, CheckpointMetadata, Detour, Write

__all__ = ["CHECKPOINT_FORMAT", "Saving", "checkpoint_metadata", "checkpoint_record"]

CHECKPOINT_FORMAT = 4

Source = Literal["input", "loop", "update", "fork"]


def checkpoint_record(store: ChannelStore, checkpoint_id: str, at_ns: int, updated: Collection[str] | None) -> Checkpoint:
    """Return the saved form of *store*: only channels that have a version and a value to save."""
    rules, values, states, as_it_is = store.topology.channels, store.values, store.states, store.topology.saved_as_it_is
    saved: dict[str, Any] = {}
    for name in store.versions:
        if name in as_it_is:
            if name in values:
                saved[name] = values[name]
        elif (rule := rules.get(name)) is not None and rule.is_saved:
            found = rule.dump(states[name] if name in states else values.get(name, MISSING))
            if found is not MISSING:
                saved[name] = found
    return Checkpoint(
        v=CHECKPOINT_FORMAT,
        id=checkpoint_id,
        ts=_time_text(at_ns),
        channel_values=saved,
        channel_versions=dict(store.versions),
        # The inner dicts are replaced by every step and never changed, so they can be shared.
        versions_seen=dict(store.seen),
        updated_channels=None if updated is None else sorted(updated),
    )


def _time_text(at_ns: int) -> str:
    return f"{_second_text(at_ns // 1_000_000_000)}.{at_ns // 1000 % 1_000_000:06}+00:00"


@lru_cache(maxsize=8)
def _second_text(at_s: int) -> str:
    return datetime.fromtimestamp(at_s, UTC).strftime("%Y-%m-%dT%H:%M:%S")


def checkpoint_metadata(source: Source, step: int, parents: Mapping[str, str], detours: Sequence[Detour]) -> CheckpointMetadata:
    """Return what a checkpoint says about itself."""
    made = CheckpointMetadata(source=source, step=step, parents=dict(parents))
    if detours:
        made["__detours__"] = [list(detour) for detour in detours]
    return made


class Saving:
    """The saves of one run. ``checkpoint_id`` is the checkpoint the current superstep belongs to."""

    __slots__ = (
        "_head_id",
        "_is_first_unchecked",
        "_last",
        "_loaded",
        "_order",
        "_parent_id",
        "_parked",
        "_settings",
        "_told",
        "awaited",
        "checkpoint_bytes",
        "checkpoint_id",
        "detours",
    )

    def __init__(self, settings: RunSettings, begin: Begin) -> None:
        self._settings = settings
        self._order = 0
        self._told: dict[int, tuple[str, str | None, Source, int, tuple[str, ...]]] = {}
        """By order, what is to be told of the checkpoints that are being stored."""
        self.awaited: set[int] = set()
        """Orders of the saves that must end before the engine goes on."""
        self._parked: dict[str, SaveWrites] = {}
        """exit durability: the writes of the current superstep's tasks."""
        self._last: tuple[Source, int, Collection[str] | None] | None = None
        """What the newest checkpoint of this run says about itself."""
        self._loaded = begin.saved
        self._parent_id: str | None = None
        self._is_first_unchecked = begin.is_addressed
        self.detours = begin.detours
        self.checkpoint_id: str | None = None
        self.checkpoint_bytes = settings.id_seed or settings.run_id.bytes
        # Of a foreign start, nothing is stored below it, and its branch has no parent.
        if begin.saved is not None and not begin.is_foreign:
            self._at(begin.saved.checkpoint["id"])
        self._head_id = self.checkpoint_id

    def _at(self, checkpoint_id: str) -> None:
        self.checkpoint_id = checkpoint_id
        self.checkpoint_bytes = bytes.fromhex(checkpoint_id.replace("-", ""))

    @property
    def is_on(self) -> bool:
        """Whether there is a saver."""
        return self._settings.durability is not None

    def will_be_stored_with(self, decision: Decision) -> bool:
        """Say whether all saves that are waited for are ordered by *decision*.

        What it orders next is then stored after them, or together with them: the last task's writes and the checkpoint
        that supersedes them can be one transaction. Those of earlier decisions may still be under way in another thread.
        """
        return not self.awaited or self.awaited <= {a.order for a in decision.actions if isinstance(a, SaveWrites)}

    def save_writes(self, decision: Decision, task_id: str, path_str: str, writes: Sequence[Write]) -> None:
        """Order the storing of one task's writes under the current checkpoint."""
        if self.checkpoint_id is None:
            return
        action = SaveWrites(
            checkpoint_id=self.checkpoint_id,
            task_id=task_id,
            task_path=path_str,
            writes=list(writes),
            is_awaited=self._settings.durability == "sync",
        )
        if self._settings.durability == "exit":
            self._parked[task_id] = action
        else:
            self._issue(decision, action)

    def save_checkpoint(
        self, decision: Decision, store: ChannelStore, source: Source, step: int, at_ns: int, updated: Collection[str] | None
    ) -> None:
        """Move on to a new checkpoint of *store*, and order its storing unless that waits for the run's end."""
        parent_id = self.checkpoint_id
        self._at(self._settings.new_checkpoint_id(parent_id, step))
        self._last = (source, step, updated)
        # Under exit durability none of those in between is stored.
        self._parent_id = self._head_id if self._settings.durability == "exit" else parent_id
        self._parked.clear()
        if self._settings.durability != "exit":
            self._put(decision, store, parent_id, at_ns)

    def save_at_exit(self, decision: Decision, store: ChannelStore, at_ns: int) -> None:
        """Under exit durability, order the one checkpoint of the run and its unfinished superstep's writes."""
        if self._settings.durability != "exit":
            return
        if self._last is not None:
            self._put(decision, store, self._head_id, at_ns)
        for action in self._parked.values():
            self._issue(decision, action)
        self._parked.clear()

    def _put(self, decision: Decision, store: ChannelStore, parent_id: str | None, at_ns: int) -> None:
        assert self._last is not None and self.checkpoint_id is not None
        source, step, updated = self._last
        settings = self._settings
        changed, grown = store.take_changes()
        action = SaveCheckpoint(
            checkpoint=checkpoint_record(store, self.checkpoint_id, at_ns, updated),
            metadata=self._metadata(source, step),
            new_versions=changed,
            parent_id=parent_id,
            expect_head=MISSING if self._is_first_unchecked else parent_id,
            based_on=parent_id if self._is_first_unchecked else None,
            is_whole=True,
            increments=grown,
            is_awaited=settings.durability != "async",
        )
        self._is_first_unchecked = False
        if settings.wants & CheckpointStarted.bit:
            action.started = CheckpointStarted(
                settings.run_id,
                settings.ns,
                step,
                at_ns,
                self.checkpoint_id,
                parent_id,
                source,
                tuple(changed),
                settings.does_io,
                action.is_awaited,
            )
            decision.events.append(action.started)
        self._issue(decision, action)

    def _metadata(self, source: Source, step: int) -> CheckpointMetadata:
        made = checkpoint_metadata(source, step, self._settings.parents, self.detours)
        return cast("CheckpointMetadata", {**self._settings.metadata, **made}) if self._settings.metadata else made

    def current(self) -> tuple[Mapping[str, Any], str | None]:
        """Return the metadata of the checkpoint the run stands at, and its parent's id."""
        if self._last is not None:
            return self._metadata(self._last[0], self._last[1]), self._parent_id
        assert self._loaded is not None
        before = self._loaded.parent_config
        return self._loaded.metadata, None if before is None else before["configurable"]["checkpoint_id"]

    def _issue(self, decision: Decision, action: SaveCheckpoint | SaveWrites) -> None:
        self._order += 1
        action.order = self._order
        if isinstance(action, SaveCheckpoint) and self._settings.wants & CheckpointSaved.bit:
            # Not the action: its values would be kept until the report, which may be long after.
            checkpoint_id, metadata = action.checkpoint["id"], action.metadata
            told = (checkpoint_id, action.parent_id, metadata["source"], metadata["step"], tuple(action.new_versions))
            self._told[action.order] = told
        if action.is_awaited:
            self.awaited.add(action.order)
        decision.actions.append(action)

    def ended(self, decision: Decision, report: SaveEnded, at_ns: int) -> None:
        """Take note that a save was carried out or failed."""
        self.awaited.discard(report.order)
        told = self._told.pop(report.order, None)
        if told is not None:
            checkpoint_id, parent_id, source, step, changed = told
            run_id, ns, error, written = self._settings.run_id, self._settings.ns, report.error, report.written_bytes
            decision.events.append(
                CheckpointSaved(run_id, ns, step, at_ns, checkpoint_id, parent_id, source, changed, error, written)
            )
