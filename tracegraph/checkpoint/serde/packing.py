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

from tracegraph.checkpoint.serde.codes import DEEPEST, Extension, Part, items, members
from tracegraph.checkpoint.serde.errors import Refused, UnserializableValueError
from tracegraph.checkpoint.serde.extensions import extension_of
from tracegraph.checkpoint.serde.plain import BYTEARRAY, TEXT

__all__ = ["pack", "unserializable"]

_NATIVE: Final = frozenset({type(None), bool, float, str, bytes})
_MISTAKEN: Final = frozenset({bytearray, memoryview, ExtType, Timestamp})
_MOST_SEGMENTS = 12
_NO_TYPE = "no type that is stored"
_TOO_DEEP = f"it lies more than {DEEPEST} objects deep in others"


def pack(value: Any) -> bytes:
    """Return *value* as msgpack.

    Raises:
        Refused, ValueError, RecursionError: it cannot be; :func:`unserializable` finds out where.
    """
    return _Packing().pack(value)


class _Packing:
    """One call of :func:`pack`, which counts how deep it is."""

    __slots__ = ("_depth",)

    def __init__(self) -> None:
        self._depth = 0

    def pack(self, value: Any) -> bytes:
        try:
            data = self._packed(value)
        except UnicodeEncodeError:
            return self._packed(_marked(value))
        # Three searches in C are cheap, and nearly always say that nothing was packed as bytes.
        if (b"\xc4" in data or b"\xc5" in data or b"\xc6" in data) and _is_mistaken(value):
            return self._packed(_marked(value))
        return data

    def _packed(self, value: Any) -> bytes:
        # msgpack packs lists one level deeper than it unpacks. Within one more list it stops where it should.
        data: bytes = Packer(default=self._extended, strict_types=True).pack([value])
        return data[1:]

    def _extended(self, value: Any) -> Any:
        extension = extension_of(value)
        if extension is None:
            if isinstance(value, BaseException):
                return repr(value)
            raise Refused(value, _NO_TYPE)
        self._depth += 1
        if self._depth > DEEPEST:
            raise Refused(value, _TOO_DEEP)
        data = self.pack(extension.pack(value))
        self._depth -= 1
        # What ExtType(...) makes, without the checks that take longer than all the rest.
        return tuple.__new__(ExtType, (extension.code, data))


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
        raise Refused(value, _NO_TYPE)
    return value


def _written(extension: Extension, value: Any) -> Any:
    return ExtType(extension.code, Packer().pack(extension.pack(value)))


def unserializable(value: Any, reason: Exception) -> UnserializableValueError:
    """Return the error for a value that :func:`pack` failed on with *reason*: it names the culprit and the way to it."""
    try:
        found = _Search().culprit(value, 0)
    except RecursionError:
        found = None
    if found is None:
        return UnserializableValueError(value, str(reason))
    path, culprit, why = found
    if len(path) > _MOST_SEGMENTS:
        path = [*path[: _MOST_SEGMENTS - 1], "...", path[-1]]
    return UnserializableValueError(culprit, why, path="".join(path))


class _Search:
    """The search for what cannot be packed; only done when something cannot."""

    def __init__(self) -> None:
        self._above: set[int] = set()
        self._path: list[str] = []

    def culprit(self, value: Any, depth: int) -> tuple[list[str], Any, str] | None:
        """Return the way to the first culprit, the culprit, and what is wrong with it; *depth* counts objects above."""
        kind = type(value)
        if kind in _NATIVE or kind is int:
            return None
        if id(value) in self._above:
            return self._path, value, "it contains itself"
        parts, refusal = _examined(value)
        if kind not in (list, dict):
            depth += 1
        if depth > DEEPEST:
            return self._path, value, _TOO_DEEP
        self._above.add(id(value))
        for label, part in parts:
            self._path.append(label)
            if (found := self.culprit(part, depth)) is not None:
                return found
            self._path.pop()
        self._above.discard(id(value))
        return None if refusal is None else (self._path, value, refusal)


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
        return (), None if isinstance(value, BaseException) else _NO_TYPE
    try:
        extension.pack(value)
    except Refused as refused:
        return extension.parts(value), refused.reason
    return extension.parts(value), None
