"""Making checkpoints."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from tracegraph.channels.base import BaseChannel
from tracegraph.checkpoint.base.id import uuid6
from tracegraph.constants import MISSING
from tracegraph.records import Checkpoint

__all__ = ["FORMAT_VERSION", "copy_checkpoint", "create_checkpoint", "empty_checkpoint"]

FORMAT_VERSION = 4


def empty_checkpoint() -> Checkpoint:
    """Return the checkpoint of a thread on which nothing happened, with a new id."""
    return Checkpoint(
        v=FORMAT_VERSION,
        id=str(uuid6(clock_seq=-2)),
        ts=datetime.now(UTC).isoformat(),
        channel_values={},
        channel_versions={},
        versions_seen={},
        updated_channels=None,
    )


def copy_checkpoint(checkpoint: Checkpoint) -> Checkpoint:
    """Return a checkpoint whose dicts may be changed; the channel values are the same objects."""
    updated = checkpoint.get("updated_channels")
    return Checkpoint(
        v=checkpoint["v"],
        id=checkpoint["id"],
        ts=checkpoint["ts"],
        channel_values=checkpoint["channel_values"].copy(),
        channel_versions=checkpoint["channel_versions"].copy(),
        versions_seen={node: versions.copy() for node, versions in checkpoint["versions_seen"].items()},
        updated_channels=None if updated is None else list(updated),
    )


def create_checkpoint(
    checkpoint: Checkpoint, channels: Mapping[str, BaseChannel[Any, Any, Any]] | None, step: int, *, id: str | None = None
) -> Checkpoint:
    """Return the successor of *checkpoint* with the live channels' values; only those that have a version count.

    *channels* are in object form; None keeps the values of *checkpoint*. A new id shows *step*.
    """
    made = copy_checkpoint(checkpoint)
    made["v"] = FORMAT_VERSION
    made["id"] = id or str(uuid6(clock_seq=step, after=checkpoint["id"]))
    made["ts"] = datetime.now(UTC).isoformat()
    made["updated_channels"] = None
    if channels is not None:
        saved = {name: channel.checkpoint() for name, channel in channels.items() if name in made["channel_versions"]}
        made["channel_values"] = {name: value for name, value in saved.items() if value is not MISSING}
    return made
