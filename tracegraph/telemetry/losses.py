"""How much telemetry this process has lost, as far as the batches that setup() makes can tell.

Two ways lead there: a full queue, behind an exporter that is too slow, and an export that fails. The SDK counts
neither where a program could read it, so what goes into a batch and what comes out of it is counted here. Loads
no OpenTelemetry.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from typing import Final, NamedTuple, TypeVar

__all__ = ["BatchCount", "Loss", "Losses", "forget_losses", "lost_so_far", "note_loss", "process_losses"]

Item = TypeVar("Item")
Result = TypeVar("Result", bound=Enum)


class Loss(NamedTuple):
    """A way to lose telemetry."""

    signal: str
    """``traces`` or ``logs``."""
    sink: str
    """Where it would have gone: an exporter's name, or the class of one that a program made itself."""
    reason: str
    """``queue_full`` or ``export_failed``; behind a spool, one of its own reasons."""


class Losses:
    """What batches have lost; it never gets less, whatever becomes of them.

    >>> losses = Losses()
    >>> count = BatchCount(2, "traces", "otlp", losses)
    >>> for _ in range(5):
    ...     count.put()
    >>> count.take(2)
    >>> count.fail(1)
    >>> count.close()
    >>> losses.total
    4
    """

    def __init__(self) -> None:
        self._lost: dict[Loss, int] = {}
        self._counts: weakref.WeakSet[BatchCount] = weakref.WeakSet()
        # Re-entrant: a signal handler's run may end while one is noted.
        self._lock = threading.RLock()

    @property
    def total(self) -> int:
        """How many items are known to be gone."""
        with self._lock:
            return sum(self._lost.values())

    def by_way(self) -> Mapping[Loss, int]:
        """Return how many items were lost in each way; 0 of the ways in which a batch might have lost some."""
        with self._lock:
            ways = {way: 0 for count in self._counts for way in (count.when_full, count.when_failed)}
            return ways | self._lost

    def note(self, way: Loss, number: int) -> None:
        """Count items that were lost that *way*."""
        with self._lock:
            self._lost[way] = self._lost.get(way, 0) + number

    def opened(self, count: BatchCount) -> None:
        """Note that a batch may lose something from now on."""
        with self._lock:
            self._counts.add(count)

    def closed(self, count: BatchCount) -> None:
        """Note that it cannot any more; that it lost nothing is still to be told, after a shutdown's last export."""
        with self._lock:
            self._counts.discard(count)
            for way in (count.when_full, count.when_failed):
                self._lost.setdefault(way, 0)

    def forget(self) -> None:
        """Begin with nothing, in a forked child: what the parent lost, or has waiting, is the parent's to tell of."""
        self._lock = threading.RLock()
        self._lost = {}
        for count in self._counts:
            count.reset()


_process: Final = Losses()


def forget_losses() -> None:
    """Begin to count the process's losses anew, as a forked child does."""
    _process.forget()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=forget_losses)


class BatchCount:
    """What went into one batch processor and what came out, so that its losses are known to the process.

    Args:
        capacity: how much can wait in it.
        signal: see :class:`Loss`, as *sink*.
        losses: where its losses are noted; the process's own if None.
    """

    __slots__ = (
        "__weakref__",
        "_is_closed",
        "_lock",
        "_losses",
        "_overflow",
        "_put",
        "_taken",
        "capacity",
        "when_failed",
        "when_full",
    )

    def __init__(self, capacity: int, signal: str, sink: str, losses: Losses | None = None) -> None:
        self.capacity = capacity
        self.when_full = Loss(signal, sink, "queue_full")
        self.when_failed = Loss(signal, sink, "export_failed")
        self._losses = _process if losses is None else losses
        self._is_closed = False
        self.reset()
        self._losses.opened(self)

    def reset(self) -> None:
        """Begin with an empty queue."""
        self._put = self._taken = self._overflow = 0
        self._lock = threading.RLock()  # re-entrant as above

    def put(self) -> None:
        """Count an item that goes in. Not locked: called for every span, and a race is off by one."""
        self._put += 1
        # What has neither come out nor has room to wait is gone; once it is, it stays so.
        if self._put - self._taken - self.capacity > self._overflow:
            self._note_overflow()

    def take(self, number: int) -> None:
        """Count items that are handed to the exporter."""
        self._taken += number

    def fail(self, number: int) -> None:
        """Count items that the exporter could not export."""
        if not self._is_closed:
            self._losses.note(self.when_failed, number)

    def of_export(self, export: Callable[[Sequence[Item]], Result], batch: Sequence[Item]) -> Result:
        """Hand a batch to an exporter and return its result; what it fails to export, or raises for, is counted."""
        self.take(len(batch))
        try:
            result = export(batch)
        except BaseException:
            self.fail(len(batch))
            raise
        # An exporter of a program's own may return nothing at all, which is no success either.
        if getattr(result, "name", None) != "SUCCESS":
            self.fail(len(batch))
        return result

    def close(self) -> None:
        """Lose nothing from now on: a processor that was shut down is still called by its provider."""
        self._is_closed = True
        self._losses.closed(self)

    def _note_overflow(self) -> None:
        with self._lock:
            more = self._put - self._taken - self.capacity - self._overflow
            if more > 0 and not self._is_closed:
                self._overflow += more
                self._losses.note(self.when_full, more)


def process_losses() -> Mapping[Loss, int]:
    """Return what this process has lost, see :meth:`Losses.by_way`."""
    return _process.by_way()


def note_loss(way: Loss, number: int) -> None:
    """Count items that this process lost outside of a batch."""
    _process.note(way, number)


def lost_so_far() -> int:
    """Return how many spans and log records this process is known to have lost."""
    return _process.total
