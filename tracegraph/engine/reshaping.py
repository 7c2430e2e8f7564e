"""Checkpoints of a graph whose fields were nested otherwise: the marker ``Nested`` came, or went, since they were saved."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tracegraph.channels.base import BaseChannel
from tracegraph.channels.delta import DeltaLog
from tracegraph.channels.empty import bare_type
from tracegraph.errors import InvalidUpdateError
from tracegraph.records import ChannelVersions

if TYPE_CHECKING:
    from tracegraph.engine.topology import Topology

__all__ = ["reshaped"]


def reshaped(
    saved: Mapping[str, Any], versions: ChannelVersions, topology: Topology
) -> tuple[dict[str, Any], ChannelVersions, set[str]]:
    """Return saved values and versions under the names that *topology* has, and the channels that are new by that.

    These keep the version of what they were, for nothing has changed, but have to be saved: under that name and version
    there is nothing yet.

    Raises:
        InvalidUpdateError: what is to be split was no dict, or what is to be joined is known to a delta channel only.
    """
    values, found = dict(saved), dict(versions)
    moved = _split(values, found, topology) | _joined(values, found, topology)
    return values, found, moved


def _split(values: dict[str, Any], versions: ChannelVersions, topology: Topology) -> set[str]:
    """Put the sub-fields in place of each nested field that was saved as one value; outer ones first."""
    moved: set[str] = set()
    for outermost in topology.nested.values():
        for field in outermost.fields():
            if field.key not in values or field.key in topology.channels:
                continue
            version = versions.pop(field.key)
            parts = {name: value for name, value in field.values_in(values.pop(field.key)) if name not in values}
            values.update(parts)
            versions.update(dict.fromkeys(parts, version))
            moved.update(parts)
    return moved


def _joined(values: dict[str, Any], versions: ChannelVersions, topology: Topology) -> set[str]:
    """Put one dict in place of the saved sub-fields of each field that is nested no more."""
    made: dict[str, Any] = {}
    for name in [name for name in values if name not in topology.channels]:
        *outer, last = name.split(".")
        for length in range(len(outer), 0, -1):
            owner = ".".join(outer[:length])
            if owner in values or not _holds_dict(topology.channels.get(owner)):
                continue
            inside = made.setdefault(owner, {})
            for key in outer[length:]:
                inside = inside.setdefault(key, {})
            inside[last] = _whole(name, values.pop(name))
            version = versions.pop(name)
            versions[owner] = max(versions.get(owner, version), version)
            break
    values.update(made)
    return set(made)


def _whole(name: str, saved: Any) -> Any:
    if type(saved) is DeltaLog:
        raise InvalidUpdateError(
            f"the thread holds {name!r} as writes that only its DeltaChannel can fold, but the field is nested no more; mark it "
            "Nested again, overwrite the sub-field, and take the marker away",
            channel=name,
        )
    return saved


def _holds_dict(channel: BaseChannel[Any, Any, Any] | None) -> bool:
    bare = None if channel is None else bare_type(channel.typ)
    return isinstance(bare, type) and issubclass(bare, Mapping)
