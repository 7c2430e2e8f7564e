"""LangGraph's Postgres databases."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from tracegraph.constants import TASKS
from tracegraph.errors import InvalidInputError
from tracegraph.interop.langgraph.decoder import Decoder
from tracegraph.interop.langgraph.errors import SourceError
from tracegraph.interop.langgraph.stored import Place, Stored, StoredWrite
from tracegraph.interop.langgraph.tables import CHECKPOINT_COLUMNS, WRITE_COLUMNS, missing_columns

if TYPE_CHECKING:
    from psycopg import Connection

__all__ = ["open_postgres"]

_COLUMNS = "SELECT attname FROM pg_attribute WHERE attrelid = to_regclass(%s) AND attnum > 0 AND NOT attisdropped"
_THREADS = "SELECT thread_id FROM checkpoints GROUP BY thread_id ORDER BY min(checkpoint_id)"
_CHECKPOINTS = (
    "SELECT checkpoint_ns, checkpoint_id, parent_checkpoint_id, checkpoint, metadata FROM checkpoints "
    'WHERE thread_id = %s ORDER BY checkpoint_id COLLATE "C", checkpoint_ns'
)
_VALUES = (
    "SELECT b.channel, b.type, b.blob FROM checkpoints c "
    "CROSS JOIN LATERAL jsonb_each_text(c.checkpoint -> 'channel_versions') v "
    "JOIN checkpoint_blobs b ON b.thread_id = c.thread_id AND b.checkpoint_ns = c.checkpoint_ns "
    "AND b.channel = v.key AND b.version = v.value WHERE c.thread_id = %s AND c.checkpoint_ns = %s AND c.checkpoint_id = %s"
)
_WRITES = (
    "SELECT {path}, task_id, idx, channel, type, blob FROM checkpoint_writes "
    "WHERE thread_id = %s AND checkpoint_ns = %s AND checkpoint_id = %s"
)
_PAGE = 64


@contextmanager
def open_postgres(url: str) -> Iterator[_PostgresSource]:
    """Connect for reading, as the database is now."""
    try:
        import psycopg

        from tracegraph.checkpoint.postgres.database import checked, name_of
    except ImportError as error:
        raise SourceError("reading Postgres takes psycopg: pip install 'tracegraph[postgres]'") from error
    try:
        place = f"the database {name_of(checked(url))}"
    except InvalidInputError as error:
        raise SourceError(str(error)) from error
    try:
        # No prepared statements: there may be a pooler in between.
        with psycopg.connect(url, prepare_threshold=None) as connection:
            connection.read_only = True
            connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
            yield _PostgresSource(connection, place)
    except psycopg.Error as error:
        raise SourceError(f"{place} cannot be read: {error}") from error


def _path_column(connection: Connection[Any], place: str) -> str:
    tables = ("checkpoints", "checkpoint_blobs", "checkpoint_writes")
    columns = {table: [name for (name,) in connection.execute(_COLUMNS, (table,))] for table in tables}
    wrong = missing_columns("checkpoints", CHECKPOINT_COLUMNS, columns["checkpoints"])
    wrong = wrong or missing_columns("checkpoint_blobs", ("channel", "version", "type", "blob"), columns["checkpoint_blobs"])
    wrong = wrong or missing_columns("checkpoint_writes", (*WRITE_COLUMNS, "blob"), columns["checkpoint_writes"])
    if wrong:
        raise SourceError(f"{place} is no database of LangGraph's PostgresSaver: {wrong}")
    return "task_path" if "task_path" in columns["checkpoint_writes"] else "''"


class _PostgresSource:
    def __init__(self, connection: Connection[Any], name: str) -> None:
        self.name = name
        self._connection = connection
        self._writes_of: Any = _WRITES.format(path=_path_column(connection, name))

    def thread_ids(self) -> list[str]:
        return [thread_id for (thread_id,) in self._connection.execute(_THREADS)]

    def read(self, thread_id: str, decoder: Decoder) -> Iterator[Stored]:
        # On the server's side, so that a long thread is not in memory at once.
        with self._connection.cursor(name="checkpoints_of_a_thread") as cursor:
            cursor.itersize = _PAGE
            cursor.execute(_CHECKPOINTS, (thread_id,))
            for ns, checkpoint_id, parent_id, checkpoint, metadata in cursor:
                place = Place(thread_id, ns, checkpoint_id)
                if isinstance(checkpoint, dict):
                    checkpoint["channel_values"] = checkpoint.get("channel_values") or {}
                stored = Stored(place, parent_id or None, checkpoint, metadata or {})
                # A delta snapshot is `true` in the record, and a value beside it.
                checkpoint["channel_values"] |= self._values(place, decoder)
                stored.writes = self._writes(place, decoder)
                if checkpoint["v"] < 4 and parent_id:
                    before = self._writes(place._replace(checkpoint_id=parent_id), decoder)
                    stored.sends = [write.value for write in before if write.channel == TASKS]
                yield stored

    def _values(self, place: Place, decoder: Decoder) -> dict[str, Any]:
        return {
            channel: decoder.value(kind, data, place, f"channel {channel!r}")
            for channel, kind, data in self._connection.execute(_VALUES, place)
            if kind != "empty"
        }

    def _writes(self, place: Place, decoder: Decoder) -> list[StoredWrite]:
        rows = self._connection.execute(self._writes_of, place).fetchall()
        rows.sort(key=lambda row: row[:3])  # by code point, whatever the database's collation is
        return decoder.writes(rows, place)
