"""What an object holds, read and set past its own code: no property, ``__getattr__``, ``__setattr__`` or ``__init__`` runs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property, lru_cache
from types import MemberDescriptorType
from typing import Any, NamedTuple

from tracegraph.checkpoint.serde.errors import UnreadableBytesError

__all__ = ["Field", "has_slot", "missing", "set_state", "state_of"]


class _Layout(NamedTuple):
    slots: dict[str, MemberDescriptorType]
    has_dict: bool
    recomputed: frozenset[str]


class Field(NamedTuple):
    """A field that a class declares; ``default`` makes its value if the stored state has none."""

    name: str
    is_required: bool
    default: Any


@lru_cache(maxsize=1024)
def _layout(cls: type) -> _Layout:
    slots: dict[str, MemberDescriptorType] = {}
    recomputed = set()
    for base in reversed(cls.__mro__):
        for name, found in vars(base).items():
            # Types written in C have such descriptors too, for what is not state of the instance's own.
            if isinstance(found, MemberDescriptorType) and "__slots__" in vars(base):
                slots[name] = found
            elif isinstance(found, cached_property):
                recomputed.add(name)
    return _Layout(slots, cls.__dictoffset__ != 0, frozenset(recomputed))


def has_slot(cls: type, name: str) -> bool:
    """Say whether instances keep that attribute in a slot."""
    return name in _layout(cls).slots


def state_of(value: Any) -> dict[str, Any]:
    """Return the attributes an object has of its own, in slots or not; cached properties are left out."""
    slots, has_dict, recomputed = _layout(type(value))  # type: ignore[arg-type]  # mypy looks for the instances' __hash__
    state = dict(value.__dict__) if has_dict else {}
    for name in recomputed:
        state.pop(name, None)
    for name, slot in slots.items():
        try:
            state[name] = slot.__get__(value)
        except AttributeError:  # never set
            continue
    return state


def set_state(value: Any, state: dict[str, Any]) -> None:
    """Set attributes; those for which the object has no place any more are dropped."""
    slots, has_dict, _recomputed = _layout(type(value))  # type: ignore[arg-type]  # mypy looks for the instances' __hash__
    for name, item in state.items():
        if name in slots:
            slots[name].__set__(value, item)
        elif has_dict and type(name) is str:
            value.__dict__[name] = item


def missing(cls: type, state: dict[str, Any], fields: Iterable[Field]) -> Iterator[tuple[str, Any]]:
    """Yield the defaults of fields that the class got after the value was stored; each is made when it is asked for.

    Raises:
        UnreadableBytesError: a new field has no default.
    """
    for name, is_required, default in fields:
        if name not in state:
            if is_required:
                raise UnreadableBytesError(
                    f"{cls.__module__}.{cls.__qualname__} now needs {name!r}, which the stored value lacks; give it a default"
                )
            if default is not None:
                yield name, default()
