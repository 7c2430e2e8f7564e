"""Enum members, named tuples, dataclasses, attrs classes, and classes derived from built-in ones."""

from __future__ import annotations

import sys
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterable
from dataclasses import MISSING as NO_DEFAULT
from dataclasses import fields
from enum import Enum, Flag
from functools import partial
from typing import Any, Final

from tracegraph.checkpoint.serde.allowlist import Allowlist
from tracegraph.checkpoint.serde.classes import find, name_of
from tracegraph.checkpoint.serde.codes import Code, Extension, Part, attributes, items, members
from tracegraph.checkpoint.serde.errors import UnreadableBytesError
from tracegraph.checkpoint.serde.state import Field, has_slot, missing, set_state, state_of

__all__ = ["ATTRS", "BASES", "DATACLASS", "ENUM", "NAMEDTUPLE", "SUBCLASS", "base_of"]


def _attributes(value: Any) -> Iterable[Part]:
    return attributes(state_of(value))


# An enum member is stored by value, as people read it in other places; by name where the value is not simple.


def _enum_data(value: Enum) -> list[Any]:
    named = name_of(type(value))
    plain = value._value_
    if isinstance(value, Flag) or (type(plain) in (str, int) and type(value)._value2member_map_.get(plain) is value):
        return [*named, plain]
    return [*named, None, value._name_]


def _enum(data: Any, types: Allowlist) -> Any:
    module, qualified, plain, *name = data
    cls = find(module, qualified, types, Enum)
    if cls is None:
        return name[0] if name else plain
    if name and name[0] in cls.__members__:  # type: ignore[attr-defined]  # an Enum
        return cls.__members__[name[0]]  # type: ignore[attr-defined]  # same
    if issubclass(cls, Flag) and type(plain) is int:
        return cls(plain)
    if not name and plain in cls._value2member_map_:  # type: ignore[attr-defined]  # same
        return cls._value2member_map_[plain]  # type: ignore[attr-defined]  # same
    raise UnreadableBytesError(f"enum {qualified!r} of module {module!r} has no member {name[0] if name else plain!r}")


ENUM: Final = Extension(Code.ENUM, _enum_data, _enum)


def _namedtuple_data(value: Any) -> list[Any]:
    data = [*name_of(type(value)), dict(zip(type(value)._fields, tuple.__iter__(value), strict=True))]
    state = state_of(value)
    return [*data, state] if state else data


def _namedtuple(data: Any, types: Allowlist) -> Any:
    module, name, held, *state = data
    cls: Any = find(module, name, types, tuple)
    if cls is None:
        return held
    defaults = cls._field_defaults
    declared = [Field(field, field not in defaults, partial(defaults.get, field)) for field in cls._fields]
    held.update(missing(cls, held, declared))
    made: Any = tuple.__new__(cls, [held[field] for field in cls._fields])
    if state:
        set_state(made, state[0])
    return made


def _namedtuple_parts(value: Any) -> Iterable[Part]:
    return attributes(dict(zip(type(value)._fields, tuple.__iter__(value), strict=True)) | state_of(value))


NAMEDTUPLE: Final = Extension(Code.NAMEDTUPLE, _namedtuple_data, _namedtuple, _namedtuple_parts)


def _object_data(value: Any) -> list[Any]:
    return [*name_of(type(value)), state_of(value)]


def _object(data: Any, types: Allowlist, mark: str, declared: Callable[[type, Any], Iterable[Field]]) -> Any:
    module, name, state = data
    cls = find(module, name, types)
    if cls is None:
        return state
    # Before there is an instance: it might have a __del__.
    if not hasattr(cls, mark):
        raise UnreadableBytesError(f"class {name!r} of module {module!r} has no {mark}, so it is not what was stored")
    made: Any = object.__new__(cls)
    set_state(made, state)
    for name, default in missing(cls, state, declared(cls, made)):
        set_state(made, {name: default})  # at once: the next default may be made from it
    return made


def _dataclass_fields(cls: Any, _made: object) -> Iterable[Field]:
    for field in fields(cls):
        has_default = field.default is not NO_DEFAULT
        make: Any = None if field.default_factory is NO_DEFAULT else field.default_factory
        if has_default and has_slot(cls, field.name):  # else the class itself has the default as an attribute
            make = partial(_itself, field.default)
        # One that __init__ does not take may be unset, or set later by the class itself.
        yield Field(field.name, field.init and make is None and not has_default, make)


def _itself(value: Any) -> Any:
    return value


DATACLASS: Final = Extension(
    Code.DATACLASS, _object_data, partial(_object, mark="__dataclass_fields__", declared=_dataclass_fields), _attributes
)

