"""Which saver a command works with: the graph's own, or a checkpoint database."""

from __future__ import annotations

import importlib
import re
import sqlite3
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from tracegraph.checkpoint.base import BaseCheckpointSaver
from tracegraph.checkpoint.serde.errors import UnreadableBytesError
from tracegraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from tracegraph.checkpoint.sql.errors import DatabaseUnusableError
from tracegraph.checkpoint.sqlite import SqliteSaver
from tracegraph.cli.output import CliError, ExitCode, fail
from tracegraph.errors import InvalidInputError
from tracegraph.pregel import Pregel
from tracegraph_exporters.base import default_path

__all__ = [
    "OWN_SAVER",
    "Attached",
    "attached",
    "check_database",
    "default_database",
    "no_thread",
    "open_for_reading",
    "open_for_writing",
    "place_of_url",
]

OWN_SAVER = "the graph's own saver (an in-memory one is gone with the process that made it)"
_POSTGRES = ("postgresql://", "postgres://")
_SCHEME = re.compile(r"([a-z][a-z0-9+.-]+):/+", re.IGNORECASE)
# The words of a connection string, or a URL that lost its scheme; C:\\ is a drive.
_SECRET = re.compile(
    r"(^|\s)(host|hostaddr|port|dbname|user|password|passfile|service|options|sslmode)\s*=|^(?![a-z]:[\\/])[^/\s]+:\S*@",
    re.IGNORECASE,
)
_OF_OURS = "SELECT count(*), sum(name = 'tracegraph_checkpoints') FROM sqlite_master"


def default_database() -> Path:
    """Return the checkpoint database that is used when none is named: ``checkpoints.db``, beside the trace store."""
    return default_path().with_name("checkpoints.db")


@dataclass(frozen=True, slots=True)
class Attached:
    """A graph that can be run with a saver, if it has one; ``place`` names that for messages."""

    graph: Pregel
    place: str
    is_ours: bool
    """Whether it is a database that this command has opened, and another one can open again."""


@contextmanager
def attached(graph: Pregel, db: str | None, *, may_create: bool = False) -> Iterator[Attached]:
    """Give the graph a saver for as long as the block runs, unless it was compiled with one.

    Raises:
        CliError: the database does not exist (and *may_create* is false), or cannot be used; there are two savers, or none.
    """
    own = graph.checkpointer
    if own is not None:
        if db is not None:
            name = repr(own) if isinstance(own, bool) else type(own).__name__
            fail(
                f"the graph is compiled with a checkpointer of its own ({name}), so its runs are not saved in --db; leave one out"
            )
        if isinstance(own, bool) and not may_create:
            fail(f"the graph is compiled with checkpointer={own}, so it has no threads of its own")
        with _readably():
            yield Attached(graph, OWN_SAVER, False)
        return
    with _opened(db, may_create=may_create) as (saver, place):
        # What the state's own file defines may come to life again: that file is being run anyway.
        if isinstance(saver.serde, JsonPlusSerializer):
            saver.serde = saver.serde.with_msgpack_allowlist(_modules_of(graph))
        yield Attached(graph.copy({"checkpointer": saver}), place, True)


@contextmanager
def open_for_reading(db: str | None) -> Iterator[tuple[BaseCheckpointSaver, str]]:
    """Open a database to look into, and name it; no class that a checkpoint names is imported.

    Raises:
        CliError: it does not exist, or cannot be read.
    """
    with _opened(db, may_create=False) as (saver, place):
        saver.serde = JsonPlusSerializer(allowed_msgpack_modules=None)
        yield saver, place


@contextmanager
def open_for_writing(db: str | None) -> Iterator[tuple[BaseCheckpointSaver, str]]:
    """Open a database, or make it, and name it.

    Raises:
        CliError: it cannot be used.
    """
    with _opened(db, may_create=True) as found:
        yield found


def no_thread(thread_id: str, place: str) -> CliError:
    """Return the error for a thread that has no checkpoint."""
    hint = "`tracegraph threads` lists what a database has"
    return CliError(f"thread {thread_id!r} has no checkpoint in {place}; {hint}", ExitCode.NOT_FOUND)


