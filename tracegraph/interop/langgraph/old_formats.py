"""Checkpoints of formats 1 to 3 in the form of format 4."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from tracegraph.constants import BRANCH_PREFIX, INTERRUPT, MISSING, START, TASKS

__all__ = ["seen_edges", "upgrade"]

Edges = Mapping[str, Iterable[str]]
"""node -> the nodes that an edge leads to from it"""


def seen_edges(checkpoint: Mapping[str, Any]) -> set[tuple[str, str]]:
    """Return pairs of a channel and a node that has seen it.

    Until format 2 a node wrote a channel of its own name, which the nodes behind it read: where the channel is a
    node's name, the pair is an edge.
    """
    if checkpoint["v"] >= 3:
        return set()
    return {(channel, node) for node, seen in checkpoint["versions_seen"].items() for channel in seen}


def upgrade(checkpoint: dict[str, Any], sends: list[Any], edges: Edges) -> None:
    """Change a checkpoint to format 4; *sends* are what its parent's tasks sent."""
    pending = checkpoint.pop("pending_sends", None) or sends
    versions = checkpoint["channel_versions"]
    if checkpoint["v"] < 4 and pending and versions:
        checkpoint["channel_values"].setdefault(TASKS, pending)
        versions.setdefault(TASKS, max(versions.values()))
    if checkpoint["v"] < 3:
        _rename_triggers(checkpoint, edges)
    checkpoint["v"] = 4


def _rename_triggers(checkpoint: dict[str, Any], edges: Edges) -> None:
    """Put what used to trigger nodes into the one channel per node that does now."""
    nodes = {*checkpoint["versions_seen"], *edges, *(node for targets in edges.values() for node in targets)} - {START}
    for channel in list(checkpoint["channel_versions"]):
        if channel.startswith("start:"):
            _merge(checkpoint, channel, [channel.split(":")[1]])
        elif channel.startswith("branch:") and channel.count(":") == 3:
            _merge(checkpoint, channel, [channel.split(":")[-1]])
        elif channel in nodes:
            _merge(checkpoint, channel, edges.get(channel, ()))


def _merge(checkpoint: dict[str, Any], channel: str, targets: Iterable[str]) -> None:
    """Replace *channel* by the targets' own, with the newer version of both, for channel and for what has seen it."""
    values, versions, seen = checkpoint["channel_values"], checkpoint["channel_versions"], checkpoint["versions_seen"]
    version, value = versions.pop(channel), values.pop(channel, MISSING)
    for target in targets:
        renamed = f"{BRANCH_PREFIX}{target}"
        versions[renamed] = max(versions.get(renamed, version), version)
        if value is not MISSING:
            values.setdefault(renamed, value)
        for known in (seen.get(target), seen.get(INTERRUPT)):
            if known is not None and channel in known:
                known[renamed] = max(known.get(renamed, known[channel]), known[channel])
    for node in (*targets, INTERRUPT):
        seen.get(node, {}).pop(channel, None)
