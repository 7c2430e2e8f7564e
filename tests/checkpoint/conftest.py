"""The savers that every conformance test runs on, in both colours.

A new saver is one more entry of ``SAVERS``: its name, and a context manager that makes an empty one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from typing import Any

import pytest

from tracegraph.checkpoint.base import BaseCheckpointSaver, Checkpoint, CheckpointTuple, empty_checkpoint
from tracegraph.checkpoint.base.id import uuid6
from tracegraph.checkpoint.memory import InMemorySaver
from tracegraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from tracegraph.checkpoint.sqlite import SqliteSaver
from tracegraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from tracegraph.checkpoint.sqlite.database import connect
from tracegraph.constants import MISSING

SAVERS: dict[str, Callable[[], AbstractContextManager[BaseCheckpointSaver]]] = {
    "memory": lambda: nullcontext(InMemorySaver()),
    "memory_as_bytes": lambda: nullcontext(InMemorySaver(serde=JsonPlusSerializer())),
    "sqlite": lambda: SqliteSaver.from_conn_string(":memory:"),
    "async_sqlite": lambda: _async_sqlite(),
}


@contextmanager
def _async_sqlite() -> Iterator[BaseCheckpointSaver]:
    # Each call of a Face has an event loop of its own, so the saver is not made inside one.
    with closing(connect(":memory:")) as connection:
        yield AsyncSqliteSaver(connection)


class Face:
    """Calls a saver's sync methods, or their async twins, so that a test is written once."""

    def __init__(self, saver: BaseCheckpointSaver, is_async: bool) -> None:
        self.saver = saver
        self.is_async = is_async

    def _call(self, method: str, *args: Any, **kwargs: Any) -> Any:
        if not self.is_async:
            return getattr(self.saver, method)(*args, **kwargs)

        async def run() -> Any:
            return await getattr(self.saver, f"a{method}")(*args, **kwargs)

        return asyncio.run(run())

    def __getattr__(self, method: str) -> Any:
        return lambda *args, **kwargs: self._call(method, *args, **kwargs)

    def list(self, config: Any, **options: Any) -> list[CheckpointTuple]:
        """Return what the saver lists."""
        if not self.is_async:
            return list(self.saver.list(config, **options))

        async def run() -> Any:
            return [found async for found in self.saver.alist(config, **options)]

        found: list[CheckpointTuple] = asyncio.run(run())
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
            before = self.saver.get({"configurable": where})
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


@pytest.fixture(params=SAVERS)
def saver(request: pytest.FixtureRequest, is_async: bool) -> Iterator[Face]:
    with SAVERS[request.param]() as made:
        yield Face(made, is_async)
