"""Putting increments back on the values they were added to."""

from __future__ import annotations

from typing import Any

from tracegraph.channels.delta import DeltaLog, DeltaSnapshot
from tracegraph.records import Growth

__all__ = ["with_increment"]


def with_increment(value: Any, growth: Growth, items: list[Any]) -> Any:
    """Return *value*, which may be changed for it, with an increment put on.

    >>> with_increment([1], "append", [2, 3])
    [1, 2, 3]
    """
    if growth == "append":
        value = value.value if isinstance(value, DeltaSnapshot) else value
        value.extend(items)
        return value
    if isinstance(value, DeltaLog):
        value.writes.extend(items)
        return value
    return DeltaLog(value, items)
