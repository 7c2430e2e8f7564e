"""Copies of state values."""

from __future__ import annotations

import threading
from collections import OrderedDict, deque
from copy import deepcopy
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import Enum
from pathlib import PurePosixPath
from typing import Any, NamedTuple

import pytest
from pydantic import BaseModel

from tracegraph.checkpoint.memory.isolation import isolated
from tracegraph.messages import AIMessage, HumanMessage
from tracegraph.types import Interrupt, Send


@dataclass
class Plain:
    items: list[int] = field(default_factory=list)


@dataclass(slots=True)
class Slotted:
    items: list[int]
    number: int = 1


@dataclass(slots=True)
class SlottedBelowPlain(Plain):
    more: list[int] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Frozen:
    items: list[int]


@dataclass
class OwnCopy:
    items: list[int]

    def __deepcopy__(self, memo: Any) -> OwnCopy:
        return OwnCopy([*self.items, 99])


class Colour(Enum):
    RED = 1


class Pair(NamedTuple):
    left: list[int]
    right: int


class Model(BaseModel):
    items: list[int]


VALUES: list[Any] = [
    [1, "a", None],
    [[1], {"a": [2]}, (3, [4])],
    {"a": 1, 2: "b"},
    {"a": {"b": [1]}},
    {(1, 2): [1]},
    {1, 2},
    {(1, 2), frozenset({3})},
    (1, "a"),
    (1, [2]),
    deque([[1]]),
    OrderedDict(a=[1]),
    Plain([1]),
    Slotted([1]),
    SlottedBelowPlain([1], [2]),
    Frozen([1]),
    Pair([1], 2),
    Model(items=[1]),
    [HumanMessage(["a", {"type": "text"}], id="1"), AIMessage("b", tool_calls=[{"name": "f", "args": {"x": [1]}, "id": "1"}])],
    [Interrupt({"q": [1]}, "id"), Send("n", {"a": [1]})],
    [Colour.RED, datetime.now(UTC), PurePosixPath("x"), len, bytearray(b"x")],
]


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_copy_is_equal_and_of_the_same_types(value: Any) -> None:
    """Whatever states are made of."""
    copied = isolated(value)

    assert copied == value
    assert repr(copied) == repr(value)
    assert type(copied) is type(value)


@pytest.mark.parametrize(
    "value", [Plain([1]), Slotted([1]), SlottedBelowPlain([1]), Frozen([1]), Pair([1], 2), Model(items=[1])], ids=repr
)
def test_copy_shares_nothing_that_changes(value: Any) -> None:
    """One level down in an object."""
    copied = isolated([value])[0]
    inner = copied.left if isinstance(copied, Pair) else copied.items

    inner.append(2)

    assert (value.left if isinstance(value, Pair) else value.items) == [1]


def test_shared_references_stay_shared() -> None:
    """Through every container, and through objects that deepcopy copies."""
    shared: list[int] = [1]
    value = {"list": [shared], "tuple": (shared,), "plain": Plain(shared), "slotted": Slotted(shared), "deque": deque([shared])}

    copied = isolated(value)

    found = [copied["list"][0], copied["tuple"][0], copied["plain"].items, copied["slotted"].items, copied["deque"][0]]
    assert {id(item) for item in found} == {id(found[0])} != {id(shared)}


def test_circular_references_stay_circular() -> None:
    """A list, a dict, an object and a tuple that contain themselves."""
    ring: list[Any] = []
    ring.append((ring,))
    table: dict[str, Any] = {}
    table["self"] = table
    thing = Plain()
    thing.items.append(thing)  # type: ignore[arg-type]

    copied_ring, copied_table, copied_thing = isolated([ring, table, thing])

    assert copied_ring[0][0] is copied_ring is not ring
    assert copied_table["self"] is copied_table is not table
    assert copied_thing.items[0] is copied_thing is not thing
    inside: tuple[Any, ...] = ([],)
    inside[0].append(inside)
    copied = isolated(inside)
    assert copied[0][0] is copied is not inside


def test_own_way_of_copying_is_respected() -> None:
    """A class that says how it is copied is asked."""
    assert isolated([OwnCopy([1])]) == deepcopy([OwnCopy([1])]) == [OwnCopy([1, 99])]


def test_errors_are_shared() -> None:
    """Many cannot be rebuilt from their arguments, and nobody changes them."""
    error = ValueError("x")

    assert isolated({"e": error})["e"] is error


def test_what_cannot_be_copied_raises() -> None:
    """The caller adds the channel's name."""
    with pytest.raises(TypeError, match="lock"):
        isolated([threading.Lock()])
