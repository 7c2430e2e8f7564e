"""What both PostgreSQL savers know of their database, and ask of a connection before they use it."""

from __future__ import annotations

import os
from typing import Any, Final

import psycopg
from psycopg import AsyncConnection, Connection, Pipeline
from psycopg.conninfo import conninfo_to_dict
from psycopg.pq import TransactionStatus

from tracegraph.checkpoint.postgres.errors import PostgresSaverError, told
from tracegraph.errors import InvalidInputError

__all__ = ["CONNECTION", "SESSION", "Database", "attempt_of", "checked", "name_of", "prepare_threshold"]

CONNECTION: Final[dict[str, Any]] = {"autocommit": True, "prepare_threshold": None}
"""How connections are opened: without prepared statements, which poolers like pgbouncer lose between transactions."""

SESSION: Final = "SELECT pg_backend_pid()"
"""Whose session a connection has; see :func:`prepare_threshold`."""
_PREPARE_AFTER: Final = 3

_ATTEMPT_S: Final = 5
"""How long finding out why a pool has no connections may take."""
_FREE: Final = (TransactionStatus.IDLE, TransactionStatus.UNKNOWN)  # unknown: closed, which using it will tell


class Database:
    """A database as one saver sees it; copies of the saver share it.

    Args:
        pipeline: whether to send statements without waiting for each answer, if the client library can.
    """

    def __init__(self, conn: Any, *, pipeline: bool) -> None:
        self.name = name_of(conn)
        self.has_pipeline = pipeline and Pipeline.is_supported()
        self.is_ready = False
        """Whether the tables were found in order; not any more, once some were missing."""
        self.is_busy = False
        """Whether a call is under way on a single connection."""
        self._process = os.getpid()

    @property
    def is_of_this_process(self) -> bool:
        """Whether this is the process that the saver was made in."""
        return os.getpid() == self._process

    def check_process(self) -> None:
        """Make sure that the connections were not brought here by a fork.

        Raises:
            PostgresSaverError: they were.
        """
        if not self.is_of_this_process:
            raise self.unusable("other_process", f"it was opened by process {self._process}")

    def check_free(self, connection: Connection[Any] | AsyncConnection[Any]) -> None:
        """Make sure that nobody has a transaction open, whose rollback would take checkpoints with it.

        Raises:
            PostgresSaverError: somebody has.
        """
        status = connection.info.transaction_status
        if status not in _FREE:
            raise self.unusable("in_transaction", f"the connection has a transaction open ({status.name})")

    def unusable(self, reason: str, detail: str) -> PostgresSaverError:
        """Return the error with this reason."""
        return PostgresSaverError(self.name, reason, detail)

    def told(self, error: psycopg.Error | UnicodeEncodeError) -> PostgresSaverError | InvalidInputError:
        """Return the error to raise for one of psycopg's."""
        found = told(self.name, error)
        if isinstance(found, PostgresSaverError) and found.reason == "no_tables":
            self.is_ready = False
        return found


def prepare_threshold(connection: Connection[Any] | AsyncConnection[Any], session: int) -> int | None:
    """Return after how many times a connection prepares a statement: never, if it is a pooler's.

    The server tells a client at the beginning which process serves it. A pooler gives keys of its own, for it hands out
    another process's session for each transaction: then *session*, the process that answers now, is another one. Preparing
    saves the server the planning, which takes longer than most of our statements.
    """
    return _PREPARE_AFTER if connection.info.backend_pid == session else None


def checked(conn_string: str) -> str:
    """Return a connection string that can be read.

    Raises:
        InvalidInputError: it cannot.
    """
    try:
        ports = str(conninfo_to_dict(conn_string).get("port") or "").split(",")
        _, slashes, after = conn_string.partition("://")
        place, _, name = after.partition("?")[0].partition("/")
        # Of a password with these letters half would be taken for the host, or the database, and be named in errors.
        # Where the host is missing, what should be the password is taken for the port.
        is_clear = (not slashes or not (place.count("@") > 1 or "@" in name)) and all(
            not port or port.isdecimal() for port in ports
        )
    except (psycopg.Error, UnicodeError):
        is_clear = False
    if not is_clear:
        # Neither the text nor what psycopg says of it, for there may be a password in it.
        raise InvalidInputError(
            "this is no connection string of PostgreSQL (not shown, for it may hold a password); give one like "
            "'postgresql://user@host:5432/database', with letters such as @ and / in names and passwords percent-encoded"
        )
    return conn_string


def attempt_of(pool: Any) -> dict[str, Any] | None:
    """Return what to open one connection with as a pool does; None if only the pool knows."""
    if not isinstance(pool.conninfo, str) or not isinstance(pool.kwargs or {}, dict):
        return None
    return {"connect_timeout": _ATTEMPT_S, **conninfo_to_dict(pool.conninfo), **(pool.kwargs or {})}


def name_of(conn: Any) -> str:
    """Return what to call the database of a connection, a pool or a checked string in errors; never with a password."""
    if isinstance(conn, str):
        known: dict[str, Any] = conninfo_to_dict(conn)
    elif isinstance(conn, Connection | AsyncConnection):
        try:
            known = {"dbname": conn.info.dbname, "host": conn.info.host}
        except psycopg.OperationalError:  # closed; the first call will say so
            known = {}
    else:
        attempt = attempt_of(conn)
        known = attempt or {}
    return f"{known.get('dbname') or os.environ.get('PGDATABASE', '(default)')} on {known.get('host') or 'localhost'}"
