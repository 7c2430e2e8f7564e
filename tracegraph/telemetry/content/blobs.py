"""Binary data in messages: pictures, sounds, documents. It is in no signal; it may be stored elsewhere and referred to."""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Any

__all__ = ["Blob", "StoreBlob", "with_stored_blobs"]

StoreBlob = Callable[[bytes, str | None], str | None]
"""Stores data of a mime type; returns the URI where it is, None if it is to be left out after all."""


class Blob:
    """Data that stands in a part until it is stored or left out; shown, it is empty."""

    __slots__ = ("_data",)

    def __init__(self, data: Any) -> None:
        self._data = data

    @property
    def size(self) -> int:
        """Its bytes; of base64, those that it stands for, give or take two."""
        if isinstance(self._data, (bytes, bytearray)):
            return len(self._data)
        return len(self._data) * 3 // 4 - self._data.count("=", -2) if isinstance(self._data, str) else 0

    def read(self) -> bytes:
        """Return the bytes.

        Raises:
            ValueError: it is no data after all.
        """
        if isinstance(self._data, (bytes, bytearray)):
            return bytes(self._data)
        if isinstance(self._data, str):
            return base64.b64decode(self._data)
        raise ValueError(f"a blob is bytes or base64, not a {type(self._data).__name__}")


def with_stored_blobs(messages: list[dict[str, Any]], store: StoreBlob) -> list[dict[str, Any]]:
    """Return messages whose blobs are URIs of where *store* has put them, as far as it has.

    >>> part = {"type": "blob", "modality": "image", "mime_type": "image/png", "content": Blob("QUFB"), "size": 3}
    >>> with_stored_blobs([{"role": "user", "parts": [part]}], lambda data, mime_type: f"mem://{data.decode()}")
    [{'role': 'user', 'parts': [{'type': 'uri', 'modality': 'image', 'mime_type': 'image/png', 'uri': 'mem://AAA'}]}]
    """
    return [{**m, "parts": [_stored(part, store) for part in m["parts"]]} if _has_parts(m) else m for m in messages]


def _has_parts(message: dict[str, Any]) -> bool:
    return isinstance(message.get("parts"), list)


def _stored(part: Any, store: StoreBlob) -> Any:
    if not isinstance(part, dict):
        return part
    if isinstance(part.get("response"), list):  # what a tool answered has parts of its own
        return {**part, "response": [_stored(inner, store) for inner in part["response"]]}
    blob = part.get("content")
    if not isinstance(blob, Blob):
        return part
    uri = store(blob.read(), part.get("mime_type"))
    if uri is None:
        return part
    kept = {key: value for key, value in part.items() if key not in ("type", "content", "size")}
    return {"type": "uri", **kept, "uri": uri}
