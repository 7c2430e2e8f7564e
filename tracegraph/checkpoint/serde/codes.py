"""The closed set of extension codes, and what one extension consists of."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import IntEnum, unique
from typing import Any, Final, TypeAlias

from tracegraph.checkpoint.serde.allowlist import Allowlist

__all__ = ["DEEPEST", "Code", "Extension", "Part", "attributes", "items", "members", "no_parts"]

Part: TypeAlias = tuple[str, Any]
"""How to get to a part from its whole (``[3]``, ``.name``), and the part."""

DEEPEST: Final = 100
"""How many objects may lie within each other. Each takes three Python calls to revive, wherever that happens."""


@unique
class Code(IntEnum):
    """What a msgpack extension holds. Databases hold these numbers: never change one, never use one again.

    0 to 15 stay free: other libraries use them with other meanings, and their bytes must not be read as ours.
    """

    TUPLE = 16
    SET = 17
    FROZENSET = 18
    DEQUE = 19
    DEFAULTDICT = 20
    COUNTER = 21
    ORDERED_DICT = 22
    BYTEARRAY = 23
    TEXT = 24
    """Text with lone surrogates, which is no UTF-8."""
    BIG_INT = 25
    COMPLEX = 26
    DECIMAL = 27
    FRACTION = 28
    DATETIME = 29
    DATE = 30
    TIME = 31
    TIMEDELTA = 32
    TIMEZONE = 33
    ZONEINFO = 34
    UUID = 35
    PATH = 36
    IP = 37
    PATTERN = 38
    RANGE = 39
    SLICE = 40
    CONSTANT = 41
    CLASS = 42
    """A class itself, by name."""
    FORM = 43
    """A type that is no class: ``list[int]``, ``int | None``, ``Literal["a"]``."""
    ENUM = 44
    NAMEDTUPLE = 45
    DATACLASS = 46
    ATTRS = 47
    PYDANTIC = 48
    SUBCLASS = 49
    """An instance of a class derived from a built-in one."""
    MESSAGE = 50
    PYDANTIC_TEXT = 51
    """Pydantic's secrets and URLs."""
    NDARRAY = 52
    NUMPY_SCALAR = 53
    PANDAS = 54


def no_parts(_value: Any) -> Iterable[Part]:
    """Return the parts of what has none."""
    return ()


def members(value: Iterable[Any]) -> Iterable[Part]:
    """Return the parts of a sequence or set."""
    return ((f"[{at}]", item) for at, item in enumerate(value))


def items(value: Mapping[Any, Any]) -> Iterable[Part]:
    """Return the parts of a mapping, its keys among them."""
    for at, (key, item) in enumerate(value.items()):
        yield f".keys()[{at}]", key
        yield f"[{key!r}]", item


def attributes(state: Mapping[str, Any]) -> Iterable[Part]:
    """Return the parts of an object with these attributes."""
    return ((f".{name}", item) for name, item in state.items())


@dataclass(frozen=True, slots=True)
class Extension:
    """How values of some types are written under one code.

    ``pack`` returns plain data, which may hold values that need extensions of their own, or raises ``Refused``.
    ``revive`` gets that data back; it may be damaged or made up, so it must run nothing that the data names,
    and may raise whatever wrong data makes it raise. ``parts`` serves the search for a culprit.
    """

    code: Code
    pack: Callable[[Any], Any]
    revive: Callable[[Any, Allowlist], Any]
    parts: Callable[[Any], Iterable[Part]] = no_parts
