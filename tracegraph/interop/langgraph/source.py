"""Opening a LangGraph database, by path or URL."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol

from tracegraph.interop.langgraph.decoder import Decoder
from tracegraph.interop.langgraph.stored import Stored

__all__ = ["Source", "open_source"]


class Source(Protocol):
    """A LangGraph database as it was at one moment; reading it changes nothing."""

    def thread_ids(self) -> list[str]:
        """Return the threads, the one that began first first."""
        ...

    def read(self, thread_id: str, decoder: Decoder) -> Iterator[Stored]:
        """Yield a thread's checkpoints in the order of their ids, which is that of their creation."""
        ...


def open_source(database: str) -> AbstractContextManager[Source]:
    """Open a SQLite file or a ``postgresql://`` URL.

    Raises:
        SourceError: it is not there, or LangGraph's savers did not write it.
    """
    if database.startswith(("postgresql://", "postgres://")):
        from tracegraph.interop.langgraph.postgres import open_postgres

        return open_postgres(database)
    from tracegraph.interop.langgraph.sqlite import open_sqlite

    return open_sqlite(Path(database))
