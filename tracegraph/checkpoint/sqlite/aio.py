"""The SQLite saver for event loops."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TypeVar

from tracegraph.checkpoint.serde.base import SerializerProtocol
from tracegraph.checkpoint.sqlite.database import BUSY_TIMEOUT_S, Synchronous, connect
from tracegraph.checkpoint.sqlite.saver import SqliteSaver

__all__ = ["AsyncSqliteSaver"]

Result = TypeVar("Result")


class AsyncSqliteSaver(SqliteSaver):
    """A :class:`SqliteSaver` whose async methods run in one thread of its own, in the order they were called in.

    So a busy thread pool does not delay it, and a call that was cancelled while it ran is over before the next one
    begins. *conn* is a connection of the ``sqlite3`` module made with ``check_same_thread=False``; the sync methods work
    too, in any thread. One saver serves any number of event loops.

    >>> from tracegraph.checkpoint.base import empty_checkpoint
    >>> thread = {"configurable": {"thread_id": "1", "checkpoint_ns": ""}}
    >>> async def save():
    ...     async with AsyncSqliteSaver.from_conn_string(":memory:") as saver:
    ...         await saver.aput(thread, empty_checkpoint(), {"source": "input", "step": -1}, {})
    ...         return (await saver.aget_tuple(thread)).metadata
    >>> asyncio.run(save())
    {'source': 'input', 'step': -1}
    """

    def __init__(
        self, conn: sqlite3.Connection, *, serde: SerializerProtocol | None = None, synchronous: Synchronous = "normal"
    ) -> None:
        super().__init__(conn, serde=serde, synchronous=synchronous)
        # The thread begins with the first call, and ends when the saver is closed, or collected.
        self._worker = ThreadPoolExecutor(max_workers=1, thread_name_prefix="tracegraph-sqlite")

    @classmethod
    @asynccontextmanager
    async def from_conn_string(  # type: ignore[override]  # as in LangGraph: awaited here, not there
        cls,
        conn_string: str | Path,
        *,
        serde: SerializerProtocol | None = None,
        synchronous: Synchronous = "normal",
        busy_timeout_s: float = BUSY_TIMEOUT_S,
    ) -> AsyncIterator[AsyncSqliteSaver]:
        """Open a file, ":memory:" or a "file:..." URI while the block runs; a new file gets mode 0600."""
        saver = cls(connect(conn_string, busy_timeout_s=busy_timeout_s), serde=serde, synchronous=synchronous)
        try:
            yield saver
        finally:
            # In the worker, after what is under way there; not awaited, for the block may end by cancellation.
            saver._worker.submit(saver._database.close)
            saver._worker.shutdown(wait=True)

    async def setup(self) -> None:  # type: ignore[override]  # as in LangGraph: awaited here, not there
        """Make or update the tables now, rather than at the first call."""
        await self._off_loop(super().setup)

    async def _off_loop(self, call: Callable[[], Result]) -> Result:
        self._database.check_process()  # in a forked process the worker would never begin
        try:
            waiting = asyncio.get_running_loop().run_in_executor(self._worker, call)
        except RuntimeError:  # the saver is closed, and the call will say so
            return call()
        return await waiting
