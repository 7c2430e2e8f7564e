"""What all channels share: copies, equality, and one set of rules behind two faces."""

from __future__ import annotations

import operator
from collections import deque
from collections.abc import Callable
from typing import Annotated, Any, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tracegraph.channels import (
    AnyValue,
    BaseChannel,
    BinaryOperatorAggregate,
    DeltaChannel,
    EphemeralValue,
    LastValue,
    LastValueAfterFinish,
    NamedBarrierValue,
    NamedBarrierValueAfterFinish,
    Topic,
    UntrackedValue,
)
from tracegraph.constants import MISSING, UNCHANGED
from tracegraph.errors import EmptyChannelError, InvalidUpdateError


def minus(left: Any, right: Any) -> Any:
    return f"{left}-{right}"


def joined(left: list[Any], batch: list[Any]) -> list[Any]:
    return [*left, *batch]


MAKERS: dict[str, Callable[[], Any]] = {
    "last": lambda: LastValue(str, "k"),
    "last at end": lambda: LastValueAfterFinish(str, "k"),
    "any": lambda: AnyValue(str, "k"),
    "ephemeral": lambda: EphemeralValue(str),
    "ephemeral, unguarded": lambda: EphemeralValue(str, guard=False),
    "topic": lambda: Topic(str),
    "topic, accumulating": lambda: Topic(str, accumulate=True),
    "reducer": lambda: BinaryOperatorAggregate(str, minus),
    "reducer, empty": lambda: BinaryOperatorAggregate(str | None, minus),
    "barrier": lambda: NamedBarrierValue(str, {"a", "b"}),
    "barrier at end": lambda: NamedBarrierValueAfterFinish(str, {"a", "b"}),
    "untracked": lambda: UntrackedValue(str),
    "delta": lambda: DeltaChannel(joined),
}

EVERY_CHANNEL = pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
STEPS = st.lists(st.one_of(st.lists(st.sampled_from("ab"), max_size=3), st.sampled_from(["consume", "finish"])), max_size=12)


def act(channel: Any, step: Any) -> Any:
    """Carry out one step on the object form; an error is its class."""
    try:
        return getattr(channel, step)() if isinstance(step, str) else channel.update(step)
    except InvalidUpdateError as error:
        return type(error)


def fold(rule: Any, state: Any, step: Any) -> Any:
    """Carry out one step with the rules."""
    if isinstance(step, str):
        return rule.consumed(state) if step == "consume" else rule.finished(state)
    return rule.fold(state, step) if step else rule.cleared(state)


def reading(channel: Any) -> tuple[Any, Any]:
    return (channel.get() if channel.is_available() else MISSING, channel.checkpoint())


@EVERY_CHANNEL
@given(steps=STEPS)
@settings(max_examples=60, deadline=None, derandomize=True)
def test_rules_and_object_form_agree(make: Callable[[], Any], steps: list[Any]) -> None:
    """Any sequence of steps gives the same answers, values, saved forms and errors on both faces."""
    channel, rule = make(), make()
    state = rule.initial()

    for step in steps:
        answer = act(channel, step)
        try:
            after = fold(rule, state, step)
        except InvalidUpdateError as error:
            assert answer is type(error)
        else:
            assert answer is (after is not UNCHANGED)
            state = state if after is UNCHANGED else after
        assert reading(channel) == (rule.peek(state), rule.dump(state))
        if rule.is_plain:
            assert rule.peek(state) is state
        assert (rule.clears or rule.cleared(state) is UNCHANGED) and (rule.consumes or rule.consumed(state) is UNCHANGED)
        assert rule.finishes or rule.finished(state) is UNCHANGED


@EVERY_CHANNEL
@given(before=STEPS, after=STEPS)
@settings(max_examples=30, deadline=None, derandomize=True)
def test_copies_and_restored_channels_go_their_own_way(make: Callable[[], Any], before: list[Any], after: list[Any]) -> None:
    """A copy, and for what is saved a restored channel, behaves as the original would, which stays as it was."""
    channel = make()
    for step in before:
        act(channel, step)
    untouched = reading(channel)
    twins = [channel.copy()] + ([channel.from_checkpoint(channel.checkpoint())] if channel.is_saved else [])

    answers = [[act(twin, step) for step in after] for twin in twins]

    assert reading(channel) == untouched
    expected = [act(channel, step) for step in after]
    assert answers == [expected] * len(twins)
    assert [reading(twin) for twin in twins] == [reading(channel)] * len(twins)
    assert all((twin.key, twin.typ, twin) == (channel.key, channel.typ, channel) for twin in twins)


