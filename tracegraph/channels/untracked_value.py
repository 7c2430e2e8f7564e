"""A channel that is never saved."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

from tracegraph.channels.base import RuleChannel, State, one_write_only
from tracegraph.constants import MISSING

__all__ = ["UntrackedValue"]

Value = TypeVar("Value")


class UntrackedValue(RuleChannel[Value, Value, Value]):
    """Keeps the last write for the rest of the run, but in no checkpoint: a resumed run starts without it.

    For connections, caches and other values that cannot be serialised. *guard* allows one write per superstep.
    """

    replaces = True
    is_saved = False

    def __init__(self, typ: Any, guard: bool = True) -> None:
        super().__init__(typ)
        self.guard = guard

    def fold(self, state: State, writes: Sequence[Any]) -> State:
        """Return the last write."""
        if self.guard and len(writes) != 1:
            raise one_write_only(self.key, len(writes))
        return writes[-1]

    def dump(self, state: State) -> Any:
        """Return ``MISSING``, always."""
        return MISSING

    def load(self, saved: Any) -> State:
        """Return an empty state, whatever was saved."""
        return MISSING

    def _spec(self) -> object:
        return self.guard
