"""What a reader has not read yet: counted, and, by choice, bounded."""

from __future__ import annotations

import logging
import sys
import threading
import warnings
from collections import deque
from collections.abc import Callable
from typing import Any, Final, TypeVar, get_args
from uuid import UUID

from tracegraph.drivers.room import Room
from tracegraph.errors import InvalidInputError, SlowReaderError, TracegraphWarning
from tracegraph.types import WhenFull

__all__ = ["NO_READER", "WARN_AT", "BlockingUnread", "Buffering", "Unread", "nobody", "unread_of"]

T = TypeVar("T")

logger = logging.getLogger("tracegraph.stream")

WARN_AT: Final = 10_000
"""How many items nobody has read are worth a warning, where there is no limit."""

_WHEN_FULL: Final = get_args(WhenFull)


class Buffering:
    """How much each reader of one call may leave unread and what happens then, and how much they have lost by it."""

    __slots__ = ("_losses", "max", "when_full")

    def __init__(self, max: int | None = None, when_full: WhenFull | None = None, losses: list[int] | None = None) -> None:
        self.max = max
        self.when_full = when_full
        self._losses = [0] if losses is None else losses

    @classmethod
    def of(cls, given: Any) -> Buffering:
        """Return what a caller chose, who is not trusted to have kept to :data:`~tracegraph.types.StreamBuffer`.

        Raises:
            InvalidInputError: it is no pair of a positive number and one of the ways to go on.
        """
        if given is None:
            return cls()
        if isinstance(given, Buffering):
            return given
        ways = ", ".join(map(repr, _WHEN_FULL))
        if not isinstance(given, (tuple, list)) or len(given) != 2 or given[1] not in _WHEN_FULL:
            raise InvalidInputError(f"buffer must be a number and one of {ways}, such as (1000, 'drop_oldest'), not {given!r}")
        if type(given[0]) is not int or given[0] < 1:  # no bool either
            raise InvalidInputError(f"the first item of buffer must be a whole number, at least 1, not {given[0]!r}")
        return cls(*given)

    def of_feed(self) -> Buffering:
        """Return that of the parts on their way to several readers: a part lost there would be lost to all of them."""
        return Buffering(self.max, None if self.when_full is None else "block", self._losses)

    @property
    def dropped(self) -> int:
        """How many items all readers of the call have lost."""
        return self._losses[0]

    def note_loss(self) -> None:
        """Count an item that a reader has lost; producers do this one at a time."""
        self._losses[0] += 1


def nobody(*_: Any) -> None:
    """Tell nobody."""


_UNBOUNDED: Final = Buffering()
"""Nothing is dropped there, so nothing is counted."""


class Unread(deque[T]):
    """The items one reader has not read; one producer at a time puts them in, in whatever thread, and the reader pops them.

    Args:
        whose: says which reader of which run this is, for warnings and errors.
        room: where those wait who must not put more.
    """

    __slots__ = (
        "buffering",
        "dropped",
        "error",
        "inline_thread",
        "is_closed",
        "limit",
        "on_full",
        "overshoot",
        "room",
        "whose",
    )

    def __init__(
        self, buffering: Buffering | None = None, whose: Callable[[], str] = lambda: "a reader", room: Room | None = None
    ) -> None:
        super().__init__()
        self.buffering = _UNBOUNDED if buffering is None else buffering
        self.limit = WARN_AT if self.buffering.max is None else self.buffering.max
        self.whose = whose
        self.room = room
        self.dropped = 0
        """How many items it has lost."""
        self.overshoot = 0
        """How many items beyond the limit there were at most."""
        self.error: SlowReaderError | None = None
        """What the run ends with, because there was no room."""
        self.inline_thread = 0
        """The driving thread, while it runs node code itself: it is the reader's own."""
        self.is_closed = False
        self.on_full: Callable[[], None] = nobody
        """Called for each item that finds no room."""

    def put(self, item: T) -> None:
        """Add what has come."""
        if len(self) >= self.limit:
            self._put_when_full(item)
        else:
            self.append(item)

    def _put_when_full(self, item: T) -> None:
        if self.is_closed:
            return
        match self.buffering.when_full:
            case None:
                self.append(item)
                self._warn()
            case "drop_oldest":
                try:
                    self.popleft()
                except IndexError:  # its reader has read everything just now
                    pass
                else:
                    self.dropped += 1
                    self.buffering.note_loss()
                    self.on_full()
                self.append(item)
            case "block":
                self.append(item)
                self.overshoot = max(self.overshoot, len(self) - self.limit)
                self.on_full()
            case "fail":
                if self.error is None:
                    self.error = SlowReaderError(self.whose(), limit=self.limit)
                    self.on_full()

    def _warn(self) -> None:
        unread, self.limit = self.limit, sys.maxsize
        text = (
            f"{self.whose()} has not read {unread} items that are kept for it, and goes on to fall behind: read faster, "
            "subscribe to less, or say with buffer=(max, 'drop_oldest' | 'block' | 'fail') what is to happen"
        )
        try:
            warnings.warn(text, TracegraphWarning, stacklevel=2)
        except TracegraphWarning:  # a filter makes errors of warnings: none of them may break the code that emits
            logger.warning("%s", text)

    @property
    def is_over_full(self) -> bool:
        """Whether a producer has to wait."""
        return self.buffering.when_full == "block" and len(self) > self.limit and not self.is_closed

    def close(self) -> None:
        """Take nothing more, for the reader has left; whoever waits for it goes on."""
        self.is_closed = True
        self.limit = 0
        if self.room is not None:
            self.room.ring()


NO_READER: Final[Unread[Any]] = Unread()
"""What a run has that nobody streams: nothing is ever put there."""


class BlockingUnread(Unread[T]):
    """Those of a reader that producers wait for."""

    __slots__ = ("debts", "number", "shows", "stop")
    room: Room

    def __init__(self, buffering: Buffering, whose: Callable[[], str]) -> None:
        super().__init__(buffering, whose, Room())
        self.debts: dict[int, int] = {}
        """Threads whose last item found no room, with the number of the event that it was made of."""
        self.number: Callable[[], int] = lambda: 0
        """Returns the number of the event that is being published."""
        self.shows: Callable[[UUID], bool] = lambda _: False
        """Says whether parts of a run get here."""
        self.stop: Callable[[BaseException], None] = nobody
        """Ends the run with an error; called where no lock is held."""
        self.on_full = self._note_debt

    def popleft(self) -> T:
        """Take the oldest item, and let whoever waits for room go on."""
        item = super().popleft()
        if self.room.waiting:
            self.room.ring()
        return item

    def _note_debt(self) -> None:
        self.debts[threading.get_ident()] = self.number()

    def takes_debt(self, number: int) -> bool:
        """Say whether this thread's part of the event *number* found no room; parts of other events are not its code's."""
        return bool(self.debts) and self.debts.pop(threading.get_ident(), -1) == number


def unread_of(buffering: Buffering, whose: Callable[[], str]) -> Unread[Any]:
    """Return what is empty yet, of the one reader of a stream."""
    return (BlockingUnread if buffering.when_full in ("block", "fail") else Unread)(buffering, whose)
