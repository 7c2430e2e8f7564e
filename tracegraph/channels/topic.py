"""A channel that collects writes in a list."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

from tracegraph.channels.base import RuleChannel, State
from tracegraph.constants import MISSING, UNCHANGED

__all__ = ["Topic"]

Value = TypeVar("Value")


class Topic(RuleChannel[Sequence[Value], Value | list[Value], list[Value]]):
    """A list of the last superstep's writes, or with *accumulate* of all; a write that is a list adds its items.

    An empty topic has no value, but is saved as ``[]``.

    >>> votes = Topic(str)
    >>> votes.update(["yes", ["no", "no"]]), votes.get()
    (True, ['yes', 'no', 'no'])
    >>> votes.update([]), votes.is_available(), votes.checkpoint()
    (True, False, [])
    """

    clears = True

    def __init__(self, typ: Any, accumulate: bool = False) -> None:
        super().__init__(typ)
        self.accumulate = accumulate

    @property
    def ValueType(self) -> Any:
        """A sequence of the type given."""
        return Sequence[self.typ]  # type: ignore[name-defined]  # a type made at run time

    @property
    def UpdateType(self) -> Any:
        """The type given, or a list of it."""
        return self.typ | list[self.typ]  # type: ignore[name-defined]  # a type made at run time

    def fold(self, state: State, writes: Sequence[Any]) -> State:
        """Return the collected items as a new list."""
        items: list[Any] = list(state) if self.accumulate and state is not MISSING else []
        before = len(items)
        for write in writes:
            if isinstance(write, list):
                items.extend(write)
            else:
                items.append(write)
        if self.accumulate:
            return items if len(items) > before else UNCHANGED
        return items or self._rules.cleared(self, state)

    def cleared(self, state: State) -> State:
        """Return an empty state, unless the topic accumulates."""
        return UNCHANGED if self.accumulate or state is MISSING else MISSING

    def dump(self, state: State) -> Any:
        """Return the list."""
        return [] if state is MISSING else list(state)

    def load(self, saved: Any) -> State:
        """Return the saved list; of the pairs that old versions saved, the second item."""
        if saved is MISSING:
            return MISSING
        return list(saved[1] if isinstance(saved, tuple) else saved) or MISSING

    def get(self) -> Sequence[Value]:
        """Return a copy of the list."""
        return list(super().get())

    def _spec(self) -> object:
        return self.accumulate
