"""Nested fields: their marker, and what lets a sub-field of any kind be overwritten."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, final

from tracegraph.channels.base import BaseChannel, RuleChannel, State
from tracegraph.channels.binop import BinaryOperatorAggregate
from tracegraph.channels.delta import DeltaChannel
from tracegraph.channels.overwriting import one_overwrite_only
from tracegraph.constants import MISSING, UNCHANGED
from tracegraph.types import Overwrite

__all__ = ["Nested", "Overwritable", "overwrite_of", "sub_channel"]


@final
class Nested:
    """Marks a state field that is a TypedDict: each of its keys is a channel, with a reducer and a version of its own.

    A write names the sub-fields it changes; the others stay. See ``docs/nested_state.md``.

    >>> from typing import Annotated, TypedDict
    >>> from tracegraph.channels.reducers import union
    >>> from tracegraph.graph import StateGraph
    >>> Meta = TypedDict("Meta", {"tags": Annotated[set[str], union], "title": str})
    >>> State = TypedDict("State", {"meta": Annotated[Meta, Nested]})
    >>> builder = StateGraph(State).add_sequence([("tag", lambda state: {"meta": {"tags": {"new"}}})])
    >>> builder.set_entry_point("tag").compile().invoke({"meta": {"title": "Owls"}})
    {'meta': {'tags': {'new'}, 'title': 'Owls'}}
    """

    __slots__ = ()


class Overwritable(RuleChannel[Any, Any, Any]):
    """Another channel that takes an Overwrite as reducers do: it wins over all other writes of its superstep.

    ``Overwrite(MISSING)`` empties it. What is no reducer would store the Overwrite itself, so that a nested field could
    not be replaced as a whole.

    >>> from tracegraph.channels import LastValue
    >>> title = Overwritable(LastValue(str, "meta.title"))
    >>> title.update(["a"]), title.update([Overwrite("b"), "c"]), title.get()
    (True, True, 'b')
    >>> title.update([Overwrite(MISSING)]), title.is_available()
    (True, False)
    """

    def __init__(self, inner: BaseChannel[Any, Any, Any]) -> None:
        self.inner = inner
        for fact in ("is_plain", "clears", "consumes", "finishes", "is_saved"):
            setattr(self, fact, getattr(inner, fact))
        super().__init__(inner.typ, inner.key)

    @property
    def ValueType(self) -> Any:
        """That of the channel inside."""
        return self.inner.ValueType

    @property
    def UpdateType(self) -> Any:
        """That of the channel inside."""
        return self.inner.UpdateType

    def initial(self) -> State:
        """Return the initial state of the channel inside."""
        return self.inner.initial()

    def fold(self, state: State, writes: Sequence[Any]) -> State:
        """Return what the channel inside makes of *writes*, or of the one Overwrite among them from its initial state."""
        found = [value for is_overwrite, value in map(Overwrite.unwrap, writes) if is_overwrite]
        if not found:
            return self.inner.fold(state, writes)
        if len(found) > 1:
            raise one_overwrite_only(self.key)
        empty = self.inner.initial()
        if found[0] is MISSING:
            return UNCHANGED if state is MISSING and empty is MISSING else empty
        after = self.inner.fold(empty, found)
        return empty if after is UNCHANGED else after

    def cleared(self, state: State) -> State:
        """Do as the channel inside."""
        return self.inner.cleared(state)

    def consumed(self, state: State) -> State:
        """Do as the channel inside."""
        return self.inner.consumed(state)

    def finished(self, state: State) -> State:
        """Do as the channel inside."""
        return self.inner.finished(state)

    def peek(self, state: State) -> Any:
        """Do as the channel inside."""
        return self.inner.peek(state)

    def dump(self, state: State) -> Any:
        """Do as the channel inside."""
        return self.inner.dump(state)

    def load(self, saved: Any) -> State:
        """Do as the channel inside."""
        return self.inner.load(saved)

    def _spec(self) -> object:
        return self.inner


def sub_channel(channel: BaseChannel[Any, Any, Any]) -> BaseChannel[Any, Any, Any]:
    """Return *channel* as that of a sub-field, which takes an Overwrite whatever its kind."""
    return channel if isinstance(channel, (BinaryOperatorAggregate, DeltaChannel)) else Overwritable(channel)


def overwrite_of(channel: BaseChannel[Any, Any, Any], value: Any = MISSING) -> Overwrite:
    """Return the write that replaces what a sub-field holds with *value*, or without one brings it back to its start.

    >>> import operator
    >>> overwrite_of(BinaryOperatorAggregate(int, operator.add), 3), overwrite_of(BinaryOperatorAggregate(int, operator.add))
    (Overwrite(value=3), Overwrite(value=0))
    """
    _is_overwrite, value = Overwrite.unwrap(value)
    if value is MISSING:
        if isinstance(channel, DeltaChannel):
            value = None  # starts it anew
        elif isinstance(channel, BinaryOperatorAggregate):
            value = channel.initial()
    return Overwrite(value)
