"""Values that are kept as what was added to older ones."""

from __future__ import annotations

from collections.abc import Mapping, Sized
from typing import Any, NamedTuple, TypeAlias

from tracegraph.checkpoint.serde.base import SerializerProtocol
from tracegraph.constants import MISSING
from tracegraph.records import Growth, Version

__all__ = ["BlobKey", "KeptGrowth", "grown_on", "parts_of", "size_of"]

BlobKey: TypeAlias = tuple[str, str, str, Version]
"""(thread, namespace, channel, version)"""


class KeptGrowth(NamedTuple):
    """What was added to the value at *base*; *whole* and *grown* are the sizes of the last whole value and of all added since."""

    growth: Growth
    base: BlobKey
    items: Any
    whole: int
    grown: int


def grown_on(base_key: BlobKey, base: Any, growth: Growth, items: Any, serde: SerializerProtocol | None) -> KeptGrowth | None:
    """Return what to keep for kept *items* added to *base*; None: the whole value, as what was added is as large by now."""
    if base is MISSING:
        return None
    before, whole, grown = (base.growth, base.whole, base.grown) if type(base) is KeptGrowth else (None, _size(base, serde), 0)
    grown += 1 + _size(items, serde)  # nothing is something too, or a chain of nothing would have no end
    if grown > whole or before not in (None, growth):
        return None
    return KeptGrowth(growth, base_key, items, whole, grown)


def _size(kept: Any, serde: SerializerProtocol | None) -> int:
    """Return bytes where there are any, else the number of items."""
    if serde is not None:
        return len(kept[1])
    return len(kept) if isinstance(kept, Sized) else 1


def size_of(kept: Any) -> int:
    """Return how many bytes are kept for a value, where a serialiser made them."""
    if kept is MISSING:
        return 0
    return len((kept.items if type(kept) is KeptGrowth else kept)[1])


def parts_of(blobs: Mapping[BlobKey, Any], key: BlobKey) -> list[tuple[Growth | None, Any]]:
    """Return how and what is kept for a value, the whole one first; empty if the channel was."""
    parts: list[tuple[Growth | None, Any]] = []
    kept = blobs.get(key, MISSING)
    while type(kept) is KeptGrowth:
        parts.append((kept.growth, kept.items))
        kept = blobs[kept.base]
    if kept is MISSING:
        return []
    parts.append((None, kept))
    parts.reverse()
    return parts
