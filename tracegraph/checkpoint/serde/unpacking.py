"""From msgpack to values."""

from __future__ import annotations

from typing import Any

from msgpack import Unpacker, unpackb  # type: ignore[import-untyped]

from tracegraph.checkpoint.serde.allowlist import Allowlist
from tracegraph.checkpoint.serde.codes import DEEPEST
from tracegraph.checkpoint.serde.errors import UnreadableBytesError
from tracegraph.checkpoint.serde.extensions import BY_CODE

__all__ = ["Unpacking"]

_ON_THE_STACK = 8


class Unpacking:
    """One load, which counts how deep it is: stored bytes may be made up to exhaust the stack."""

    __slots__ = ("_depth", "_types")

    def __init__(self, types: Allowlist) -> None:
        self._types = types
        self._depth = 0

    def unpack(self, stored: bytes) -> Any:
        """Return the value; raises whatever damaged data makes msgpack or an extension raise."""
        if self._depth <= _ON_THE_STACK:
            return unpackb(stored, ext_hook=self._revived, strict_map_key=False)
        # unpackb() takes some 48 kB of the C stack, so a hundred within each other would kill a thread, or the process.
        # An Unpacker is slower, but lives on the heap.
        unpacker = Unpacker(
            ext_hook=self._revived, strict_map_key=False, max_buffer_size=len(stored), read_size=max(1, len(stored))
        )
        unpacker.feed(stored)
        value = unpacker.unpack()
        if unpacker.tell() != len(stored):
            raise UnreadableBytesError("an extension holds more than one value")
        return value

    def _revived(self, code: int, stored: bytes) -> Any:
        extension = BY_CODE.get(code)
        if extension is None:
            raise UnreadableBytesError(f"extension {code} is none of ours; was this written by a newer version?")
        self._depth += 1
        if self._depth > DEEPEST:
            raise UnreadableBytesError(f"more than {DEEPEST} objects lie within each other")
        value = extension.revive(self.unpack(stored), self._types)
        self._depth -= 1
        return value
