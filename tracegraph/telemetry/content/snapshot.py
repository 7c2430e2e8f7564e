"""A value as it is now, as JSON data: what telemetry shows of it, whatever becomes of the value itself later.

Unlike :mod:`tracegraph.plain_data` it shows no ``repr``: that of a client object may hold its password, and binary data
is named by its size. A message is shown in the shape of the GenAI conventions.
"""

from __future__ import annotations

import dataclasses
import math
from collections import deque
from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from datetime import date, time, timedelta
from decimal import Decimal
from enum import Enum
from pathlib import PurePath
from typing import Any, Final
from uuid import UUID

from tracegraph.telemetry.content.blobs import Blob

__all__ = ["MOST_LEVELS", "clean_text", "is_message", "snapshot"]

MOST_LEVELS: Final = 50
_LARGEST_INT: Final = 2**63
"""Beyond it OTLP has no integers."""

_AS_TEXT: Final = (UUID, PurePath, Decimal, date, time, timedelta)
_MESSAGE_TYPES: Final = frozenset({"human", "ai", "system", "tool", "function", "chat", "developer", "AIMessageChunk"})


def snapshot(value: Any) -> Any:
    """Return *value* as JSON data that shares nothing with it; never raises.

    >>> from tracegraph.messages import HumanMessage
    >>> snapshot({"seen": (1, b"abc"), "said": HumanMessage("hi"), "client": object()})
    {'seen': [1, '<3 bytes>'], 'said': {'role': 'user', 'parts': [{'type': 'text', 'content': 'hi'}]}, 'client': '<object>'}
    """
    return _shown(value, ())


def clean_text(text: str) -> str:
    """Return *text* without what UTF-8 cannot carry: one lone surrogate would cost an exporter its whole batch.

    Inline binary data, as of a picture in a message, is named by its size.

    >>> clean_text("data:image/png;base64,AAAA")
    '<image/png, 4 characters of base64>'
    """
    text = str.__str__(text)
    if text.startswith("data:") and ";base64," in text[:200]:
        head, _, data = text.partition(";base64,")
        return f"<{clean_text(head[5:].partition(';')[0])}, {len(data)} characters of base64>"
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace").decode()
    return text


def is_message(value: Any) -> bool:
    """Say whether *value* is a message object, ours or LangChain's."""
    kind = getattr(value, "type", None)
    return isinstance(kind, str) and kind in _MESSAGE_TYPES and hasattr(value, "content") and hasattr(value, "response_metadata")


def _shown(value: Any, around: tuple[int, ...]) -> Any:
    if value is None or value is True or value is False:
        return value
    if isinstance(value, Enum):
        return _shown(value.value, (*around, id(value))) if len(around) < MOST_LEVELS else "<too deep>"
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, int):
        return int(value) if -_LARGEST_INT <= value < _LARGEST_INT else _of_large_int(value)
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else float.__repr__(value)
    if len(around) >= MOST_LEVELS:
        return "<too deep>"
    if id(value) in around:
        return "<contains itself>"
    try:
        return _container(value, (*around, id(value)))
    except Exception:  # noqa: BLE001  # the class is the user's, and so is what it does when it is read
        return f"<unreadable {type(value).__name__}>"


def _container(value: Any, around: tuple[int, ...]) -> Any:
    """Show what has parts. Read by what it is, never by its ``repr``."""
    if isinstance(value, (bytes, bytearray, memoryview)):
        return f"<{memoryview(value).nbytes} bytes>"
    if isinstance(value, Mapping):
        return _items(value.items(), around)
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        return _items(value._asdict().items(), around)
    if isinstance(value, (list, tuple, AbstractSet, deque)):
        return [_shown(item, around) for item in value]
    if isinstance(value, _AS_TEXT):
        return clean_text(str(value))
    if isinstance(value, Blob):
        return ""
    if isinstance(value, type):
        return clean_text(f"<class {value.__qualname__}>")
    if is_message(value):
        from tracegraph.telemetry.content.messages import message_shape

        return _shown(message_shape(value), around)
    if dataclasses.is_dataclass(value):
        shown = ((field.name, getattr(value, field.name, None)) for field in dataclasses.fields(value) if field.repr)
        return _items(shown, around)
    if (fields := getattr(type(value), "model_fields", None)) is not None:  # a Pydantic model
        return _items(((name, getattr(value, name, None)) for name, field in fields.items() if field.repr), around)
    return clean_text(f"<{type(value).__qualname__}>")


def _items(items: Iterable[tuple[Any, Any]], around: tuple[int, ...]) -> dict[str, Any]:
    shown: dict[str, Any] = {}
    for key, item in items:
        name = clean_text(key) if isinstance(key, str) else _key(key)
        # `1` and `"1"` are two keys of a dict and one of JSON.
        while name in shown:
            name += "'"
        shown[name] = _shown(item, around)
    return shown


def _key(key: Any) -> str:
    shown = _shown(key, ())
    return shown if isinstance(shown, str) else str(shown)


def _of_large_int(number: int) -> str:
    try:
        return int.__repr__(number)
    except ValueError:
        return f"<an integer of {number.bit_length()} bits>"
