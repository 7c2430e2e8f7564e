"""Joining stored lists without reading what is in them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeAlias, runtime_checkable

from msgpack import Packer  # type: ignore[import-untyped]

from tracegraph.checkpoint.serde.base import SerializerProtocol

__all__ = ["Join", "JoiningSerializer", "joined_arrays", "joining_of"]

Join: TypeAlias = Callable[[Sequence[tuple[str, bytes]]], tuple[str, bytes]]
"""Makes one stored list of several."""

_FIXED, _FIXED_END, _16_BIT, _32_BIT = 0x90, 0x9F, 0xDC, 0xDD
"""First bytes of msgpack arrays: one that has the length in it, and those that are followed by it."""


@runtime_checkable
class JoiningSerializer(Protocol):
    """A serialiser that can make one list of several from their bytes; savers then keep long lists in few pieces."""

    def join_typed(self, lists: Sequence[tuple[str, bytes]]) -> tuple[str, bytes]:
        """Return kind and bytes of the list with all items of these lists, as ``dumps_typed`` wrote them."""
        ...


def joining_of(serde: SerializerProtocol) -> Join | None:
    """Return what joins stored lists; None if the serialiser cannot."""
    return serde.join_typed if isinstance(serde, JoiningSerializer) else None


def joined_arrays(arrays: Sequence[bytes]) -> bytes:
    """Return one msgpack array with the items of these.

    Items are moved as they are: reviving them could change what is stored, where their classes may not be loaded.

    >>> from msgpack import packb, unpackb
    >>> unpackb(joined_arrays([packb([1, "a"]), packb([]), packb([*range(20)])]))[:4]
    [1, 'a', 0, 1]

    Raises:
        ValueError: one of them is no array.

    Source: the msgpack specification, "array format family".
    """
    count, bodies = 0, []
    for array in arrays:
        length, start = _header_of(array)
        count += length
        bodies.append(memoryview(array)[start:])
    header: Any = Packer().pack_array_header(count)
    return b"".join([header, *bodies])


def _header_of(array: bytes) -> tuple[int, int]:
    """Return an array's length, and where its items begin."""
    first = array[0] if array else 0
    if _FIXED <= first <= _FIXED_END:
        return first - _FIXED, 1
    if first == _16_BIT:
        return int.from_bytes(array[1:3]), 3
    if first == _32_BIT:
        return int.from_bytes(array[1:5]), 5
    raise ValueError(f"{array[:1]!r} begins no msgpack array")