def check_database(text: str, what: str) -> None:
    """Raise if *text* is neither a path nor a Postgres URL; it is not repeated where it may hold a password.

    Raises:
        CliError: *what*, an option or argument, cannot be that.
    """
    if text.startswith(_POSTGRES):
        return
    takes = f"{what} takes the path of a SQLite file or a postgresql:// URL"
    if found := _SCHEME.match(text):
        hint = ", in small letters and with two slashes" if f"{found[1].lower()}://" in _POSTGRES else ""
        fail(f"{takes}{hint}, and {found[0]} is neither")
    if "://" in text or _SECRET.search(text):
        fail(f"{takes}, and this (not shown, for it may hold a password) is neither; a file with such a name is given as ./NAME")
    _path_of(text, what)


def _path_of(text: str, what: str) -> Path:
    try:
        path = Path(text).expanduser().absolute()
        path.exists()
    except (OSError, RuntimeError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        fail(f"{what} {text!r} is no path that can be used: {reason}", error)
    return path


def place_of_url(url: str) -> str:
    """Return a URL without user, password and query, which must not get into a log."""
    scheme, _, rest = url.partition("://")
    rest, _, query = rest.partition("?")
    # An @ behind a question mark may be the end of a password with such a mark in it.
    return f"{scheme}://{'...' if '@' in query else rest.rpartition('@')[2]}"


@contextmanager
def _opened(db: str | None, *, may_create: bool) -> Iterator[tuple[BaseCheckpointSaver, str]]:
    if db is not None:
        check_database(db, "--db")
    is_url = db is not None and db.startswith(_POSTGRES)
    with _readably(), _postgres(str(db)) if is_url else _sqlite(db, may_create=may_create) as found:
        yield found


@contextmanager
def _sqlite(db: str | None, *, may_create: bool) -> Iterator[tuple[BaseCheckpointSaver, str]]:
    path = default_database().absolute() if db is None else _path_of(db, "--db")
    if path.exists():
        if not may_create:
            _refuse_foreign(path)
    elif not may_create:
        raise CliError(
            f"there is no checkpoint database at {str(path)!r}; `tracegraph run FILE.py:GRAPH --thread ID` makes one",
            ExitCode.NOT_FOUND,
        )
    elif db is None:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            fail(f"the folder of the checkpoint database {str(path)!r} cannot be made: {error.strerror}", error)
    with SqliteSaver.from_conn_string(path) as saver:
        saver.setup()
        yield saver, f"the checkpoint database {str(path)!r}"


def _refuse_foreign(path: Path) -> None:
    """Raise if a file that is only to be looked into is no checkpoint database: the saver would make tables in it."""
    if not path.is_file():
        fail(f"{str(path)!r} is not a file, and --db takes the path of a SQLite file")
    try:
        with closing(sqlite3.connect(f"file:{quote(str(path))}?mode=ro", uri=True)) as connection:
            count, ours = connection.execute(_OF_OURS).fetchone()
    except sqlite3.Error as error:
        fail(f"{str(path)!r} cannot be read as a SQLite database: {error}", error)
    if count and not ours:
        fail(f"{str(path)!r} is no checkpoint database: its tables are somebody else's; give another --db")


@contextmanager
def _postgres(url: str) -> Iterator[tuple[BaseCheckpointSaver, str]]:
    place = f"the checkpoint database {place_of_url(url)!r}"
    try:
        postgres = importlib.import_module("tracegraph.checkpoint.postgres")
    except ImportError as error:
        fail(f"{place} needs the Postgres saver, which comes with an extra: pip install 'tracegraph[postgres]' ({error})", error)
    with ExitStack() as stack:
        try:
            saver = stack.enter_context(postgres.PostgresSaver.from_conn_string(url))
        except InvalidInputError as error:
            fail(f"--db: {error}", error)
        saver.setup()
        yield saver, place


@contextmanager
def _readably() -> Iterator[None]:
    """Turn what a saver raises at a read into one line; what it raises in a run is how that run ended."""
    try:
        yield
    except (DatabaseUnusableError, NotImplementedError) as error:
        fail(str(error), error)
    except UnreadableBytesError as error:
        fail(f"{error}; a graph with a serialiser of its own is read with --graph FILE.py:GRAPH", error)


def _modules_of(graph: Pregel) -> list[str]:
    """Return the modules that define the schemas of a graph and of the graphs inside it."""
    inside = [found for _, found in graph.get_subgraphs(recurse=True)]
    builders: list[Any] = [found for each in (graph, *inside) if (found := getattr(each, "builder", None)) is not None]
    return sorted({builder.state_schema.__module__ for builder in builders})
