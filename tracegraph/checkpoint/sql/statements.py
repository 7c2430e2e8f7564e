"""The SQL of the savers in databases. Every value is a parameter."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tracegraph.checkpoint.sql.dialect import Dialect

__all__ = ["Statements"]

ADD_PLACE: Final = """
INSERT INTO tracegraph_places (thread_id, ns) VALUES (?, ?)
ON CONFLICT (thread_id, ns) DO UPDATE SET ns = excluded.ns RETURNING place
"""
CHECKPOINT_COLUMNS: Final = {
    "place": "bigint",
    "id": "text",
    "parent_id": "text",
    "run_id": "text",
    "record": "bytea",
    "metadata": "json",
}
VALUE_COLUMNS: Final = {
    "place": "bigint",
    "version": "text",
    "channel": "text",
    "kind": "text",
    "value": "bytea",
    "base": "text",
    "growth": "text",
    "level": "integer",
    "run": "integer",
    "chain_bytes": "bigint",
    "whole_bytes": "bigint",
}
WRITE_COLUMNS: Final = {
    "place": "bigint",
    "checkpoint_id": "text",
    "task_id": "text",
    "slot": "integer",
    "task_path": "text",
    "channel": "text",
    "kind": "text",
    "value": "bytea",
}

HEAD: Final = "SELECT max(id) FROM tracegraph_checkpoints WHERE place = ?"

IS_THERE: Final = "SELECT 1 FROM tracegraph_checkpoints WHERE place = ? AND id = ?"
GET_PIECE: Final = """
SELECT kind, value, base, growth, coalesce(level, -1), coalesce(run, 1), coalesce(chain_bytes, length(value)),
    coalesce(whole_bytes, length(value))
FROM tracegraph_blobs WHERE place = ? AND version = ? AND channel = ?
"""
GET_WRITES: Final = """
SELECT task_id, channel, kind, value FROM tracegraph_writes WHERE place = ? AND checkpoint_id = ?
ORDER BY task_path, task_id, slot
"""

THREADS: Final = """
SELECT p.thread_id, count(*), count(DISTINCT p.place), max(CASE WHEN p.ns = '' THEN c.id END)
FROM tracegraph_places p CROSS JOIN tracegraph_checkpoints c WHERE c.place = p.place
GROUP BY p.thread_id ORDER BY max(c.id) DESC
"""
NEWEST_THREADS: Final = f"{THREADS} LIMIT ?"

FORGET: Final = tuple(
    f"DELETE FROM {table} WHERE place = ?"  # noqa: S608  # our names
    for table in ("tracegraph_checkpoints", "tracegraph_blobs", "tracegraph_writes", "tracegraph_places")
)
COPY: Final = (
    """
    INSERT INTO tracegraph_checkpoints (place, id, parent_id, run_id, record, metadata)
    SELECT CAST(? AS BIGINT), id, parent_id, run_id, record, metadata FROM tracegraph_checkpoints WHERE place = ?
    """,
    """
    INSERT INTO tracegraph_blobs (place, version, channel, kind, value, base, growth, level, run, chain_bytes, whole_bytes)
    SELECT CAST(? AS BIGINT), version, channel, kind, value, base, growth, level, run, chain_bytes, whole_bytes
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

LEAVE_QUEUE: Final = "DELETE FROM tracegraph_turns WHERE ticket = ?"


def _put(dialect: Dialect, table: str, key: str, columns: Mapping[str, str]) -> str:
    """Return the statement that inserts rows, each in the place of one with the same key."""
    others = [name for name in columns if name not in key.split(", ")]
    replacing = ", ".join(f"{name} = excluded.{name}" for name in others)
    return f"{dialect.insert(table, columns)} ON CONFLICT ({key}) DO UPDATE SET {replacing}"


