"""Values of delta channels, which LangGraph keeps as a snapshot now and then, and the writes since.

A checkpoint's value is its parent's, with what the parent's tasks wrote folded in. That takes the reducer, which only the
graph knows; so what is imported is a base and the writes to fold into it, which our delta channels do when they load it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from tracegraph.channels.delta import DeltaLog, DeltaSnapshot
from tracegraph.constants import MISSING
from tracegraph.interop.langgraph.errors import ThreadRefusedError
from tracegraph.interop.langgraph.stored import Stored
from tracegraph.records import Increment, Version
from tracegraph.types import Overwrite

__all__ = ["DeltaValues", "delta_channels"]

_COUNTERS = "counters_since_delta_snapshot"


def delta_channels(stored: Stored) -> set[str]:
    """Return the channels that this checkpoint shows to be delta channels."""
    snapshots = (name for name, value in stored.checkpoint["channel_values"].items() if type(value) is DeltaSnapshot)
    return {*(stored.metadata.get(_COUNTERS) or ()), *snapshots}


class _Log:
    """Writes since a base, oldest first: what all checkpoints of a lineage share, each up to a length of its own."""

    __slots__ = ("before", "start", "writes")

    def __init__(self, before: _Log | None = None, start: int = 0) -> None:
        self.before = before
        self.start = start
        """How many writes of *before* come first."""
        self.writes: list[Any] = []

    def extended(self, length: int, writes: list[Any]) -> _Log:
        """Return a log that has these writes after its first *length*: this one, or where it has others there, a branch."""
        log = self if length == self.start + len(self.writes) else _Log(self, length)
        log.writes.extend(writes)
        return log

    def first(self, length: int) -> list[Any]:
        """Return a new list of the first *length* writes."""
        parts = []
        log: _Log | None = self
        while log is not None:
            parts.append(log.writes[: max(0, length - log.start)])
            length = min(length, log.start)
            log = log.before
        return [write for part in reversed(parts) for write in part]


class _Left(NamedTuple):
    """What a checkpoint leaves to its children: a base, the writes since, and how many of them are its own tasks'."""

    base: Any
    log: _Log
    length: int
    own: int
    version: Version | None
    """Of the value before its own writes; None if there is none to add to."""


class DeltaValues:
    """Fills in the values of one namespace's delta channels; takes its checkpoints parents first.

    Args:
        parents: of each checkpoint that will come, so that it is known when nobody builds on one any more.
    """

    def __init__(self, channels: set[str], parents: Iterable[str | None]) -> None:
        self._channels = sorted(channels)
        self._awaited = Counter(parents)
        self._left: dict[str, Mapping[str, _Left]] = {}
        """checkpoint id -> channel -> what its children have, until the last of them was there"""

    def complete(self, stored: Stored) -> None:
        """Put the values into a checkpoint.

        Raises:
            ThreadRefusedError: one cannot be known, since what it builds on is gone.
        """
        values, versions = stored.checkpoint["channel_values"], stored.checkpoint["channel_versions"]
        for name in self._channels:
            if type(held := values.get(name)) is DeltaSnapshot:
                values[name] = held.value
            elif name not in values and name in versions and stored.parent_id is not None:
                left = self._of_parent(stored, name)
                if left.length:
                    values[name] = DeltaLog(left.base, left.log.first(left.length))
                elif left.base is not MISSING:
                    values[name] = left.base

    def increments(self, stored: Stored) -> dict[str, Increment]:
        """Return what a completed checkpoint's values grew by, and note what it leaves; its versions are final now."""
        values, versions = stored.checkpoint["channel_values"], stored.checkpoint["channel_versions"]
        found: dict[str, Increment] = {}
        left: dict[str, _Left] = {}
        for name in self._channels:
            value = values.get(name, MISSING)
            log, length = _Log(), 0
            if type(value) is DeltaLog:
                parent = self._of_parent(stored, name)
                log, length = parent.log, parent.length
                if parent.own and parent.version not in (None, versions[name]):
                    found[name] = Increment("fold", parent.version, value.writes[-parent.own :])
                value = value.base
            own = [write.value for write in stored.writes if write.channel == name]
            has_value = values.get(name, MISSING) is not MISSING
            left[name] = _after(value, log, length, own, versions.get(name) if has_value else None)
        self._keep(stored, left)
        return found

    def _keep(self, stored: Stored, left: Mapping[str, _Left]) -> None:
        """Keep what a checkpoint leaves for as long as there are children to come."""
        self._awaited[stored.parent_id] -= 1
        if stored.parent_id is not None and not self._awaited[stored.parent_id]:
            self._left.pop(stored.parent_id, None)
        if self._awaited[stored.place.checkpoint_id] > 0:
            self._left[stored.place.checkpoint_id] = left

    def _of_parent(self, stored: Stored, name: str) -> _Left:
        if stored.parent_id is None or stored.parent_id not in self._left:
            raise ThreadRefusedError(
                stored.place.thread_id,
                f"channel {name!r} of {stored.place} is a delta channel, and builds on checkpoint {stored.parent_id}, which is "
                "gone, so its value cannot be known",
            )
        return self._left[stored.parent_id][name]


def _after(base: Any, log: _Log, length: int, own: list[Any], version: Version | None) -> _Left:
    """Return what is left after a superstep's own writes; what an overwrite makes obsolete is dropped."""
    for at in range(len(own), 0, -1):
        is_overwrite, value = Overwrite.unwrap(own[at - 1])
        if is_overwrite:
            return _Left(MISSING if value is None else value, _Log().extended(0, own[at:]), len(own) - at, 0, None)
    return _Left(base, log.extended(length, own) if own else log, length + len(own), len(own), version)
