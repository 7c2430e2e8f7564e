"""From values to msgpack.

msgpack rather than ormsgpack, which is faster but turns dates, UUIDs, enum members and tuples that are keys of a dict into
text, integers and lists without a word, and takes neither big integers nor frozensets there. msgpack with ``strict_types``
asks us about everything that is not exactly one of its own types, keys included. Two things are left to check: it takes
a bytearray for bytes, and does not know text that is no UTF-8.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from msgpack import ExtType, Packer, Timestamp  # type: ignore[import-untyped]

from tracegraph.checkpoint.serde.codes import Extension, Part, items, members
from tracegraph.checkpoint.serde.errors import Refused, UnserializableValueError
from tracegraph.checkpoint.serde.extensions import extension_of
from tracegraph.checkpoint.serde.plain import BYTEARRAY, TEXT

__all__ = ["pack", "unserializable"]

_NATIVE: Final = frozenset({type(None), bool, float, str, bytes})
_MISTAKEN: Final = frozenset({bytearray, memoryview, ExtType, Timestamp})
_MOST_SEGMENTS = 12


def pack(value: Any) -> bytes:
    """Return *value* as msgpack.

    Raises:
        Refused, ValueError, RecursionError: it cannot be; :func:`unserializable` finds out where.
    """
    try:
        data: bytes = Packer(default=_extended, strict_types=True).pack(value)
    except UnicodeEncodeError:
        return _packed_with_care(value)
    # Three searches in C are cheap, and nearly always say that nothing was packed as bytes.
    if (b"\xc4" in data or b"\xc5" in data or b"\xc6" in data) and _is_mistaken(value):
        return _packed_with_care(value)
    return data


def _extended(value: Any) -> Any:
    extension = extension_of(value)
    if extension is not None:
        # What ExtType(...) makes, without the checks that take longer than all the rest.
        return tuple.__new__(ExtType, (extension.code, pack(extension.pack(value))))
    if isinstance(value, BaseException):
        return repr(value)
    raise Refused(value, "no type that is stored")


def _is_mistaken(value: Any) -> bool:
    """Say whether msgpack took something in these lists and dicts for something else."""
    kind = type(value)
    if kind is dict:
        value = value.values()  # a key of these types would not be hashable
    elif kind is not list:
        return kind in _MISTAKEN
    kinds = set(map(type, value))
    if kinds <= _NATIVE:
        return False
    return not kinds.isdisjoint(_MISTAKEN) or any(_is_mistaken(item) for item in value if type(item) in (list, dict))


def _packed_with_care(value: Any) -> bytes:
    data: bytes = Packer(default=_extended, strict_types=True).pack(_marked(value))
    return data


def _marked(value: Any) -> Any:
    """Return these lists and dicts with extensions in place of what msgpack would get wrong."""
    kind = type(value)
    if kind is list:
        return [_marked(item) for item in value]
    if kind is dict:
        return {_marked(key): _marked(item) for key, item in value.items()}
    if kind is bytearray:
        return _written(BYTEARRAY, value)
    if kind is str:
        try:
            value.encode()
        except UnicodeEncodeError:
            return _written(TEXT, value)
    elif kind in _MISTAKEN:
        raise Refused(value, "no type that is stored")
    return value


def _written(extension: Extension, value: Any) -> Any:
    return ExtType(extension.code, Packer().pack(extension.pack(value)))


def unserializable(value: Any, reason: Exception) -> UnserializableValueError:
    """Return the error for a value that :func:`pack` failed on with *reason*: it names the culprit and the way to it."""
    found = _culprit(value, set(), [])
    if found is None:
        return UnserializableValueError(value, str(reason))
    path, culprit, why = found
    if len(path) > _MOST_SEGMENTS:
        path = [*path[:_MOST_SEGMENTS], "..."]
    return UnserializableValueError(culprit, why, path="".join(path))


_DEEPEST = 200


def _culprit(value: Any, above: set[int], path: list[str]) -> tuple[list[str], Any, str] | None:
    kind = type(value)
    if kind in _NATIVE or kind is int:
        return None
    if id(value) in above:
        return path, value, "it contains itself"
    if len(path) >= _DEEPEST:
        return path, value, f"it is nested more than {_DEEPEST} levels deep"
    parts, refusal = _examined(value)
    above.add(id(value))
    for label, part in parts:
        found = _culprit(part, above, [*path, label])
        if found is not None:
            return found
    above.discard(id(value))
    return None if refusal is None else (path, value, refusal)


def _examined(value: Any) -> tuple[Iterable[Part], str | None]:
    """Return the parts of a value, and why it is refused whatever they are."""
    kind = type(value)
    if kind is list:
        return members(value), None
    if kind is dict:
        return items(value), None
    if kind is bytearray:
        return (), None
    extension = extension_of(value)
    if extension is None:
        return (), None if isinstance(value, BaseException) else "no type that is stored"
    try:
        extension.pack(value)
    except Refused as refused:
        return extension.parts(value), refused.reason
    return extension.parts(value), None
