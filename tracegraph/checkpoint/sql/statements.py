"""The SQL of the savers in databases. Every value is a parameter."""

from __future__ import annotations

from typing import Final

from tracegraph.checkpoint.sql.dialect import Dialect

__all__ = ["Statements"]

ADD_PLACE: Final = """
INSERT INTO tracegraph_places (thread_id, ns) VALUES (?, ?)
ON CONFLICT (thread_id, ns) DO UPDATE SET ns = excluded.ns RETURNING place
"""
HEAD: Final = "SELECT max(id) FROM tracegraph_checkpoints WHERE place = ?"

PUT_CHECKPOINT: Final = """
INSERT INTO tracegraph_checkpoints (place, id, parent_id, run_id, record, metadata) VALUES (?, ?, ?, ?, ?, ?)
ON CONFLICT (place, id) DO UPDATE SET
    parent_id = excluded.parent_id, run_id = excluded.run_id, record = excluded.record, metadata = excluded.metadata
"""
PUT_BLOB: Final = """
INSERT INTO tracegraph_blobs (place, version, channel, kind, value, base, growth, whole_bytes, grown_bytes)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (place, version, channel) DO UPDATE SET
    kind = excluded.kind, value = excluded.value, base = excluded.base, growth = excluded.growth,
    whole_bytes = excluded.whole_bytes, grown_bytes = excluded.grown_bytes
"""
# A task that runs again does not change what it wrote; its error, question and answers are those of the last time.
PUT_WRITE: Final = """
INSERT INTO tracegraph_writes (place, checkpoint_id, task_id, slot, task_path, channel, kind, value)
VALUES (?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (place, checkpoint_id, task_id, slot) DO UPDATE SET
    task_path = excluded.task_path, channel = excluded.channel, kind = excluded.kind, value = excluded.value
WHERE tracegraph_writes.slot < 0
"""
SIZES: Final = """
SELECT growth, coalesce(whole_bytes, length(value)), coalesce(grown_bytes, 0) FROM tracegraph_blobs
WHERE place = ? AND version = ? AND channel = ?
"""
GET_WRITES: Final = """
SELECT task_id, channel, kind, value FROM tracegraph_writes WHERE place = ? AND checkpoint_id = ?
ORDER BY task_path, task_id, slot
"""

FORGET: Final = tuple(
    f"DELETE FROM {table} WHERE place IN (SELECT place FROM tracegraph_places WHERE thread_id = ?)"  # noqa: S608  # our names
    for table in ("tracegraph_checkpoints", "tracegraph_blobs", "tracegraph_writes", "tracegraph_places")
)
COPY: Final = (
    """
    INSERT INTO tracegraph_checkpoints (place, id, parent_id, run_id, record, metadata)
    SELECT CAST(? AS BIGINT), id, parent_id, run_id, record, metadata FROM tracegraph_checkpoints WHERE place = ?
    """,
    """
    INSERT INTO tracegraph_blobs (place, version, channel, kind, value, base, growth, whole_bytes, grown_bytes)
    SELECT CAST(? AS BIGINT), version, channel, kind, value, base, growth, whole_bytes, grown_bytes
    FROM tracegraph_blobs WHERE place = ?
    """,
    """
    INSERT INTO tracegraph_writes (place, checkpoint_id, task_id, slot, task_path, channel, kind, value)
    SELECT CAST(? AS BIGINT), checkpoint_id, task_id, slot, task_path, channel, kind, value
    FROM tracegraph_writes WHERE place = ?
    """,
)
CHECKPOINTS_OF_RUN: Final = "SELECT place, id FROM tracegraph_checkpoints WHERE run_id = ?"
CHECKPOINTS_OF_PLACE: Final = "SELECT place, id FROM tracegraph_checkpoints WHERE place = ?"
ORPHAN: Final = "UPDATE tracegraph_checkpoints SET parent_id = NULL WHERE place = ? AND id = ?"
DROP: Final = (
    "DELETE FROM tracegraph_writes WHERE place = ? AND checkpoint_id = ?",
    "DELETE FROM tracegraph_checkpoints WHERE place = ? AND id = ?",
)
RECORDS: Final = "SELECT id, record FROM tracegraph_checkpoints WHERE place = ?"
BLOB_KEYS: Final = "SELECT version, channel, base FROM tracegraph_blobs WHERE place = ?"
DROP_BLOB: Final = "DELETE FROM tracegraph_blobs WHERE place = ? AND version = ? AND channel = ?"
DROP_EMPTY_PLACE: Final = """
DELETE FROM tracegraph_places WHERE place = ?
AND NOT EXISTS (SELECT 1 FROM tracegraph_checkpoints WHERE place = ?)
AND NOT EXISTS (SELECT 1 FROM tracegraph_writes WHERE place = ?)
"""


class Statements:
    """The statements that differ from database to database."""

    def __init__(self, dialect: Dialect) -> None:
        self.place = f"SELECT place FROM tracegraph_places WHERE thread_id = ? AND ns = ?{dialect.lock}"  # noqa: S608
        self.lock_thread = f"SELECT place FROM tracegraph_places WHERE thread_id = ?{dialect.lock}"  # noqa: S608
        self.all_places = """
            SELECT place, thread_id, ns, (SELECT max(c.id) FROM tracegraph_checkpoints c WHERE c.place = p.place)
            FROM tracegraph_places p
        """
        self.places_of_thread = f"{self.all_places} WHERE thread_id = ?"
        checkpoint = f"""
            SELECT p.place, c.id, c.parent_id, c.record, {dialect.metadata}
            FROM tracegraph_places p CROSS JOIN tracegraph_checkpoints c
            WHERE p.thread_id = ? AND p.ns = ? AND c.place = p.place
        """  # noqa: S608
        self.latest = f"{checkpoint} ORDER BY c.id DESC LIMIT 1"
        self.named = f"{checkpoint} AND c.id = ?"
        self.metadata = f"SELECT {dialect.metadata} FROM tracegraph_checkpoints c WHERE place = ? AND id = ?"  # noqa: S608
        # Channels and versions come as one JSON object: one statement for any number of them.
        self.values = f"""
            WITH RECURSIVE part(channel, kind, value, base, growth, depth) AS (
                SELECT b.channel, b.kind, b.value, b.base, b.growth, 0
                FROM {dialect.pairs} wanted CROSS JOIN tracegraph_blobs b
                WHERE b.place = ? AND b.version = wanted.value AND b.channel = wanted.key
                UNION ALL
                SELECT b.channel, b.kind, b.value, b.base, b.growth, part.depth + 1
                FROM part CROSS JOIN tracegraph_blobs b
                WHERE part.base IS NOT NULL AND b.place = ? AND b.version = part.base AND b.channel = part.channel
            )
            SELECT channel, kind, value, growth, depth FROM part
        """  # noqa: S608
        self._page = f"SELECT c.id, {dialect.metadata} FROM tracegraph_checkpoints c WHERE c.place = ? AND c.id < ?"  # noqa: S608

    def page(self, sieve: str) -> str:
        """Return the statement for one page of a place's checkpoints, newest first."""
        return f"{self._page}{sieve} ORDER BY c.id DESC LIMIT ?"
