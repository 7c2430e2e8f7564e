"""Which classes a graph's state may hold, so that a strict serialiser brings them, and no others, to life."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from typing import Any, get_args, get_type_hints

from tracegraph.checkpoint.base import BaseCheckpointSaver

__all__ = ["classes_in", "with_classes_of"]


def with_classes_of(checkpointer: Any, schemas: Iterable[Any]) -> Any:
    """Return a saver that also revives the classes that *schemas* name, if its serialiser is a strict one; else the same.

    Storage and connection are shared with the saver given.
    """
    if not isinstance(checkpointer, BaseCheckpointSaver) or not getattr(checkpointer.serde, "is_strict", False):
        return checkpointer
    return checkpointer.with_allowlist(classes_in(schemas))


def classes_in(annotations: Iterable[Any]) -> list[type]:
    """Return all classes that these annotations name, and those that the fields of these classes do, and so on.

    >>> from dataclasses import dataclass
    >>> @dataclass
    ... class Point:
    ...     x: int
    >>> [found.__name__ for found in classes_in([dict[str, list[Point] | None]]) if found.__module__ == __name__]
    ['Point']
    """
    found: dict[int, Any] = {}
    waiting = [*annotations]
    while waiting:
        each = waiting.pop()
        if id(each) in found:
            continue
        found[id(each)] = each
        waiting += get_args(each)
        waiting += getattr(each, "__metadata__", ())  # of Annotated: a channel, say, that has a type of its own
        typ = getattr(each, "typ", None)
        if typ is not None and not isinstance(each, type):
            waiting.append(typ)
        if isinstance(each, type):
            # A field whose annotation cannot be resolved names no class that could be listed.
            with suppress(NameError, TypeError, AttributeError, SyntaxError):
                waiting += get_type_hints(each, include_extras=True).values()
    return [each for each in found.values() if isinstance(each, type)]
