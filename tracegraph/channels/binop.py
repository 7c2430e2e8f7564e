"""The reducer channel."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from tracegraph.channels.appending import appended
from tracegraph.channels.base import RuleChannel, State
from tracegraph.channels.delta import DeltaLog, DeltaSnapshot
from tracegraph.channels.empty import constructor_of
from tracegraph.channels.overwriting import one_overwrite_only, same_function
from tracegraph.constants import MISSING
from tracegraph.records import Growth
from tracegraph.types import Overwrite

__all__ = ["BinaryOperatorAggregate"]

Value = TypeVar("Value")

_MAY_OVERWRITE = frozenset({Overwrite, dict})


class BinaryOperatorAggregate(RuleChannel[Value, Value, Value]):
    """Folds writes into its value with ``operator(value, write)``, in task order.

    It starts as the empty value of *typ* (``int`` as 0, ``Sequence[str]`` as ``[]``), or empty if there is
    none; then the first write becomes the value as it is. An :class:`~tracegraph.types.Overwrite` replaces
    the value and wins over all other writes of its superstep, before and after it; two are an error.
    The operator must not change its left argument, which is the value running tasks still see. Of a list that
    only grew at its end, savers store what was added.

    >>> import operator
    >>> total = BinaryOperatorAggregate(int, operator.add)
    >>> total.get(), total.update([3, 4]), total.get(), total.update([1, Overwrite(10), 2]), total.get()
    (0, True, 7, True, 10)
    """

    grows = True

    def __init__(self, typ: Any, operator: Callable[[Value, Value], Value]) -> None:
        self.operator = operator
        self._make = constructor_of(typ)
        super().__init__(typ)

    def initial(self) -> State:
        """Return a new empty value of the type, if it has one."""
        return MISSING if self._make is None else self._make()

    def fold(self, state: State, writes: Sequence[Any]) -> State:
        """Return the value with *writes* folded in."""
        operator = self.operator
        has_overwrite = False
        for write in writes:
            kind = type(write)
            if kind is Overwrite or kind is dict:
                is_overwrite, value = Overwrite.unwrap(write)
                if is_overwrite:
                    if has_overwrite:
                        raise one_overwrite_only(self.key)
                    has_overwrite = True
                    state = value
                    continue
            if not has_overwrite:
                state = write if state is MISSING else operator(state, write)
        return state

    def increment(self, before: State, after: State, writes: Sequence[Any]) -> tuple[Growth, list[Any]] | None:
        """Return the items that were added to the end of a list; None for anything else that happened to it."""
        if any(type(write) in _MAY_OVERWRITE and Overwrite.unwrap(write)[0] for write in writes):
            return None
        items = appended(before, after, writes, self.operator)
        return None if items is None else ("append", items)

    def load(self, saved: Any) -> State:
        """Return the saved value; what a delta channel of the same name left is unwrapped."""
        if type(saved) is DeltaSnapshot:
            return saved.value
        if type(saved) is DeltaLog:
            state = self.load(saved.base)
            return self.fold(state, saved.writes) if saved.writes else state
        return super().load(saved)

    def _spec(self) -> object:
        return same_function(self.operator)
