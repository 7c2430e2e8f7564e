"""Savers on the databases that several processes can share."""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path

from tracegraph.checkpoint.postgres import PostgresSaver
from tracegraph.checkpoint.sqlite import SqliteSaver

__all__ = ["DATABASES", "opened"]

DATABASES = ("sqlite", "postgres")


def opened(database: str | Path) -> AbstractContextManager[SqliteSaver | PostgresSaver]:
    """Open a saver on a file, or on a server's database given by URL."""
    if str(database).startswith("postgresql:"):
        return PostgresSaver.from_conn_string(str(database))
    return SqliteSaver.from_conn_string(database)
