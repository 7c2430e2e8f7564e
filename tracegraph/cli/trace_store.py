"""The embedded trace store, opened for a command that reads it."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

from tracegraph.cli.output import fail, note
from tracegraph_exporters.abandoned import close_abandoned
from tracegraph_exporters.base import default_path
from tracegraph_exporters.store import AmbiguousTraceError, TraceNotFoundError, TraceStore, TraceStoreError

__all__ = ["found_id", "is_missing", "opened_store", "store_errors"]


def is_missing() -> bool:
    """Say, also to the user, whether there is no store yet."""
    if default_path().exists():
        return False
    note(f"no traces yet in {str(default_path())!r}; `tracegraph run` makes some")
    return True


@contextmanager
def opened_store() -> Iterator[TraceStore]:
    """Open the store, in which the runs of dead processes have been ended.

    Raises:
        CliError: it cannot be read.
    """
    is_current = True
    try:
        close_abandoned()
    except (TraceStoreError, sqlite3.Error, OSError):
        # Reading may well be possible all the same; where it is not, that alone is said.
        is_current = False
    with store_errors(), TraceStore() as store:
        if not is_current:
            note("the trace store cannot be written: runs of processes that have died are shown as running")
        yield store


@contextmanager
def store_errors() -> Iterator[None]:
    """End the command with one line where the store cannot be used."""
    try:
        yield
    except BrokenPipeError:
        # Not the store's: nobody reads what the command prints.
        raise
    except (FileNotFoundError, TraceStoreError) as error:
        fail(str(error), error)
    except (sqlite3.Error, OSError) as error:
        fail(f"the trace store {str(default_path())!r} cannot be used: {error}", error)


def found_id(store: TraceStore, prefix: str) -> str:
    """Return the id of the trace that a user means by its first digits, or by ``last``.

    Raises:
        CliError: there is none, or there are several.
    """
    try:
        return store.resolve("latest" if prefix == "last" else prefix)
    except (TraceNotFoundError, AmbiguousTraceError) as error:
        fail(str(error), error)
