"""NumPy's arrays and scalars. It is looked up among the loaded modules when packing, and imported only to revive one."""

from __future__ import annotations

import importlib
from collections.abc import Iterable
from typing import Any, Final

from tracegraph.checkpoint.serde.codes import Code, Extension, Part, members
from tracegraph.checkpoint.serde.errors import Refused, UnreadableBytesError

__all__ = ["NDARRAY", "NUMPY_SCALAR", "library"]

_OBJECTS = "O"


def library(name: str) -> Any:
    """Return an optional library that a stored value needs; *name* never comes from stored bytes.

    Raises:
        UnreadableBytesError: it is not installed.
    """
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise UnreadableBytesError(f"a stored value needs {name}, which is not installed") from error


def _dtype_data(value: Any) -> Any:
    """Return a dtype as text, or as a list of fields, from which an equal one can be made."""
    dtype = value.dtype
    try:
        data = dtype.str if dtype.names is None else [_lists(field) for field in dtype.descr]
        is_described = not dtype.hasobject and _dtype(data) == dtype
    except (TypeError, ValueError):  # overlapping fields
        is_described = False
    if not is_described:
        raise Refused(value, f"its dtype {dtype} has no form of plain bytes")
    return data


def _lists(data: Any) -> Any:
    return [_lists(item) for item in data] if isinstance(data, (list, tuple)) else data


def _dtype(data: Any) -> Any:
    if isinstance(data, list):
        fields = [(name, _dtype(kind), *map(tuple, shape)) for name, kind, *shape in data]
        found = library("numpy").dtype(fields)
    else:
        found = library("numpy").dtype(data)
    if found.hasobject:  # its bytes would be taken for addresses in memory
        raise UnreadableBytesError("an array of objects is not stored as bytes")
    return found


def _array_data(value: Any) -> list[Any]:
    if value.dtype.str == "|O":
        return [_OBJECTS, [*value.shape], "C", value.ravel(order="C").tolist()]
    order = "F" if value.flags.f_contiguous and not value.flags.c_contiguous else "C"
    return [_dtype_data(value), [*value.shape], order, value.tobytes(order=order)]


def _array(data: Any, _types: object) -> Any:
    kind, shape, order, held = data
    numpy = library("numpy")
    if kind == _OBJECTS:
        made = numpy.empty(len(held), dtype=object)
        for at, item in enumerate(held):  # a slice assignment would take lists for further dimensions
            made[at] = item
        return made.reshape(shape)
    if any(type(size) is not int or size < 0 for size in shape):
        raise TypeError(f"{shape!r} is no shape")
    # A bytearray makes the array writable without another copy.
    return numpy.ndarray(shape, _dtype(kind), buffer=bytearray(held), order=order)


def _array_parts(value: Any) -> Iterable[Part]:
    return members(value.ravel(order="C").tolist()) if value.dtype.str == "|O" else ()


NDARRAY: Final = Extension(Code.NDARRAY, _array_data, _array, _array_parts)


def _scalar(data: Any, _types: object) -> Any:
    kind, held = data
    return library("numpy").frombuffer(held, _dtype(kind))[0]


NUMPY_SCALAR: Final = Extension(Code.NUMPY_SCALAR, lambda value: [_dtype_data(value), value.tobytes()], _scalar)