_CACHED_HASH = "_attrs_cached_hash"


def _attrs_data(value: Any) -> list[Any]:
    data = _object_data(value)
    # Hashes of text differ from process to process.
    data[-1].pop(_CACHED_HASH, None)
    return data


def _attrs_fields(cls: Any, made: object) -> Iterable[Field]:
    attr: Any = sys.modules["attr"]  # loaded with the class
    for field in cls.__attrs_attrs__:
        default = field.default
        make: Any
        if isinstance(default, attr.Factory):
            make = partial(default.factory, *([made] if default.takes_self else []))
        else:
            make = None if default is attr.NOTHING else partial(_itself, default)
        yield Field(field.name, field.init and make is None, make)
    if hasattr(cls, _CACHED_HASH):
        yield Field(_CACHED_HASH, False, partial(_itself, None))


ATTRS: Final = Extension(Code.ATTRS, _attrs_data, partial(_object, mark="__attrs_attrs__", declared=_attrs_fields), _attributes)


def _ordered(cls: type, value: OrderedDict[Any, Any]) -> Any:
    made: Any = OrderedDict.__new__(cls)
    for key, item in value.items():
        OrderedDict.__setitem__(made, key, item)
    return made


def _extended(cls: type, value: Any, base: Any, method: str) -> Any:
    made = base.__new__(cls)
    getattr(base, method)(made, value)
    return made


def _defaultdict(cls: type, value: defaultdict[Any, Any]) -> Any:
    made: Any = defaultdict.__new__(cls)
    defaultdict.__init__(made, value.default_factory, value)
    return made


def _deque(cls: type, value: deque[Any]) -> Any:
    made: Any = deque.__new__(cls)
    deque.__init__(made, value, value.maxlen)
    return made


# For each built-in base: how to get the plain value out of an instance of a derived class, and how to put it
# into a new one. Only the base's own methods are called, so the derived class has no say.
BASES: Final[dict[type, tuple[Callable[[Any], Any], Callable[[type, Any], Any]]]] = {
    Counter: (lambda value: Counter(dict.copy(value)), partial(_extended, base=dict, method="update")),
    OrderedDict: (lambda value: OrderedDict(OrderedDict.items(value)), _ordered),
    defaultdict: (lambda value: defaultdict(value.default_factory, dict.items(value)), _defaultdict),
    dict: (dict.copy, partial(_extended, base=dict, method="update")),
    list: (lambda value: [*list.__iter__(value)], partial(_extended, base=list, method="extend")),
    set: (lambda value: {*set.__iter__(value)}, partial(_extended, base=set, method="update")),
    deque: (lambda value: deque(deque.__iter__(value), value.maxlen), _deque),
    tuple: (lambda value: (*tuple.__iter__(value),), tuple.__new__),
    frozenset: (lambda value: frozenset(frozenset.__iter__(value)), frozenset.__new__),
    str: (str.__str__, str.__new__),
    int: (int.__int__, int.__new__),
    float: (float.__float__, float.__new__),
    bytes: (lambda value: bytes.__getitem__(value, slice(None)), bytes.__new__),
}

_IS_HEAP_TYPE = 1 << 9


def base_of(cls: type) -> type | None:
    """Return the built-in class that *cls* is derived from; None also if code in C stands between, with state unseen."""
    for at, base in enumerate(cls.__mro__):
        if base in BASES:
            return base if all(between.__flags__ & _IS_HEAP_TYPE for between in cls.__mro__[:at]) else None
    return None


def _subclass_data(value: Any) -> list[Any]:
    cls = type(value)
    take, _make = BASES[base_of(cls)]  # type: ignore[index]  # it has one, or it would not be here
    data = [*name_of(cls), take(value)]
    state = state_of(value)
    return [*data, state] if state else data


def _subclass(data: Any, types: Allowlist) -> Any:
    module, name, held, *state = data
    base = type(held)
    cls = find(module, name, types, base)
    if cls is None:
        return held
    if base_of(cls) is not base or issubclass(cls, Enum):
        raise UnreadableBytesError(f"class {name!r} of module {module!r} is no plain subclass of {base.__name__}")
    _take, make = BASES[base]
    made = make(cls, held)
    if state:
        set_state(made, state[0])
    return made


def _subclass_parts(value: Any) -> Iterable[Part]:
    plain = BASES[base_of(type(value))][0](value)  # type: ignore[index]  # as above
    if isinstance(plain, dict):
        yield from items(plain)
    elif not isinstance(plain, (str, bytes, int, float)):
        yield from members(plain)
    yield from attributes(state_of(value))


SUBCLASS: Final = Extension(Code.SUBCLASS, _subclass_data, _subclass, _subclass_parts)
