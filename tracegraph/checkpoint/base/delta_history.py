"""From stored checkpoints to what a delta channel was made from, for any saver."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Any

from tracegraph.channels.delta import DeltaLog
from tracegraph.constants import MISSING
from tracegraph.records import CheckpointTuple, DeltaChannelHistory, PendingWrite

__all__ = ["HistoryWalk", "delta_history"]

HistoryWalk = Generator[dict[str, Any], CheckpointTuple | None, dict[str, DeltaChannelHistory]]
"""Yields configs of checkpoints to load, and is sent what was found."""


def delta_history(config: dict[str, Any], channels: Sequence[str]) -> HistoryWalk:
    """Walk from the checkpoint that *config* names towards the root until a value of each channel is found."""
    wanted = set(channels)
    newest_first: dict[str, list[list[PendingWrite]]] = {name: [] for name in channels}
    found: dict[str, DeltaChannelHistory] = {name: DeltaChannelHistory() for name in channels}
    target = yield config
    at = None if target is None else target.parent_config
    while at is not None and wanted:
        saved = yield at
        if saved is None:
            break
        for name in sorted(wanted):
            newest_first[name].append([write for write in saved.pending_writes or [] if write[1] == name])
            value = saved.checkpoint["channel_values"].get(name, MISSING)
            if value is MISSING:
                continue
            if isinstance(value, DeltaLog):
                newest_first[name].append([("", name, write) for write in value.writes])
                value = value.base
            if value is not MISSING:
                found[name]["seed"] = value
            wanted.discard(name)
        at = saved.parent_config
    for name, groups in newest_first.items():
        found[name]["writes"] = [write for group in reversed(groups) for write in group]
    return found
