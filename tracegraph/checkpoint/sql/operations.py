"""What the savers do inside a transaction: statements out, rows in; knows neither locks nor configs nor serialisers."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from operator import itemgetter
from typing import Any, NamedTuple, TypeAlias

from tracegraph.checkpoint.sql import statements as sql
from tracegraph.checkpoint.sql.dialect import Dialect
from tracegraph.checkpoint.sql.orders import Many, Operation, Rows
from tracegraph.checkpoint.sql.prepared import GrownBlob, PreparedCheckpoint, PreparedWrites
from tracegraph.checkpoint.sql.rows import Part, checkpoint_of, metadata_of
from tracegraph.constants import NS_END, Missing
from tracegraph.errors import InvalidInputError, ThreadConflictError
from tracegraph.records import Checkpoint, CheckpointMetadata, Growth, Version

__all__ = ["Found", "Operations", "Place"]

Key: TypeAlias = tuple[int, str]
"""(place, checkpoint id)"""


class Place(NamedTuple):
    """A namespace of a thread; ``head`` is its latest checkpoint, None if it has only writes."""

    number: int
    thread_id: str
    ns: str
    head: str | None


class Found(NamedTuple):
    """A stored checkpoint, its values and its tasks' writes as bytes."""

    checkpoint: Checkpoint
    metadata: CheckpointMetadata
    parent_id: str | None
    values: list[Part]
    writes: list[tuple[str, str, str, bytes]]


class Operations:
    """The operations, in a database's own words."""

    def __init__(self, dialect: Dialect) -> None:
        self.dialect = dialect
        self.sql = sql.Statements(dialect)

    # --- storing -------------------------------------------------------------------------------------------

    def put_group(self, thread_id: str, ns: str, saves: Sequence[PreparedCheckpoint | PreparedWrites]) -> Operation[None]:
        """Store saves of one place.

        Raises:
            ThreadConflictError: the latest checkpoint is not the expected one.
        """
        rows = yield Rows(self.sql.place, (thread_id, ns))
        place = rows[0][0] if rows else (yield from _added(thread_id, ns))
        if any(isinstance(save, PreparedCheckpoint) for save in saves):
            rows = yield Rows(sql.HEAD, (place,))
            _check_heads(thread_id, rows[0][0], saves)
        blobs = _Blobs(self.dialect, place)
        checkpoints: list[tuple[Any, ...]] = []
        writes: list[tuple[Any, ...]] = []
        for save in saves:
            if isinstance(save, PreparedWrites):
                writes += [(place, *row) for row in save.rows]
                continue
            checkpoints.append((place, *save.row))
            for channel, version, stored in save.blobs:
                blobs.add(channel, version, stored)
            for grown in save.grown:
                yield from blobs.grow(grown)
        for statement, found in ((sql.PUT_CHECKPOINT, checkpoints), (sql.PUT_BLOB, blobs.rows), (sql.PUT_WRITE, writes)):
            if found:
                yield Many(statement, found)

    # --- reading -------------------------------------------------------------------------------------------

    def read(self, thread_id: str, ns: str, checkpoint_id: str | None) -> Operation[Found | None]:
        """Return a checkpoint, by default the latest of the place."""
        if checkpoint_id is None:
            rows = yield Rows(self.sql.latest, (thread_id, ns))
        else:
            rows = yield Rows(self.sql.named, (thread_id, ns, checkpoint_id))
        if not rows:
            return None
        place, found_id, parent_id, record, metadata = rows[0]
        checkpoint = checkpoint_of(found_id, record)
        wanted = {name: self.dialect.version(version) for name, version in checkpoint["channel_versions"].items()}
        values: Any = yield Rows(self.sql.values, (json.dumps(wanted, ensure_ascii=False), place, place))
        values.sort(key=itemgetter(4), reverse=True)
        writes: Any = yield Rows(sql.GET_WRITES, (place, found_id))
        return Found(checkpoint, metadata_of(metadata), parent_id, values, writes)

    def places(self, thread_id: str | None) -> Operation[list[Place]]:
        """Return the places of a thread, None: of all threads."""
        if thread_id is None:
            rows = yield Rows(self.sql.all_places)
        else:
            rows = yield Rows(self.sql.places_of_thread, (thread_id,))
        return [Place(*row) for row in rows]

    def page(self, place: int, before: str, wanted: Mapping[str, Any], size: int) -> Operation[list[tuple[str, str]]]:
        """Return ids and metadata of the newest checkpoints with smaller ids than *before*; not all are as *wanted*."""
        condition, values = self.dialect.sieve(wanted) if wanted else ("", [])
        rows: Any = yield Rows(self.sql.page(condition), (place, before, *values, size))
        return rows  # type: ignore[no-any-return]

    # --- upkeep --------------------------------------------------------------------------------------------

    def forget(self, thread_id: str) -> Operation[None]:
        """Delete everything of a thread."""
        yield Rows(self.sql.lock_thread, (thread_id,))
        for statement in sql.FORGET:
            yield Many(statement, [(thread_id,)])

    def copy_thread(self, source: str, target: str) -> Operation[None]:
        """Copy everything of a thread.

        Raises:
            InvalidInputError: the target has checkpoints.
        """
        there = yield from self.places(target)
        if any(place.head is not None for place in there):
            raise InvalidInputError(f"thread {target!r} has checkpoints already; copy to a new id, or delete it first")
        if source == target:
            return
        yield from self.forget(target)  # writes whose checkpoint never came
        for place in (yield from self.places(source)):
            number = yield from _added(target, place.ns)
            for statement in sql.COPY:
                yield Many(statement, [(number, place.number)])

    def drop_runs(self, run_ids: Iterable[str]) -> Operation[None]:
        """Delete the checkpoints of these runs."""
        gone: list[Any] = []
        for run_id in run_ids:
            gone += yield Rows(sql.CHECKPOINTS_OF_RUN, (run_id,))
        yield from self._drop(gone)

    def thin(self, thread_id: str) -> Operation[None]:
        """Keep the newest checkpoint of each place, without parent; see :meth:`BaseCheckpointSaver.prune`."""
        yield Rows(self.sql.lock_thread, (thread_id,))
        found = [place for place in (yield from self.places(thread_id)) if place.head is not None]
        root = next((place.head for place in found if not place.ns), None)
        gone: list[Any] = []
        for place in found:
            kept = place.head
            ((metadata,),) = yield Rows(self.sql.metadata, (place.number, kept))
            # A namespace with a task's id in it was made for that task; others hold state from call to call.
            if NS_END in place.ns and metadata_of(metadata).get("parents", {}).get("") != root:
                kept = None
            else:
                yield Many(sql.ORPHAN, [(place.number, kept)])
            gone += [key for key in (yield Rows(sql.CHECKPOINTS_OF_PLACE, (place.number,))) if key[1] != kept]
        yield from self._drop(gone)

    def _drop(self, gone: Collection[Key]) -> Operation[None]:
        """Delete checkpoints with their writes, and the values that only they had."""
        if not gone:
            return
        for statement in sql.DROP:
            yield Many(statement, [*gone])
        for place in {place for place, _id in gone}:
            records = yield Rows(sql.RECORDS, (place,))
            used = {
                (self.dialect.version(version), name)
                for checkpoint_id, record in records
                for name, version in checkpoint_of(checkpoint_id, record)["channel_versions"].items()
            }
            keys = yield Rows(sql.BLOB_KEYS, (place,))
            unused = _unused({(version, channel): base for version, channel, base in keys}, used)
            if unused:
                yield Many(sql.DROP_BLOB, [(place, *key) for key in unused])
            yield Many(sql.DROP_EMPTY_PLACE, [(place, place, place)])


