"""Telling that a list only grew, so that savers may store what was added."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from types import NoneType
from typing import Any, Final

__all__ = ["appended"]

_SUMS: Final = frozenset({operator.add, operator.concat})
_UNCHANGING: Final = frozenset({NoneType, bool, int, float, complex, str, bytes})
"""Types of items that cannot be changed in place."""


def appended(before: Any, after: Any, writes: Sequence[Any], reducer: Callable[..., Any]) -> list[Any] | None:
    """Return what a reducer put behind the list *before*; None if it may have done anything else to it.

    That the items of *before* are still there says little, for an item can be changed in place and written again, and a
    reducer can change those it has. So each written item must be one of those that were added; and of a reducer that is
    neither a sum of lists nor says that it keeps what it has (``keeps_items``), only items that cannot change are trusted.

    >>> appended([1], [1, 2, 3], [[2], [3]], operator.add)
    [2, 3]
    >>> edited = {"id": 1}
    >>> appended([edited], [edited, {"id": 2}], [[edited, {"id": 2}]], lambda left, right: [*left, right[1]]) is None
    True
    """
    if type(before) is not list or type(after) is not list or after is before:
        return None
    added = after[len(before) :]
    if len(added) != sum(len(write) if type(write) is list else 1 for write in writes):
        return None
    is_sum = reducer in _SUMS and {list}.issuperset(map(type, writes))
    if not is_sum and not all(map(operator.is_, before, after)):
        return None
    if is_sum:
        return added if _UNCHANGING.issuperset(map(type, added)) or _are_new(added, before) else None
    is_trusted = getattr(reducer, "keeps_items", False) or _UNCHANGING.issuperset(map(type, before))
    return added if is_trusted else None


def _are_new(added: list[Any], before: list[Any]) -> bool:
    """Say whether none of the added items was there before; such a one may have been changed in place."""
    return set(map(id, before)).isdisjoint(map(id, added))
