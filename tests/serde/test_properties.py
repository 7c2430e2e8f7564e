"""Whatever is put together from all kinds of values comes back the same; damaged bytes raise one error."""

from __future__ import annotations

import datetime as dt
import string
from collections import Counter, OrderedDict, defaultdict, deque
from contextlib import suppress
from pathlib import PurePosixPath
from typing import Any

import stored_types as own
from hypothesis import given, settings
from hypothesis import strategies as st
from sameness import SERDE, again, is_same

from tracegraph.checkpoint.serde.errors import UnreadableBytesError, UnserializableValueError
from tracegraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from tracegraph.messages import AIMessage, HumanMessage, ToolMessage
from tracegraph.types import Interrupt, Overwrite, Send

FIXED_ZONES = st.timedeltas(dt.timedelta(hours=-23), dt.timedelta(hours=23)).map(dt.timezone)
ZONES = st.none() | st.timezones() | FIXED_ZONES
TEXT = st.text(st.characters(exclude_categories=()), max_size=8)  # lone surrogates too
NAMES = st.text(string.ascii_letters, min_size=1, max_size=8)

HASHABLE_LEAVES = st.one_of(
    *(st.none(), st.booleans(), st.integers(), st.integers(-(2**200), 2**200), st.floats(allow_nan=False), TEXT),
    *(st.binary(max_size=8), st.complex_numbers(allow_nan=False), st.decimals(allow_nan=False), st.fractions(), st.uuids()),
    *(st.dates(), st.timedeltas(), st.times(timezones=ZONES), st.datetimes(timezones=ZONES, allow_imaginary=True)),
    *(st.ip_addresses(), NAMES.map(PurePosixPath), st.integers(0, 9).map(range), st.just(...)),
    *(st.sampled_from([*own.Colour, own.Shape.DOT, own.Level.LOW, own.Mode.FAST, own.Rights.READ | own.Rights.WRITE]),),
    *(TEXT.map(own.Text), st.integers().map(own.Number), st.floats(allow_nan=False).map(own.Real), st.binary().map(own.Raw)),
)


def hashable_within(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.one_of(
        *(st.lists(inner, max_size=3).map(tuple), st.frozensets(inner, max_size=3), st.builds(own.Point, inner, inner)),
        *(st.lists(inner, max_size=3).map(own.Pair), st.frozensets(inner, max_size=3).map(own.Group)),
        *(st.builds(own.Frozen, inner, inner),),
    )


HASHABLE = st.recursive(HASHABLE_LEAVES, hashable_within, max_leaves=5)
LEAVES = st.one_of(HASHABLE, st.floats(), st.complex_numbers(), st.decimals(), st.binary(max_size=8).map(bytearray))
BOUNDS = st.none() | st.integers(0, 4)


def within(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    lists, dicts = st.lists(inner, max_size=4), st.dictionaries(HASHABLE, inner, max_size=4)
    return st.one_of(
        *(lists, dicts, lists.map(tuple), st.sets(HASHABLE, max_size=4), st.builds(deque, lists, BOUNDS)),
        *(dicts.map(OrderedDict), st.builds(Counter, st.dictionaries(HASHABLE, st.integers(), max_size=3))),
        *(st.builds(lambda held: defaultdict(set, held), dicts), dicts.map(own.Table), lists.map(own.Row)),
        *(st.builds(own.Plain, lists, NAMES), st.builds(own.Model, items=lists, seen=st.sets(st.tuples(*[st.integers()] * 2)))),
        *(st.builds(own.Open, more=inner), st.builds(own.Box, held=inner), inner.map(own.Point)),
        *(st.builds(HumanMessage, TEXT, additional_kwargs=dicts), st.builds(AIMessage, TEXT, id=NAMES | st.none())),
        *(st.builds(ToolMessage, TEXT, tool_call_id=NAMES, artifact=inner), st.builds(Send, NAMES, inner)),
        *(st.builds(Interrupt, inner, NAMES), st.builds(Overwrite, inner)),
    )


VALUES = st.recursive(LEAVES, within, max_leaves=12)


@given(VALUES)
def test_everything_comes_back_the_same(value: Any) -> None:
    """Equal, and of the same type at every depth."""
    assert is_same(again(value), value)


@given(HASHABLE)
def test_what_is_hashable_is_a_key_and_a_member_afterwards(value: Any) -> None:
    """Its hash is that of the original."""
    restored = again({value: {value}})

    assert restored == {value: {value}}
    assert value in restored[value]


@given(VALUES)
def test_what_comes_back_is_stored_as_the_same_bytes(value: Any) -> None:
    """Nothing wears off, however often a thread is resumed; only sets have no order of their own."""
    first = SERDE.dumps_typed(value)
    second = SERDE.dumps_typed(SERDE.loads_typed(first))

    assert (first[0], len(first[1])) == (second[0], len(second[1]))


@given(VALUES, st.data())
def test_culprit_is_found_wherever_it_is(value: Any, data: st.DataObject) -> None:
    """The path is there, and nothing else is blamed."""
    at = data.draw(st.sampled_from(["list", "dict", "object"]))
    held = {"list": [value, len], "dict": {"v": value, "c": len}, "object": own.Point(value, len)}[at]

    try:
        SERDE.dumps_typed(held)
    except UnserializableValueError as error:
        assert (error.path, error.value) == ({"list": "[1]", "dict": "['c']", "object": ".y"}[at], len)
    else:
        raise AssertionError("was stored")


@settings(max_examples=300)
@given(VALUES, st.data())
def test_damaged_bytes_raise_one_error_or_give_some_value(value: Any, data: st.DataObject) -> None:
    """Never anything else: not a crash, not a class that nobody allowed."""
    kind, stored = SERDE.dumps_typed([value])
    damaged = bytearray(stored)
    for _ in range(data.draw(st.integers(1, 3))):
        damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    strict = JsonPlusSerializer(allowed_msgpack_modules=[own.Plain, own.Model, own.Point, own.Colour])

    for broken in (bytes(damaged), stored[: len(stored) // 2]):
        with suppress(UnreadableBytesError):
            strict.loads_typed((kind, broken))


@given(st.binary(max_size=64))
def test_any_bytes_raise_one_error_or_give_some_value(stored: bytes) -> None:
    """From anywhere."""
    with suppress(UnreadableBytesError):
        JsonPlusSerializer(allowed_msgpack_modules=None).loads_typed(("msgpack", stored))
