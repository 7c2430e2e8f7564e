"""A projection that is read as it grows: one consumer, lazily fed, pulled along by its reader."""

from __future__ import annotations

import weakref
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any, Generic, Protocol, TypeVar

from tracegraph.drivers.unread import Unread
from tracegraph.stream.v3.pulling import AsyncPump, Bell, Pump
from tracegraph.stream.v3.readership import AwaitedUnread, Readership

__all__ = ["ChannelHost", "StreamChannel"]

T = TypeVar("T")


class ChannelHost(Protocol):
    """The part of a mux that its channels need."""

    is_async: bool
    readership: Readership

    @property
    def pump(self) -> Pump | None:
        """Moves a sync run on."""

    @property
    def apump(self) -> AsyncPump | None:
        """Moves an async run on."""

    def next_stamp(self) -> int:
        """Return the next number in the order of everything that is pushed."""

    def hold(self) -> Any:
        """Return what keeps the run going as long as somebody keeps it."""


class Buffer(Generic[T]):
    """What one reader has not read yet, each item with the number of its push."""

    __slots__ = ("__weakref__", "has_told", "items")

    def __init__(self, items: Unread[tuple[int, T]] | None = None) -> None:
        self.items: Unread[tuple[int, T]] = Unread() if items is None else items
        self.has_told = False
        """Its reader has been given the error."""


class StreamChannel(Generic[T]):
    """A queue that a transformer pushes to and one consumer reads, with ``for`` or, in an async run, ``async for``.

    It is lazy: what is pushed before somebody subscribes is not kept. Whoever wants several channels subscribes to all
    of them before reading the first; reading one fills the others. A channel with a ``name`` is forwarded to the main
    log of its run besides, whether it is read or not.

    >>> channel = StreamChannel()
    >>> channel.maxlen is None, channel.name is None
    (True, True)

    Args:
        maxlen: accepted, and ignored: the ``buffer`` of ``stream_events()`` says how much a reader may leave unread.

    Raises:
        ValueError: *maxlen* is not positive.
    """

    def __init__(self, name: str | None = None, *, maxlen: int | None = None) -> None:
        if maxlen is not None and maxlen <= 0:
            raise ValueError(f"maxlen of a StreamChannel must be positive or None, not {maxlen}")
        self.name = name
        self.maxlen = maxlen
        self.is_closed = False
        self.error: BaseException | None = None
        self.dropped = 0
        """How many items its readers have lost; branches of a tee() count each for itself."""
        self.is_of_supersteps = False
        """Its items come between supersteps, or as tasks of one end: whoever reads it needs nothing while a lone node runs."""
        self._label = name or "channel"
        self._host: ChannelHost | None = None
        self._forward: Callable[[T], None] | None = None
        # Weakly: what nobody can read any more is not kept.
        self._buffers: list[weakref.ref[Buffer[T]]] = []
        self._is_taken = False
        self._bell = Bell()

    def bind(self, host: ChannelHost, forward: Callable[[T], None] | None = None, *, label: str | None = None) -> None:
        """Make this a channel of *host*, which feeds it; *forward* gets every item, *label* is what readers know it by."""
        self._host = host
        self._label = label or self._label
        self._forward = forward

    # --- the side that fills it ----------------------------------------------------------------------------

    def push(self, item: T) -> None:
        """Hand *item* to the consumer, if there is one.

        Raises:
            RuntimeError: the channel is closed, and has a consumer that would miss it.
        """
        if self.is_closed:
            if self._is_taken:
                raise RuntimeError("a closed StreamChannel takes no more items")
            return
        if self._is_taken:
            stamp = 0 if self._host is None else self._host.next_stamp()
            for reference in self._buffers:
                if (buffer := reference()) is not None:
                    buffer.items.put((stamp, item))
            self._bell.ring()
        if self._forward is not None:
            self._forward(item)

    def close(self) -> None:
        """End the iteration of the consumer once it has read what is there."""
        self.is_closed = True
        self._bell.ring()

    def fail(self, err: BaseException) -> None:
        """Raise *err* in the consumer, also one that comes later, once it has read what is there."""
        if not self.is_closed:
            self.error = err
            self.close()

    # --- the side that reads it ----------------------------------------------------------------------------

    @property
    def unread(self) -> int:
        """How many items are kept for the reader that is furthest behind."""
        return max((len(buffer.items) for each in self._buffers if (buffer := each()) is not None), default=0)

    def _count_drop(self) -> None:
        self.dropped += 1

    def __iter__(self) -> Iterator[T]:
        return self._cursors(1, is_async=False)[0]

    def __aiter__(self) -> AsyncIterator[T]:
        return self._acursors(1)[0]

    def tee(self, n: int = 2) -> tuple[Iterator[T], ...]:
        """Return *n* independent iterators; together they are the channel's one consumer."""
        return self._cursors(_at_least_one(n), is_async=False)

    def atee(self, n: int = 2) -> tuple[AsyncIterator[T], ...]:
        """Return *n* independent async iterators; together they are the channel's one consumer."""
        return self._acursors(_at_least_one(n))

    def _cursors(self, n: int, *, is_async: bool) -> tuple[SyncCursor[T], ...]:
        host = self._of_colour(is_async=is_async)
        return tuple(SyncCursor(self, buffer, host.hold()) for buffer in self.subscribe(n))

    def _acursors(self, n: int) -> tuple[AsyncCursor[T], ...]:
        host = self._of_colour(is_async=True)
        return tuple(AsyncCursor(self, buffer, host.hold()) for buffer in self.subscribe(n))

    def _of_colour(self, *, is_async: bool) -> ChannelHost:
        if self._host is None:
            raise TypeError("this StreamChannel belongs to no run yet: return it from the init() of a transformer")
        if self._host.is_async is not is_async:
            word = "'async for' or atee()" if self._host.is_async else "'for' or tee()"
            raise TypeError(
                f"this StreamChannel belongs to {'an async' if self._host.is_async else 'a sync'} run: read it with {word}"
            )
        return self._host

    def subscribe(self, n: int = 1) -> list[Buffer[T]]:
        """Become the consumer, with *n* buffers.

        Raises:
            RuntimeError: there is one already.
        """
        if self._is_taken:
            raise RuntimeError("this StreamChannel has a consumer already; share one subscription with tee(n) or atee(n)")
        self._is_taken = True
        host = self._host
        if host is not None and not self.is_of_supersteps:
            host.readership.is_live = True
        opened = [None if host is None else host.readership.open(self._label, self._count_drop) for _ in range(n)]
        buffers: list[Buffer[T]] = [Buffer(items) for items in opened]
        self._buffers = [weakref.ref(buffer) for buffer in buffers]
        return buffers

    def release(self) -> None:
        """Let somebody else become the consumer."""
        self._is_taken = False
        self._buffers = []

    def pull(self, buffer: Buffer[T] | None = None) -> bool:
        """Move the run on by one part, for the sake of *buffer*; False if nothing can come any more."""
        pump = None if self._host is None else self._host.pump
        if pump is None:
            return False
        items = None if buffer is None else buffer.items
        if not isinstance(items, AwaitedUnread):
            return pump()
        with items.wanted():
            return pump()

    async def apull(self, buffer: Buffer[T] | None = None) -> bool:
        """Move the run on by one part, or wait until somebody has; False if nothing can come any more."""
        pump = None if self._host is None else self._host.apump
        if pump is None:
            await self._bell.wait()
            return True
        items = None if buffer is None else buffer.items
        if not isinstance(items, AwaitedUnread):
            return await pump()
        with items.wanted():
            return await pump()


