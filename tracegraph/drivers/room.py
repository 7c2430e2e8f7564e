"""Where those wait who have given a reader more than it may leave unread, and who does: node code, runs inside."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable, Coroutine, Generator
from typing import TYPE_CHECKING, Any, Generic, TypeVar

if TYPE_CHECKING:
    from tracegraph.drivers.here import HereNow
    from tracegraph.drivers.run import Run
    from tracegraph.drivers.unread import BlockingUnread

__all__ = ["Held", "Room", "await_room", "wait_for_room", "yield_to_readers"]

T = TypeVar("T")


class Room:
    """Threads and coroutines wait here as long as they must, and look again whenever it is rung."""

    __slots__ = ("_changed", "_futures", "waiting")

    def __init__(self) -> None:
        # Its lock is re-entrant: a reader that is garbage collected rings from wherever that happens.
        self._changed = threading.Condition()
        self._futures: list[asyncio.Future[None]] = []
        self.waiting = 0
        """How many wait. Whoever makes room looks at this afterwards, whoever waits is counted before it looks for room."""

    def ring(self) -> None:
        """Let all that wait look again."""
        if not self.waiting:
            return
        with self._changed:
            self._changed.notify_all()
            futures, self._futures = self._futures, []
            self.waiting -= len(futures)
        for future in futures:
            with contextlib.suppress(RuntimeError):  # the loop is closed: nobody is left to be told
                future.get_loop().call_soon_threadsafe(_wake, future)

    def wait(self, is_needed: Callable[[], bool], *, look_again_s: float | None = None) -> None:
        """Block this thread as long as *is_needed* says so, which is asked whenever it is rung, and every *look_again_s*."""
        with self._changed:
            self.waiting += 1
            try:
                while is_needed():
                    self._changed.wait(look_again_s)
            finally:
                self.waiting -= 1

    async def wait_on_loop(self, is_needed: Callable[[], bool]) -> None:
        """Await the same."""
        while True:
            future = asyncio.get_running_loop().create_future()
            with self._changed:
                self._futures.append(future)
                self.waiting += 1
            try:
                if not is_needed():
                    return
                await future
            finally:
                self._forget(future)

    def _forget(self, future: asyncio.Future[None]) -> None:
        with self._changed:
            if future in self._futures:
                self._futures.remove(future)
                self.waiting -= 1


def _wake(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


def yield_to_readers(here: HereNow, number: int) -> None:
    """Hold back the code that has just published event *number*, as long as a reader has no room for what it made of it.

    Code on an event loop cannot be held back here: its coroutine is at the next ``await``, by :class:`Held`.
    """
    for unread in here.run.hub.gates:
        if unread.error is not None:
            if not here.run.hub.is_held_here():
                unread.stop(unread.error)
        elif unread.takes_debt(number) and unread.is_over_full:
            _hold_back(here, unread)


def _hold_back(here: HereNow, unread: BlockingUnread[Any]) -> None:
    if _is_on_loop():
        here.owed = unread
    elif not (here.run.hub.is_held_here() or unread.inline_thread == threading.get_ident()):
        # Held by a handler that emits: the reader could not come to read. In the reader's own thread: likewise.
        unread.room.wait(lambda: unread.is_over_full and not here.is_over)


def _is_on_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


class Held(Generic[T]):
    """Await it to run *coroutine*, which goes on after an ``await`` only if there is room for what it has emitted."""

    __slots__ = ("_coroutine", "_here")

    def __init__(self, coroutine: Coroutine[Any, Any, T], here: HereNow) -> None:
        self._coroutine = coroutine
        self._here = here

    def __await__(self) -> Generator[Any, Any, T]:
        step: Callable[[Any], Any] = self._coroutine.send
        given: Any = None
        try:
            while True:
                waited_for = step(given)
                try:
                    step, given = self._coroutine.send, (yield waited_for)
                except GeneratorExit:
                    self._coroutine.close()
                    raise
                except BaseException as error:
                    step, given = self._coroutine.throw, error
                # An error is told at once, the end of a time limit of the node's own among them; the next await waits.
                if self._here.owed is not None and step == self._coroutine.send:
                    try:
                        yield from self._room().__await__()
                    except GeneratorExit:
                        self._coroutine.close()
                        raise
                    except BaseException as error:
                        step, given = self._coroutine.throw, error
        except StopIteration as stop:
            result: T = stop.value
            return result

    async def _room(self) -> None:
        here = self._here
        unread, here.owed = here.owed, None
        if unread is not None:
            await unread.room.wait_on_loop(lambda: unread.is_over_full and not here.is_over)


def _too_full(run: Run) -> BlockingUnread[Any] | None:
    """Return what has no room for the parts of another superstep of a run inside; a run's own reader is who drives it."""
    gates: tuple[BlockingUnread[Any], ...] = run.hub.gates
    for unread in gates:
        if unread is not run.parts and (unread.is_over_full or unread.error is not None) and unread.shows(run.run_id):
            return unread
    return None


def wait_for_room(run: Run) -> None:
    """Block a run inside another before it begins a superstep, as long as a reader of an outer one has no room for it."""
    while run.finish is None and (unread := _too_full(run)) is not None:
        if unread.error is not None:
            unread.stop(unread.error)
            return
        if unread.inline_thread == threading.get_ident() or _is_on_loop():
            return
        unread.room.wait(lambda unread=unread: unread.is_over_full and run.finish is None)  # type: ignore[misc]  # bound at once


async def await_room(run: Run) -> None:
    """Do what :func:`wait_for_room` does, on the event loop."""
    while run.finish is None and (unread := _too_full(run)) is not None:
        if unread.error is not None:
            unread.stop(unread.error)
            return
        await unread.room.wait_on_loop(lambda unread=unread: unread.is_over_full and run.finish is None)  # type: ignore[misc]
