"""What ``stream`` and ``astream`` return: iterators that own a run and close it when their reader leaves."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator, Iterator
from typing import Any, Generic, Self, TypeVar

from tracegraph.drivers.async_driver import AsyncRun
from tracegraph.drivers.sync_driver import SyncRun
from tracegraph.drivers.unread import Unread
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


def _pop(run: SyncRun, turns: Generator[None, None, None], format_part: Callable[[Part], Any]) -> Any:
    """Return the next part; whoever suspends with it must not keep it."""
    try:
        return format_part(run.parts.popleft())
    except BaseException as error:  # Ctrl-C, in this thread: the run is not left, it ends by that
        turns.throw(error)
        raise  # it had ended


def _read(owned: _Owned[SyncRun], format_part: Callable[[Part], Any]) -> Generator[Any, None, None]:
    run = owned.run = owned.make()
    turns = run.stream()
    try:
        for _ in turns:
            while run.parts:
                yield _pop(run, turns, format_part)
            if (slow := run.parts.error) is not None:
                run.fail_for_reader(slow)
                turns.throw(slow)
        run.result()
    finally:
        run.parts.close()  # before this waits for nodes that may wait for their reader
        turns.close()


async def _aread(owned: _Owned[AsyncRun], format_part: Callable[[Part], Any]) -> AsyncGenerator[Any, None]:
    run = owned.run = owned.make()
    turns = run.stream()
    try:
        async for _ in turns:
            while run.parts:
                yield format_part(run.parts.popleft())
            if (slow := run.parts.error) is not None:
                run.fail_for_reader(slow)
                await turns.athrow(slow)
        run.result()
    finally:
        run.parts.close()
        # A reader that leaves inside a cancelled scope may be unable to await: the run is closed before that.
        if not run.is_ended and run.finish is None:
            run.close_now("abandoned", "consumer_closed")
        await turns.aclose()


class _Counting(Generic[R]):
    """What a reader knows of the parts that it has not read."""

    _owned: _Owned[R]

    @property
    def _unread(self) -> Unread[Any] | None:
        run: Any = self._owned.run
        return None if run is None else run.parts

    @property
    def unread(self) -> int:
        """How many parts are kept until they are read."""
        return len(self._unread or ())

    @property
    def dropped(self) -> int:
        """How many parts were dropped unread; ``meta.seq`` of the next one shows where."""
        unread = self._unread
        return 0 if unread is None else unread.dropped

    @property
    def overshoot(self) -> int:
        """How many parts more than ``buffer`` allows there were at most, as their makers could not wait."""
        unread = self._unread
        return 0 if unread is None else unread.overshoot

    @property
    def about(self) -> str:
        """Which run this is the reader of, for warnings and errors."""
        run: Any = self._owned.run
        if run is None:
            return "a run that has not begun"
        return f"run {run.run_id}" + ("" if run.thread_id is None else f" on thread {run.thread_id!r}")


class PartReader(Iterator[Any], _Counting[SyncRun]):
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
            run.parts.close()
            run.request_close("abandoned", "consumer_closed")
            run.ring()

    def fail(self, error: BaseException) -> None:
        """End the run with *error*; ``close()`` waits until it has ended."""
        if (run := self._owned.run) is not None and not run.is_ended:
            run.parts.close()
            run.request_close("failed", type(error).__name__, error)
            run.ring()

    def close(self) -> None:
        """Stop the run; call it any number of times."""
        self._parts.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def __del__(self) -> None:
        if (run := self._owned.run) is not None:
            run.parts.close()
            run.abandon()


class AsyncPartReader(AsyncIterator[Any], _Counting[AsyncRun]):
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
            run.parts.close()
            run.close_now("abandoned", "consumer_closed")
            run.cancel_inline()
            run.ring()

    def fail(self, error: BaseException) -> None:
        """End the run with *error* in one synchronous step; ``aclose()`` waits until its nodes have come to rest."""
        if (run := self._owned.run) is not None and not run.is_ended and run.finish is None:
            run.parts.close()
            run.close_now("failed", type(error).__name__, error)
            run.ring()

    async def aclose(self) -> None:
        """Stop the run and wait until its nodes have come to rest; call it any number of times."""
        await self._parts.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await asyncio.shield(self.aclose())

    def __del__(self) -> None:
        if (run := self._owned.run) is not None:
            run.parts.close()
            run.abandon()
