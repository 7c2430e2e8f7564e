"""What channels say was added to them."""

from __future__ import annotations

import operator
from typing import Any

import pytest

from tracegraph.channels import BinaryOperatorAggregate, DeltaChannel, LastValue
from tracegraph.messages import HumanMessage, add_message_batches, add_messages
from tracegraph.types import Overwrite

OLD, NEW = HumanMessage("a", id="1"), HumanMessage("b", id="2")


@pytest.mark.parametrize(
    ("reducer", "before", "writes", "expected"),
    [
        (operator.add, [1], [[2], [3]], [2, 3]),
        (operator.add, [1], [Overwrite([1, 2])], None),
        (operator.add, [1], [{"__overwrite__": [1, 2]}], None),
        (operator.add, [OLD], [[NEW]], [NEW]),
        (operator.add, [OLD], [[OLD]], None),
        (operator.add, 1, [2], None),
        (lambda left, right: left + right, [1], [[2]], [2]),
        (lambda left, right: left + right, [OLD], [[NEW]], None),
        (lambda left, right: [*left, *right[1:]], [1], [[2, 3]], None),
        (lambda left, right: [0, *left, *right[1:]], [1], [[2, 3]], None),
        (add_messages, [OLD], [[NEW]], [NEW]),
        (add_messages, [OLD], [[OLD, NEW]], None),
    ],
)
def test_a_reducer_channel_says_what_was_added(reducer: Any, before: Any, writes: Any, expected: Any) -> None:
    """Only where nothing else can have been done to what is there."""
    channel = BinaryOperatorAggregate(type(before), reducer)
    after = channel.fold(before, writes)

    assert channel.increment(before, after, writes) == (None if expected is None else ("append", expected))


@pytest.mark.parametrize(
    ("reducer", "before", "writes", "expected"),
    [
        (lambda log, batch: [*log, *batch], [1], [2, 3], ("fold", [2, 3])),
        (lambda log, batch: [*log, *batch], [1], [Overwrite([2])], None),
        (add_message_batches, [OLD], [[NEW]], ("append", [NEW])),
        (add_message_batches, [OLD], [[OLD]], None),
    ],
)
def test_a_delta_channel_says_what_was_written(reducer: Any, before: Any, writes: Any, expected: Any) -> None:
    """Messages are given ids, so what was made of the writes is what counts."""
    channel: DeltaChannel[Any] = DeltaChannel(reducer, list)

    assert channel.increment(before, channel.fold(before, writes), writes) == expected


def test_other_channels_say_nothing() -> None:
    """Their values are stored whole."""
    assert LastValue(list).increment([1], [1, 2], [[1, 2]]) is None
    assert not LastValue(list).grows