class Statements:
    """The statements that differ from database to database."""

    def __init__(self, dialect: Dialect) -> None:
        self.put_checkpoint = _put(dialect, "tracegraph_checkpoints", "place, id", CHECKPOINT_COLUMNS)
        self.put_value = _put(dialect, "tracegraph_blobs", "place, version, channel", VALUE_COLUMNS)
        # A task that runs again does not change what it wrote; its error, question and answers are those of the last time.
        put_write = _put(dialect, "tracegraph_writes", "place, checkpoint_id, task_id, slot", WRITE_COLUMNS)
        self.put_write = f"{put_write} WHERE tracegraph_writes.slot < 0"
        self._set_up_reading(dialect)
        self._set_up_turns(dialect)

    def _set_up_reading(self, dialect: Dialect) -> None:
        self.place = f"SELECT place FROM tracegraph_places WHERE thread_id = ? AND ns = ?{dialect.lock}"  # noqa: S608
        # In one order, so that no two transactions wait for one another. Of one thread, or of two.
        self.lock_threads = f"SELECT place FROM tracegraph_places WHERE thread_id IN (?, ?) ORDER BY place{dialect.lock}"  # noqa: S608
        self.lock_place = f"SELECT place FROM tracegraph_places WHERE place = ?{dialect.lock}"  # noqa: S608
        self.all_places = """
            SELECT place, thread_id, ns, (SELECT max(c.id) FROM tracegraph_checkpoints c WHERE c.place = p.place)
            FROM tracegraph_places p
        """
        self.places_of_thread = f"{self.all_places} WHERE thread_id = ?"
        # The place as a value of its own lets every planner read the newest from the end of the key's index.
        checkpoint = f"""
            SELECT c.place, c.id, c.parent_id, c.record, {dialect.metadata} FROM tracegraph_checkpoints c
            WHERE c.place = (SELECT place FROM tracegraph_places WHERE thread_id = ? AND ns = ?)
        """  # noqa: S608
        self.latest = f"{checkpoint} ORDER BY c.id DESC LIMIT 1"
        self.named = f"{checkpoint} AND c.id = ?"
        self.metadata = f"SELECT {dialect.metadata} FROM tracegraph_checkpoints c WHERE place = ? AND id = ?"  # noqa: S608
        # Channels and versions come as one JSON object: one statement for any number of them.
        wanted = dialect.one_value("b.place = ? AND b.version = wanted.value AND b.channel = wanted.key")
        below = dialect.one_value("b.place = ? AND b.version = part.base AND b.channel = part.channel")
        found = dialect.one_value("b.place = ? AND b.version = part.version AND b.channel = part.channel")
        self.values = f"""
            WITH RECURSIVE part(channel, version, base, depth) AS (
                SELECT b.channel, b.version, b.base, 0 FROM {dialect.pairs} wanted {wanted}
                UNION ALL
                SELECT b.channel, b.version, b.base, part.depth + 1 FROM part {below}
            )
            SELECT b.channel, b.kind, b.value, b.growth, part.depth FROM part {found}
        """  # noqa: S608
        self._page = f"SELECT c.id, {dialect.metadata} FROM tracegraph_checkpoints c WHERE c.place = ? AND c.id < ?"  # noqa: S608

    def _set_up_turns(self, dialect: Dialect) -> None:
        # By the database's clock, for the machines' clocks differ.
        self.drop_expired = f"DELETE FROM tracegraph_turns WHERE thread_id = ? AND expires_at < {dialect.now}"  # noqa: S608
        self.join_queue = f"""
            INSERT INTO tracegraph_turns (ticket, thread_id, expires_at) VALUES (?, ?, {dialect.now} + ?)
        """  # noqa: S608
        self.keep_turn = f"""
            UPDATE tracegraph_turns SET expires_at = {dialect.now} + ?
            WHERE ticket = ? AND expires_at >= {dialect.now} RETURNING ticket
        """  # noqa: S608
        self.place_in_queue = f"""
            SELECT EXISTS (
                SELECT 1 FROM tracegraph_turns b
                WHERE b.thread_id = mine.thread_id AND b.number < mine.number AND b.expires_at >= {dialect.now}
            )
            FROM tracegraph_turns mine WHERE mine.ticket = ? AND mine.expires_at >= {dialect.now}
        """  # noqa: S608

    def page(self, sieve: str) -> str:
        """Return the statement for one page of a place's checkpoints, newest first."""
        return f"{self._page}{sieve} ORDER BY c.id DESC LIMIT ?"
