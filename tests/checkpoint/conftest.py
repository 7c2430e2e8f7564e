"""The savers that every conformance test runs on, in both colours.

A new saver is one more entry of ``SAVERS``: its name, and a context manager that makes an empty one.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from typing import Any, TypeAlias

import psycopg
import pytest
from postgres_server import new_database

from tracegraph.checkpoint.base import BaseCheckpointSaver, Checkpoint, CheckpointTuple, empty_checkpoint
from tracegraph.checkpoint.base.id import uuid6
from tracegraph.checkpoint.memory import InMemorySaver
from tracegraph.checkpoint.postgres import PostgresSaver
from tracegraph.checkpoint.postgres.aio import AsyncPostgresSaver
from tracegraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from tracegraph.checkpoint.sqlite import SqliteSaver
from tracegraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from tracegraph.checkpoint.sqlite.database import connect
from tracegraph.constants import MISSING

Run: TypeAlias = Callable[[Coroutine[Any, Any, Any]], Any]
"""Runs what an async method returns, in the event loop of the saver."""


@contextmanager
def _anywhere(made: AbstractContextManager[BaseCheckpointSaver]) -> Iterator[tuple[BaseCheckpointSaver, Run]]:
    """Let each call of a saver that serves any event loop have one of its own."""
    with made as saver:
        yield saver, asyncio.run


@contextmanager
def _async_sqlite() -> Iterator[BaseCheckpointSaver]:
    # Each call of a Face has an event loop of its own, so the saver is not made inside one.
    with closing(connect(":memory:")) as connection:
        yield AsyncSqliteSaver(connection)


@contextmanager
def _async_postgres(url: str) -> Iterator[tuple[BaseCheckpointSaver, Run]]:
    """Give the saver a loop in another thread, so that its sync methods can be called too."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()

    def run(call: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(call, loop).result()

    saver = AsyncPostgresSaver.from_conn_string(url)
    try:
        yield run(saver.__aenter__()), run
    finally:
        run(saver.__aexit__(None, None, None))
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


SAVERS: dict[str, Callable[[str], AbstractContextManager[tuple[BaseCheckpointSaver, Run]]]] = {
    "memory": lambda _url: _anywhere(nullcontext(InMemorySaver())),
    "memory_as_bytes": lambda _url: _anywhere(nullcontext(InMemorySaver(serde=JsonPlusSerializer()))),
    "sqlite": lambda _url: _anywhere(SqliteSaver.from_conn_string(":memory:")),
    "async_sqlite": lambda _url: _anywhere(_async_sqlite()),
    "postgres": lambda url: _anywhere(PostgresSaver.from_conn_string(url)),
    "async_postgres": _async_postgres,
}


class Face:
    """Calls a saver's sync methods, or their async twins, so that a test is written once."""

    def __init__(self, saver: BaseCheckpointSaver, is_async: bool, run: Run) -> None:
        self.saver = saver
        self.is_async = is_async
        self.run = run

    def _call(self, method: str, *args: Any, **kwargs: Any) -> Any:
        if not self.is_async:
            return getattr(self.saver, method)(*args, **kwargs)

        async def run() -> Any:
            return await getattr(self.saver, f"a{method}")(*args, **kwargs)

        return self.run(run())

    def __getattr__(self, method: str) -> Any:
        return lambda *args, **kwargs: self._call(method, *args, **kwargs)

    def list(self, config: Any, **options: Any) -> list[CheckpointTuple]:
        """Return what the saver lists."""
        if not self.is_async:
            return list(self.saver.list(config, **options))

        async def run() -> Any:
            return [found async for found in self.saver.alist(config, **options)]

        found: list[CheckpointTuple] = self.run(run())
        return found

    def save(
        self,
        thread: Any = "1",
        *,
        ns: str = "",
        parent: str | None = None,
        metadata: Any = None,
        config: Any = None,
        **values: Any,
    ) -> Any:
        """Store a checkpoint with these channel values, each with a new version; return its config and record.

        A value MISSING makes the channel empty at that version. Channels of the parent that are not given
        keep value and version.
        """
        where: dict[str, Any] = {"thread_id": thread, "checkpoint_ns": ns}
        checkpoint = empty_checkpoint()
        if parent is not None:
            where["checkpoint_id"] = parent
            before = self.get({"configurable": where})
            assert before is not None
            checkpoint = Checkpoint(**{**before, "id": str(uuid6(after=parent))})
        newest = max(checkpoint["channel_versions"].values(), default=None)
        version = self.saver.get_next_version(newest, None)
        versions = dict.fromkeys(values, version)
        checkpoint["channel_versions"] = checkpoint["channel_versions"] | versions
        held = {k: v for k, v in checkpoint["channel_values"].items() if k not in values}
        checkpoint["channel_values"] = held | {k: v for k, v in values.items() if v is not MISSING}
        full = {"configurable": where, **(config or {})}
        return self.put(full, checkpoint, metadata or {"source": "loop", "step": 0, "parents": {}}, versions), checkpoint


@pytest.fixture(params=["sync", "async"])
def is_async(request: pytest.FixtureRequest) -> bool:
    return str(request.param) == "async"


@pytest.fixture(scope="session")
def postgres_tables(postgres_server: str) -> Iterator[str]:
    """URL of one database for all these tests: emptying it is quicker than making a new one for each."""
    with new_database(postgres_server) as url:
        yield url


@pytest.fixture
def emptied_tables(postgres_tables: str) -> Iterator[str]:
    yield postgres_tables
    with psycopg.connect(postgres_tables, autocommit=True) as connection:
        for name in ("places", "checkpoints", "blobs", "writes"):
            if connection.execute("SELECT to_regclass(%s)", (f"tracegraph_{name}",)).fetchone() != (None,):
                connection.execute(f"DELETE FROM tracegraph_{name}")  # type: ignore[arg-type]  # noqa: S608  # our names


@pytest.fixture(params=SAVERS)
def saver(request: pytest.FixtureRequest, is_async: bool) -> Iterator[Face]:
    url = request.getfixturevalue("emptied_tables") if "postgres" in request.param else ""
    with SAVERS[request.param](url) as (made, run):
        yield Face(made, is_async, run)
