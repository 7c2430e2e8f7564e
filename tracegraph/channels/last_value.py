"""Channels that keep the last write."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

from tracegraph.channels.base import RuleChannel, State, one_write_only
from tracegraph.constants import MISSING, UNCHANGED

__all__ = ["LastValue", "LastValueAfterFinish"]

Value = TypeVar("Value")


class LastValue(RuleChannel[Value, Value, Value]):
    """Keeps the last write; two writes in one superstep are an error.

    >>> total = LastValue(int, "total")
    >>> total.update([3]), total.get(), total.update([])
    (True, 3, False)
    >>> total.update([4, 5])
    Traceback (most recent call last):
    tracegraph.errors.InvalidUpdateError: [TG201] channel 'total' takes one write per step, but got 2; ...
    """

    replaces = True

    def fold(self, state: State, writes: Sequence[Any]) -> State:
        """Return the only write."""
        if len(writes) != 1:
            raise one_write_only(self.key, len(writes))
        return writes[0]


class LastValueAfterFinish(RuleChannel[Value, Value, tuple[Value, bool]]):
    """Keeps the last of any number of writes and shows it once, when the run would otherwise end.

    Runs a deferred node. The state, and what is saved, is ``(value, finished)``.

    >>> last = LastValueAfterFinish(int, "late")
    >>> last.update([1, 2]), last.is_available(), last.finish(), last.get(), last.consume(), last.is_available()
    (True, False, True, 2, True, False)
    """

    is_plain = False
    consumes = True
    finishes = True

    def fold(self, state: State, writes: Sequence[Any]) -> State:
        """Return the last write, hidden."""
        return (writes[-1], False)

    def consumed(self, state: State) -> State:
        """Empty the channel if its value was shown."""
        return MISSING if state is not MISSING and state[1] else UNCHANGED

    def finished(self, state: State) -> State:
        """Show the value."""
        return (state[0], True) if state is not MISSING and not state[1] else UNCHANGED

    def peek(self, state: State) -> Any:
        """Return the value once it is shown."""
        return state[0] if state is not MISSING and state[1] else MISSING

    def load(self, saved: Any) -> State:
        """Return the saved pair; a serialiser may have made a list of it."""
        return MISSING if saved is MISSING else tuple(saved)
