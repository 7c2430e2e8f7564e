"""How values get into the in-memory saver, and out of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tracegraph.checkpoint.base.errors import UnsavableValueError
from tracegraph.checkpoint.memory.isolation import ATOMIC, isolated
from tracegraph.checkpoint.serde.base import SerializerProtocol
from tracegraph.checkpoint.serde.errors import UnserializableValueError
from tracegraph.constants import ERROR

__all__ = ["kept_value", "restored_value"]


def kept_value(serde: SerializerProtocol | None, channel: str, value: Any) -> Any:
    """Return what to keep of *value*: a copy, or with a serialiser its bytes. A task's error is kept as text.

    Raises:
        UnsavableValueError: it cannot be copied. UnserializableValueError: it cannot be serialised.
    """
    if serde is None and type(value) in ATOMIC:
        return value
    if channel == ERROR and isinstance(value, BaseException):
        value = repr(value)
    keep: Callable[[Any], Any] = isolated if serde is None else serde.dumps_typed
    try:
        return keep(value)
    except UnserializableValueError as reason:
        raise reason.in_channel(channel) from reason.__cause__
    except Exception as reason:  # copying runs the user's code
        raise UnsavableValueError(channel, value, reason) from reason


def restored_value(serde: SerializerProtocol | None, kept: Any) -> Any:
    """Return a value that the caller may change."""
    return isolated(kept) if serde is None else serde.loads_typed(kept)
