"""The tables, their versions, and how a database is made ready.

Table ``tracegraph_schema`` holds the version. A new version appends one entry to ``MIGRATIONS``; entries are never
edited once released, for databases out there were made by them.
"""

from __future__ import annotations

from typing import Final

from tracegraph.checkpoint.postgres.errors import PostgresSaverError
from tracegraph.checkpoint.sql.orders import Many, Operation, Rows

__all__ = ["MIGRATIONS", "preparing"]

_LOCK: Final = 0x7472_6163_6567_6361
"""Key of the advisory lock that one process has while it migrates; any number that is nobody else's."""

MIGRATIONS: Final = (
    (
        # A place is a namespace of a thread. Every other row names it by number, for thread ids are long.
        """
        CREATE TABLE tracegraph_places (
            place BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
            thread_id TEXT COLLATE "C" NOT NULL, ns TEXT COLLATE "C" NOT NULL, UNIQUE (thread_id, ns)
        )
        """,
        # record: see sql/rows.py. metadata is no JSONB, which changes numbers (1e22 becomes an integer, -0.0 becomes 0.0), but
        # it can be made one, for filters.
        """
        CREATE TABLE tracegraph_checkpoints (
            place BIGINT NOT NULL, id TEXT COLLATE "C" NOT NULL, parent_id TEXT COLLATE "C", run_id TEXT COLLATE "C",
            record BYTEA NOT NULL, metadata JSON NOT NULL CHECK (CAST(metadata AS JSONB) IS NOT NULL), PRIMARY KEY (place, id)
        )
        """,
        "CREATE INDEX tracegraph_checkpoints_by_run ON tracegraph_checkpoints (run_id) WHERE run_id IS NOT NULL",
        # The columns from base on: see sql/values.py. All empty: a whole value.
        """
        CREATE TABLE tracegraph_blobs (
            place BIGINT NOT NULL, version TEXT COLLATE "C" NOT NULL, channel TEXT COLLATE "C" NOT NULL,
            kind TEXT NOT NULL, value BYTEA NOT NULL,
            base TEXT COLLATE "C", growth TEXT, level INTEGER, run INTEGER, chain_bytes BIGINT, whole_bytes BIGINT,
            PRIMARY KEY (place, version, channel)
        )
        """,
        """
        CREATE TABLE tracegraph_writes (
            place BIGINT NOT NULL, checkpoint_id TEXT COLLATE "C" NOT NULL, task_id TEXT COLLATE "C" NOT NULL,
            slot INTEGER NOT NULL, task_path TEXT COLLATE "C" NOT NULL,
            channel TEXT COLLATE "C" NOT NULL, kind TEXT NOT NULL, value BYTEA NOT NULL,
            PRIMARY KEY (place, checkpoint_id, task_id, slot)
        )
        """,
        # Runs in line for a thread, in the order of the numbers. The tickets are their own, and never used again.
        """
        CREATE TABLE tracegraph_turns (
            number BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY, ticket TEXT COLLATE "C" NOT NULL UNIQUE,
            thread_id TEXT COLLATE "C" NOT NULL, expires_at DOUBLE PRECISION NOT NULL
        )
        """,
        "CREATE INDEX tracegraph_turns_by_thread ON tracegraph_turns (thread_id, number)",
    ),
)


def preparing(database: str) -> Operation[None]:
    """Make or update the tables where need be.

    Raises:
        PostgresSaverError: they are of a newer version.
    """
    if (yield from _version(database)) == len(MIGRATIONS):
        return
    # Transaction-level, so that it works behind poolers that hand out another session for each transaction.
    yield Many("SELECT pg_advisory_xact_lock(?)", [(_LOCK,)])
    yield Many("CREATE TABLE IF NOT EXISTS tracegraph_schema (version INTEGER NOT NULL)", [()])
    version = yield from _version(database)  # another process may have made the tables while this one waited
    for statements in MIGRATIONS[version:]:
        for statement in statements:
            yield Many(statement, [()])
    yield Many("DELETE FROM tracegraph_schema", [()])
    yield Many("INSERT INTO tracegraph_schema (version) VALUES (?)", [(len(MIGRATIONS),)])


def _version(database: str) -> Operation[int]:
    ((is_there,),) = yield Rows("SELECT to_regclass('tracegraph_schema') IS NOT NULL")
    if not is_there:
        return 0
    rows = yield Rows("SELECT version FROM tracegraph_schema")
    version = int(rows[0][0]) if rows else 0
    if version > len(MIGRATIONS):
        raise PostgresSaverError(
            database, "newer", f"its tables have version {version}, but this tracegraph knows {len(MIGRATIONS)}"
        )
    return version
