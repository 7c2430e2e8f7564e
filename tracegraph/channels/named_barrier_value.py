"""Channels that wait for several named writers: joins."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

from tracegraph.channels.base import RuleChannel, State
from tracegraph.constants import MISSING, UNCHANGED
from tracegraph.errors import InvalidUpdateError
from tracegraph.refused_values import about

__all__ = ["NamedBarrierValue", "NamedBarrierValueAfterFinish"]

Value = TypeVar("Value")


class NamedBarrierValue(RuleChannel[Value, Value, set[Value]]):
    """Available, with the value ``None``, once each of *names* was written; the next round starts when it was used.

    The state is the frozenset of the names seen in this round.

    >>> join = NamedBarrierValue(str, {"a", "b"})
    >>> join.update(["a"]), join.update(["a"]), join.is_available(), join.update(["b"]), join.is_available()
    (True, False, False, True, True)
    """

    is_plain = False
    consumes = True
    names: frozenset[Value]

    def __init__(self, typ: Any, names: Iterable[Value]) -> None:
        self.names = frozenset(names)
        super().__init__(typ)

    def initial(self) -> State:
        """Return a state in which no name was seen."""
        return frozenset()

    def fold(self, state: State, writes: Sequence[Any]) -> State:
        """Return the names seen so far, or ``UNCHANGED`` if none of *writes* is new."""
        for name in writes:
            if name not in self.names:
                raise self._stranger(name)
        seen = state.union(writes)
        return UNCHANGED if len(seen) == len(state) else seen

    def consumed(self, state: State) -> State:
        """Start the next round if this one is complete."""
        return frozenset() if state == self.names else UNCHANGED

    def peek(self, state: State) -> Any:
        """Return None once all names were seen."""
        return None if state == self.names else MISSING

    def dump(self, state: State) -> Any:
        """Return the set of the names seen."""
        return set(state)

    def load(self, saved: Any) -> State:
        """Return the names seen."""
        return frozenset() if saved is MISSING else frozenset(saved)

    def _stranger(self, name: object) -> InvalidUpdateError:
        known = ", ".join(sorted(map(repr, self.names)))
        text = f"join {self.key!r} waits for {known}, but something else was written to it"
        return about(InvalidUpdateError(text, channel=self.key), name)

    def _spec(self) -> object:
        return self.names


class NamedBarrierValueAfterFinish(NamedBarrierValue[Value]):
    """A :class:`NamedBarrierValue` that opens only when the run would otherwise end.

    The state, and what is saved, is ``(names seen, finished)``.

    >>> join = NamedBarrierValueAfterFinish(str, {"a"})
    >>> join.update(["a"]), join.is_available(), join.finish(), join.is_available(), join.consume(), join.is_available()
    (True, False, True, True, True, False)
    """

    finishes = True

    def initial(self) -> State:
        """Return a state in which no name was seen."""
        return (frozenset(), False)

    def fold(self, state: State, writes: Sequence[Any]) -> State:
        """Return the names seen so far, or ``UNCHANGED`` if none of *writes* is new."""
        seen = super().fold(state[0], writes)
        return UNCHANGED if seen is UNCHANGED else (seen, state[1])

    def consumed(self, state: State) -> State:
        """Start the next round if this one was shown."""
        return (frozenset(), False) if state[1] and state[0] == self.names else UNCHANGED

    def finished(self, state: State) -> State:
        """Open, if all names were seen."""
        return (state[0], True) if not state[1] and state[0] == self.names else UNCHANGED

    def peek(self, state: State) -> Any:
        """Return None once all names were seen and the run reached its end."""
        return None if state[1] and state[0] == self.names else MISSING

    def dump(self, state: State) -> Any:
        """Return the set of the names seen, and whether the end was reached."""
        return (set(state[0]), state[1])

    def load(self, saved: Any) -> State:
        """Return the saved pair."""
        return (frozenset(), False) if saved is MISSING else (frozenset(saved[0]), saved[1])
