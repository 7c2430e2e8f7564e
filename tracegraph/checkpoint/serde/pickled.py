"""Pickle, for those who ask for it by name."""

from __future__ import annotations

import pickle  # asked for by name
from collections.abc import Sequence
from typing import Any

from tracegraph.checkpoint.serde.errors import UnreadableBytesError

__all__ = ["PickleSerializer"]


class PickleSerializer:
    """Writes whatever ``pickle`` can write.

    Loading runs code that the stored bytes name: whoever can write to the database can run programs
    as you. Use it only where that is nobody else.

    >>> serde = PickleSerializer()
    >>> serde.loads_typed(serde.dumps_typed({1, 2}))
    {1, 2}
    """

    def dumps_typed(self, obj: Any) -> tuple[str, bytes]:
        """Return ``pickle`` and the bytes of *obj*; raises what ``pickle`` raises."""
        return "pickle", pickle.dumps(obj, protocol=5)

    def join_typed(self, lists: Sequence[tuple[str, bytes]]) -> tuple[str, bytes]:
        """Return kind and bytes of the list with all items of these lists."""
        return self.dumps_typed([item for stored in lists for item in self.loads_typed(stored)])

    def loads_typed(self, data: tuple[str, bytes]) -> Any:
        """Return the value.

        Raises:
            UnreadableBytesError: it was written by another serialiser.
        """
        kind, stored = data
        if kind != "pickle":
            raise UnreadableBytesError(f"PickleSerializer did not write {kind!r}; give the serialiser that did")
        return pickle.loads(stored)  # noqa: S301  # asked for by name
