"""What ``stream`` and ``astream`` return: iterators that own a run and close it when their reader leaves."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator, Iterator
from typing import Any, Generic, Self, TypeVar

from tracegraph.drivers.async_driver import AsyncRun
from tracegraph.drivers.sync_driver import SyncRun
from tracegraph.stream.parts import Part

__all__ = ["AsyncPartReader", "PartReader"]

R = TypeVar("R")


class _Owned(Generic[R]):
    """The run of a reader, once it has begun.

    The generator holds this and not the reader, else a reader that is dropped would be part of a cycle, and its run
    would go on until the garbage collector came by.
    """

    __slots__ = ("make", "run")

    def __init__(self, make: Callable[[], R]) -> None:
        self.make: Callable[[], R] = make
        self.run: R | None = None


def _take(run: SyncRun | AsyncRun | None, format_part: Callable[[Part], Any]) -> list[Any]:
    """Return what a run has made and nobody has read; the generator looks again before it goes on."""
    found: list[Any] = []
    while run is not None and run.parts:
        found.append(format_part(run.parts.popleft()))
    return found


def _read(owned: _Owned[SyncRun], format_part: Callable[[Part], Any]) -> Generator[Any, None, None]:
    run = owned.run = owned.make()
    turns = run.stream()
    try:
        for _ in turns:
            while run.parts:
                yield format_part(run.parts.popleft())
        run.result()
    finally:
        turns.close()


async def _aread(owned: _Owned[AsyncRun], format_part: Callable[[Part], Any]) -> AsyncGenerator[Any, None]:
    run = owned.run = owned.make()
    turns = run.stream()
    try:
        async for _ in turns:
            while run.parts:
                yield format_part(run.parts.popleft())
        run.result()
    finally:
        # A reader that leaves inside a cancelled scope may be unable to await: the run is closed before that.
        if not run.is_ended and run.finish is None:
            run.close_now("abandoned", "consumer_closed")
        await turns.aclose()


class PartReader(Iterator[Any]):
    """Yields a sync run's parts; nothing runs before the first one is asked for.

    ``close()`` stops the run and waits for the nodes that run; a reader that is dropped stops it without waiting.
    """

    def __init__(self, make_run: Callable[[], SyncRun], format_part: Callable[[Part], Any]) -> None:
        self._owned = _Owned(make_run)
        self._format_part = format_part
        self._parts = _read(self._owned, format_part)

    def __next__(self) -> Any:
        return next(self._parts)

    def take_ready(self) -> list[Any]:
        """Return the parts that are there already, which may be none; nothing is waited for, and nothing runs on."""
        return _take(self._owned.run, self._format_part)

    def throw(self, error: BaseException) -> Any:
        """Raise *error* where the reader stands, as generators do: the run is stopped."""
        return self._parts.throw(error)

    def stop(self) -> None:
        """Ask the run to stop, from whatever thread; ``close()`` waits until it has."""
        if (run := self._owned.run) is not None and not run.is_ended:
            run.request_close("abandoned", "consumer_closed")
            run.ring()

    def close(self) -> None:
        """Stop the run; call it any number of times."""
        self._parts.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def __del__(self) -> None:
        if self._owned.run is not None:
            self._owned.run.abandon()


class AsyncPartReader(AsyncIterator[Any]):
    """Yields an async run's parts; nothing runs before the first one is asked for. ``aclose()`` stops the run."""

    def __init__(self, make_run: Callable[[], AsyncRun], format_part: Callable[[Part], Any]) -> None:
        self._owned = _Owned(make_run)
        self._format_part = format_part
        self._parts = _aread(self._owned, format_part)

    async def __anext__(self) -> Any:
        run = self._owned.run
        if run is not None and run.parts and run.finish is None:  # nothing to wait for
            return self._format_part(run.parts.popleft())
        return await anext(self._parts)

    def take_ready(self) -> list[Any]:
        """Return the parts that are there already, which may be none; nothing is waited for, and nothing runs on."""
        return _take(self._owned.run, self._format_part)

    async def athrow(self, error: BaseException) -> Any:
        """Raise *error* where the reader stands, as async generators do: the run is stopped."""
        return await self._parts.athrow(error)

    def stop(self) -> None:
        """Stop the run in one synchronous step; ``aclose()`` waits until its nodes have come to rest."""
        if (run := self._owned.run) is not None and not run.is_ended and run.finish is None:
            run.close_now("abandoned", "consumer_closed")
            run.ring()

    async def aclose(self) -> None:
        """Stop the run and wait until its nodes have come to rest; call it any number of times."""
        await self._parts.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await asyncio.shield(self.aclose())

    def __del__(self) -> None:
        if self._owned.run is not None:
            self._owned.run.abandon()
