"""LangGraph's SQLite files."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

from tracegraph.constants import TASKS
from tracegraph.interop.langgraph.decoder import Decoder
from tracegraph.interop.langgraph.errors import SourceError, ThreadRefusedError
from tracegraph.interop.langgraph.stored import Place, Stored, StoredWrite
from tracegraph.interop.langgraph.tables import CHECKPOINT_COLUMNS, WRITE_COLUMNS, missing_columns

__all__ = ["open_sqlite"]

_THREADS = "SELECT thread_id FROM checkpoints GROUP BY thread_id ORDER BY min(checkpoint_id)"
_CHECKPOINTS = (
    "SELECT checkpoint_ns, checkpoint_id, parent_checkpoint_id, type, checkpoint, metadata FROM checkpoints "
    "WHERE thread_id = ? ORDER BY checkpoint_id, checkpoint_ns"
)
_WRITES = (
    "SELECT {path}, task_id, idx, channel, type, value FROM writes "
    "WHERE thread_id = ? AND checkpoint_ns = ? AND checkpoint_id = ? ORDER BY 1, 2, 3"
)


@contextmanager
def open_sqlite(path: Path) -> Iterator[_SqliteSource]:
    """Open a file for reading, as it is now."""
    if not path.is_file():
        raise SourceError(f"there is no file {str(path)!r}" if not path.exists() else f"{str(path)!r} is not a file")
    # Even a reader makes the files of the write-ahead log, if they are not there; then nobody else has the database
    # open, and it can be taken for a file that does not change. Whether that was true is looked at afterwards.
    is_in_use = any(path.with_name(path.name + suffix).exists() for suffix in ("-wal", "-journal"))
    mode = "mode=ro" if is_in_use else "mode=ro&immutable=1"
    before = _stamp(path)
    try:
        with closing(sqlite3.connect(f"file:{quote(str(path))}?{mode}", uri=True, isolation_level=None)) as connection:
            # Text that is none is damage of one record, and no reason not to read the others.
            connection.text_factory = lambda data: data.decode("utf-8", "backslashreplace")
            connection.execute("BEGIN")  # one moment for all that is read
            yield _SqliteSource(connection, path)
    except sqlite3.Error as error:
        raise SourceError(f"{str(path)!r} cannot be read: {error}") from error
    if not is_in_use and _stamp(path) != before:
        raise SourceError(f"{str(path)!r} was written to while it was read; import it again")


def _stamp(path: Path) -> tuple[int, int]:
    found = os.stat(path)  # noqa: PTH116  # read twice, and compared
    return found.st_mtime_ns, found.st_size


def _path_column(connection: sqlite3.Connection, path: Path) -> str:
    """Return the column of task paths, which files from before it existed lack."""
    columns = {
        table: [row[1] for row in connection.execute(f"PRAGMA table_info({table})")] for table in ("checkpoints", "writes")
    }
    wrong = missing_columns("checkpoints", (*CHECKPOINT_COLUMNS, "type"), columns["checkpoints"])
    wrong = wrong or missing_columns("writes", (*WRITE_COLUMNS, "value"), columns["writes"])
    if wrong:
        raise SourceError(f"{str(path)!r} is no database of LangGraph's SqliteSaver: {wrong}")
    return "task_path" if "task_path" in columns["writes"] else "''"


class _SqliteSource:
    def __init__(self, connection: sqlite3.Connection, path: Path) -> None:
        self.name = repr(str(path))
        self._connection = connection
        self._writes_of = _WRITES.format(path=_path_column(connection, path))

    def thread_ids(self) -> list[str]:
        # SQLite's columns take values of any type; what is no text is shown, and found to have no checkpoints.
        return [found if isinstance(found, str) else repr(found) for (found,) in self._connection.execute(_THREADS)]

    def read(self, thread_id: str, decoder: Decoder) -> Iterator[Stored]:
        for ns, checkpoint_id, parent_id, kind, data, metadata in self._connection.execute(_CHECKPOINTS, (thread_id,)):
            place = Place(thread_id, ns, checkpoint_id)
            stored = Stored(place, parent_id or None, decoder.checkpoint(kind, data, place), _metadata(metadata, place))
            stored.writes = self._writes(place, decoder)
            if stored.checkpoint["v"] < 4 and parent_id:
                before = self._writes(place._replace(checkpoint_id=parent_id), decoder)
                stored.sends = [write.value for write in before if write.channel == TASKS]
            yield stored

    def _writes(self, place: Place, decoder: Decoder) -> list[StoredWrite]:
        return decoder.writes(self._connection.execute(self._writes_of, place), place)


def _metadata(data: Any, place: Place) -> dict[str, Any]:
    try:
        return dict(json.loads(data)) if data else {}
    except (TypeError, ValueError, RecursionError) as error:
        raise ThreadRefusedError(place.thread_id, f"the metadata of {place} is no JSON object: {error}") from error
