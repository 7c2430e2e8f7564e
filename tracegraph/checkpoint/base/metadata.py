"""What a checkpoint's metadata takes over from the config it was saved with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, cast

from tracegraph.records import CheckpointMetadata

__all__ = ["EXCLUDED_METADATA_KEYS", "get_checkpoint_id", "get_checkpoint_metadata", "get_serializable_checkpoint_metadata"]

EXCLUDED_METADATA_KEYS: Final = frozenset(
    {
        "thread_id",
        "checkpoint_id",
        "checkpoint_ns",
        "checkpoint_map",
        "langgraph_step",
        "langgraph_node",
        "langgraph_triggers",
        "langgraph_path",
        "langgraph_checkpoint_ns",
    }
)
"""Config keys that say where a run is, so they are no metadata."""


def get_checkpoint_id(config: Mapping[str, Any]) -> str | None:
    """Return the checkpoint that *config* addresses; None for the latest one."""
    return cast("str | None", config["configurable"].get("checkpoint_id"))


def get_checkpoint_metadata(config: Mapping[str, Any], metadata: Mapping[str, Any]) -> CheckpointMetadata:
    """Return *metadata* with the scalars of the config's ``metadata`` and ``configurable`` beside it.

    What *metadata* says stays; private keys (``__...``) and :data:`EXCLUDED_METADATA_KEYS` are left out. NUL
    characters are removed from texts, because databases refuse them.

    >>> get_checkpoint_metadata({"metadata": {"user": "u1"}, "configurable": {"thread_id": "1"}}, {"step": 1})
    {'step': 1, 'user': 'u1'}
    """
    found = {key: value.replace("\x00", "") if isinstance(value, str) else value for key, value in metadata.items()}
    for source in (config.get("metadata"), config.get("configurable")):
        for key, value in (source or {}).items():
            if key in found or key in EXCLUDED_METADATA_KEYS or key.startswith("__"):
                continue
            if isinstance(value, str):
                found[key] = value.replace("\x00", "")
            elif isinstance(value, (int, float)):
                found[key] = value
    return cast("CheckpointMetadata", found)


def get_serializable_checkpoint_metadata(config: Mapping[str, Any], metadata: Mapping[str, Any]) -> CheckpointMetadata:
    """Return :func:`get_checkpoint_metadata` without ``writes``, where old programs put live state values."""
    found = get_checkpoint_metadata(config, metadata)
    found.pop("writes", None)  # type: ignore[typeddict-item]  # no key of ours, which is why it goes
    return found
