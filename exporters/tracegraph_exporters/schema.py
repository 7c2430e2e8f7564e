"""The trace store's SQLite schema, its versions, and how a connection is opened.

A new version appends one entry to ``MIGRATIONS``; entries are never edited once released. The tables may be
read with any SQLite tool.
"""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path
from typing import Final

from tracegraph_exporters import database, operations

__all__ = ["MIGRATIONS", "TraceStoreError", "open_reader", "open_writer"]

_WITH_OPEN_SPANS: Final = 2
"""The first version that has the table of open spans."""

_WITH_OPERATIONS: Final = 3
"""The first version that has the table of operations."""

# A span that was started and not ended yet; its row makes way for one in `spans`.
OPEN_SPANS: Final = """
CREATE TABLE {name} (
    trace_id TEXT NOT NULL, span_id TEXT NOT NULL, parent_id TEXT, is_local_root INTEGER NOT NULL,
    name TEXT NOT NULL, kind TEXT NOT NULL, start_ns INTEGER NOT NULL, attributes TEXT NOT NULL, events TEXT NOT NULL,
    links TEXT NOT NULL, resource_id INTEGER NOT NULL, scope TEXT, writer_id INTEGER NOT NULL,
    PRIMARY KEY (trace_id, span_id)
) WITHOUT ROWID
"""

MIGRATIONS: Final[tuple[tuple[database.Change, ...], ...]] = (
    (
        "CREATE TABLE resources (id INTEGER PRIMARY KEY, attributes TEXT NOT NULL UNIQUE)",
        """
        CREATE TABLE spans (
            trace_id TEXT NOT NULL, span_id TEXT NOT NULL, parent_id TEXT, is_local_root INTEGER NOT NULL,
            name TEXT NOT NULL, kind TEXT NOT NULL, start_ns INTEGER NOT NULL, end_ns INTEGER NOT NULL,
            status TEXT NOT NULL, message TEXT, attributes TEXT NOT NULL, events TEXT NOT NULL, links TEXT NOT NULL,
            resource_id INTEGER NOT NULL REFERENCES resources(id), scope TEXT
        )
        """,
        # Not the primary key: ids are random, and rows that are appended take half the time of rows put between others.
        "CREATE UNIQUE INDEX spans_by_id ON spans(trace_id, span_id)",
        # Links are one-way in OpenTelemetry; this is the way back, from an interrupted run to what continued it.
        """
        CREATE TABLE links (
            to_trace_id TEXT NOT NULL, from_trace_id TEXT NOT NULL,
            PRIMARY KEY (to_trace_id, from_trace_id)
        ) WITHOUT ROWID
        """,
        "CREATE INDEX links_from ON links(from_trace_id)",
        # One row a trace, kept up to date with every batch, so that a list never reads spans.
        """
        CREATE TABLE traces (
            trace_id TEXT PRIMARY KEY, start_ns INTEGER NOT NULL, end_ns INTEGER NOT NULL,
            span_count INTEGER NOT NULL, error_count INTEGER NOT NULL,
            root_start_ns INTEGER, root_end_ns INTEGER, root_name TEXT, root_status TEXT,
            run_start_ns INTEGER, run_status TEXT, thread_id TEXT, service_name TEXT
        ) WITHOUT ROWID
        """,
        "CREATE INDEX traces_by_start ON traces(start_ns)",
        "CREATE INDEX traces_by_end ON traces(end_ns)",
        "CREATE INDEX traces_by_thread ON traces(thread_id, start_ns)",
        # What is missing, and why: size_cap (oldest traces made room) or export_failed (spans could not be written).
        """
        CREATE TABLE drops (
            id INTEGER PRIMARY KEY, at_ns INTEGER NOT NULL, reason TEXT NOT NULL,
            traces INTEGER NOT NULL, spans INTEGER NOT NULL
        )
        """,
    ),
    (
        # Who has spans open: one row for each exporter, so that a span whose process died can be told from a slow one.
        # AUTOINCREMENT, so that an id never comes back: an exporter must notice that its row is gone.
        """
        CREATE TABLE writers (
            id INTEGER PRIMARY KEY AUTOINCREMENT, place TEXT NOT NULL, pid INTEGER NOT NULL, started TEXT NOT NULL,
            seen_ns INTEGER NOT NULL
        )
        """,
        OPEN_SPANS.format(name="open_spans"),
        "CREATE INDEX open_spans_by_writer ON open_spans(writer_id)",
    ),
    (operations.CREATE.format(name="operations"), operations.fill),
)


class TraceStoreError(Exception):
    """The trace store cannot be used; the text says why and what to do."""


LAYOUT: Final = database.Layout("trace store", MIGRATIONS, TraceStoreError)


def open_writer(path: Path) -> sqlite3.Connection:
    """Open the trace store at *path* for writing; make it, its folder and its tables first where they do not exist.

    Raises:
        TraceStoreError: a newer version of this package wrote the store, or the file is something else.
        OSError, sqlite3.Error: it cannot be opened or written.
    """
    return database.open_writer(path, LAYOUT)


def open_reader(path: Path) -> sqlite3.Connection:
    """Open *path* for reading only.

    Raises:
        FileNotFoundError: there is no store yet.
        TraceStoreError: a newer version of this package wrote the store, or the file is something else.
    """
    if not path.is_file():
        raise FileNotFoundError(f"there is no trace store at {str(path)!r} yet; it is made by the first traced run")
    # Not mode=ro: to read a store in WAL mode SQLite may have to make its -shm file.
    mode = "rw" if os.access(path, os.W_OK) and os.access(path.parent, os.W_OK) else "ro"
    connection = sqlite3.connect(
        f"{path.resolve().as_uri()}?mode={mode}",
        uri=True,
        isolation_level=None,
        check_same_thread=False,
        timeout=database.BUSY_TIMEOUT_S,
    )
    try:
        version = database.version_of(connection, path, LAYOUT)
        if 0 < version < _WITH_OPEN_SPANS:
            # Written by an older version and not opened for writing since: nothing in it is open.
            connection.execute(OPEN_SPANS.format(name="temp.open_spans"))
        if 0 < version < _WITH_OPERATIONS:
            connection.execute(operations.CREATE.format(name="temp.operations"))
            operations.fill(connection)
        connection.execute("PRAGMA query_only = ON")
    except BaseException:
        connection.close()
        raise
    return connection
