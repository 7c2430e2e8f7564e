"""Sums that the SDK asks for when it collects, instead of being told of every change.

A measurement costs the SDK ten microseconds, most of it for the attributes; a change of a tally costs one. What is
exported is the same, but for exemplars: sums that need some are counters of the SDK's own.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping

from opentelemetry.metrics import CallbackOptions, Observation
from opentelemetry.util.types import AttributeValue

__all__ = ["Tally"]


class Tally:
    """One sum for each set of attributes; kept once it is there, as a sum that is back to 0 must be exported too.

    It is read as the callback of an observable counter.

    >>> tally = Tally()
    >>> tally.add(2, {"node": "plan"})
    >>> tally.add(-1, {"node": "plan"})
    >>> tally.read(CallbackOptions())
    [Observation(value=1, attributes={'node': 'plan'}, context=None)]
    """

    __slots__ = ("_lock", "_sums")

    def __init__(self) -> None:
        self._lock = threading.Lock()
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
