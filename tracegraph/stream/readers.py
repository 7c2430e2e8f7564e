"""What ``stream`` and ``astream`` return: iterators that own a run and close it when their reader leaves."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any, Self

from tracegraph.drivers.async_driver import AsyncRun
from tracegraph.drivers.sync_driver import SyncRun
from tracegraph.stream.parts import Part

__all__ = ["AsyncPartReader", "PartReader"]


class PartReader(Iterator[Any]):
    """Yields a sync run's parts; nothing runs before the first one is asked for.

    ``close()`` stops the run and waits for the node that runs; being garbage collected stops it without waiting.
    """

    def __init__(self, make_run: Callable[[], SyncRun], format_part: Callable[[Part], Any]) -> None:
        self._make_run = make_run
        self._format = format_part
        self._run: SyncRun | None = None
        self._parts = self._read()

    def _read(self) -> Iterator[Any]:
        run = self._run = self._make_run()
        turns = run.stream()
        try:
            for _ in turns:
                while run.parts:
                    yield self._format(run.parts.popleft())
            run.result()
        finally:
            turns.close()  # type: ignore[attr-defined]  # a generator

    def __next__(self) -> Any:
        return next(self._parts)

    def throw(self, error: BaseException) -> Any:
        """Raise *error* where the reader stands, as generators do: the run is stopped."""
        return self._parts.throw(error)  # type: ignore[attr-defined]  # a generator

    def close(self) -> None:
        """Stop the run; call it any number of times."""
        self._parts.close()  # type: ignore[attr-defined]  # a generator

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def __del__(self) -> None:
        if self._run is not None:
            self._run.abandon()


class AsyncPartReader(AsyncIterator[Any]):
    """Yields an async run's parts; nothing runs before the first one is asked for. ``aclose()`` stops the run."""

    def __init__(self, make_run: Callable[[], AsyncRun], format_part: Callable[[Part], Any]) -> None:
        self._make_run = make_run
        self._format = format_part
        self._run: AsyncRun | None = None
        self._parts = self._read()

    async def _read(self) -> AsyncIterator[Any]:
        run = self._run = self._make_run()
        turns = run.stream()
        try:
            async for _ in turns:
                while run.parts:
                    yield self._format(run.parts.popleft())
            run.result()
        finally:
            # A reader that leaves inside a cancelled scope may be unable to await: the run is closed before that.
            if not run.is_ended and run.finish is None:
                run.close_now("abandoned", "consumer_closed")
            await turns.aclose()  # type: ignore[attr-defined]  # an async generator

    async def __anext__(self) -> Any:
        return await anext(self._parts)

    async def athrow(self, error: BaseException) -> Any:
        """Raise *error* where the reader stands, as async generators do: the run is stopped."""
        return await self._parts.athrow(error)  # type: ignore[attr-defined]  # an async generator

    async def aclose(self) -> None:
        """Stop the run and wait until its nodes have come to rest; call it any number of times."""
        await self._parts.aclose()  # type: ignore[attr-defined]  # an async generator

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await asyncio.shield(self.aclose())

    def __del__(self) -> None:
        if self._run is not None:
            self._run.abandon()
