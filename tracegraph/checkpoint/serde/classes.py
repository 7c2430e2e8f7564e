"""Classes and type expressions as values, and how classes are named inside other values."""

from __future__ import annotations

import operator
import sys
import types
from functools import lru_cache, reduce
from typing import Annotated, Any, Final, Literal, Union, get_args, get_origin

from tracegraph.checkpoint.serde.allowlist import LANGCHAIN_MESSAGES, Allowlist, class_named
from tracegraph.checkpoint.serde.codes import Code, Extension, Part, members
from tracegraph.checkpoint.serde.errors import Refused, UnreadableBytesError

__all__ = ["CLASS", "FORM", "find", "is_form", "name_of"]


@lru_cache(maxsize=1024)
def _name_of(cls: type) -> tuple[str, str]:
    # It says that it lives in builtins, where it is not.
    module, name = ("types", "NoneType") if cls is types.NoneType else (cls.__module__, cls.__qualname__)
    # Their public place outlives the file they happen to live in.
    if module.startswith(f"{LANGCHAIN_MESSAGES}.") and getattr(sys.modules.get(LANGCHAIN_MESSAGES), name, None) is cls:
        module = LANGCHAIN_MESSAGES
    found: type | None
    try:
        found = class_named(module, name)
    except UnreadableBytesError:
        found = None
    if found is not cls:
        raise Refused(
            cls, f"class {name!r} cannot be found in module {module!r} by that name; define it at the module's top level"
        )
    return module, name


def name_of(cls: type) -> list[Any]:
    """Return module and name by which :func:`find` finds *cls* again; a parametrised model's name is a list.

    Raises:
        Refused: it would not be found.
    """
    generic = cls.__dict__.get("__pydantic_generic_metadata__")
    if generic and generic["args"]:
        module, name = name_of(generic["origin"])
        return [module, [name, *generic["args"]]]
    return [*_name_of(cls)]


def find(module: Any, name: Any, types: Allowlist, base: type = object) -> type | None:
    """Return the class with this name, None if the allow-list blocks it; it is derived from *base*.

    Raises:
        UnreadableBytesError: it is not, or there is no such class.
    """
    if isinstance(name, list):
        from pydantic import BaseModel

        origin = find(module, name[0], types, BaseModel)
        args = tuple(name[1:])
        made = None if origin is None or not all(map(is_form, args)) else origin[args]  # type: ignore[index]  # models are generic
        return made if isinstance(made, type) else None
    found = types.find(module, name)
    if found is not None and not issubclass(found, base):
        raise UnreadableBytesError(f"class {name!r} of module {module!r} is no {base.__name__}")
    return found


def is_form(value: Any) -> bool:
    """Say whether *value* is a class or a type expression, and not the name of a blocked one."""
    if value is None or value is ...:
        return True
    return isinstance(value, (type, types.GenericAlias, types.UnionType)) or get_origin(value) is not None


def _class(data: Any, allowed: Allowlist) -> Any:
    module, name = data
    return find(module, name, allowed) or data


def _form_data(value: Any) -> list[Any]:
    origin = get_origin(value)
    if origin is Annotated:
        return ["Annotated", value.__origin__, *value.__metadata__]
    if origin is Literal:
        return ["Literal", *get_args(value)]
    if origin in (Union, types.UnionType):
        return ["Union" if origin is Union else "|", *get_args(value)]
    if isinstance(value, types.GenericAlias):
        return ["[]", origin, *get_args(value)]
    raise Refused(value, "of type expressions only classes, list[...] and the like, unions, Literal and Annotated are stored")


def _form(data: Any, _types: object) -> Any:
    kind, *args = data
    if kind == "Literal":
        return Literal[tuple(args)]
    if not all(map(is_form, args[:1] if kind == "Annotated" else args)):
        return data
    made: Any
    if kind == "|":
        made = reduce(operator.or_, args)
    elif kind == "[]":
        made = types.GenericAlias(args[0], tuple(args[1:]))
    else:
        made = {"Union": Union, "Annotated": Annotated}[kind][tuple(args)]
    return made


def _form_parts(value: Any) -> list[Part]:
    return [*members(get_args(value))]


CLASS: Final = Extension(Code.CLASS, name_of, _class)
FORM: Final = Extension(Code.FORM, _form_data, _form, _form_parts)
