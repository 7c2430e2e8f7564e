"""How large a graph's saver would make a value."""

from __future__ import annotations

from typing import Any

from tracegraph.checkpoint.base import BaseCheckpointSaver
from tracegraph.checkpoint.serde.base import SerializerProtocol
from tracegraph.checkpoint.serde.errors import UnserializableValueError
from tracegraph.engine.state_size import SizeLimit

__all__ = ["size_limit_of"]


def size_limit_of(max_state_bytes: int | None, saver: BaseCheckpointSaver | None, thread_id: str | None) -> SizeLimit | None:
    """Return the limit of a thread's state, measured by the saver's serialiser, or by the default one if it has none."""
    if max_state_bytes is None:
        return None
    serde = _serializer(saver)

    def measure(channel: str, value: Any) -> int:
        try:
            return len(serde.dumps_typed(value)[1])
        except UnserializableValueError as reason:
            raise reason.in_channel(channel) from reason.__cause__

    return SizeLimit(max_state_bytes, measure, thread_id)


def _serializer(saver: BaseCheckpointSaver | None) -> SerializerProtocol:
    found: SerializerProtocol | None = getattr(saver, "serde", None)
    if found is None:
        from tracegraph.checkpoint.serde.jsonplus import JsonPlusSerializer

        found = JsonPlusSerializer()
    return found
