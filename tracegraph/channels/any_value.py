"""A channel for writes that are all alike."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

from tracegraph.channels.base import RuleChannel, State
from tracegraph.constants import MISSING, UNCHANGED

__all__ = ["AnyValue"]

Value = TypeVar("Value")


class AnyValue(RuleChannel[Value, Value, Value]):
    """Keeps the last of a superstep's writes, however many; emptied by a superstep that does not write it.

    >>> seen = AnyValue(int, "seen")
    >>> seen.update([1, 1]), seen.get(), seen.update([]), seen.is_available()
    (True, 1, True, False)
    """

    replaces = True
    clears = True

    def fold(self, state: State, writes: Sequence[Any]) -> State:
        """Return the last write."""
        return writes[-1]

    def cleared(self, state: State) -> State:
        """Return an empty state."""
        return UNCHANGED if state is MISSING else MISSING
