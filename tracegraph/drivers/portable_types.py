"""Annotations in a form that Pydantic takes on every Python."""

from __future__ import annotations

import sys
from types import UnionType
from typing import Annotated, Any, NotRequired, Required, Union, get_args, get_origin, get_type_hints

__all__ = ["converted", "is_typed_dict", "optional_keys", "portable"]

_TAKES_ALL_TYPED_DICTS = sys.version_info >= (3, 12)


def is_typed_dict(schema: Any) -> bool:
    """Say whether *schema* is a TypedDict, of typing or typing_extensions."""
    return isinstance(schema, type) and issubclass(schema, dict) and hasattr(schema, "__total__")


def optional_keys(schema: Any) -> frozenset[str]:
    """Return the keys of a TypedDict that may be missing.

    Its own sets do not see ``NotRequired`` in annotations that are text (``from __future__ import annotations``).
    """
    hints = get_type_hints(schema, include_extras=True)
    marked = {key for key, hint in hints.items() if get_origin(hint) is NotRequired}
    return frozenset(marked | {key for key in schema.__optional_keys__ if get_origin(hints[key]) is not Required})


def portable(annotation: Any) -> Any:
    """Return *annotation* in a form that Pydantic takes: before Python 3.12 it refuses ``typing.TypedDict``."""
    return annotation if _TAKES_ALL_TYPED_DICTS else converted(annotation)


def converted(annotation: Any, inside: tuple[Any, ...] = ()) -> Any:
    """Return *annotation* with each ``typing.TypedDict`` as one of typing_extensions.

    Inside itself, such a TypedDict becomes a plain ``dict``, for a copy cannot refer to itself.
    """
    if is_typed_dict(annotation):
        if annotation in inside:
            return dict[str, Any]
        return _converted_typed_dict(annotation, (*inside, annotation)) if type(annotation).__module__ == "typing" else annotation
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return Annotated[(converted(arguments[0], inside), *annotation.__metadata__)]
    made = tuple(converted(argument, inside) for argument in arguments)
    if made == arguments:
        return annotation
    return Union[made] if origin in (Union, UnionType) else origin[made]  # noqa: UP007  # the arguments are known at run time only


def _converted_typed_dict(schema: Any, inside: tuple[Any, ...]) -> Any:
    from typing_extensions import TypedDict

    optional = optional_keys(schema)
    parts: dict[str, Any] = {}
    for key, hint in get_type_hints(schema, include_extras=True).items():
        bare = get_args(hint)[0] if get_origin(hint) in (Required, NotRequired) else hint
        mark: Any = NotRequired if key in optional else Required
        parts[key] = mark[converted(bare, inside)]
    make: Any = TypedDict
    made = make(schema.__name__, parts)
    made.__doc__ = schema.__doc__
    return made
