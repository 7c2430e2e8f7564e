"""A channel whose value lives for one superstep."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

from tracegraph.channels.base import RuleChannel, State, one_write_only
from tracegraph.constants import MISSING, UNCHANGED

__all__ = ["EphemeralValue"]

Value = TypeVar("Value")


class EphemeralValue(RuleChannel[Value, Value, Value]):
    """Visible in the superstep after it was written, then gone; *guard* allows one write per superstep.

    >>> signal = EphemeralValue(str, guard=False)
    >>> signal.update(["a", "b"]), signal.get(), signal.update([]), signal.update([])
    (True, 'b', True, False)
    """

    replaces = True
    clears = True

    def __init__(self, typ: Any, guard: bool = True) -> None:
        super().__init__(typ)
        self.guard = guard

    def fold(self, state: State, writes: Sequence[Any]) -> State:
        """Return the last write."""
        if self.guard and len(writes) != 1:
            raise one_write_only(self.key, len(writes))
        return writes[-1]

    def cleared(self, state: State) -> State:
        """Return an empty state."""
        return UNCHANGED if state is MISSING else MISSING

    def _spec(self) -> object:
        return self.guard
