"""Ready reducers for ``Annotated[type, reducer]``; none changes its arguments.

The reducer for message lists is :func:`tracegraph.messages.add_messages`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from typing import Any, TypeVar

from tracegraph.refused_values import about, described

__all__ = ["append", "merge", "overwrite", "union"]

T = TypeVar("T")


def overwrite(left: Any, right: T) -> T:  # noqa: ARG001  # a reducer takes both
    """Return *right*: the last write in task order wins, where a field without reducer would be an error.

    >>> overwrite(1, 2)
    2
    """
    return right


def append(left: list[T] | None, right: list[T] | T) -> list[T]:
    """Return *left* with *right* at its end; a *right* that is a list adds its items.

    >>> append([1], 2), append([1], [2, 3]), append(None, 1)
    ([1, 2], [1, 2, 3], [1])
    """
    return [*(left or ()), *(right if isinstance(right, list) else (right,))]


def merge(left: Mapping[str, Any] | None, right: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return both mappings as one; mappings below the same key are merged in turn, of other values *right*'s stays.

    >>> merge({"a": {"x": 1}, "b": 1}, {"a": {"y": 2}, "b": 2})
    {'a': {'x': 1, 'y': 2}, 'b': 2}
    """
    merged = dict(left or ())
    for key, value in (right or {}).items():
        old = merged.get(key)
        merged[key] = merge(old, value) if isinstance(old, Mapping) and isinstance(value, Mapping) else value
    return merged


def union(left: AbstractSet[T] | None, right: Iterable[T]) -> set[T]:
    """Return the items of both as a set; *right* is a set or any iterable of items (not a bare string).

    >>> sorted(union({1, 2}, [2, 3]))
    [1, 2, 3]

    Raises:
        TypeError: *right* is a string, whose items would be its letters.
    """
    if isinstance(right, (str, bytes)):
        raise about(TypeError(f"union() takes a set or list of items, not {described(right)}; write {{item}}"), right)
    return {*(left or ()), *right}
