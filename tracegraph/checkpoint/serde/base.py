"""The interface of serialisers."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

__all__ = ["SerializerProtocol"]


@runtime_checkable
class SerializerProtocol(Protocol):
    """Turns values into bytes with a tag that says how, and back."""

    def dumps_typed(self, obj: Any) -> tuple[str, bytes]:
        """Return the tag and the bytes of *obj*."""
        ...

    def loads_typed(self, data: tuple[str, bytes]) -> Any:
        """Return the value of a tag and bytes."""
        ...
