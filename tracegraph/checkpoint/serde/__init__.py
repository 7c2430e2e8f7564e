"""How values become bytes."""

from tracegraph.checkpoint.serde.base import SerializerProtocol

__all__ = ["SerializerProtocol"]
