"""Classes made with attrs."""

from __future__ import annotations

import sys
from typing import Any

import pytest
from msgpack import ExtType, packb
from sameness import SERDE, again

from tracegraph.checkpoint.serde.codes import Code
from tracegraph.checkpoint.serde.errors import UnreadableBytesError
from tracegraph.checkpoint.serde.jsonplus import JsonPlusSerializer

attrs = pytest.importorskip("attrs")

RAN: list[str] = []


@attrs.define
class Slotted:
    value: Any
    _hidden: int = 2
    computed: Any = attrs.field(init=False)
    items: list[int] = attrs.Factory(list)

    def __attrs_post_init__(self) -> None:
        RAN.append("post_init")
        self.computed = (self.value,)


@attrs.frozen(cache_hash=True)
class Frozen:
    text: str


@attrs.define(slots=False)
class Unslotted:
    value: Any = 1


@attrs.define
class Grown:
    old: int
    plain: int = 5
    made: list[int] = attrs.Factory(list)
    own: int = attrs.Factory(lambda self: self.plain + 1, takes_self=True)


def test_instances_come_back_the_same() -> None:
    """Private and computed fields included, and no code of the class runs."""
    values = [Slotted({1}, 3), Unslotted((1,)), Frozen("a")]
    values[1].extra = 1
    hash(values[2])
    RAN.clear()

    restored = again(values)

    assert restored == values
    assert (restored[0].computed, restored[1].extra, RAN) == (({1},), 1, [])


def test_cached_hash_is_not_stored() -> None:
    """Hashes of text differ from process to process."""
    value = Frozen("a")
    before = SERDE.dumps_typed(value)
    hash(value)

    assert SERDE.dumps_typed(value) == before
    assert hash(again(value)) == hash(value)


def test_new_fields_get_their_defaults() -> None:
    """Constant, made, or made from the instance; one without a default is an error."""
    name = Grown.__module__

    def stored(state: Any) -> Any:
        return "msgpack", packb(ExtType(Code.ATTRS, packb([name, "Grown", state])))

    restored = SERDE.loads_typed(stored({"old": 1}))

    assert restored == Grown(1)
    with pytest.raises(UnreadableBytesError, match="now needs 'old'"):
        SERDE.loads_typed(stored({}))


def test_strict_mode_gives_the_fields() -> None:
    """As for dataclasses."""
    strict = JsonPlusSerializer(allowed_msgpack_modules=None)

    assert strict.loads_typed(SERDE.dumps_typed(Frozen("a"))) == {"text": "a"}
    assert Frozen.__module__ in sys.modules
