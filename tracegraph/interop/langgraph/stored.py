"""What the readers yield: a checkpoint as LangGraph stored it, its values decoded."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

from tracegraph.interop.langgraph.errors import ThreadRefusedError

__all__ = ["SNAPSHOT_BUMPS", "Place", "Stored", "StoredWrite"]

SNAPSHOT_BUMPS: Final = "__snapshot_bumps__"
"""Among what nodes have seen, and no node: a note of LangGraph's delta channels."""

_NEEDED = ("v", "ts", "channel_values", "channel_versions", "versions_seen")
_NEWEST = 4


class StoredWrite(NamedTuple):
    """One write of a task; rows are sorted by ``path``, ``task_id``, ``idx``."""

    path: str
    task_id: str
    idx: int
    channel: str
    value: Any


class Place(NamedTuple):
    """Where in the source something is, for messages."""

    thread_id: str
    ns: str
    checkpoint_id: str

    def __str__(self) -> str:
        namespace = f", namespace {self.ns!r}" if self.ns else ""
        return f"checkpoint {self.checkpoint_id}{namespace}"


@dataclass(slots=True)
class Stored:
    """A checkpoint with everything that belongs to it."""

    place: Place
    parent_id: str | None
    checkpoint: dict[str, Any]
    """The record in the format it was written in: ``v`` 1 to 4."""
    metadata: dict[str, Any]
    writes: list[StoredWrite] = field(default_factory=list)
    sends: list[Any] = field(default_factory=list)
    """Pending Sends that formats before 4 kept as writes of the parent."""

    def __post_init__(self) -> None:
        for fault in self._faults():
            raise ThreadRefusedError(self.place.thread_id, f"the record of {self.place} is damaged: {fault}")
        if self.checkpoint["v"] > _NEWEST:
            raise ThreadRefusedError(
                self.place.thread_id,
                f"{self.place} is of format {self.checkpoint['v']}, and this tracegraph reads formats 1 to {_NEWEST}; a newer "
                "one may read it",
            )

    def _faults(self) -> Iterator[str]:
        """Say what is not as LangGraph writes it; each check relies on the ones before."""
        if not all(isinstance(text, str) for text in (self.place.ns, self.place.checkpoint_id, self.parent_id or "")):
            yield "namespace, id and parent's id are no texts"
        yield from _record_faults(self.checkpoint)
        yield from _metadata_faults(self.metadata)


def _record_faults(record: Any) -> Iterator[str]:
    if not isinstance(record, dict):
        yield "it is no mapping"
    if missing := [name for name in _NEEDED if name not in record]:
        yield f"it lacks {', '.join(missing)}"
    v, ts, seen = record["v"], record["ts"], record["versions_seen"]
    if type(v) is not int or v < 1:
        yield f"its format is {v!r}, not a number from 1 to {_NEWEST}"
    if not _is_time(ts):
        yield f"ts is {ts!r}, not a time in ISO 8601"
    for name in ("channel_values", "channel_versions", "versions_seen"):
        if not _is_mapping(record[name]):
            yield f"{name} is no mapping of names"
    if not all(map(_is_mapping, seen.values())):
        yield "versions_seen is no mapping of names to mappings"
    noted = [record["channel_versions"], *(versions for node, versions in seen.items() if node != SNAPSHOT_BUMPS)]
    if len({isinstance(version, str) for versions in noted for version in versions.values()}) > 1:
        yield "its versions are numbers and texts, which have no order"
    for name, kind in (("pending_sends", object), ("updated_channels", str)):
        held = record.get(name)
        if held is not None and not (isinstance(held, (list, tuple)) and all(isinstance(each, kind) for each in held)):
            yield f"{name} is no list of what it should hold"


def _metadata_faults(metadata: Any) -> Iterator[str]:
    if not isinstance(metadata, dict):
        yield "its metadata are no mapping"
    for name, kind in (("source", str), ("step", int)):
        if not isinstance(held := metadata.get(name), (kind, type(None))):
            yield f"in its metadata, {name} is {held!r}"
    for name in ("parents", "counters_since_delta_snapshot"):
        if (held := metadata.get(name)) is not None and not _is_mapping(held):
            yield f"in its metadata, {name} is no mapping of names"


def _is_mapping(held: Any) -> bool:
    return isinstance(held, dict) and all(isinstance(name, str) for name in held)


def _is_time(text: Any) -> bool:
    try:
        # To another zone, as lists show it: at the ends of the calendar there is none.
        return isinstance(text, str) and bool(datetime.fromisoformat(text).astimezone(UTC))
    except (ValueError, OverflowError):
        return False
