"""Checkpoint records: what the engine and the savers both speak.

The dict forms (:class:`Checkpoint`, :class:`CheckpointMetadata`) are part of the saver API
and keep the field names a LangGraph user's own saver already reads.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, TypeAlias, TypedDict

from tracegraph.constants import MISSING, Missing

__all__ = [
    "ChannelVersions",
    "Checkpoint",
    "CheckpointMetadata",
    "CheckpointTuple",
    "DeltaChannelHistory",
    "Detour",
    "Growth",
    "Increment",
    "NewCheckpoint",
    "PendingWrite",
    "TaskWrites",
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


class Detour(NamedTuple):
    """Ids of checkpoints, in all namespaces of a thread, that a branch has left behind: those after *since*, up to *until*.

    But not those of graphs inside made while the branching one was at *kept* (empty: those too).
    """

    since: str
    until: str
    kept: str = ""


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
    __detours__: list[list[str]]


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


Growth: TypeAlias = Literal["append", "fold"]
"""How an increment is put on its base: its items go to the end of the list, or are writes that the channel folds in."""


class Increment(NamedTuple):
    """What a channel's value grew by since *base*, a version of it that is stored already."""

    growth: Growth
    base: Version
    items: list[Any]


@dataclass(slots=True, kw_only=True)
class NewCheckpoint:
    """A checkpoint to store in a run's thread and namespace."""

    checkpoint: Checkpoint
    metadata: CheckpointMetadata
    new_versions: ChannelVersions
    """Channels that changed since the parent: no other values need be stored; one of them without a value is empty."""
    parent_id: str | None
    expect_head: str | Missing | None = MISSING
    """The id that must be the newest of the thread and namespace (None: there is none); ``MISSING``: any may be."""
    based_on: str | None = None
    """A checkpoint that must still be stored, for unchanged values are kept with it; None: not to be looked for."""
    is_whole: bool = False
    """The checkpoint has the values of all channels, unchanged ones too, so that short ones may live in its record."""
    increments: Mapping[str, Increment] = field(default_factory=dict)
    """Changed channels that only grew: a saver may store this instead of the value."""


@dataclass(slots=True, kw_only=True)
class TaskWrites:
    """What one task wrote, to store below a checkpoint of a run's thread and namespace."""

    checkpoint_id: str
    task_id: str
    task_path: str
    writes: Sequence[Write]


class DeltaChannelHistory(TypedDict, total=False):
    """What a delta channel's value was made from: an older value, if there is one, and what was written since."""

    seed: Any
    writes: list[PendingWrite]
