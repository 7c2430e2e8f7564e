"""Sums that the SDK asks for when it collects, instead of being told of every change.

A measurement costs the SDK ten microseconds, most of it for the attributes; a change of a tally costs one. What is
exported is the same, but for exemplars: sums that need some are counters of the SDK's own.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Mapping

from opentelemetry.metrics import CallbackOptions, Observation
from opentelemetry.util.types import AttributeValue

__all__ = ["Tally"]


_tallies: weakref.WeakSet[Tally] = weakref.WeakSet()


class Tally:
    """One sum for each set of attributes; kept once it is there, as a sum that is back to 0 must be exported too.

    It is read as the callback of an observable counter.

    >>> tally = Tally()
    >>> tally.add(2, {"node": "plan"})
    >>> tally.add(-1, {"node": "plan"})
    >>> tally.read(CallbackOptions())
    [Observation(value=1, attributes={'node': 'plan'}, context=None)]
    """

    __slots__ = ("__weakref__", "_lock", "_sums")

    def __init__(self) -> None:
        self._lock = threading.Lock()
        _tallies.add(self)
        self._sums: dict[frozenset[tuple[str, AttributeValue]], int] = {}

    def add(self, amount: int, attributes: Mapping[str, AttributeValue]) -> None:
        """Change the sum of these attributes, whose values can be hashed."""
        key = frozenset(attributes.items())
        with self._lock:
            self._sums[key] = self._sums.get(key, 0) + amount

    def read(self, _: CallbackOptions) -> list[Observation]:
        """Return every sum as it is now."""
        with self._lock:
            sums = self._sums.copy()
        return [Observation(amount, dict(key)) for key, amount in sums.items()]

    def renew_lock(self) -> None:
        """Forget who held the lock: a forked child has only the thread that forked."""
        self._lock = threading.Lock()


def _after_fork() -> None:
    for tally in _tallies:
        tally.renew_lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
