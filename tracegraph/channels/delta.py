"""The reducer channel for long histories."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from tracegraph.channels.appending import appended
from tracegraph.channels.base import RuleChannel, State
from tracegraph.channels.empty import constructor_of
from tracegraph.channels.overwriting import one_overwrite_only, same_function
from tracegraph.constants import MISSING
from tracegraph.records import Growth, PendingWrite
from tracegraph.types import Overwrite

__all__ = ["DeltaChannel", "DeltaLog", "DeltaSnapshot"]

Value = TypeVar("Value")


@dataclass(frozen=True, slots=True)
class DeltaSnapshot(Generic[Value]):
    """A delta channel's whole value, as a checkpoint holds it."""

    value: Value


@dataclass(frozen=True, slots=True)
class DeltaLog(Generic[Value]):
    """A delta channel's value as a saver that stores increments hands it out: writes to fold into a base, oldest first.

    ``base`` is a value, or a snapshot of one; ``MISSING`` stands for the empty value.
    """

    base: Value | DeltaSnapshot[Value] | Any
    writes: list[Any]


class DeltaChannel(RuleChannel[Value, Any, Value]):
    """Folds each superstep's writes with one call, ``reducer(value, [write, ...])``.

    The reducer must be deterministic, and folding two batches in turn must equal folding their
    concatenation. Overwrites behave as in :class:`BinaryOperatorAggregate`; ``Overwrite(None)`` starts anew.

    Savers store each superstep's writes, and the whole value only once the writes since the last one are as large as
    that. ``snapshot_frequency``, updates between two snapshots, is kept for graphs written for LangGraph and changes nothing.

    >>> log = DeltaChannel(lambda lines, batch: [*lines, *batch], list)
    >>> log.update(["a", "b"]), log.get()
    (True, ['a', 'b'])

    Raises:
        ValueError: ``snapshot_frequency`` is not positive.
        TypeError: *typ* has no empty value to start with.
    """

    grows = True

    def __init__(self, reducer: Callable[[Any, list[Any]], Any], typ: Any = None, *, snapshot_frequency: int = 100) -> None:
        if snapshot_frequency <= 0:
            raise ValueError(f"snapshot_frequency counts updates and must be positive, not {snapshot_frequency!r}")
        typ = list if typ is None else typ
        make = constructor_of(typ)
        if make is None:
            raise TypeError(f"a delta channel starts with an empty value, but {typ!r} cannot be called without arguments")
        self._make = make
        self.reducer = reducer
        self.snapshot_frequency = snapshot_frequency
        super().__init__(typ)

    def initial(self) -> State:
        """Return a new empty value of the type."""
        return self._make()

    def fold(self, state: State, writes: Sequence[Any]) -> State:
        """Return the value after this batch."""
        values = [value for is_overwrite, value in map(Overwrite.unwrap, writes) if is_overwrite]
        if len(values) > 1:
            raise one_overwrite_only(self.key)
        return self._base(values[0]) if values else self.reducer(state, list(writes))

    def increment(self, before: State, after: State, writes: Sequence[Any]) -> tuple[Growth, list[Any]] | None:
        """Return the writes, unless one overwrites, or the reducer completes what it is given (see ``completes_writes``)."""
        if any(is_overwrite for is_overwrite, _value in map(Overwrite.unwrap, writes)):
            return None
        if getattr(self.reducer, "completes_writes", False):
            items = appended(before, after, writes, self.reducer)
            return None if items is None else ("append", items)
        return "fold", list(writes)

    def load(self, saved: Any) -> State:
        """Return the saved value: a snapshot's, a log's, or that of a reducer channel that had this name before."""
        if type(saved) is DeltaLog:
            return self.replay(self.load(saved.base), saved.writes)
        if type(saved) is DeltaSnapshot:
            return saved.value
        return self._make() if saved is MISSING or saved is None else saved

    def replay(self, state: State, values: Iterable[Any]) -> State:
        """Return *state* with many supersteps' stored writes folded in, oldest first; the last overwrite counts."""
        rest: list[Any] = []
        for write in values:
            is_overwrite, value = Overwrite.unwrap(write)
            if is_overwrite:
                state = self._base(value)
                rest = []
            else:
                rest.append(write)
        return self.reducer(state, rest) if rest else state

    def replay_writes(self, writes: Sequence[PendingWrite]) -> None:
        """Fold stored writes of this channel into the value, oldest first."""
        self._state = self.replay(self._state, (value for _task, _channel, value in writes))

    def _base(self, value: Any) -> Any:
        return self._make() if value is None else copy(value)

    def _spec(self) -> object:
        return (self.snapshot_frequency, same_function(self.reducer))
