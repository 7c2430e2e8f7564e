"""Walking through checkpoints, newest first, without ever holding more than a page of each place."""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from tracegraph.checkpoint.sql.operations import Found, Operations, Place
from tracegraph.checkpoint.sql.orders import Operation
from tracegraph.checkpoint.sql.rows import matches, metadata_of

__all__ = ["Scope", "Walk"]

_PAGE: Final = 64
_BEYOND: Final = "\U0010ffff"
"""Greater than every id."""


@dataclass(frozen=True, slots=True)
class Scope:
    """Which checkpoints are wanted; None stands for all."""

    thread_id: str | None
    ns: str | None
    checkpoint_id: str | None
    before: str | None
    filter: Mapping[str, Any]

    @classmethod
    def of(cls, config: dict[str, Any] | None, filter: Mapping[str, Any] | None, before: dict[str, Any] | None) -> Scope:
        """Return what the arguments of a saver's ``list`` ask for."""
        wanted = {} if config is None else config["configurable"]
        thread_id = wanted.get("thread_id")
        return cls(
            thread_id=None if thread_id is None else str(thread_id),
            ns=wanted.get("checkpoint_ns"),
            checkpoint_id=wanted.get("checkpoint_id"),
            before=None if before is None else before["configurable"].get("checkpoint_id"),
            filter=filter or {},
        )

    @property
    def bound(self) -> str:
        """What ids must be smaller than."""
        # No id is that id with a control character behind it; NUL is not for every database.
        above = _BEYOND if self.checkpoint_id is None else f"{self.checkpoint_id}\x01"
        return above if self.before is None else min(above, self.before)


class Walk:
    """The checkpoints in *scope*, greatest id first, over all places, a batch for each call of :meth:`take`.

    A place is opened when its turn comes: for the newest few of many threads, most are never read.
    """

    def __init__(self, operations: Operations, scope: Scope) -> None:
        self._operations = operations
        self._scope = scope
        self._waiting: list[_Next] | None = None
        self._opened: dict[int, _Opened] = {}

    def take(self, count: int) -> Operation[list[tuple[Place, Found]]]:
        """Return the next checkpoints, at most *count*; none once there are no more. What was deleted since is skipped."""
        taken: list[tuple[Place, Found]] = []
        if self._waiting is None:
            found = yield from self._operations.places(self._scope.thread_id)
            # The head has to be known for the order only; it may not be in the scope itself.
            self._waiting = [_Next(at.head, at) for at in found if at.head is not None and self._scope.ns in (None, at.ns)]
            heapq.heapify(self._waiting)
        while self._waiting and len(taken) < count:
            checkpoint_id, place = self._waiting[0].checkpoint_id, self._waiting[0].place
            if place.number in self._opened:
                read = yield from self._operations.read(place.thread_id, place.ns, checkpoint_id)
                if read is not None:
                    taken.append((place, read))
            else:
                self._opened[place.number] = _Opened(self._scope.bound)
            following = yield from self._following(place.number)
            if following is None:
                heapq.heappop(self._waiting)
            else:
                heapq.heapreplace(self._waiting, _Next(following, place))
        return taken

    def _following(self, place: int) -> Operation[str | None]:
        """Return the next id of an opened place."""
        at, scope = self._opened[place], self._scope
        while not at.ids and not at.is_read:
            size = 1 if scope.checkpoint_id else _PAGE
            rows = yield from self._operations.page(place, at.bound, scope.filter, size)
            at.is_read = len(rows) < size or scope.checkpoint_id is not None
            at.bound = rows[-1][0] if rows else at.bound
            for checkpoint_id, metadata in rows:
                if scope.checkpoint_id not in (None, checkpoint_id):
                    break
                if not scope.filter or matches(metadata_of(metadata), scope.filter):
                    at.ids.append(checkpoint_id)
        return at.ids.popleft() if at.ids else None


@dataclass(slots=True)
class _Opened:
    """Where the walk stands in a place."""

    bound: str
    ids: deque[str] = field(default_factory=deque)
    is_read: bool = False


@dataclass(frozen=True, slots=True)
class _Next:
    """A place in the queue; the one with the greatest id comes first."""

    checkpoint_id: str
    place: Place

    def __lt__(self, other: _Next) -> bool:
        return (self.checkpoint_id, self.place.number) > (other.checkpoint_id, other.place.number)
