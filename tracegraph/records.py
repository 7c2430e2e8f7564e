"""Checkpoint records: what the engine and the savers both speak.

The dict forms (:class:`Checkpoint`, :class:`CheckpointMetadata`) are part of the saver API
and keep the field names a LangGraph user's own saver already reads.
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, TypeAlias, TypedDict

__all__ = [
    "Checkpoint",
    "CheckpointMetadata",
    "CheckpointTuple",
    "ChannelVersions",
    "PendingWrite",
    "ThreadSummary",
    "Version",
    "Write",
]

Version: TypeAlias = str | int | float
"""A channel's version: grows with every change; a saver chooses the type."""

ChannelVersions: TypeAlias = dict[str, Version]
Write: TypeAlias = tuple[str, Any]
"""(channel, value)"""

PendingWrite: TypeAlias = tuple[str, str, Any]
"""(task id, channel, value)"""


class Checkpoint(TypedDict):
    """Saved state of a graph after a superstep (format 4)."""

    v: int
    id: str
    ts: str
    channel_values: dict[str, Any]
    channel_versions: ChannelVersions
    versions_seen: dict[str, ChannelVersions]
    updated_channels: list[str] | None


class CheckpointMetadata(TypedDict, total=False):
    """Where a checkpoint came from. Scalars of the run's metadata and config stand beside these keys."""

    source: Literal["input", "loop", "update", "fork"]
    step: int
    parents: dict[str, str]
    run_id: str
    __trace__: list[str]


class CheckpointTuple(NamedTuple):
    """A checkpoint with its address, metadata, parent's address and the writes of its superstep's tasks."""

    config: dict[str, Any]
    checkpoint: Checkpoint
    metadata: CheckpointMetadata
    parent_config: dict[str, Any] | None = None
    pending_writes: list[PendingWrite] | None = None


class ThreadSummary(NamedTuple):
    """What a saver has of a thread: how many checkpoints in how many namespaces, the root's among them.

    ``head_id`` is the root namespace's latest checkpoint, None if only namespaces of subgraphs are left.
    """

    thread_id: str
    checkpoint_count: int
    namespace_count: int
    head_id: str | None