@pytest.mark.parametrize("value", [[1], {"a": 1}, {1}, deque([1])], ids=lambda v: type(v).__name__)
def test_copy_of_a_collection_is_independent_of_an_operator_that_changes_it(value: Any) -> None:
    """A reducer that works in place on the copy's value leaves the original's alone."""

    def in_place(left: Any, right: Any) -> Any:
        left.clear()
        return left

    channel = BinaryOperatorAggregate(type(value), in_place)
    restored = channel.from_checkpoint(value)

    twin = restored.copy()
    twin.update(["x"])

    assert (len(twin.get()), len(restored.get())) == (0, 1)


def test_channels_are_equal_when_schemas_may_share_them() -> None:
    """Types do not matter, guards, names, accumulation and reducers do; any lambda equals any reducer."""
    assert LastValue(int) == LastValue(str)
    assert LastValue(int) != AnyValue(int)
    assert Topic(int) == Topic(str) != Topic(str, accumulate=True)
    assert EphemeralValue(int) != EphemeralValue(int, guard=False)
    assert UntrackedValue(int) != UntrackedValue(int, guard=False)
    assert NamedBarrierValue(str, {"a"}) == NamedBarrierValue(str, ["a"]) != NamedBarrierValue(str, {"b"})
    assert BinaryOperatorAggregate(int, operator.add) == BinaryOperatorAggregate(float, operator.add)
    assert BinaryOperatorAggregate(int, operator.add) != BinaryOperatorAggregate(int, operator.sub)
    assert BinaryOperatorAggregate(int, operator.add) == BinaryOperatorAggregate(int, lambda a, b: a)
    assert DeltaChannel(joined) == DeltaChannel(joined) != DeltaChannel(joined, snapshot_frequency=5)
    assert DeltaChannel(lambda a, b: a) == DeltaChannel(joined) != DeltaChannel(minus)
    assert (LastValue(int) == 3) is False
    assert (BinaryOperatorAggregate(int, operator.add)._spec() == 3) is False


def test_equal_channels_are_not_confused_in_annotations() -> None:
    """The typing module caches Annotated by hash; two interchangeable channels must stay two."""
    first, second = BinaryOperatorAggregate(int, lambda a, b: a), BinaryOperatorAggregate(int, lambda a, b: b)

    annotations: list[Any] = [Annotated[int, first], Annotated[int, second]]

    assert [get_args(a)[1] for a in annotations] == [first, second]
    assert get_args(annotations[1])[1] is second


def test_repr_shows_name_and_value() -> None:
    """What a debugger shows."""
    channel = LastValue(int, "total")

    assert repr(channel) == "<LastValue 'total': empty>"
    channel.update([3])
    assert repr(channel) == "<LastValue 'total': 3>"


class Largest(BaseChannel[int, int, int]):
    """A user's channel that knows only the object form."""

    def __init__(self, typ: Any, key: str = "") -> None:
        super().__init__(typ, key)
        self.value: Any = MISSING

    @property
    def ValueType(self) -> Any:
        return self.typ

    @property
    def UpdateType(self) -> Any:
        return self.typ

    def update(self, values: Any) -> bool:
        if not values:
            return False
        self.value = max(values) if self.value is MISSING else max(self.value, *values)
        return True

    def get(self) -> int:
        if self.value is MISSING:
            raise EmptyChannelError("nothing yet")
        return int(self.value)

    def from_checkpoint(self, checkpoint: Any) -> Largest:
        made = Largest(self.typ)
        made.value = checkpoint
        return made


