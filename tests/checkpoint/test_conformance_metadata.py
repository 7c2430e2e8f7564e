"""Metadata and filters on it: the same on every saver, whatever its database takes for equal."""

from __future__ import annotations

from typing import Any

import pytest

Saver = Any

VALUES: list[Any] = [
    None,
    True,
    False,
    0,
    1,
    -1,
    "",
    "1",
    "ünï – \U0001f600",
    'quotes " and \\ back',
    "$.a[0]",
    2**53 + 1,
    10**40,
    -(10**40),
    0.1,
    1.0,
    -0.0,
    1e22,
    1e23,
    2.5e-300,
    1.7976931348623157e308,
    [1, [True, None]],
    [True, [1, None]],
    {"a": {"b": [1.5, "x"]}},
    {"a": {"b": [1.5, "x"], "c": None}},
    {},
    [],
]


def test_metadata_comes_back_as_it_was(saver: Saver) -> None:
    """The types of numbers too."""
    config, _ = saver.save(metadata={"values": VALUES, 'key with "quotes" – ü': 1}, a=1)

    found = saver.get_tuple(config).metadata

    assert repr(found) == repr({"values": VALUES, 'key with "quotes" – ü': 1})


def test_filters_find_what_python_takes_for_equal(saver: Saver) -> None:
    """No more and no less: 1 is True and 1.0, but no text, and a part of a dict is not the dict."""
    for at, value in enumerate(VALUES):
        saver.save(metadata={"at": at, "x": value}, a=at)

    for value in [*VALUES, int(1e23), 1e40, 2, "x", ["x"], {"a": {}}, [1], float(2**53)]:
        found = [each.metadata["at"] for each in saver.list(None, filter={"x": value})]
        assert found[::-1] == [at for at, kept in enumerate(VALUES) if kept == value], value


@pytest.mark.parametrize("odd", ["nul\0", "half \ud800", ("a", "tuple"), object(), float("nan"), {1: 2}])
def test_filters_for_what_cannot_be_stored_find_nothing(saver: Saver, odd: Any) -> None:
    """Neither as a value nor as a key, and no database complains."""
    saver.save(metadata={"x": 1}, a=1)

    assert saver.list(None, filter={"x": odd}) == []
    if isinstance(odd, str):
        assert saver.list(None, filter={odd: 1}) == []


def test_filters_on_several_keys_all_have_to_fit(saver: Saver) -> None:
    """Keys with letters that mean something to a database are keys like others."""
    saver.save(metadata={"a": 1, 'b"]$.': "x", "c%s?": [True]}, a=1)
    saver.save(metadata={"a": 1, 'b"]$.': "y", "c%s?": [True]}, a=1)

    for wanted, count in [
        ({}, 2),
        ({"a": True}, 2),
        ({"a": 1, 'b"]$.': "x"}, 1),
        ({'b"]$.': "y", "c%s?": [1]}, 1),
        ({"d": None}, 0),
    ]:
        assert len(saver.list(None, filter=wanted)) == count, wanted