class SyncCursor(Iterator[T]):
    """One reader of a channel."""

    __slots__ = ("_buffer", "_channel", "_hold")

    def __init__(self, channel: StreamChannel[T], buffer: Buffer[T], hold: Any) -> None:
        self._channel = channel
        self._buffer = buffer
        self._hold = hold

    def __next__(self) -> T:
        buffer, channel = self._buffer, self._channel
        while not buffer.items:
            # What came while the last part was pulled by another thread is seen by the loop's own check.
            if channel.is_closed or (not channel.pull(buffer) and not buffer.items):
                raise _end_of(channel, buffer) or StopIteration
        return buffer.items.popleft()[1]

    @property
    def dropped(self) -> int:
        """How many items this reader has lost."""
        return self._buffer.items.dropped

    def close(self) -> None:
        """Leave: nothing more is kept for this reader; the others go on."""
        self._channel, self._buffer, self._hold = _left(), Buffer(), None


class AsyncCursor(AsyncIterator[T]):
    """One reader of a channel in an async run."""

    __slots__ = ("_buffer", "_channel", "_hold")

    def __init__(self, channel: StreamChannel[T], buffer: Buffer[T], hold: Any) -> None:
        self._channel = channel
        self._buffer = buffer
        self._hold = hold

    async def __anext__(self) -> T:
        buffer, channel = self._buffer, self._channel
        while not buffer.items:
            if channel.is_closed or (not await channel.apull(buffer) and not buffer.items):
                raise _end_of(channel, buffer) or StopAsyncIteration
        return buffer.items.popleft()[1]

    @property
    def dropped(self) -> int:
        """How many items this reader has lost."""
        return self._buffer.items.dropped

    async def aclose(self) -> None:
        """Leave: nothing more is kept for this reader; the others go on."""
        self._channel, self._buffer, self._hold = _left(), Buffer(), None


def _left() -> StreamChannel[Any]:
    """Return the channel of a reader that has left: nothing comes any more."""
    channel: StreamChannel[Any] = StreamChannel()
    channel.close()
    return channel


def _end_of(channel: StreamChannel[T], buffer: Buffer[T]) -> BaseException | None:
    """Return the error that ends a reading, once."""
    if buffer.has_told:
        return None
    buffer.has_told = True
    return channel.error


def _at_least_one(n: int) -> int:
    if n < 1:
        raise ValueError(f"tee() makes at least one iterator, not {n}")
    return n
