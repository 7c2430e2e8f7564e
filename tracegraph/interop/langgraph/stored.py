"""What the readers yield: a checkpoint as LangGraph stored it, its values decoded."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

from tracegraph.interop.langgraph.errors import ThreadRefusedError

__all__ = ["Place", "Stored", "StoredWrite"]

_NEEDED = ("v", "ts", "channel_values", "channel_versions", "versions_seen")


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
        missing = [name for name in _NEEDED if name not in self.checkpoint]
        if missing:
            raise ThreadRefusedError(
                self.place.thread_id, f"the record of {self.place} is damaged: it lacks {', '.join(missing)}"
            )
