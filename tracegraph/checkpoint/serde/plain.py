"""Small immutable values of the standard library."""

from __future__ import annotations

import ipaddress
import re
from pathlib import PosixPath, PurePosixPath, PureWindowsPath, WindowsPath
from types import EllipsisType, NotImplementedType
from typing import Any, Final
from uuid import UUID

from tracegraph.checkpoint.serde.codes import Code, Extension, Part
from tracegraph.checkpoint.serde.errors import Refused, UnreadableBytesError
from tracegraph.constants import MISSING, UNCHANGED, Missing

__all__ = ["BYTEARRAY", "PLAIN", "TEXT"]

_PATHS: Final = {kind.__name__: kind for kind in (PosixPath, PurePosixPath, PureWindowsPath, WindowsPath)}
_IPS: Final = {
    kind.__name__: kind
    for kind in (
        *(ipaddress.IPv4Address, ipaddress.IPv4Network, ipaddress.IPv4Interface),
        *(ipaddress.IPv6Address, ipaddress.IPv6Network, ipaddress.IPv6Interface),
    )
}
_CONSTANTS: Final[dict[str, Any]] = {
    "Ellipsis": Ellipsis,
    "NotImplemented": NotImplemented,
    "MISSING": MISSING,
    "UNCHANGED": UNCHANGED,
}


def _named_text(value: Any) -> list[str]:
    return [type(value).__name__, str(value)]


def _constant_name(value: Any) -> str:
    for name, constant in _CONSTANTS.items():
        if value is constant:
            return name
    raise Refused(value, "this sentinel has no name to find it by")


def _pattern(data: Any, _types: object) -> re.Pattern[Any]:
    text, flags = data
    try:
        return re.compile(text, flags & ~re.DEBUG)  # which would print
    except re.error as error:
        raise UnreadableBytesError(f"pattern {text!r}: {error}") from error


def _bounds(value: slice) -> list[Part]:
    return [(".start", value.start), (".stop", value.stop), (".step", value.step)]


_PATH = Extension(Code.PATH, _named_text, lambda data, _types: _PATHS[data[0]](data[1]))
_IP = Extension(Code.IP, _named_text, lambda data, _types: _IPS[data[0]](data[1]))
_CONSTANT = Extension(Code.CONSTANT, _constant_name, lambda data, _types: _CONSTANTS[data])

PLAIN: Final[dict[type, Extension]] = {
    **dict.fromkeys(_PATHS.values(), _PATH),
    **dict.fromkeys(_IPS.values(), _IP),
    **dict.fromkeys((EllipsisType, NotImplementedType, Missing), _CONSTANT),
    UUID: Extension(Code.UUID, lambda value: value.bytes, lambda data, _types: UUID(bytes=data)),
    re.Pattern: Extension(Code.PATTERN, lambda value: [value.pattern, value.flags], _pattern),
    range: Extension(
        Code.RANGE,
        lambda value: [value.start, value.stop, value.step],
        lambda data, _types: range(*data),
    ),
    slice: Extension(
        Code.SLICE,
        lambda value: [value.start, value.stop, value.step],
        lambda data, _types: slice(*data),
        _bounds,
    ),
}
"""By exact type."""

# Packing swaps these two in before msgpack sees the value: it would take a bytearray for bytes, and refuse such text.
BYTEARRAY: Final = Extension(Code.BYTEARRAY, bytes, lambda data, _types: bytearray(data))
TEXT: Final = Extension(
    Code.TEXT,
    lambda value: value.encode("utf-8", "surrogatepass"),
    lambda data, _types: data.decode("utf-8", "surrogatepass"),
)
