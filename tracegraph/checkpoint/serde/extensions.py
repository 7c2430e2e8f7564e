"""Which extension writes a value, and which reads a code."""

from __future__ import annotations

import sys
from enum import Enum
from functools import lru_cache
from typing import Any, Final, get_origin

from tracegraph.checkpoint.serde.arrays import NDARRAY, NUMPY_SCALAR
from tracegraph.checkpoint.serde.classes import CLASS, FORM
from tracegraph.checkpoint.serde.codes import Code, Extension
from tracegraph.checkpoint.serde.collections import COLLECTIONS
from tracegraph.checkpoint.serde.frames import PANDAS, PANDAS_KINDS
from tracegraph.checkpoint.serde.messages import MESSAGES
from tracegraph.checkpoint.serde.models import PYDANTIC, PYDANTIC_TEXT, is_pydantic_text
from tracegraph.checkpoint.serde.numbers import NUMBERS
from tracegraph.checkpoint.serde.objects import ATTRS, DATACLASS, ENUM, NAMEDTUPLE, SUBCLASS, base_of
from tracegraph.checkpoint.serde.plain import BYTEARRAY, PLAIN, TEXT
from tracegraph.checkpoint.serde.temporal import TEMPORAL

__all__ = ["BY_CODE", "BY_TYPE", "extension_of"]

BY_TYPE: Final[dict[type, Extension]] = {**COLLECTIONS, **NUMBERS, **TEMPORAL, **PLAIN, **MESSAGES}
"""By exact type: a subclass holds more than its base."""

_OTHERS = (BYTEARRAY, TEXT, CLASS, FORM, ENUM, NAMEDTUPLE, DATACLASS, ATTRS, PYDANTIC, SUBCLASS, PYDANTIC_TEXT)
BY_CODE: Final[dict[int, Extension]] = {
    int(extension.code): extension for extension in (*BY_TYPE.values(), *_OTHERS, NDARRAY, NUMPY_SCALAR, PANDAS)
}


def extension_of(value: Any) -> Extension | None:
    """Return what writes *value*, None if nothing does.

    >>> extension_of((1, 2)).code.name, extension_of(object())
    ('TUPLE', None)
    """
    kind = type(value)
    found = BY_TYPE.get(kind) or _extension_for(kind)  # type: ignore[arg-type]  # mypy looks for the instances' __hash__
    return found or (FORM if get_origin(value) is not None else None)


@lru_cache(maxsize=1024)
def _extension_for(kind: type) -> Extension | None:
    # The order matters: an IntEnum is an int, a named tuple a tuple, numpy.float64 a float.
    if issubclass(kind, type):
        return CLASS
    if issubclass(kind, Enum):
        return ENUM
    if (found := _from_libraries(kind)) is not None:
        return found
    if issubclass(kind, tuple) and hasattr(kind, "_field_defaults"):
        return NAMEDTUPLE
    if base_of(kind) is not None:
        return SUBCLASS
    if "__attrs_attrs__" in vars(kind):
        return ATTRS
    return DATACLASS if hasattr(kind, "__dataclass_fields__") else None


def _from_libraries(kind: type) -> Extension | None:
    # Whoever has an object of a library has loaded it.
    numpy, pandas, pydantic = map(sys.modules.get, ("numpy", "pandas", "pydantic"))
    if numpy is not None:
        if kind is numpy.ndarray:
            return NDARRAY
        if issubclass(kind, numpy.generic) and kind.__module__ == "numpy":
            return NUMPY_SCALAR
    if pandas is not None and kind.__name__ in PANDAS_KINDS and kind.__module__.partition(".")[0] == "pandas":
        return PANDAS
    if pydantic is not None:
        if issubclass(kind, pydantic.BaseModel):
            return PYDANTIC
        if is_pydantic_text(kind):
            return PYDANTIC_TEXT
    return None


assert {*BY_CODE} == {*Code}, "every code has one reader"
