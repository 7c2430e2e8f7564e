"""What a channel is: pure rules over a state, and on top of them an object that holds one state.

The engine uses the rules: one :class:`BaseChannel` object per name serves all runs of a graph, and its
state lives in the run. Users and tests use the object form (``update``, ``get``, ``checkpoint``, ...).
A channel of your own may give either: subclass :class:`RuleChannel` and write rules, or subclass
:class:`BaseChannel` and write the object form, from which rules are derived.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Sequence
from typing import Any, ClassVar, Generic, Self, TypeAlias, TypeVar

from tracegraph.constants import MISSING, UNCHANGED
from tracegraph.errors import EmptyChannelError, ErrorCode, InvalidUpdateError
from tracegraph.records import Growth

__all__ = ["BaseChannel", "RuleChannel", "State", "one_write_only"]

Value = TypeVar("Value")
Update = TypeVar("Update")
Saved = TypeVar("Saved")

State: TypeAlias = Any
"""What a channel's rules work on; ``MISSING`` if it is empty. Never changed in place by a rule."""

_SHALLOW = frozenset({list, dict, set, deque})


class BaseChannel(ABC, Generic[Value, Update, Saved]):
    """A value with a rule for batches of writes, once per superstep, and a form to save.

    Subclass it with the five abstract members; the rules then hold a copy of your object as their state,
    and a change that ``update``, ``consume`` or ``finish`` makes while returning False is dropped.
    """

    is_plain: ClassVar[bool] = False
    """The state is the readable value itself, ``MISSING`` if there is none."""
    clears: ClassVar[bool] = True
    """A superstep that does not write the channel may change it (:meth:`cleared`)."""
    consumes: ClassVar[bool] = True
    """A superstep whose tasks the channel triggered changes it (:meth:`consumed`)."""
    finishes: ClassVar[bool] = True
    """Reaching the end of the run changes it (:meth:`finished`)."""
    is_saved: ClassVar[bool] = True
    """It has a place in checkpoints."""
    replaces: ClassVar[bool] = False
    """A superstep's one write becomes the state as it is, so that :meth:`fold` need not be called for it."""

    grows: bool = False
    """:meth:`increment` may have something to say, so that it is asked."""

    key: str
    """Name of the channel, set by the graph; used in error texts."""
    typ: Any

    def __init__(self, typ: Any, key: str = "") -> None:
        self.typ = typ
        self.key = key

    @property
    @abstractmethod
    def ValueType(self) -> Any:
        """Type of the readable value, for schemas."""

    @property
    @abstractmethod
    def UpdateType(self) -> Any:
        """Type of one write, for schemas."""

    # The object form.

    @abstractmethod
    def update(self, values: Sequence[Update]) -> bool:
        """Apply a superstep's writes in the order given; ``[]`` if nobody wrote. Return whether the value changed.

        Raises:
            InvalidUpdateError: the channel cannot take this batch; its value is as before.
        """

    @abstractmethod
    def get(self) -> Value:
        """Return the value.

        Raises:
            EmptyChannelError: there is none.
        """

    @abstractmethod
    def from_checkpoint(self, checkpoint: Saved | Any) -> Self:
        """Return a new channel like this one that holds the saved form; an empty one for ``MISSING``."""

    def is_available(self) -> bool:
        """Say whether :meth:`get` would succeed."""
        try:
            self.get()
        except EmptyChannelError:
            return False
        return True

    def checkpoint(self) -> Saved | Any:
        """Return the form to save, or ``MISSING``."""
        try:
            return self.get()
        except EmptyChannelError:
            return MISSING

    def copy(self) -> Self:
        """Return an independent channel with the same value."""
        return self.from_checkpoint(self.checkpoint())

    def consume(self) -> bool:
        """React to having triggered a task of this superstep; return whether the value changed."""
        return False

    def finish(self) -> bool:
        """React to the end of the run being reached; return whether the value changed."""
        return False

    # The rules, derived from the object form: the state is an instance.

    def initial(self) -> State:
        """Return the state of a channel that was never written."""
        return self.load(MISSING)

    def fold(self, state: State, writes: Sequence[Any]) -> State:
        """Return the state after a superstep's *writes* (at least one), or ``UNCHANGED``.

        Raises:
            InvalidUpdateError: the channel cannot take this batch.
        """
        held = self._copy_of(state)
        return held if held.update(writes) else UNCHANGED

    def cleared(self, state: State) -> State:
        """Return the state after a superstep that did not write the channel, or ``UNCHANGED``."""
        held = self._copy_of(state)
        return held if held.update([]) else UNCHANGED

    def consumed(self, state: State) -> State:
        """Return the state after the channel triggered a task, or ``UNCHANGED``."""
        if type(self).consume is BaseChannel.consume:
            return UNCHANGED
        held = self._copy_of(state)
        return held if held.consume() else UNCHANGED

    def finished(self, state: State) -> State:
        """Return the state after the end of the run was reached, or ``UNCHANGED``."""
        if type(self).finish is BaseChannel.finish:
            return UNCHANGED
        held = self._copy_of(state)
        return held if held.finish() else UNCHANGED

    def increment(self, before: State, after: State, writes: Sequence[Any]) -> tuple[Growth, list[Any]] | None:
        """Return what a superstep's *writes* added to *before* to make *after*; None: that cannot be said in less than *after*.

        Savers then store the increment instead of the value.
        """
        return None

    def peek(self, state: State) -> Any:
        """Return the readable value of *state*, or ``MISSING``."""
        return state.get() if state.is_available() else MISSING

    def dump(self, state: State) -> Any:
        """Return the form of *state* to save, or ``MISSING``."""
        return state.checkpoint()

    def load(self, saved: Any) -> State:
        """Return the state of a saved form; the initial one for ``MISSING``."""
        held = self.from_checkpoint(saved)
        held.key = self.key
        return held

    def _copy_of(self, state: Any) -> Any:
        held = state.copy()
        held.key = self.key
        return held


