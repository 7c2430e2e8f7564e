"""JSON text within a budget of bytes: always valid, never longer, and what is kept is what was there."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracegraph.telemetry.content.budget import CUT, SMALLEST_BUDGET, json_within, text_within

pytestmark = pytest.mark.content_on_spans("content is asked for")

TEXTS = st.text(st.characters(codec="utf-8"), max_size=200)
SCALARS = st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False, allow_infinity=False) | TEXTS
DATA = st.recursive(SCALARS, lambda inner: st.lists(inner) | st.dictionaries(TEXTS, inner), max_leaves=40)
BUDGETS = st.integers(SMALLEST_BUDGET, 600)


def is_kept(kept: Any, given: Any) -> bool:
    """Say whether *kept* is *given*, or the beginning of it with a mark at its end."""
    if isinstance(given, str):
        return kept == given or (isinstance(kept, str) and kept.endswith(CUT) and given.startswith(kept.removesuffix(CUT)))
    if kept == CUT:
        return True
    if isinstance(given, list):
        if len(kept) == len(given) and all(map(is_kept, kept, given)):
            return True
        return kept[-1] == CUT and len(kept) <= len(given) and all(map(is_kept, kept[:-1], given))
    if isinstance(given, dict):
        entries = list(kept.items())
        if len(entries) < len(given) or list(kept) != list(given):
            assert entries.pop() == (CUT, True)
        return all(
            key == name and is_kept(value, item) for (key, value), (name, item) in zip(entries, given.items(), strict=False)
        )
    return bool(kept == given)


@given(DATA, BUDGETS)
def test_any_value_fits_any_budget_as_valid_json(data: Any, budget: int) -> None:
    """At most the budget in UTF-8, marked if and only if something was cut, and otherwise what it was."""
    text, is_cut = json_within(data, budget)

    assert len(text.encode()) <= budget
    assert is_cut == (CUT in text) or CUT in json.dumps(data, ensure_ascii=False)
    kept = json.loads(text)
    assert is_kept(kept, data)
    if not is_cut:
        assert kept == data


@given(DATA, BUDGETS)
def test_what_fits_is_never_cut(data: Any, budget: int) -> None:
    """Only a value whose whole text is too long loses anything."""
    whole = json.dumps(data, ensure_ascii=False, separators=(",", ":"))

    assert json_within(data, budget)[1] == (len(whole.encode()) > budget)


@given(TEXTS, BUDGETS)
def test_a_text_that_is_no_json_is_cut_between_characters(text: str, budget: int) -> None:
    """Bytes count, not characters, and none is split."""
    kept, is_cut = text_within(text, budget)

    assert len(kept.encode()) <= budget
    assert (kept == text) != is_cut or CUT in text
    assert text.startswith(kept.removesuffix(CUT))


def test_long_texts_are_shortened_before_items_are_left_out() -> None:
    """Of ten long messages ten are seen, all to the same length."""
    messages = [{"role": "user", "parts": [{"type": "text", "content": f"{n}" * 500}]} for n in range(10)]

    kept = json.loads(json_within(messages, 2_000)[0])

    assert [message["parts"][0]["content"][0] for message in kept] == [*"0123456789"]
    assert len({len(message["parts"][0]["content"]) for message in kept}) == 1
    assert len(json_within(messages, 2_000)[0].encode()) > 1_900


def test_a_list_without_end_costs_no_more_than_its_beginning() -> None:
    """A million numbers leave what there is room for, and a mark."""
    kept = json.loads(json_within(list(range(1_000_000)), 100)[0])

    assert kept[:-1] == list(range(len(kept) - 1))
    assert kept[-1] == CUT


@pytest.mark.parametrize("data", [{"k" * 100: 1, "a": 2}, {"a": {"k" * 100: 1}}, [{"": 2**63 - 1}, 1]])
def test_keys_are_never_cut(data: Any) -> None:
    """Two of them could become one; the mapping ends before one that is too long."""
    kept = json.loads(json_within(data, 40)[0])

    assert is_kept(kept, data)


def test_a_budget_below_the_mark_is_refused() -> None:
    """There would be nothing to say that something was cut with."""
    with pytest.raises(ValueError, match="too few even for the mark"):
        json_within("x", SMALLEST_BUDGET - 1)
