"""The ready reducers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tracegraph.channels import BinaryOperatorAggregate
from tracegraph.channels.reducers import append, merge, overwrite, union


@pytest.mark.parametrize(
    ("reducer", "left", "right", "expected"),
    [
        (overwrite, 1, 2, 2),
        (append, [1], [2, 3], [1, 2, 3]),
        (append, [1], 2, [1, 2]),
        (append, None, (1, 2), [(1, 2)]),
        (merge, {"a": {"x": 1, "y": 1}, "b": 1}, {"a": {"y": {"z": 2}}, "c": 3}, {"a": {"x": 1, "y": {"z": 2}}, "b": 1, "c": 3}),
        (merge, {"a": {"x": 1}}, {"a": None}, {"a": None}),
        (merge, None, {"a": 1}, {"a": 1}),
        (merge, {"a": 1}, None, {"a": 1}),
        (union, {1}, [1, 2], {1, 2}),
        (union, None, {1}, {1}),
    ],
)
def test_reducer_combines(reducer: Callable[[Any, Any], Any], left: Any, right: Any, expected: Any) -> None:
    """Each makes what its name says, and accepts a side that is not there yet."""
    assert reducer(left, right) == expected


def test_merge_leaves_both_sides_alone() -> None:
    """Nested dicts are rebuilt, never updated in place."""
    left, right = {"a": {"x": {"p": 1}}}, {"a": {"x": {"q": 2}}}

    merge(left, right)

    assert (left, right) == ({"a": {"x": {"p": 1}}}, {"a": {"x": {"q": 2}}})


def test_union_refuses_a_bare_string() -> None:
    """Its letters are not what anyone meant."""
    with pytest.raises(TypeError, match="not a str of length 3"):
        union(set(), "abc")


def test_reducers_work_in_a_channel() -> None:
    """They start from the empty value of the field's type."""
    channel = BinaryOperatorAggregate(set, union)

    channel.update([{1}, [2]])

    assert channel.get() == {1, 2}
