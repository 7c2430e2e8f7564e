"""Durations as people write them: ``500ms``, ``2s``, ``1h30m``, ``30d``."""

from __future__ import annotations

import re
from typing import Final

__all__ = ["parse_duration"]

_UNITS_NS: Final = {
    "ms": 1_000_000,
    "s": 1_000_000_000,
    "m": 60_000_000_000,
    "min": 60_000_000_000,
    "h": 3_600_000_000_000,
    "d": 86_400_000_000_000,
    "w": 604_800_000_000_000,
}
_PART: Final = r"(\d+(?:\.\d+)?)\s*(ms|min|[smhdw])\s*"
_MOST_NS: Final = 2**62


def parse_duration(text: str) -> int:
    """Return a duration in nanoseconds; a bare number is seconds.

    Raises:
        ValueError: it is none.

    >>> parse_duration("1h30m") // 1_000_000_000, parse_duration("250ms"), parse_duration("0.5")
    (5400, 250000000, 500000000)
    """
    text = text.strip().lower()
    if re.fullmatch(r"\d+(\.\d+)?", text):
        text += "s"
    if not re.fullmatch(f"(?:{_PART})+", text):
        raise ValueError(f"{text!r} is no duration: write 500ms, 2s, 15m, 1h30m, 30d or 2w")
    found = sum(round(float(number) * _UNITS_NS[unit]) for number, unit in re.findall(_PART, text))
    if found > _MOST_NS:
        raise ValueError(f"{text!r} is longer than time has been counted")
    return found
