"""Any channel as that of a sub-field: it takes an Overwrite, and is otherwise what it was."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import pytest

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
from tracegraph.channels.nested import Overwritable, overwrite_of, sub_channel
from tracegraph.constants import MISSING
from tracegraph.errors import InvalidUpdateError
from tracegraph.types import Overwrite

Make = Callable[[], BaseChannel[Any, Any, Any]]

KINDS: list[Make] = [
    lambda: AnyValue(str, "k"),
    lambda: EphemeralValue(str),
    lambda: EphemeralValue(str, guard=False),
    lambda: LastValue(str, "k"),
    lambda: LastValueAfterFinish(str),
    lambda: NamedBarrierValue(str, {"a"}),
    lambda: NamedBarrierValueAfterFinish(str, {"a"}),
    lambda: Topic(str),
    lambda: Topic(str, accumulate=True),
    lambda: UntrackedValue(str),
]


@pytest.mark.parametrize("make", KINDS)
def test_without_an_overwrite_it_does_what_the_channel_inside_does(make: Make) -> None:
    """Update by update, to the end of a run, and in what is saved."""
    plain, wrapped = make(), Overwritable(make())
    for step in (
        lambda channel: channel.update(["a"]),
        lambda channel: channel.consume(),
        lambda channel: channel.finish(),
        lambda channel: channel.consume(),
        lambda channel: channel.update([]),
        lambda channel: channel.update(["a"]),
        lambda channel: channel.from_checkpoint(channel.checkpoint()).is_available(),
    ):
        assert (step(wrapped), wrapped.is_available(), wrapped.checkpoint()) == (
            step(plain),
            plain.is_available(),
            plain.checkpoint(),
        )
    facts = ("key", "typ", "ValueType", "UpdateType", "is_plain", "clears", "consumes", "finishes", "is_saved")
    assert [getattr(wrapped, fact) for fact in facts] == [getattr(plain, fact) for fact in facts]
    assert (wrapped == Overwritable(make()), wrapped == plain) == (True, False)


@pytest.mark.parametrize("make", KINDS)
def test_an_overwrite_wins_over_all_other_writes(make: Make) -> None:
    """Before and after it: the channel is as if nothing else had ever been written."""
    expected = make()
    expected.update(["a"])
    wrapped = Overwritable(make())
    wrapped.update(["a"])

    assert wrapped.update(["a", Overwrite("a"), "a"])

    assert wrapped.checkpoint() == expected.checkpoint()
    with pytest.raises(InvalidUpdateError, match="takes one Overwrite per step"):
        wrapped.update([Overwrite("a"), Overwrite("a")])


@pytest.mark.parametrize("make", KINDS)
def test_an_overwrite_without_a_value_empties_it(make: Make) -> None:
    """A second one finds nothing to change where nothing is held."""
    wrapped = Overwritable(make())
    wrapped.update(["a"])

    assert wrapped.update([overwrite_of(wrapped)])

    assert wrapped.checkpoint() == make().checkpoint()
    if make().checkpoint() is MISSING and not isinstance(make(), UntrackedValue):
        assert not wrapped.update([overwrite_of(wrapped)])


def test_an_overwrite_may_change_nothing_in_the_channel_inside() -> None:
    """A topic that is given an empty list is empty."""
    wrapped = Overwritable(Topic(str, accumulate=True))
    wrapped.update(["a"])

    assert wrapped.update([Overwrite([])])
    assert wrapped.checkpoint() == []


def test_reducer_channels_need_no_help() -> None:
    """They take an Overwrite already, and start again with the empty value of their type."""
    total, log = BinaryOperatorAggregate(int, operator.add), DeltaChannel(lambda old, batch: [*old, *batch], list)
    late = BinaryOperatorAggregate(int | None, operator.add)  # type: ignore[arg-type]
    last = LastValue(int)

    assert [sub_channel(channel) is channel for channel in (total, log, late, last)] == [True, True, True, False]
    for channel in (total, log, late):
        channel.update([1])
        channel.update([overwrite_of(channel)])
    assert (total.get(), log.get(), late.is_available()) == (0, [], False)
    assert overwrite_of(total, Overwrite(3)) == overwrite_of(total, {"__overwrite__": 3}) == Overwrite(3)
