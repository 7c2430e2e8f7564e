"""Deep copies, fast for what states are made of.

``copy.deepcopy`` costs about 10 us for a small dict and grows steeply; a checkpoint must cost less than the
superstep it records. Containers and dataclasses are copied here, everything else by ``deepcopy``, with one
memo, so that shared and circular references come out as they were.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from dataclasses import fields, is_dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from functools import lru_cache
from types import BuiltinFunctionType, FunctionType, NoneType
from typing import Any, TypeAlias
from uuid import UUID

__all__ = ["ATOMIC", "isolated"]

Memo: TypeAlias = dict[int, Any]

ATOMIC = frozenset(
    {NoneType, bool, int, float, complex, str, bytes, type, FunctionType, BuiltinFunctionType}
    | {date, datetime, timedelta, Decimal, UUID, range, type(Ellipsis)}
)
"""Types whose values nobody can change."""


def isolated(value: Any, memo: Memo | None = None) -> Any:
    """Return a copy of *value* that shares nothing changeable with it.

    >>> inner = [1]
    >>> copied = isolated({"a": inner, "b": inner})
    >>> copied["a"] is copied["b"], copied["a"] is inner
    (True, False)
    """
    kind = type(value)
    if kind in ATOMIC:
        return value
    copier = _COPIERS.get(kind) or _dataclass_copier(kind)  # type: ignore[arg-type]  # mypy looks for the instances' __hash__
    memo = {} if memo is None else memo
    known = memo.get(id(value))
    if known is not None:
        return known
    if copier is not None:
        return copier(value, memo)
    # Shared, as nobody changes them and many cannot be rebuilt from their arguments.
    return value if isinstance(value, BaseException) else deepcopy(value, memo)


def _list(value: list[Any], memo: Memo) -> list[Any]:
    made = memo[id(value)] = value.copy()
    if not ATOMIC.issuperset(map(type, made)):
        for at, item in enumerate(made):
            if type(item) not in ATOMIC:
                made[at] = isolated(item, memo)
    return made


def _dict(value: dict[Any, Any], memo: Memo) -> dict[Any, Any]:
    if not ATOMIC.issuperset(map(type, value)):
        return deepcopy(value, memo)
    made = memo[id(value)] = value.copy()
    for key, item in value.items():
        if type(item) not in ATOMIC:
            made[key] = isolated(item, memo)
    return made


def _set(value: set[Any], memo: Memo) -> set[Any]:
    if not ATOMIC.issuperset(map(type, value)):
        return deepcopy(value, memo)
    made = memo[id(value)] = value.copy()
    return made


def _tuple(value: tuple[Any, ...], memo: Memo) -> tuple[Any, ...]:
    if ATOMIC.issuperset(map(type, value)):
        return value
    items = [isolated(item, memo) for item in value]
    # A tuple inside itself (by way of a list) was finished while its items were copied.
    finished: tuple[Any, ...] = memo.setdefault(id(value), tuple(items))
    return finished


_COPIERS: dict[type, Callable[[Any, Memo], Any]] = {list: _list, dict: _dict, set: _set, tuple: _tuple}

_CUSTOM = ("__deepcopy__", "__getstate__", "__setstate__", "__reduce__", "__reduce_ex__", "__getnewargs__", "__getnewargs_ex__")


@lru_cache(maxsize=512)
def _dataclass_copier(kind: type) -> Callable[[Any, Memo], Any] | None:
    """Return a copier for a dataclass that says nothing of its own about copying, else None."""
    if not is_dataclass(kind) or any(getattr(kind, name, None) is not getattr(object, name, None) for name in _CUSTOM):
        return None
    slots = {name for base in kind.__mro__ for name in getattr(base, "__slots__", ())}
    has_dict = hasattr(kind, "__dict__") and kind.__dictoffset__ != 0
    if has_dict and not slots:
        return _attributes
    names = tuple(f.name for f in fields(kind))
    if has_dict or slots - {"__weakref__"} != set(names):
        return None

    def slotted(value: Any, memo: Memo) -> Any:
        made = memo[id(value)] = object.__new__(kind)
        for name in names:
            item = getattr(value, name)
            object.__setattr__(made, name, item if type(item) in ATOMIC else isolated(item, memo))
        return made

    return slotted


def _attributes(value: Any, memo: Memo) -> Any:
    made = memo[id(value)] = object.__new__(type(value))
    own = made.__dict__
    for name, item in value.__dict__.items():
        own[name] = item if type(item) in ATOMIC else isolated(item, memo)
    return made
