"""The SQL of the SQLite savers. Every value is a parameter."""

from __future__ import annotations

from typing import Final

__all__: list[str] = []

PLACE_AND_HEAD: Final = """
SELECT place, (SELECT max(c.id) FROM tracegraph_checkpoints c WHERE c.place = p.place)
FROM tracegraph_places p WHERE thread_id = ? AND ns = ?
"""
ADD_PLACE: Final = "INSERT INTO tracegraph_places (thread_id, ns) VALUES (?, ?)"
ALL_PLACES: Final = """
SELECT place, thread_id, ns, (SELECT max(c.id) FROM tracegraph_checkpoints c WHERE c.place = p.place) FROM tracegraph_places p
"""
PLACES_OF_THREAD: Final = f"{ALL_PLACES} WHERE thread_id = ?"

# A limit of -1 is none.
THREADS: Final = """
SELECT p.thread_id, count(*), count(DISTINCT p.place), max(CASE p.ns WHEN '' THEN c.id END)
FROM tracegraph_places p CROSS JOIN tracegraph_checkpoints c ON c.place = p.place
GROUP BY p.thread_id ORDER BY max(c.id) DESC LIMIT ?
"""

PUT_CHECKPOINT: Final = """
INSERT INTO tracegraph_checkpoints (place, id, parent_id, run_id, record, metadata) VALUES (?, ?, ?, ?, ?, ?)
ON CONFLICT (place, id) DO UPDATE SET
    parent_id = excluded.parent_id, run_id = excluded.run_id, record = excluded.record, metadata = excluded.metadata
"""
PUT_BLOB: Final = """
INSERT INTO tracegraph_blobs (place, version, channel, kind, value) VALUES (?, ?, ?, ?, ?)
ON CONFLICT (place, version, channel) DO UPDATE SET kind = excluded.kind, value = excluded.value
"""
# A task that runs again does not change what it wrote; its error, question and answers are those of the last time.
PUT_WRITE: Final = """
INSERT INTO tracegraph_writes (place, checkpoint_id, task_id, slot, task_path, channel, kind, value)
VALUES (?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (place, checkpoint_id, task_id, slot) DO UPDATE SET
    task_path = excluded.task_path, channel = excluded.channel, kind = excluded.kind, value = excluded.value
WHERE slot < 0
"""

_CHECKPOINT: Final = """
SELECT p.place, c.id, c.parent_id, c.record, c.metadata
FROM tracegraph_places p CROSS JOIN tracegraph_checkpoints c ON c.place = p.place
WHERE p.thread_id = ? AND p.ns = ?
"""
GET_LATEST: Final = f"{_CHECKPOINT} ORDER BY c.id DESC LIMIT 1"
GET_NAMED: Final = f"{_CHECKPOINT} AND c.id = ?"
# The channels and versions come as one JSON object: one statement for any number of them.
GET_VALUES: Final = """
SELECT b.channel, b.kind, b.value FROM json_each(?) wanted
CROSS JOIN tracegraph_blobs b ON b.place = ? AND b.version = wanted.value AND b.channel = wanted.key
"""
GET_WRITES: Final = """
SELECT task_id, channel, kind, value FROM tracegraph_writes WHERE place = ? AND checkpoint_id = ?
ORDER BY task_path, task_id, slot
"""
PAGE: Final = "SELECT id, metadata FROM tracegraph_checkpoints WHERE place = ? AND id < ?"
PAGE_CONDITION: Final = " AND json_extract(metadata, ?) IS ?"
PAGE_END: Final = " ORDER BY id DESC LIMIT ?"

FORGET: Final = tuple(
    f"DELETE FROM {table} WHERE place IN (SELECT place FROM tracegraph_places WHERE thread_id = ?)"  # noqa: S608  # our names
    for table in ("tracegraph_checkpoints", "tracegraph_blobs", "tracegraph_writes", "tracegraph_places")
)
COPY: Final = (
    """
    INSERT INTO tracegraph_checkpoints (place, id, parent_id, run_id, record, metadata)
    SELECT ?, id, parent_id, run_id, record, metadata FROM tracegraph_checkpoints WHERE place = ?
    """,
    """
    INSERT INTO tracegraph_blobs (place, version, channel, kind, value)
    SELECT ?, version, channel, kind, value FROM tracegraph_blobs WHERE place = ?
    """,
    """
    INSERT INTO tracegraph_writes (place, checkpoint_id, task_id, slot, task_path, channel, kind, value)
    SELECT ?, checkpoint_id, task_id, slot, task_path, channel, kind, value FROM tracegraph_writes WHERE place = ?
    """,
)
CHECKPOINTS_OF_RUN: Final = "SELECT place, id FROM tracegraph_checkpoints WHERE run_id = ?"
CHECKPOINTS_OF_PLACE: Final = "SELECT place, id FROM tracegraph_checkpoints WHERE place = ?"
METADATA: Final = "SELECT metadata FROM tracegraph_checkpoints WHERE place = ? AND id = ?"
ORPHAN: Final = "UPDATE tracegraph_checkpoints SET parent_id = NULL WHERE place = ? AND id = ?"
DROP: Final = (
    "DELETE FROM tracegraph_writes WHERE place = ? AND checkpoint_id = ?",
    "DELETE FROM tracegraph_checkpoints WHERE place = ? AND id = ?",
)
RECORDS: Final = "SELECT id, record FROM tracegraph_checkpoints WHERE place = ?"
BLOB_KEYS: Final = "SELECT version, channel FROM tracegraph_blobs WHERE place = ?"
DROP_BLOB: Final = "DELETE FROM tracegraph_blobs WHERE place = ? AND version = ? AND channel = ?"
DROP_EMPTY_PLACE: Final = """
DELETE FROM tracegraph_places WHERE place = ?1
AND NOT EXISTS (SELECT 1 FROM tracegraph_checkpoints WHERE place = ?1)
AND NOT EXISTS (SELECT 1 FROM tracegraph_writes WHERE place = ?1)
"""
