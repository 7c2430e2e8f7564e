"""What the PostgreSQL savers raise of their own."""

from __future__ import annotations

from typing import Final

import psycopg
from psycopg_pool import PoolClosed, PoolTimeout, TooManyRequests

from tracegraph.checkpoint.sql.errors import DatabaseUnusableError, unstorable
from tracegraph.errors import InvalidInputError

__all__ = ["PostgresSaverError", "told"]

_ADVICE: Final[dict[str, str]] = {
    "unreachable": "look whether the server runs, takes connections and knows this role; a pool connects anew at the next call",
    "lost": "a pool connects anew at the next call, a single connection has to be opened anew; what was being saved may be "
    "stored or not, as get_tuple() will tell",
    "closed": "use the saver inside the `with` block that opened it; where a single connection broke or was closed, open "
    "another one, or give a pool, which does so by itself",
    "busy": "all connections of the pool were in use; give a pool with a greater max_size, or a longer timeout",
    "overloaded": "the server is short of memory or connections; make the call again later, or look at its settings",
    "cancelled": "the server ended it (statement_timeout, lock_timeout, a deadlock or an administrator) and nothing of it is "
    "stored; the call can be made again",
    "full": "make room on the server's disk; saver.prune([...]) thins old threads out once there is room",
    "read_only": "this is a standby, or the role or database is set to read only; reading goes on working",
    "forbidden": "GRANT the role what it lacks, or run saver.setup() once as a role that may create tables",
    "newer": "upgrade tracegraph, or give another database",
    "no_tables": "somebody dropped or changed the tables, or the search_path is another one now; if all tracegraph_ tables "
    "are gone the next call makes them anew, else restore them, or drop the rest",
    "too_large": "a value takes at most 1 GB; ids, namespaces and channel names about 2,700 bytes; keep what is larger "
    "elsewhere, and its address in the state",
    "prepared": "a pooler hands out another session for each transaction; open connections with prepare_threshold=None",
    "in_transaction": "commit or end it first, or give the saver a pool, or a connection of its own with autocommit=True",
    "other_process": "open a saver of its own in each process, after the fork",
    "other_loop": "use the saver in the event loop that it was made in; its sync methods work in other threads only",
    "unexpected": "nothing of it is stored; look at the error that caused this one, at the server's log, and at constraints or "
    "triggers that somebody added to the tables",
}

# By SQLSTATE, or its first letters. Source: PostgreSQL's documentation, appendix A, "PostgreSQL Error Codes".
_STATES: Final = {
    "08": "lost",
    "25006": "read_only",
    "25P03": "lost",  # idle_in_transaction_session_timeout
    "25P04": "lost",  # transaction_timeout
    "26000": "prepared",
    "3F000": "forbidden",  # no schema to make tables in that the role may use
    "40": "cancelled",  # deadlocks, serialisation failures
    "42501": "forbidden",
    "42703": "no_tables",
    "42P01": "no_tables",
    "42P05": "prepared",
    "42P07": "no_tables",  # tracegraph_schema alone was dropped
    "53": "overloaded",
    "53100": "full",
    "54": "too_large",
    "55P03": "cancelled",
    "57014": "cancelled",
    "57P": "lost",  # shut down, crashed, starting up
}
_TEXTS: Final = ("22021", "22P02", "22P05")
"""Letters that the encoding lacks, or that jsonb does."""


class PostgresSaverError(DatabaseUnusableError):
    """The checkpoint database cannot be used now; what it held before is untouched.

    ``reason`` is one of unreachable, lost, closed, busy, overloaded, cancelled, full, read_only, forbidden, newer,
    no_tables, too_large, prepared, in_transaction, other_process, other_loop and unexpected.
    """

    code = "TG212"
    advice = _ADVICE


def told(database: str, error: psycopg.Error | UnicodeEncodeError) -> PostgresSaverError | InvalidInputError:
    """Return the error to raise for one of psycopg's."""
    if isinstance(error, UnicodeEncodeError):
        return unstorable(error)
    # Only that line: the others may quote what was being stored.
    detail = str(error).strip().partition("\n")[0] or type(error).__name__
    state = error.sqlstate
    if isinstance(error, psycopg.DataError) and (state is None or state in _TEXTS):
        return unstorable(detail)
    return PostgresSaverError(database, _reason(error, state, detail), detail)


def _reason(error: psycopg.Error, state: str | None, detail: str) -> str:
    if isinstance(error, PoolTimeout | TooManyRequests):
        return "busy"
    if isinstance(error, PoolClosed):
        return "closed"
    if state is None:
        if "connection is closed" in detail:
            return "closed"
        return "lost" if isinstance(error, psycopg.OperationalError) else "unexpected"
    return next((_STATES[state[:size]] for size in (5, 3, 2) if state[:size] in _STATES), "unexpected")
