"""A saver that stores whatever a run saves in one way, alone or in groups."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy

from tracegraph.checkpoint.base.arguments import address_of, checkpoint_address_of, config_of
from tracegraph.checkpoint.base.build import copy_checkpoint
from tracegraph.checkpoint.base.metadata import get_checkpoint_metadata
from tracegraph.checkpoint.base.saver import BaseCheckpointSaver, Config
from tracegraph.checkpoint.base.versions import next_text_version
from tracegraph.constants import MISSING, Missing
from tracegraph.records import ChannelVersions, Checkpoint, CheckpointMetadata, NewCheckpoint, TaskWrites, Version, Write

__all__ = ["AsyncGroupingSaver", "GroupingSaver"]


class GroupingSaver(BaseCheckpointSaver):
    """Stores with :meth:`put_group`; subclass it and write that one."""

    def get_next_version(self, current: Version | None, channel: None) -> str:
        """Return a text: a counter that decides the order, and a fraction that tells branches of a thread apart."""
        return next_text_version(current)

    def put(
        self,
        config: Config,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
        *,
        expect_head: str | Missing | None = MISSING,
    ) -> Config:
        """Store a checkpoint; see :meth:`BaseCheckpointSaver.put`."""
        save = _checkpoint(config, checkpoint, metadata, new_versions, expect_head)
        self.put_group(config, [save])
        return _stored_at(config, save)

    def put_writes(self, config: Config, writes: Sequence[Write], task_id: str, task_path: str = "") -> None:
        """Store what a task wrote; see :meth:`BaseCheckpointSaver.put_writes`."""
        self.put_group(config, [_writes(config, writes, task_id, task_path)])


class AsyncGroupingSaver(GroupingSaver):
    """Stores with ``aput_group`` in async code; subclass it and write that one."""

    async def aput(
        self,
        config: Config,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
        *,
        expect_head: str | Missing | None = MISSING,
    ) -> Config:
        """See :meth:`put`."""
        save = _checkpoint(config, checkpoint, metadata, new_versions, expect_head)
        await self.aput_group(config, [save])
        return _stored_at(config, save)

    async def aput_writes(self, config: Config, writes: Sequence[Write], task_id: str, task_path: str = "") -> None:
        """See :meth:`put_writes`."""
        await self.aput_group(config, [_writes(config, writes, task_id, task_path)])


def _checkpoint(
    config: Config,
    checkpoint: Checkpoint,
    metadata: CheckpointMetadata,
    new_versions: ChannelVersions,
    expect_head: str | Missing | None,
) -> NewCheckpoint:
    _thread_id, _ns, parent_id = address_of(config)
    return NewCheckpoint(
        checkpoint=copy_checkpoint(checkpoint),
        metadata=deepcopy(get_checkpoint_metadata(config, metadata)),
        new_versions=new_versions,
        parent_id=parent_id,
        expect_head=expect_head,
    )


def _stored_at(config: Config, save: NewCheckpoint) -> Config:
    thread_id, ns, _parent_id = address_of(config)
    return config_of(thread_id, ns, save.checkpoint["id"])


def _writes(config: Config, writes: Sequence[Write], task_id: str, task_path: str) -> TaskWrites:
    _thread_id, _ns, checkpoint_id = checkpoint_address_of(config)
    return TaskWrites(checkpoint_id=checkpoint_id, task_id=task_id, task_path=task_path, writes=writes)
