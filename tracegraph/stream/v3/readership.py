"""Who reads a run: how much each may leave unread, who holds the others back, and what happens when all have left."""

from __future__ import annotations

import asyncio
import functools
import sys
import threading
import weakref
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final, Literal, TypeAlias, TypeVar, get_args

from tracegraph.drivers.room import Room
from tracegraph.drivers.unread import Buffering, Unread
from tracegraph.errors import InvalidInputError, SlowReaderError
from tracegraph.stream.v3.protocol import GRAPH_TASKS, MESSAGE_EVENTS

__all__ = ["AwaitedUnread", "Reader", "Readership", "WhenLeft"]

T = TypeVar("T")

_ALWAYS: Final = frozenset({"tasks", GRAPH_TASKS})

WhenLeft: TypeAlias = Literal["stop", "finish"]
"""What becomes of a run that nobody has any more: it is stopped, or goes on to its end with nobody reading."""

Reader: TypeAlias = "asyncio.Task[Any] | threading.Thread"
"""Who reads, or moves the run on: a task, or in a sync run a thread."""


class AwaitedUnread(Unread[T]):
    """Those of a reader that the others wait for; it takes note of who reads them."""

    __slots__ = ("_followed", "is_wanted", "reader")
    room: Room

    def __init__(self, buffering: Buffering, whose: Callable[[], str], room: Room) -> None:
        super().__init__(buffering, whose, room)
        self.reader: weakref.ref[Reader] | None = None
        self._followed: weakref.WeakSet[asyncio.Task[Any]] = weakref.WeakSet()
        """Tasks whose end rings."""
        self.is_wanted = False
        """Its reader moves the run on for its sake, and so comes back to what it has by then."""

    def popleft(self) -> T:
        """Take the oldest item, and let whoever waits for room go on."""
        item = super().popleft()
        reader = _current()
        if self.reader is None or self.reader() is not reader:
            self.reader = weakref.ref(reader)
            if not isinstance(reader, threading.Thread) and reader not in self._followed:
                self._followed.add(reader)
                # Not a method of this object, which goes with its reader and not with the task.
                reader.add_done_callback(functools.partial(_ring, self.room))
        if self.room.waiting:
            self.room.ring()
        return item

    @contextmanager
    def wanted(self) -> Iterator[None]:
        """Know in this block that its reader waits for another item."""
        self.is_wanted = True
        try:
            yield
        finally:
            self.is_wanted = False


class Readership:
    """The readers of a run and of the graphs inside it.

    Args:
        buffering: how much each of them may leave unread, and what happens then.
        when_left: what happens when all have left.

    Raises:
        InvalidInputError: *when_left* is none of its values.
    """

    def __init__(self, buffering: Buffering | None = None, when_left: WhenLeft = "stop") -> None:
        if when_left not in get_args(WhenLeft):
            raise InvalidInputError(f"when_left must be 'stop' or 'finish', not {when_left!r}")
        self.buffering = Buffering() if buffering is None else buffering
        self.when_left = when_left
        self.is_blocking = self.buffering.when_full == "block"
        self.error: SlowReaderError | None = None
        """What the run ends with, because a reader had no room."""
        self.about: Callable[[], str] = lambda: "a run"
        """Returns which run it is, for warnings and errors."""
        self.is_live = False
        """Somebody reads, or has read, what there is while nodes run; else only the run's own supersteps are of interest."""
        self.room = Room()
        self._awaited: list[weakref.ref[AwaitedUnread[Any]]] = []
        self._in_pump: Counter[Reader] = Counter()
        """Who moves the run on or waits for somebody else to: nobody of those reads just now."""

    def open(self, label: str, on_drop: Callable[[], None]) -> Unread[Any]:
        """Return what is empty yet, of a new reader of the projection *label*."""

        def whose() -> str:
            return f"a reader of projection {label!r} of {self.about()}"

        if self.is_blocking:
            made = AwaitedUnread[Any](self.buffering, whose, self.room)
            self._awaited.append(weakref.ref(made, self._forget))
            return made
        unread: Unread[Any] = Unread(self.buffering, whose)
        if self.buffering.when_full == "drop_oldest":
            unread.on_full = on_drop
        elif self.buffering.when_full == "fail":
            # Weakly: what is unread must go with its reader.
            unread.on_full = _Noting(self, unread)
        return unread

    def want(self, mode: str, ns: tuple[str, ...]) -> bool:
        """Say whether a part is of interest: of what tells of graphs inside, what comes later makes no sense without it."""
        return self.is_live or mode in _ALWAYS or (not ns and mode != MESSAGE_EVENTS)

    def _forget(self, reference: weakref.ref[AwaitedUnread[Any]]) -> None:
        self._awaited = [each for each in self._awaited if each is not reference]
        self.room.ring()

    # --- waiting for the others ----------------------------------------------------------------------------

    def enter(self) -> Reader:
        """Take note that the current task or thread moves the run on, or waits for somebody who does; return it."""
        me = _current()
        self._in_pump[me] += 1
        self.room.ring()
        return me

    def leave(self, me: Reader) -> None:
        """Take note that it goes on reading."""
        self._in_pump[me] -= 1
        if not self._in_pump[me]:
            del self._in_pump[me]

    def must_wait(self, me: Reader) -> bool:
        """Say whether the run may not be moved on by *me*, for a reader has no room and can be expected to make some.

        That is one that has begun to read, in another task or thread which has not ended and does not wait for the run
        itself, for the sake of something else. Of all others nobody knows that they will ever read again, so they may get
        more than they have room for. A transformer that reads while the run is moved on waits for nobody.
        """
        if self._in_pump[me] > 1:
            return False
        for reference in self._awaited:
            unread = reference()
            if unread is None or len(unread) < unread.limit or unread.reader is None:
                continue
            reader = unread.reader()
            if reader is None or reader is me or not _goes_on(reader):
                continue
            if unread.is_wanted or reader not in self._in_pump:
                return True
        return False


class _Noting:
    """Tells a readership of the error of one reader."""

    __slots__ = ("_readership", "_unread")

    def __init__(self, readership: Readership, unread: Unread[Any]) -> None:
        self._readership = readership
        self._unread = weakref.ref(unread)

    def __call__(self) -> None:
        unread = self._unread()
        if unread is not None and self._readership.error is None:
            self._readership.error = unread.error


def _ring(room: Room, _: asyncio.Task[Any]) -> None:
    room.ring()


def _current() -> Reader:
    try:
        task = asyncio.current_task()
    except RuntimeError:
        task = None
    return threading.current_thread() if task is None else task


def _goes_on(reader: Reader) -> bool:
    if isinstance(reader, threading._DummyThread):  # noqa: SLF001  # one that Python has not begun says that it goes on for ever
        return reader.ident in sys._current_frames() and reader in threading.enumerate()  # noqa: SLF001  # nobody else knows
    return reader.is_alive() if isinstance(reader, threading.Thread) else not reader.done()
