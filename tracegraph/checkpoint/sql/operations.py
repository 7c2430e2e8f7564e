"""What the savers do inside a transaction: statements out, rows in; knows neither locks nor configs nor serialisers."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from operator import itemgetter
from typing import Any, NamedTuple, TypeAlias

from tracegraph.checkpoint.base.saver import QueuePlace
from tracegraph.checkpoint.sql import statements as sql
from tracegraph.checkpoint.sql.dialect import Dialect
from tracegraph.checkpoint.sql.orders import Insert, Many, Operation, Rows
from tracegraph.checkpoint.sql.prepared import PreparedCheckpoint, PreparedWrites
from tracegraph.checkpoint.sql.rows import Part, checkpoint_of, metadata_of
from tracegraph.checkpoint.sql.values import ValueRows
from tracegraph.constants import NS_END, Missing
from tracegraph.errors import ConcurrentRunError, InvalidInputError
from tracegraph.records import Checkpoint, CheckpointMetadata, ThreadSummary, Version

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
    """A stored checkpoint with its short values, its other values and its tasks' writes as bytes."""

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

    def put_group(
        self, thread_id: str, ns: str, saves: Sequence[PreparedCheckpoint | PreparedWrites]
    ) -> Operation[dict[str, int]]:
        """Store saves of one place; return the bytes written for each checkpoint.

        Raises:
            ConcurrentRunError: the latest checkpoint is not the expected one.
        """
        rows = yield Rows(self.sql.place, (thread_id, ns))
        place = rows[0][0] if rows else (yield from _added(thread_id, ns))
        if any(isinstance(save, PreparedCheckpoint) for save in saves):
            yield from self._check(thread_id, place, saves)
        values = ValueRows(self.dialect, place)
        checkpoints: list[tuple[Any, ...]] = []
        writes: dict[tuple[str, str, int], tuple[Any, ...]] = {}
        sizes: dict[str, int] = {}
        for save in saves:
            if isinstance(save, PreparedWrites):
                for row in save.rows:
                    if row[2] < 0 or row[:3] not in writes:
                        writes[row[:3]] = (place, *row)
                continue
            checkpoints.append((place, *save.row))
            count = len(values.rows)
            for blob in save.blobs:
                values.add(blob)
            for grown in save.grown:
                yield from values.grow(grown)
            sizes[save.row[0]] = save.row_bytes() + values.bytes_since(count)
        if checkpoints:
            yield Insert(self.sql.put_checkpoint, checkpoints)
        if values.rows:
            yield Insert(self.sql.put_value, values.rows)
        if writes:
            yield Insert(self.sql.put_write, [*writes.values()])
        return sizes

    def _check(self, thread_id: str, place: int, saves: Sequence[PreparedCheckpoint | PreparedWrites]) -> Operation[None]:
        """Make sure that nobody moved the thread on, or deleted what these checkpoints are based on."""
        ((head,),) = yield Rows(sql.HEAD, (place,))
        for save in saves:
            if not isinstance(save, PreparedCheckpoint):
                continue
            if not isinstance(save.expect_head, Missing) and head != save.expect_head:
                raise ConcurrentRunError(thread_id, expected=save.expect_head, found=head)
            if save.based_on is not None and not (yield Rows(sql.IS_THERE, (place, save.based_on))):
                raise ConcurrentRunError(thread_id, expected=save.based_on, found=head)
            head = save.row[0] if head is None else max(head, save.row[0])

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
        inside, versions = checkpoint["channel_values"], checkpoint["channel_versions"]
        wanted = {name: self.dialect.version(version) for name, version in versions.items() if name not in inside}
        values: Any = []
        if wanted:
            values = yield Rows(self.sql.values, (json.dumps(wanted, ensure_ascii=False), place, place, place))
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

    def threads(self, limit: int | None) -> Operation[list[ThreadSummary]]:
        """Return what there is of each thread, the one that was saved to last first."""
        rows = yield Rows(sql.THREADS) if limit is None else Rows(sql.NEWEST_THREADS, (limit,))
        return [ThreadSummary(*row) for row in rows]

    def page(self, place: int, before: str, wanted: Mapping[str, Any], size: int) -> Operation[list[tuple[str, str]]]:
        """Return ids and metadata of the newest checkpoints with smaller ids than *before*; not all are as *wanted*."""
        condition, values = self.dialect.sieve(wanted) if wanted else ("", [])
        rows: Any = yield Rows(self.sql.page(condition), (place, before, *values, size))
        return rows  # type: ignore[no-any-return]

    # --- turns ---------------------------------------------------------------------------------------------

    def join_queue(self, thread_id: str, ticket: str, lease_s: float) -> Operation[None]:
        """Add a ticket behind all others; those of others that have run out are dropped."""
        if self.dialect.lock_queue:  # else an older ticket might be seen only after a younger one had its turn
            yield Rows(self.dialect.lock_queue, (thread_id,))
        yield Many(self.sql.drop_expired, [(thread_id,)])
        yield Many(self.sql.join_queue, [(ticket, thread_id, lease_s)])

    def place_in_queue(self, ticket: str) -> Operation[QueuePlace]:
        """Say whether a valid ticket of the same thread is older; one that has run out is gone, for nobody waits for it."""
        rows = yield Rows(self.sql.place_in_queue, (ticket,))
        if not rows:
            return "gone"
        return "waiting" if rows[0][0] else "first"

    def keep_turn(self, ticket: str, lease_s: float) -> Operation[bool]:
        """Let a ticket run out later, unless it has already: others may have passed it since."""
        rows = yield Rows(self.sql.keep_turn, (lease_s, ticket))
        return bool(rows)

    def leave_queue(self, ticket: str) -> Operation[None]:
        """Forget a ticket."""
        yield Many(sql.LEAVE_QUEUE, [(ticket,)])

    # --- upkeep --------------------------------------------------------------------------------------------

    def forget(self, thread_id: str) -> Operation[None]:
        """Delete everything of a thread."""
        # Only the places that are locked: one that is added meanwhile must stay whole.
        yield from _forgotten((yield Rows(self.sql.lock_threads, (thread_id, thread_id))))

    def copy_thread(self, source: str, target: str) -> Operation[None]:
        """Copy everything of a thread.

        Raises:
            InvalidInputError: the target has checkpoints.
        """
        # Both, so that nothing of the source goes while it is being copied; in one statement, for its order.
        locked = yield Rows(self.sql.lock_threads, (source, target))
        there = yield from self._places_of(target, locked)
        if any(place.head is not None for place in there):
            raise _taken(target)
        if source == target:
            return
        yield from _forgotten([(place.number,) for place in there])  # writes whose checkpoint never came
        for place in (yield from self._places_of(source, locked)):
            number = yield from _added(target, place.ns)
            if (yield Rows(sql.HEAD, (number,))) != [(None,)]:  # somebody came between
                raise _taken(target)
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
        locked = yield Rows(self.sql.lock_threads, (thread_id, thread_id))
        found = [place for place in (yield from self._places_of(thread_id, locked)) if place.head is not None]
        root = next((place for place in found if not place.ns), None)
        roots = {key[1] for key in (yield Rows(sql.CHECKPOINTS_OF_PLACE, (root.number,)))} - {root.head} if root else set()
        gone: list[Any] = []
        for place in found:
            kept = place.head
            ((metadata,),) = yield Rows(self.sql.metadata, (place.number, kept))
            # A namespace with a task's id in it was made for that task; others hold state from call to call. It goes with
            # the root checkpoint that it names, which may be saved only after it: then both stay.
            if NS_END in place.ns and metadata_of(metadata).get("parents", {}).get("") in roots:
                kept = None
            else:
                yield Many(sql.ORPHAN, [(place.number, kept)])
            gone += [key for key in (yield Rows(sql.CHECKPOINTS_OF_PLACE, (place.number,))) if key[1] != kept]
        yield from self._drop(gone)

    def _places_of(self, thread_id: str, locked: Collection[tuple[Any, ...]]) -> Operation[list[Place]]:
        """Return the places of a thread that are locked, as they are since."""
        return [place for place in (yield from self.places(thread_id)) if (place.number,) in locked]

    def _drop(self, gone: Collection[Key]) -> Operation[None]:
        """Delete checkpoints with their writes, and the values that only they had."""
        if not gone:
            return
        places = sorted({place for place, _id in gone})
        for place in places:
            yield Rows(self.sql.lock_place, (place,))
        for statement in sql.DROP:
            yield Many(statement, [*gone])
        for place in places:
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


def _added(thread_id: str, ns: str) -> Operation[int]:
    ((place,),) = yield Rows(sql.ADD_PLACE, (thread_id, ns))
    return int(place)


def _forgotten(places: Sequence[tuple[Any, ...]]) -> Operation[None]:
    """Delete everything of locked places."""
    for statement in sql.FORGET:
        yield Many(statement, places)


def _taken(target: str) -> InvalidInputError:
    return InvalidInputError(f"thread {target!r} has checkpoints already; copy to a new id, or delete it first")


def _unused(bases: Mapping[Any, Version | None], used: Collection[Any]) -> list[Any]:
    """Return the keys of values that are neither used nor the base of one that is."""
    kept = set()
    for key in used:
        while key is not None and key not in kept:
            kept.add(key)
            base = bases.get(key)
            key = None if base is None else (base, key[1])
    return [key for key in bases if key not in kept]
