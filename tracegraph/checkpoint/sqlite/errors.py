"""What the SQLite savers raise of their own."""

from __future__ import annotations

import sqlite3
from typing import Final

from tracegraph.checkpoint.sql.errors import DatabaseUnusableError, unstorable

__all__ = ["SqliteSaverError", "told"]

_ADVICE: Final[dict[str, str]] = {
    "full": "make room on the disk, or raise PRAGMA max_page_count; saver.prune([...]) thins old threads out once there is room",
    "read_only": "open it with a user who may write the file and its folder, and without mode=ro; reading goes on working",
    "locked": "another process kept it locked all the while; raise busy_timeout_s, or look for a transaction left open",
    "not_a_database": "the file is something else; give another path",
    "damaged": "copy the file away and try sqlite3's .recover on the copy; stop whatever writes it without SQLite's locks",
    "cannot_open": "its folder must exist and be writable",
    "io": "the file system refused; look at the disk, and keep the file off network drives",
    "foreign": "give another path: PRAGMA user_version is in use there, so no tables were made",
    "newer": "upgrade tracegraph, or give another path",
    "older": "open it once where it can be written, so that it is brought up to date",
    "other_process": "open a saver of its own in each process, after the fork",
    "in_transaction": "commit it, or give the saver a connection of its own, not one made with autocommit=False",
    "other_thread": "open the connection with check_same_thread=False; the saver has a lock of its own",
    "closed": "use the saver inside the `with` block that opened it",
}

_REASONS: Final = {
    sqlite3.SQLITE_FULL: "full",
    sqlite3.SQLITE_READONLY: "read_only",
    sqlite3.SQLITE_BUSY: "locked",
    sqlite3.SQLITE_LOCKED: "locked",
    sqlite3.SQLITE_NOTADB: "not_a_database",
    sqlite3.SQLITE_CORRUPT: "damaged",
    sqlite3.SQLITE_CANTOPEN: "cannot_open",
    sqlite3.SQLITE_IOERR: "io",
}


class SqliteSaverError(DatabaseUnusableError):
    """The checkpoint database cannot be used now; what it held before is untouched.

    ``reason`` is one of full, read_only, locked, not_a_database, damaged, cannot_open, io, foreign, newer, older,
    other_process, in_transaction, other_thread and closed.
    """

    code = "TG211"
    advice = _ADVICE

    @property
    def path(self) -> str:
        """The file."""
        return self.database


def told(path: str, error: sqlite3.Error | UnicodeEncodeError) -> Exception:
    """Return the error to raise for one of SQLite's: with advice where there is some, else the same."""
    if isinstance(error, UnicodeEncodeError):
        return unstorable(error)
    detail = str(error)
    reason = _REASONS.get(getattr(error, "sqlite_errorcode", 0) & 0xFF)
    if reason is None and isinstance(error, sqlite3.ProgrammingError):
        if "closed" in detail:
            reason = "closed"
        elif "thread" in detail:
            reason = "other_thread"
    return error if reason is None else SqliteSaverError(path, reason, detail)
