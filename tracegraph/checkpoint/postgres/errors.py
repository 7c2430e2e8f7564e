"""What the PostgreSQL savers raise of their own."""

from __future__ import annotations

from typing import Final

import psycopg
from psycopg import errors
from psycopg_pool import PoolClosed, PoolTimeout

from tracegraph.checkpoint.sql.errors import DatabaseUnusableError
from tracegraph.errors import InvalidInputError

__all__ = ["PostgresSaverError", "told"]

_ADVICE: Final[dict[str, str]] = {
    "unreachable": "look whether the server runs and takes connections; the pool connects anew at the next call",
    "full": "make room on the server's disk; saver.prune([...]) thins old threads out once there is room",
    "read_only": "this is a standby, or the role or database is set to read only; reading goes on working",
    "forbidden": "GRANT the role what it lacks, or run saver.setup() once as a role that may create tables",
    "busy": "all connections of the pool were in use; give a pool with a greater max_size, or a longer timeout",
    "cancelled": "the server gave up waiting (statement_timeout, lock_timeout or a deadlock); the call can be made again",
    "newer": "upgrade tracegraph, or give another database",
    "other_process": "open a saver of its own in each process, after the fork",
    "other_loop": "use the saver in the event loop that it was made in; its sync methods work in other threads only",
    "closed": "use the saver inside the `with` block that opened it",
}

_REASONS: Final[tuple[tuple[type[Exception], str], ...]] = (
    (PoolTimeout, "busy"),
    (PoolClosed, "closed"),
    (errors.ReadOnlySqlTransaction, "read_only"),
    (errors.InsufficientPrivilege, "forbidden"),
    (errors.DiskFull, "full"),
    (errors.QueryCanceled, "cancelled"),
    (errors.LockNotAvailable, "cancelled"),
    (errors.DeadlockDetected, "cancelled"),
    (psycopg.OperationalError, "unreachable"),
)


class PostgresSaverError(DatabaseUnusableError):
    """The checkpoint database cannot be used now; what it held before is untouched.

    ``reason`` is one of unreachable, full, read_only, forbidden, busy, cancelled, newer, other_process, other_loop and
    closed.
    """

    code = "TG212"
    advice = _ADVICE


def told(database: str, error: BaseException) -> BaseException:
    """Return the error to raise for one of psycopg's: with advice where there is some, else the same."""
    detail = str(error).strip().partition("\n")[0]
    if isinstance(error, psycopg.InterfaceError) and "closed" in detail:
        return PostgresSaverError(database, "closed", detail)
    if isinstance(error, psycopg.DataError):
        return InvalidInputError(
            f"PostgreSQL cannot store one of these ids, names or metadata ({detail}); keep NUL characters and half "
            "surrogate pairs out of thread ids, channel names and the config's metadata"
        )
    for kind, reason in _REASONS:
        if isinstance(error, kind):
            return PostgresSaverError(database, reason, detail)
    return error
