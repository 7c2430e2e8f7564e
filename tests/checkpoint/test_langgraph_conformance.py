"""LangGraph's own conformance tests for savers, all of them, on all of our savers.

A new saver is one more entry of ``SAVERS``.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, AbstractContextManager, asynccontextmanager, nullcontext
from functools import partial
from typing import Any

import pytest
from langgraph.checkpoint.base import BaseCheckpointSaver as TheirBaseCheckpointSaver
from langgraph.checkpoint.conformance import checkpointer_test, validate
from langgraph.checkpoint.conformance.capabilities import Capability
from langgraph.checkpoint.conformance.report import ProgressCallbacks

from tracegraph.checkpoint.base import BaseCheckpointSaver
from tracegraph.checkpoint.memory import InMemorySaver
from tracegraph.checkpoint.postgres import PostgresSaver
from tracegraph.checkpoint.postgres.aio import AsyncPostgresSaver
from tracegraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from tracegraph.checkpoint.sqlite import SqliteSaver
from tracegraph.checkpoint.sqlite.aio import AsyncSqliteSaver

Opened = AbstractContextManager[BaseCheckpointSaver] | AbstractAsyncContextManager[BaseCheckpointSaver]

SAVERS: dict[str, Callable[[pytest.FixtureRequest], Callable[[], Opened]]] = {
    "memory": lambda _: lambda: nullcontext(InMemorySaver()),
    "memory_as_bytes": lambda _: lambda: nullcontext(InMemorySaver(serde=JsonPlusSerializer())),
    "sqlite": lambda _: lambda: SqliteSaver.from_conn_string(":memory:"),
    "async_sqlite": lambda _: lambda: AsyncSqliteSaver.from_conn_string(":memory:"),
    "postgres": lambda request: partial(PostgresSaver.from_conn_string, request.getfixturevalue("postgres_url")),
    "async_postgres": lambda request: partial(AsyncPostgresSaver.from_conn_string, request.getfixturevalue("postgres_url")),
}
"""name -> what asks for the fixtures that it needs, and returns what opens an empty saver."""

EXPECTED = {
    Capability.PUT: 17,
    Capability.PUT_WRITES: 10,
    Capability.GET_TUPLE: 10,
    Capability.LIST: 16,
    Capability.DELETE_THREAD: 5,
    Capability.DELETE_FOR_RUNS: 7,
    Capability.COPY_THREAD: 8,
    Capability.PRUNE: 8,
}


class TheirFace(TheirBaseCheckpointSaver[Any]):
    """One of our savers, as a saver of LangGraph's: the async methods, by which it is tested."""

    def __init__(self, saver: BaseCheckpointSaver) -> None:
        super().__init__()
        self.saver = saver

    async def aget_tuple(self, config: Any) -> Any:
        return await self.saver.aget_tuple(config)

    async def alist(self, config: Any, **options: Any) -> AsyncIterator[Any]:
        async for found in self.saver.alist(config, **options):
            yield found

    async def aput(self, config: Any, checkpoint: Any, metadata: Any, new_versions: Any) -> Any:
        return await self.saver.aput(config, checkpoint, metadata, new_versions)

    async def aput_writes(self, config: Any, writes: Any, task_id: str, task_path: str = "") -> None:
        await self.saver.aput_writes(config, writes, task_id, task_path)

    async def adelete_thread(self, thread_id: str) -> None:
        await self.saver.adelete_thread(thread_id)

    async def adelete_for_runs(self, run_ids: Any) -> None:
        await self.saver.adelete_for_runs(run_ids)

    async def acopy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        await self.saver.acopy_thread(source_thread_id, target_thread_id)

    async def aprune(self, thread_ids: Any, *, strategy: Any = "keep_latest") -> None:
        await self.saver.aprune(thread_ids, strategy=strategy)


@asynccontextmanager
async def _entered(opened: Opened) -> AsyncIterator[BaseCheckpointSaver]:
    if isinstance(opened, AbstractAsyncContextManager):
        async with opened as saver:
            yield saver
    else:
        with opened as saver:
            yield saver


@pytest.mark.parametrize("name", SAVERS)
def test_saver_passes_all_of_langgraph_s_tests(name: str, request: pytest.FixtureRequest) -> None:
    """Every capability is there, every test ran, and none failed."""
    open_saver = SAVERS[name](request)
    ran: Counter[str] = Counter()
    failed = []

    def note_result(capability: str, test: str, passed: bool, error: str | None) -> None:
        ran[capability] += 1
        if not passed:
            failed.append(f"{capability}.{test}: {error}")

    async def factory() -> AsyncIterator[Any]:
        async with _entered(open_saver()) as saver:
            yield TheirFace(saver)

    registered = checkpointer_test(name=name)(factory)
    report = asyncio.run(validate(registered, progress=ProgressCallbacks(on_test_result=note_result)))

    assert not failed, "\n".join(failed)
    assert [capability for capability, result in report.results.items() if not result.detected] == []
    assert ran == {capability.value: count for capability, count in EXPECTED.items()}
    assert sum(ran.values()) == 81
