"""Values of delta channels, which LangGraph keeps as a snapshot now and then, and the writes since.

A checkpoint's value is its parent's, with what the parent's tasks wrote folded in. That takes the reducer, which only the
graph knows; so what is imported is a base and the writes to fold into it, which our delta channels do when they load it.
"""

from __future__ import annotations

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


class _Left(NamedTuple):
    """What a checkpoint leaves to its children: a base, the writes since, and how many of them are its own tasks'."""

    base: Any
    writes: list[Any]
    own: int
    version: Version | None
    """Of the value before its own writes; None if there is none to add to."""


class DeltaValues:
    """Fills in the values of one namespace's delta channels; takes its checkpoints parents first."""

    def __init__(self, channels: set[str]) -> None:
        self._channels = sorted(channels)
        self._left: dict[str, dict[str, _Left]] = {}
        """checkpoint id -> channel -> what its children have"""

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
                base, writes, _own, _version = self._of_parent(stored, name)
                if writes:
                    values[name] = DeltaLog(base, writes)
                elif base is not MISSING:
                    values[name] = base

    def increments(self, stored: Stored) -> dict[str, Increment]:
        """Return what a completed checkpoint's values grew by, and note what it leaves; its versions are final now."""
        values, versions = stored.checkpoint["channel_values"], stored.checkpoint["channel_versions"]
        found: dict[str, Increment] = {}
        left = self._left[stored.place.checkpoint_id] = {}
        for name in self._channels:
            value = values.get(name, MISSING)
            base, before = (value.base, value.writes) if type(value) is DeltaLog else (value, [])
            if before and stored.parent_id is not None:
                parent = self._left[stored.parent_id][name]
                if parent.own and parent.version not in (None, versions[name]):
                    found[name] = Increment("fold", parent.version, before[-parent.own :])
            own = [write.value for write in stored.writes if write.channel == name]
            left[name] = _after(base, before, own, None if value is MISSING else versions.get(name))
        return found

    def _of_parent(self, stored: Stored, name: str) -> _Left:
        if stored.parent_id not in self._left:
            raise ThreadRefusedError(
                stored.place.thread_id,
                f"channel {name!r} of {stored.place} is a delta channel, and builds on checkpoint {stored.parent_id}, which is "
                "gone, so its value cannot be known",
            )
        return self._left[stored.parent_id][name]


def _after(base: Any, before: list[Any], own: list[Any], version: Version | None) -> _Left:
    """Return what is left after a superstep's own writes; what an overwrite makes obsolete is dropped."""
    for at in range(len(own), 0, -1):
        is_overwrite, value = Overwrite.unwrap(own[at - 1])
        if is_overwrite:
            return _Left(MISSING if value is None else value, own[at:], 0, None)
    return _Left(base, [*before, *own], len(own), version)
