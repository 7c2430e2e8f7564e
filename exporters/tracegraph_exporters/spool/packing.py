"""Items into requests, each small enough for any receiver."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar

__all__ = ["MAX_REQUEST_BYTES", "Packed", "pack"]

Item = TypeVar("Item")

MAX_REQUEST_BYTES: Final = 4_000_000
"""Below the 4 MiB (4,194,304 bytes) that a gRPC server takes unless it is told otherwise."""


@dataclass(frozen=True, slots=True)
class Packed:
    """One request: its bytes, and how many spans or records are in it."""

    body: bytes
    items: int


def pack(
    items: Sequence[Item], encode: Callable[[Sequence[Item]], Any], max_bytes: int = MAX_REQUEST_BYTES
) -> tuple[list[Packed], int]:
    """Return *items* in order as requests of at most *max_bytes*, and how many items are too large by themselves.

    *encode* makes a protocol buffers message of items.

    >>> from types import SimpleNamespace
    >>> def encode(items):
    ...     return SimpleNamespace(SerializeToString="".join(items).encode)
    >>> pack(["aa", "bb", "cccccc", "d"], encode, max_bytes=4)
    ([Packed(body=b'aabb', items=2), Packed(body=b'd', items=1)], 1)
    """
    if not items:
        return [], 0
    body = encode(items).SerializeToString()
    if len(body) <= max_bytes:
        return [Packed(body, len(items))], 0
    if len(items) == 1:
        return [], 1
    middle = len(items) // 2
    first, lost_first = pack(items[:middle], encode, max_bytes)
    second, lost_second = pack(items[middle:], encode, max_bytes)
    return first + second, lost_first + lost_second
