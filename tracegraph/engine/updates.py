"""The state updates in what a node returned, as pairs of key and value, whatever form they came in."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import fields, is_dataclass
from functools import lru_cache
from typing import Any

from tracegraph.constants import ROOT
from tracegraph.types import Command

__all__ = ["command_pairs", "instance_pairs", "root_pairs"]

Pairs = Iterable[tuple[str, Any]]


def command_pairs(update: Any, keys: Sequence[str]) -> Pairs:
    """Return the pairs of a ``Command.update``; a value that has no keys is for ``__root__``."""
    if update is None:
        return ()
    if isinstance(update, dict):
        return update.items()
    if isinstance(update, (list, tuple)) and all(_is_pair(item) for item in update):
        return update
    found = instance_pairs(update, keys)
    return [(ROOT, update)] if found is None else found


def root_pairs(returned: Any) -> Pairs:
    """Return the update of a graph whose state is one value: the value itself, or what a Command brings."""
    if not isinstance(returned, Command):
        return [(ROOT, returned)]
    pairs = list(command_pairs(returned.update, ()))
    # An update that addresses no field of this graph can only mean the value as a whole.
    return pairs if all(key == ROOT for key, _value in pairs) else [(ROOT, returned.update)]


def instance_pairs(value: Any, keys: Sequence[str]) -> list[tuple[str, Any]] | None:
    """Return what an instance of an annotated class updates, ``None`` if it is no such instance.

    Its annotated fields count, and any other attribute that is one of *keys*. In a Pydantic model a None counts only
    if the field has another default or was set: else a partly filled instance would erase state.
    """
    cls: Any = type(value)
    known = _fields_of(cls)
    if known is None:
        return None
    names, defaults = known
    explicit: frozenset[str] = getattr(value, "model_fields_set", frozenset())
    pairs = []
    for name in dict.fromkeys((*names, *keys)):
        try:
            found = getattr(value, name)
        except AttributeError:
            continue
        if found is not None or defaults is None or defaults.get(name) is not None or name in explicit:
            pairs.append((name, found))
    return pairs


@lru_cache(maxsize=512)
def _fields_of(cls: Any) -> tuple[tuple[str, ...], dict[str, Any] | None] | None:
    """Return the field names of an annotated class, inherited ones first, and, of a Pydantic model, their defaults."""
    names = tuple(dict.fromkeys(name for base in reversed(cls.__mro__) for name in getattr(base, "__annotations__", ())))
    if not names:
        return None
    if is_dataclass(cls):
        return tuple(field.name for field in fields(cls)), None
    # Pydantic annotates its own class variables, which are no fields.
    model_fields = getattr(cls, "model_fields", None)
    if isinstance(model_fields, dict):
        return tuple(model_fields), {name: field.default for name, field in model_fields.items()}
    return names, None


def _is_pair(item: Any) -> bool:
    return isinstance(item, tuple) and len(item) == 2 and isinstance(item[0], str)
