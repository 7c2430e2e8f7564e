"""The saver interface, and the helpers savers are written with."""

from tracegraph.checkpoint.base.build import copy_checkpoint, create_checkpoint, empty_checkpoint
from tracegraph.checkpoint.base.errors import UnsavableValueError
from tracegraph.checkpoint.base.metadata import (
    EXCLUDED_METADATA_KEYS,
    get_checkpoint_id,
    get_checkpoint_metadata,
    get_serializable_checkpoint_metadata,
)
from tracegraph.checkpoint.base.saver import WRITES_IDX_MAP, BaseCheckpointSaver, takes_parameter
from tracegraph.checkpoint.serde.base import SerializerProtocol
from tracegraph.records import ChannelVersions, Checkpoint, CheckpointMetadata, CheckpointTuple, PendingWrite, ThreadSummary

__all__ = [
    "EXCLUDED_METADATA_KEYS",
    "WRITES_IDX_MAP",
    "BaseCheckpointSaver",
    "ChannelVersions",
    "Checkpoint",
    "CheckpointMetadata",
    "CheckpointTuple",
    "PendingWrite",
    "SerializerProtocol",
    "ThreadSummary",
    "UnsavableValueError",
    "copy_checkpoint",
    "create_checkpoint",
    "empty_checkpoint",
    "get_checkpoint_id",
    "get_checkpoint_metadata",
    "get_serializable_checkpoint_metadata",
    "takes_parameter",
]
