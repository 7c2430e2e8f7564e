"""How much telemetry this process has lost, as far as the batches that setup() makes can tell.

Two ways lead there: a full queue, behind an exporter that is too slow, and an export that fails. The SDK counts
neither where a program could read it, so what goes into a batch and what comes out of it is counted here. Loads
no OpenTelemetry.
"""

from __future__ import annotations

import threading
import weakref

__all__ = ["BatchCount", "lost_so_far"]

_counts: weakref.WeakSet[BatchCount] = weakref.WeakSet()
_lock = threading.Lock()


class BatchCount:
    """What went into one batch processor and what came out; ``capacity`` is how much can wait in it.

    >>> count = BatchCount(capacity=2)
    >>> for _ in range(5):
    ...     count.put()
    >>> count.lost
    3
    >>> count.take(2)
    >>> count.fail(1)
    >>> count.lost
    4
    """

    __slots__ = ("__weakref__", "_failed", "_overflow", "_put", "_taken", "capacity")

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self._put = self._taken = self._failed = self._overflow = 0
        with _lock:
            _counts.add(self)

    def put(self) -> None:
        """Count an item that goes in. Not locked: called for every span, and a race is off by one."""
        self._put += 1
        # What has neither come out nor has room to wait is gone; once it is, it stays so.
        gone = self._put - self._taken - self.capacity
        if gone > self._overflow:
            self._overflow = gone

    def take(self, number: int) -> None:
        """Count items that are handed to the exporter."""
        self._taken += number

    def fail(self, number: int) -> None:
        """Count items that the exporter could not export."""
        self._failed += number

    def close(self) -> None:
        """Stop counting for the process: a processor that was shut down is still called by its provider."""
        with _lock:
            _counts.discard(self)

    @property
    def lost(self) -> int:
        """How many items are known to be gone."""
        return self._overflow + self._failed


def lost_so_far() -> int:
    """Return how many spans and log records are known to be lost; less once a sink is closed."""
    with _lock:
        return sum(count.lost for count in _counts)
