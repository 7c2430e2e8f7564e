"""Walking through checkpoints, newest first, without ever holding more than a page of each place."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from tracegraph.checkpoint.sqlite import operations
from tracegraph.checkpoint.sqlite.database import Database
from tracegraph.checkpoint.sqlite.rows import conditions_of, matches, metadata_of

__all__ = ["Scope", "addresses"]

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

    def takes(self, checkpoint_id: str) -> bool:
        """Say whether the id may be among them."""
        return self.checkpoint_id is None or checkpoint_id == self.checkpoint_id

    @property
    def bound(self) -> str:
        """What ids must be smaller than."""
        above = _BEYOND if self.checkpoint_id is None else f"{self.checkpoint_id}\0"
        return above if self.before is None else min(above, self.before)


def addresses(database: Database, scope: Scope) -> Iterator[tuple[str, str, str]]:
    """Yield thread, namespace and id of the checkpoints in *scope*, greatest id first, over all places.

    A place is opened when its turn comes: for the newest few of many threads, most are never read.
    """
    with database.transaction("BEGIN") as cursor:
        found = operations.places(cursor, scope.thread_id)
    at = {place.number: place for place in found if place.head is not None and scope.ns in (None, place.ns)}
    waiting = [_Next(place.head or "", number) for number, place in at.items()]
    heapq.heapify(waiting)
    opened: dict[int, Iterator[str]] = {}
    while waiting:
        number = waiting[0].place
        if number in opened:
            yield at[number].thread_id, at[number].ns, waiting[0].checkpoint_id
        else:
            # The head had to be known for the order only; it may not be in the scope itself.
            opened[number] = _ids(database, number, scope)
        following = next(opened[number], None)
        if following is None:
            heapq.heappop(waiting)
        else:
            heapq.heapreplace(waiting, _Next(following, number))


@dataclass(frozen=True, slots=True)
class _Next:
    """A place in the queue; the one with the greatest id comes first."""

    checkpoint_id: str
    place: int

    def __lt__(self, other: _Next) -> bool:
        return (self.checkpoint_id, self.place) > (other.checkpoint_id, other.place)


def _ids(database: Database, place: int, scope: Scope) -> Iterator[str]:
    bound, conditions = scope.bound, conditions_of(scope.filter)
    while True:
        with database.transaction("BEGIN") as cursor:
            rows = operations.page(cursor, place, bound, conditions, 1 if scope.checkpoint_id else _PAGE)
        for checkpoint_id, metadata in rows:
            if not scope.takes(checkpoint_id):
                return
            if not scope.filter or matches(metadata_of(metadata), scope.filter):
                yield checkpoint_id
        if len(rows) < _PAGE:
            return
        bound = rows[-1][0]