class LargestOnce(Largest):
    """The same, emptied when it was used, and negated at the end."""

    def consume(self) -> bool:
        was, self.value = self.value, MISSING
        return was is not MISSING

    def finish(self) -> bool:
        if self.value is MISSING:
            return False
        self.value = -self.value
        return True

    def from_checkpoint(self, checkpoint: Any) -> LargestOnce:
        made = LargestOnce(self.typ)
        made.value = checkpoint
        return made


def test_channel_in_object_form_gets_rules_that_never_change_a_state() -> None:
    """The state is an instance; every rule works on a copy of it, which knows its name."""
    rule = Largest(int, "best")

    empty = rule.initial()
    first = rule.fold(empty, [3, 1])
    second = rule.fold(first, [5])

    assert [rule.peek(state) for state in (empty, first, second)] == [MISSING, 3, 5]
    assert [rule.dump(state) for state in (empty, first, second)] == [MISSING, 3, 5]
    assert rule.peek(rule.load(7)) == 7
    assert {state.key for state in (empty, first, second, rule.load(7))} == {"best"}
    assert rule.cleared(second) is UNCHANGED
    assert (rule.consumed(second), rule.finished(second), second.consume(), second.finish()) == (
        UNCHANGED,
        UNCHANGED,
        False,
        False,
    )
    assert (rule.is_plain, rule.clears, rule.consumes, rule.finishes) == (False, True, True, True)


def test_channel_in_object_form_may_consume_finish_and_clear() -> None:
    """A change that consume() or finish() reports is a new state; no change is UNCHANGED."""
    rule = LargestOnce(int)
    state = rule.fold(rule.initial(), [3])

    assert rule.peek(rule.consumed(state)) is MISSING
    assert rule.peek(rule.finished(state)) == -3
    assert rule.peek(state) == 3
    assert (rule.consumed(rule.initial()), rule.finished(rule.initial())) == (UNCHANGED, UNCHANGED)


def test_clearing_works_in_object_form() -> None:
    """update([]) that returns True is a new state."""

    class Brief(Largest):
        def update(self, values: Any) -> bool:
            if values:
                return super().update(values)
            was, self.value = self.value, MISSING
            return was is not MISSING

        def from_checkpoint(self, checkpoint: Any) -> Brief:
            made = Brief(self.typ)
            made.value = checkpoint
            return made

    rule = Brief(int)
    state = rule.fold(rule.initial(), [3])

    assert (rule.peek(rule.cleared(state)), rule.peek(state)) == (MISSING, 3)


class Doubling(LastValue[int]):
    """A built-in channel with one method of its object form overridden."""

    def update(self, values: Any) -> bool:
        return super().update([v * 2 for v in values])


class Tripling(Doubling):
    """A second layer on top."""

    def get(self) -> int:
        return super().get() * 3


def test_overridden_object_form_of_a_builtin_channel_is_what_the_engine_calls() -> None:
    """Overriding update() or get() takes effect in the rules, errors and name included."""
    doubling, tripling = Doubling(int, "n"), Tripling(int, "n")

    states = [rule.fold(rule.initial(), [4]) for rule in (doubling, tripling)]

    assert [doubling.peek(states[0]), tripling.peek(states[1])] == [8, 24]
    assert (doubling.dump(states[0]), doubling.peek(doubling.load(5)), doubling.is_plain) == (8, 5, False)
    assert doubling.cleared(states[0]) is UNCHANGED
    with pytest.raises(InvalidUpdateError, match="channel 'n' takes one write"):
        doubling.fold(states[0], [1, 2])
    assert doubling.update([1]) and doubling.get() == 2


def test_subclass_that_adds_neither_rules_nor_object_form_keeps_the_rules() -> None:
    """A helper method does not turn a channel into a slower one."""

    class Named(LastValue[int]):
        def label(self) -> str:
            return f"<{self.key}>"

    assert (Named(int, "n").fold(MISSING, [1]), Named.is_plain, Named(int, "n").label()) == (1, True, "<n>")


def test_rules_below_an_overridden_object_form_are_refused() -> None:
    """The two would contradict each other, so the class statement fails."""
    with pytest.raises(TypeError, match="Confused gives rules, but a class it extends gives the object form"):

        class Confused(Doubling):
            def peek(self, state: Any) -> Any:
                return state
