"""Which value a reducer channel of a type starts with."""

from __future__ import annotations

import collections.abc as abc
from collections.abc import Callable
from typing import Annotated, Any, NotRequired, Required, get_args, get_origin

__all__ = ["constructor_of"]

_CONCRETE: dict[Any, Callable[[], Any]] = {
    abc.Sequence: list,
    abc.MutableSequence: list,
    abc.Set: set,
    abc.MutableSet: set,
    abc.Mapping: dict,
    abc.MutableMapping: dict,
}


def bare_type(typ: Any) -> Any:
    """Return *typ* without Annotated, Required, NotRequired and type arguments.

    >>> bare_type(Annotated[list[int], "doc"])
    <class 'list'>
    """
    while (origin := get_origin(typ)) is not None:
        typ = get_args(typ)[0] if origin in (Annotated, Required, NotRequired) else origin
    return typ


def constructor_of(typ: Any) -> Callable[[], Any] | None:
    """Return what makes an empty value of *typ*, ``None`` if the type cannot be called without arguments.

    >>> from collections.abc import Sequence
    >>> constructor_of(Sequence[int]), constructor_of(int | None)
    (<class 'list'>, None)
    """
    bare = bare_type(typ)
    make: Callable[[], Any] = _CONCRETE.get(bare, bare)
    try:
        make()
    except Exception:  # noqa: BLE001  # a user's class may raise anything; that only means there is no empty value
        return None
    return make