class _Blobs:
    """The rows of a group's values."""

    def __init__(self, dialect: Dialect, place: int) -> None:
        self._dialect = dialect
        self._place = place
        self._sizes: dict[tuple[str, Version], tuple[Growth | None, int, int]] = {}
        """By channel and version: how it grew, bytes of the whole value that it is based on, and of what was added to that."""
        self.rows: list[tuple[Any, ...]] = []

    def add(self, channel: str, version: Version, stored: tuple[str, bytes]) -> None:
        """Store a whole value."""
        self.rows.append((self._place, self._dialect.version(version), channel, *stored, None, None, None, None))
        self._sizes[channel, version] = (None, len(stored[1]), 0)

    def grow(self, grown: GrownBlob) -> Operation[None]:
        """Store what was added to a value; all of it once that has come to as much as the last whole value.

        So the whole values of a list that grows are each at least twice as large as the one before: together with what
        was added they take at most three times what the list does, and reading it takes at most twice.
        """
        channel, version, stored, base, growth, whole = grown
        known = self._sizes.get((channel, base))
        if known is None:
            rows = yield Rows(sql.SIZES, (self._place, self._dialect.version(base), channel))
            # Without its base, an increment would be worth nothing: somebody deleted it, or another saver stored it.
            known = rows[0] if rows else (None, 0, 0)
        before, whole_bytes, grown_bytes = known
        grown_bytes += len(stored[1])
        if grown_bytes > whole_bytes or before not in (None, growth):
            self.add(channel, version, whole())
            return
        self._sizes[channel, version] = (growth, whole_bytes, grown_bytes)
        keys = (self._place, self._dialect.version(version), channel)
        self.rows.append((*keys, *stored, self._dialect.version(base), growth, whole_bytes, grown_bytes))


def _added(thread_id: str, ns: str) -> Operation[int]:
    ((place,),) = yield Rows(sql.ADD_PLACE, (thread_id, ns))
    return int(place)


def _check_heads(thread_id: str, head: str | None, saves: Iterable[PreparedCheckpoint | PreparedWrites]) -> None:
    for save in saves:
        if isinstance(save, PreparedCheckpoint):
            if not isinstance(save.expect_head, Missing) and head != save.expect_head:
                raise ThreadConflictError(thread_id, expected=save.expect_head, found=head)
            head = save.row[0] if head is None else max(head, save.row[0])


def _unused(bases: Mapping[Any, Version | None], used: Collection[Any]) -> list[Any]:
    """Return the keys of values that are neither used nor the base of one that is."""
    kept = set()
    for key in used:
        while key is not None and key not in kept:
            kept.add(key)
            base = bases.get(key)
            key = None if base is None else (base, key[1])
    return [key for key in bases if key not in kept]