class RuleChannel(BaseChannel[Value, Update, Saved]):
    """A channel given by pure rules: ``fold`` and whatever of the others differs from a plain last value.

    Rules call each other through ``self._rules``, and what they need is set before ``super().__init__``.
    The object form keeps one state and applies the rules to it. A subclass that overrides methods of the
    object form only (``update``, say, to log) is a channel in object form again: the engine calls its methods.
    """

    is_plain = True
    clears = False
    consumes = False
    finishes = False

    _rules: ClassVar[type[RuleChannel[Any, Any, Any]]]
    """Whose rules the object form applies: the nearest class that has rules of its own."""
    _is_derived: ClassVar[bool] = False
    """The engine-facing rules are those of :class:`BaseChannel`, derived from an overridden object form."""
    _state: State

    def __init__(self, typ: Any, key: str = "") -> None:
        super().__init__(typ, key)
        self._state = self._rules.initial(self)

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        own = cls.__dict__.keys()
        if own & {"fold", "update"} and "replaces" not in own:
            cls.replaces = False
        if own & (_RULES | _OBJECT_FORM) and "increment" not in own:
            cls.increment = BaseChannel.increment  # type: ignore[method-assign]  # what was true of the class it extends
        if own & _RULES:
            if cls._is_derived:
                raise TypeError(
                    f"{cls.__name__} gives rules, but a class it extends gives the object form; extend a rule channel"
                )
            cls._rules = cls
        elif own & _OBJECT_FORM:
            for rule in _RULES:
                setattr(cls, rule, getattr(BaseChannel, rule))
            cls._is_derived = True
            cls.is_plain, cls.clears, cls.consumes, cls.finishes = False, True, True, True

    @property
    def ValueType(self) -> Any:
        """The type given."""
        return self.typ

    @property
    def UpdateType(self) -> Any:
        """The type given."""
        return self.typ

    # The rules of a plain channel that only fold() changes.

    def initial(self) -> State:
        """Return an empty state."""
        return MISSING

    @abstractmethod
    def fold(self, state: State, writes: Sequence[Any]) -> State:
        """Return the state after a superstep's *writes* (at least one), or ``UNCHANGED``."""

    def cleared(self, state: State) -> State:
        """Change nothing."""
        return UNCHANGED

    def consumed(self, state: State) -> State:
        """Change nothing."""
        return UNCHANGED

    def finished(self, state: State) -> State:
        """Change nothing."""
        return UNCHANGED

    def peek(self, state: State) -> Any:
        """Return the state, which is the value."""
        return state

    def dump(self, state: State) -> Any:
        """Return the state, which is what is saved."""
        return state

    def load(self, saved: Any) -> State:
        """Return the saved form as it is; the initial state for ``MISSING``."""
        return self._rules.initial(self) if saved is MISSING else saved

    # The object form.

    def update(self, values: Sequence[Update]) -> bool:
        """Apply the rules to the state this object holds; see :meth:`BaseChannel.update`."""
        rules = self._rules
        return self._become(rules.fold(self, self._state, list(values)) if values else rules.cleared(self, self._state))

    def consume(self) -> bool:
        """See :meth:`BaseChannel.consume`."""
        return self._become(self._rules.consumed(self, self._state))

    def finish(self) -> bool:
        """See :meth:`BaseChannel.finish`."""
        return self._become(self._rules.finished(self, self._state))

    def get(self) -> Value:
        """See :meth:`BaseChannel.get`."""
        value: Value | Any = self._rules.peek(self, self._state)
        if value is MISSING:
            raise EmptyChannelError(f"channel {self.key!r} holds no value; check is_available() before get()")
        return value

    def is_available(self) -> bool:
        """See :meth:`BaseChannel.is_available`."""
        return self._rules.peek(self, self._state) is not MISSING

    def checkpoint(self) -> Saved | Any:
        """See :meth:`BaseChannel.checkpoint`."""
        return self._rules.dump(self, self._state)

    def from_checkpoint(self, checkpoint: Saved | Any) -> Self:
        """See :meth:`BaseChannel.from_checkpoint`."""
        return self._with(self._rules.load(self, checkpoint))

    def copy(self) -> Self:
        """Return a channel with the same value; an exact list, dict, set or deque is copied, one level deep."""
        state = self._state
        return self._with(state.copy() if type(state) in _SHALLOW else state)

    def _with(self, state: State) -> Self:
        made = object.__new__(type(self))
        made.__dict__.update(self.__dict__)
        made._state = state
        return made

    def _become(self, state: State) -> bool:
        if state is UNCHANGED:
            return False
        self._state = state
        return True

    # Equality says whether two schemas may declare the same key; the value does not matter.

    def _spec(self) -> object:
        return None

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and self._spec() == other._spec()

    # Not derived from __eq__: typing caches Annotated[...] by hash, and channels that are interchangeable
    # in a schema (any two LastValues, any lambda) must not replace one another there.
    __hash__ = object.__hash__

    def __repr__(self) -> str:
        shown = "empty" if self._state is MISSING else repr(self._state)
        return f"<{type(self).__name__} {self.key!r}: {shown}>"


_RULES = frozenset({"initial", "fold", "cleared", "consumed", "finished", "peek", "dump", "load"})
_OBJECT_FORM = frozenset({"update", "get", "is_available", "consume", "finish", "checkpoint", "from_checkpoint", "copy"})


def one_write_only(key: str, count: int) -> InvalidUpdateError:
    """Return the error for *count* writes in one superstep to a channel that takes one."""
    return InvalidUpdateError(
        f"channel {key!r} takes one write per step, but got {count}; declare a reducer for it "
        "(Annotated[type, reducer]), or let one node write it",
        channel=key,
        error_code=ErrorCode.INVALID_CONCURRENT_GRAPH_UPDATE,
    )
