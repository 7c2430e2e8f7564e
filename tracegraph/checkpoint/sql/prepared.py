"""What savers make of a run's saves before they open a transaction: everything serialised that surely is needed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple, TypeAlias

from tracegraph.checkpoint.base.saver import WRITES_IDX_MAP
from tracegraph.checkpoint.serde.base import SerializerProtocol
from tracegraph.checkpoint.serde.joining import Join, joining_of
from tracegraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from tracegraph.checkpoint.sql.rows import dumped, metadata_text, record_of, short_values
from tracegraph.constants import Missing
from tracegraph.records import Growth, NewCheckpoint, TaskWrites, Version

__all__ = ["Blob", "GrownBlob", "PreparedCheckpoint", "PreparedWrites", "Stored", "prepared"]

Stored: TypeAlias = tuple[str, bytes]
"""(kind, value)"""


class Blob(NamedTuple):
    """A channel's whole value."""

    channel: str
    version: Version
    stored: Stored


class GrownBlob(NamedTuple):
    """What a channel's value grew by, and the way to its whole value."""

    channel: str
    version: Version
    stored: Stored
    base: Version
    growth: Growth
    whole: Callable[[], Stored]
    join: Join | None
    """Makes one stored list of several, if the serialiser can."""


class PreparedCheckpoint(NamedTuple):
    """A checkpoint's row without its place, and its values."""

    row: tuple[str, str | None, str | None, bytes, str]
    expect_head: str | Missing | None
    based_on: str | None
    blobs: list[Blob]
    grown: list[GrownBlob]

    def row_bytes(self) -> int:
        """Return how large the record and the metadata are."""
        record, metadata = self.row[3:]
        return len(record) + (len(metadata) if metadata.isascii() else len(metadata.encode()))


class PreparedWrites(NamedTuple):
    """The rows of a task's writes without their place."""

    rows: list[tuple[Any, ...]]


def prepared(serde: SerializerProtocol, saves: Sequence[NewCheckpoint | TaskWrites]) -> list[PreparedCheckpoint | PreparedWrites]:
    """Return what to store for each save.

    Raises:
        UnserializableValueError: the serialiser refuses a value; its channel is named.
        UnsavableValueError: the serialiser fails on a value.
        InvalidInputError: the metadata cannot be stored as JSON.
    """
    return [
        _checkpoint(serde, save) if isinstance(save, NewCheckpoint) else PreparedWrites(_writes(serde, save)) for save in saves
    ]


def _checkpoint(serde: SerializerProtocol, save: NewCheckpoint) -> PreparedCheckpoint:
    checkpoint, increments = save.checkpoint, save.increments
    values = checkpoint["channel_values"]
    # A serialiser of another kind may be there to hide what is stored.
    may_be_short = save.is_whole and type(serde) is JsonPlusSerializer
    inside = short_values(values, checkpoint["channel_versions"]) if may_be_short else {}
    blobs: list[Blob] = []
    grown: list[GrownBlob] = []
    for name, version in save.new_versions.items():
        if name in increments:
            growth, base, items = increments[name]
            whole = partial(dumped, serde, name, values[name])
            grown.append(GrownBlob(name, version, dumped(serde, name, items), base, growth, whole, joining_of(serde)))
        elif name in values and name not in inside:
            blobs.append(Blob(name, version, dumped(serde, name, values[name])))
    run_id = save.metadata.get("run_id")
    row = (
        checkpoint["id"],
        save.parent_id,
        None if run_id is None else str(run_id),
        record_of(checkpoint, inside),
        metadata_text(save.metadata),
    )
    return PreparedCheckpoint(row, save.expect_head, save.based_on, blobs, grown)


def _writes(serde: SerializerProtocol, save: TaskWrites) -> list[tuple[Any, ...]]:
    checkpoint_id, task_id, task_path = save.checkpoint_id, save.task_id, save.task_path
    return [
        (checkpoint_id, task_id, WRITES_IDX_MAP.get(channel, at), task_path, channel, *dumped(serde, channel, value))
        for at, (channel, value) in enumerate(save.writes)
    ]
