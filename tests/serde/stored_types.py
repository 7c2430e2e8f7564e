"""Classes of a user, whose instances the tests store."""

from __future__ import annotations

from collections import Counter, OrderedDict, defaultdict, deque
from dataclasses import dataclass, field
from enum import Enum, Flag, IntEnum, StrEnum
from functools import cached_property
from typing import Any, Generic, NamedTuple, Self, TypeVar

from pydantic import BaseModel, ConfigDict, Field, PrivateAttr, RootModel, SecretStr

CALLS: list[str] = []
"""What ran that should not have."""


class Colour(Enum):
    RED = "red"
    BLUE = "blue"
    CRIMSON = "red"  # noqa: PIE796  # an alias


class Shape(Enum):
    DOT = (1, 2)
    LINE = 1.5
    YES = True
    FUNCTION = [print]  # noqa: RUF012


class Level(IntEnum):
    LOW = 1


class Mode(StrEnum):
    FAST = "fast"


class Rights(Flag):
    READ = 1
    WRITE = 2


class Point(NamedTuple):
    x: Any
    y: Any = 0


class Marked(Point):
    """A named tuple with attributes."""


@dataclass
class Plain:
    items: Any = field(default_factory=list)
    name: str = "n"


@dataclass(frozen=True, slots=True)
class Frozen:
    left: Any
    right: Any = 0


@dataclass
class Derived:
    """Fields that __init__ does not take, one never set, and an attribute that is no field."""

    base: int
    twice: int = field(init=False)
    unset: int = field(init=False)
    fixed: int = field(init=False, default=7)

    def __post_init__(self) -> None:
        CALLS.append("post_init")
        self.twice = 2 * self.base
        self.extra = [self.base]

    @cached_property
    def costly(self) -> int:
        return self.base + 1


@dataclass
class Evil:
    """Says what of its own code runs."""

    value: Any = 1

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        CALLS.append("new")
        return super().__new__(cls)

    def __init__(self, value: Any = 1) -> None:
        CALLS.append("init")
        object.__setattr__(self, "value", value)

    def __setattr__(self, name: str, value: Any) -> None:
        CALLS.append("setattr")
        object.__setattr__(self, name, value)

    def __setstate__(self, state: Any) -> None:
        CALLS.append("setstate")

    def __reduce__(self) -> Any:
        CALLS.append("reduce")
        return print, ("reduced",)


class Ordinary:
    """Neither a dataclass nor a model."""

    def __init__(self, *_args: Any) -> None:
        CALLS.append("ordinary")

    def __del__(self) -> None:
        CALLS.append("del")


class Model(BaseModel):
    items: list[Any]
    name: str = "n"
    seen: set[tuple[int, int]] = Field(default_factory=set)


class Open(BaseModel):
    model_config = ConfigDict(extra="allow")

    number: int = 1


class Private(BaseModel):
    number: int = 1
    _note: str = PrivateAttr(default="note")
    _list: list[int] = PrivateAttr(default_factory=list)
    _unset: int = PrivateAttr()

    @cached_property
    def costly(self) -> int:
        return self.number + 1


class Secretive(BaseModel):
    secret: SecretStr


class Names(RootModel[list[str]]):
    pass


T = TypeVar("T")


class Box(BaseModel, Generic[T]):
    held: T


class EvilModel(BaseModel):
    number: int = 1

    def model_post_init(self, _context: Any) -> None:
        CALLS.append("model_post_init")

    def __init__(self, **data: Any) -> None:
        CALLS.append("model_init")
        super().__init__(**data)


class Text(str):  # noqa: SLOT000  # that is its point
    """Text, with attributes."""


class Number(int):
    pass


class Real(float):
    pass


class Raw(bytes):
    pass


class Pair(tuple):  # noqa: SLOT001
    pass


class Group(frozenset):  # type: ignore[type-arg]
    pass


class Table(dict):  # type: ignore[type-arg]
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        CALLS.append("table")
        super().__init__(*args, **kwargs)

    def __setitem__(self, key: Any, value: Any) -> None:
        CALLS.append("setitem")
        super().__setitem__(key, value)


class Row(list):  # type: ignore[type-arg]
    pass


class Bag(set):  # type: ignore[type-arg]
    pass


class Queue(deque):  # type: ignore[type-arg]
    pass


class Tally(Counter):  # type: ignore[type-arg]
    pass


class Ordered(OrderedDict):  # type: ignore[type-arg]
    pass


class Lists(defaultdict):  # type: ignore[type-arg]
    pass


class Slotted(dict):  # type: ignore[type-arg]
    __slots__ = ("mark", "never")


@dataclass
class DictAndData(dict):  # type: ignore[type-arg]
    label: str = "l"
