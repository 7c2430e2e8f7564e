"""JSON text of at most so many bytes. What is too long is cut inside fields, so that the text stays valid JSON.

Backends cut what is longer, at 2,048 bytes as a rule and in the middle of a string or a character, or lose the span.
"""

from __future__ import annotations

import json
from typing import Any, Final

__all__ = ["CUT", "SMALLEST_BUDGET", "json_within", "text_within"]

CUT: Final = "…(cut)"
"""What stands where something was left out: at the end of a text, as the last item of a list, as the last key of a mapping."""

_CUT_JSON: Final = json.dumps(CUT, ensure_ascii=False)
_CUT_BYTES: Final = len(_CUT_JSON.encode())
_CUT_ENTRY: Final = f"{_CUT_JSON}:true"
SMALLEST_BUDGET: Final = _CUT_BYTES
_SHORTEST: Final = 40
"""Bytes that texts keep before whole items are left out."""


def json_within(data: Any, budget_bytes: int) -> tuple[str, bool]:
    """Return JSON data as JSON text of at most *budget_bytes* bytes in UTF-8, and whether something was left out.

    Long texts are shortened first, all to the same length, so that of ten messages ten are seen. Only if that is not enough
    are the last items of lists and mappings left out. What is kept is unchanged, or the beginning of what it was.

    >>> json_within({"a": 1, "b": "x" * 50}, 30)
    ('{"a":1,"b":"xxxxxxxx…(cut)"}', True)
    >>> json_within([1, 2], 30)
    ('[1,2]', False)

    Raises:
        ValueError: the budget is below :data:`SMALLEST_BUDGET`, the size of the mark.
    """
    if budget_bytes < SMALLEST_BUDGET:
        raise ValueError(f"{budget_bytes} bytes are too few even for the mark {CUT!r}: give {SMALLEST_BUDGET} or more")
    whole = _dumps(data)
    if _size(whole) <= budget_bytes:
        return whole, False
    longest = _longest_texts(data, budget_bytes)
    return _Writer(longest).text(data, budget_bytes), True


def text_within(text: str, budget_bytes: int) -> tuple[str, bool]:
    """Return a text, no JSON, of at most *budget_bytes* bytes in UTF-8, and whether it was cut.

    >>> text_within("naïve", 100), text_within("ïïïïïïïïïï", 12)
    (('naïve', False), ('ïï…(cut)', True))
    """
    if len(text) <= budget_bytes and _size(text) <= budget_bytes:
        return text, False
    kept = text.encode()[: max(0, budget_bytes - _size(CUT))]
    # A character that was cut in two is left out.
    return kept.decode("utf-8", "ignore") + CUT, True


def _longest_texts(data: Any, budget: int) -> int:
    """Return the greatest length to which texts can be cut so that everything fits; at least `_SHORTEST`."""
    low, high = _SHORTEST, max(_SHORTEST, budget)
    while low < high:
        middle = (low + high + 1) // 2
        if _measure(data, middle, budget) >= 0:
            low = middle
        else:
            high = middle - 1
    return low


def _measure(data: Any, longest: int, room: int) -> int:
    """Return what is left of *room* once *data* is written with its texts cut, something negative if it does not fit."""
    if type(data) is str:
        # A character is a byte at least, so most of a long text need not be looked at.
        return room - (longest if len(data) > longest else min(longest, _size(_dumps(data))))
    if type(data) is dict:
        room -= 2 + max(0, len(data) - 1)
        for key, value in data.items():
            if room < 0:
                return room
            room = _measure(value, longest, room - len(key) - 3)
        return room
    if type(data) is list:
        room -= 2 + max(0, len(data) - 1)
        for item in data:
            if room < 0:
                return room
            room = _measure(item, longest, room)
        return room
    return room - len(_dumps(data))


class _Writer:
    """Writes JSON into a limited room; every value fits into `SMALLEST_BUDGET` bytes, as the mark if need be."""

    def __init__(self, longest: int) -> None:
        self._longest = longest

    def text(self, data: Any, room: int) -> str:
        """Return *data* as JSON of at most *room* bytes."""
        if type(data) is str:
            return _cut_text(data, min(self._longest, room))
        if type(data) is dict:
            return self._entries(data, room)
        if type(data) is list:
            return self._items(data, room)
        whole = _dumps(data)
        return whole if _size(whole) <= room else _CUT_JSON

    def _items(self, items: list[Any], room: int) -> str:
        if room < 2 + _CUT_BYTES:
            return _CUT_JSON if items else "[]"
        parts: list[str] = []
        left = room - 2
        for at, item in enumerate(items):
            # Behind every item but the last there must be room to say that the rest is left out.
            spared = 0 if at == len(items) - 1 else 1 + _CUT_BYTES
            if left - spared < SMALLEST_BUDGET and _size(whole := _dumps(item)) > left - spared:
                parts.append(_CUT_JSON)
                break
            parts.append(self.text(item, left - spared) if left - spared >= SMALLEST_BUDGET else whole)
            left -= _size(parts[-1]) + 1
        return f"[{','.join(parts)}]"

    def _entries(self, entries: dict[str, Any], room: int) -> str:
        if room < 2 + _size(_CUT_ENTRY):
            return _CUT_JSON if entries else "{}"
        parts: list[str] = []
        left = room - 2
        for at, (key, value) in enumerate(entries.items()):
            spared = 0 if at == len(entries) - 1 else 1 + _size(_CUT_ENTRY)
            # A key is never cut: two could become one.
            name = _dumps(key) + ":" if len(key) < left else None
            inner = -1 if name is None else left - spared - _size(name)
            if name is None or (inner < SMALLEST_BUDGET and (type(value) in (dict, list, str) or inner < len(_dumps(value)))):
                parts.append(_CUT_ENTRY)
                break
            parts.append(name + self.text(value, inner))
            left -= _size(parts[-1]) + 1
        return f"{{{','.join(parts)}}}"


def _cut_text(text: str, room: int) -> str:
    """Return a text as JSON of at most *room* bytes, cut between two characters."""
    if len(text) <= room and _size(whole := _dumps(text)) <= room:
        return whole
    kept = room - _CUT_BYTES
    low, high = 0, min(len(text), kept)
    while low < high:
        middle = (low + high + 1) // 2
        if _size(_dumps(text[:middle])) - 2 <= kept:
            low = middle
        else:
            high = middle - 1
    return _dumps(text[:low] + CUT)


def _dumps(data: Any) -> str:
    return json.dumps(data, ensure_ascii=False, separators=(",", ":"))


def _size(text: str) -> int:
    return len(text.encode())
