"""What the savers do inside a transaction: statements in, rows out; knows neither locks nor configs nor serialisers."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Sequence
from sqlite3 import Cursor
from typing import Any, NamedTuple, TypeAlias

from tracegraph.checkpoint.sqlite import statements as sql
from tracegraph.checkpoint.sqlite.rows import checkpoint_of, metadata_of, short
from tracegraph.constants import NS_END, Missing
from tracegraph.errors import InvalidInputError, ThreadConflictError
from tracegraph.records import Checkpoint, CheckpointMetadata, ThreadSummary, Version

__all__ = [
    "BlobRow",
    "Found",
    "Place",
    "WriteRow",
    "copy_thread",
    "drop_runs",
    "forget",
    "page",
    "places",
    "put",
    "put_writes",
    "read",
    "thin",
    "threads",
]

BlobRow: TypeAlias = tuple[Version, str, str, bytes]
"""(short version, channel, kind, value)"""

WriteRow: TypeAlias = tuple[str, int, str, str, str, bytes]
"""(task id, slot, task path, channel, kind, value)"""

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
    values: list[tuple[str, str, bytes]]
    writes: list[tuple[str, str, str, bytes]]


def put(
    cursor: Cursor,
    thread_id: str,
    ns: str,
    row: Sequence[Any],
    blobs: Iterable[BlobRow],
    expect_head: str | Missing | None,
) -> None:
    """Store a checkpoint row (without its place) and its new values.

    Raises:
        ThreadConflictError: the latest checkpoint is not *expect_head*.
    """
    known = cursor.execute(sql.PLACE_AND_HEAD, (thread_id, ns)).fetchone()
    head = None if known is None else known[1]
    if not isinstance(expect_head, Missing) and head != expect_head:
        raise ThreadConflictError(thread_id, expected=expect_head, found=head)
    place = _added(cursor, thread_id, ns) if known is None else known[0]
    cursor.execute(sql.PUT_CHECKPOINT, (place, *row))
    cursor.executemany(sql.PUT_BLOB, [(place, *blob) for blob in blobs])


def put_writes(cursor: Cursor, thread_id: str, ns: str, checkpoint_id: str, rows: Iterable[WriteRow]) -> None:
    """Store what a task wrote; the checkpoint may come later."""
    known = cursor.execute(sql.PLACE_AND_HEAD, (thread_id, ns)).fetchone()
    place = _added(cursor, thread_id, ns) if known is None else known[0]
    cursor.executemany(sql.PUT_WRITE, [(place, checkpoint_id, *row) for row in rows])


def _added(cursor: Cursor, thread_id: str, ns: str) -> int:
    place = cursor.execute(sql.ADD_PLACE, (thread_id, ns)).lastrowid
    assert place is not None
    return place


def read(cursor: Cursor, thread_id: str, ns: str, checkpoint_id: str | None) -> Found | None:
    """Return a checkpoint, by default the latest of the place."""
    if checkpoint_id is None:
        row = cursor.execute(sql.GET_LATEST, (thread_id, ns)).fetchone()
    else:
        row = cursor.execute(sql.GET_NAMED, (thread_id, ns, checkpoint_id)).fetchone()
    if row is None:
        return None
    place, found_id, parent_id, record, metadata = row
    checkpoint = checkpoint_of(found_id, record)
    wanted = {name: short(version) for name, version in checkpoint["channel_versions"].items()}
    values = cursor.execute(sql.GET_VALUES, (json.dumps(wanted, ensure_ascii=False), place)).fetchall()
    writes = cursor.execute(sql.GET_WRITES, (place, found_id)).fetchall()
    return Found(checkpoint, metadata_of(metadata), parent_id, values, writes)


def places(cursor: Cursor, thread_id: str | None) -> list[Place]:
    """Return the places of a thread, None: of all threads."""
    if thread_id is None:
        return [Place(*row) for row in cursor.execute(sql.ALL_PLACES)]
    return [Place(*row) for row in cursor.execute(sql.PLACES_OF_THREAD, (thread_id,))]


def threads(cursor: Cursor, limit: int | None) -> list[ThreadSummary]:
    """Return what there is of each thread, the one that was saved to last first."""
    return [ThreadSummary(*row) for row in cursor.execute(sql.THREADS, (-1 if limit is None else limit,))]


def page(cursor: Cursor, place: int, before: str, conditions: Sequence[tuple[str, Any]], size: int) -> list[tuple[str, str]]:
    """Return ids and metadata of the newest checkpoints with smaller ids than *before*."""
    statement = sql.PAGE + sql.PAGE_CONDITION * len(conditions) + sql.PAGE_END
    values = [part for condition in conditions for part in condition]
    return cursor.execute(statement, (place, before, *values, size)).fetchall()


def forget(cursor: Cursor, thread_id: str) -> None:
    """Delete everything of a thread."""
    for statement in sql.FORGET:
        cursor.execute(statement, (thread_id,))


def copy_thread(cursor: Cursor, source: str, target: str) -> None:
    """Copy everything of a thread.

    Raises:
        InvalidInputError: the target has checkpoints.
    """
    if any(place.head is not None for place in places(cursor, target)):
        raise InvalidInputError(f"thread {target!r} has checkpoints already; copy to a new id, or delete it first")
    if source == target:
        return
    forget(cursor, target)  # writes whose checkpoint never came
    for place in places(cursor, source):
        number = _added(cursor, target, place.ns)
        for statement in sql.COPY:
            cursor.execute(statement, (number, place.number))


def drop_runs(cursor: Cursor, run_ids: Iterable[str]) -> None:
    """Delete the checkpoints of these runs."""
    _drop(cursor, [key for run_id in run_ids for key in cursor.execute(sql.CHECKPOINTS_OF_RUN, (run_id,)).fetchall()])


def thin(cursor: Cursor, thread_id: str) -> None:
    """Keep the newest checkpoint of each place, without parent; see :meth:`BaseCheckpointSaver.prune`."""
    found = [place for place in places(cursor, thread_id) if place.head is not None]
    root = next((place.head for place in found if not place.ns), None)
    gone: list[Key] = []
    for place in found:
        kept = place.head
        (metadata,) = cursor.execute(sql.METADATA, (place.number, kept)).fetchone()
        # A namespace with a task's id in it was made for that task; others hold state from call to call.
        if NS_END in place.ns and metadata_of(metadata).get("parents", {}).get("") != root:
            kept = None
        else:
            cursor.execute(sql.ORPHAN, (place.number, kept))
        gone += [key for key in cursor.execute(sql.CHECKPOINTS_OF_PLACE, (place.number,)) if key[1] != kept]
    _drop(cursor, gone)


def _drop(cursor: Cursor, gone: Collection[Key]) -> None:
    """Delete checkpoints with their writes, and the values that only they had."""
    for statement in sql.DROP:
        cursor.executemany(statement, gone)
    for place in {place for place, _id in gone}:
        used = {
            (short(version), name)
            for checkpoint_id, record in cursor.execute(sql.RECORDS, (place,))
            for name, version in checkpoint_of(checkpoint_id, record)["channel_versions"].items()
        }
        unused = [(place, *key) for key in cursor.execute(sql.BLOB_KEYS, (place,)) if key not in used]
        cursor.executemany(sql.DROP_BLOB, unused)
        cursor.execute(sql.DROP_EMPTY_PLACE, (place,))
