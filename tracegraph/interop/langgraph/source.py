"""Opening a LangGraph database, by path or URL."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Final, Protocol

from tracegraph.interop.langgraph.decoder import Decoder
from tracegraph.interop.langgraph.errors import SourceError
from tracegraph.interop.langgraph.stored import Stored

__all__ = ["Source", "is_address", "open_source"]

# A drive letter is no scheme; and libpq's other form of an address, `host=... password=...`, is no path.
_ADDRESS: Final = re.compile(r"://|^\s*[a-z][a-z0-9+.-]+:/|\b(password|passwd|pwd)\s*=", re.IGNORECASE)


class Source(Protocol):
    """A LangGraph database as it was at one moment; reading it changes nothing."""

    @property
    def name(self) -> str:
        """What to call it in messages; never with a password."""
        ...

    def thread_ids(self) -> list[str]:
        """Return the threads, the one that began first first."""
        ...

    def read(self, thread_id: str, decoder: Decoder) -> Iterator[Stored]:
        """Yield a thread's checkpoints in the order of their ids, which is that of their creation."""
        ...


def is_address(database: str) -> bool:
    """Say whether this is no path but a server's address, right or wrong: there may be a password in it.

    >>> [is_address(text) for text in ("MySQL://me:secret@host/db", "host=here password=secret", "C:/saved/langgraph.db")]
    [True, True, False]
    """
    return _ADDRESS.search(database) is not None


def open_source(database: str) -> AbstractContextManager[Source]:
    """Open a SQLite file or a ``postgresql://`` URL.

    Raises:
        SourceError: it is not there, or LangGraph's savers did not write it.
    """
    if database.startswith(("postgresql://", "postgres://")):
        from tracegraph.interop.langgraph.postgres import open_postgres

        return open_postgres(database)
    if is_address(database):
        raise SourceError(
            "LangGraph's databases are SQLite files, given as a path, or Postgres databases, given as a URL that begins with "
            "'postgresql://' in lower case; this is neither (not shown, for it may hold a password)"
        )
    from tracegraph.interop.langgraph.sqlite import open_sqlite

    return open_sqlite(Path(database))
