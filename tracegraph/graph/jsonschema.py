"""JSON schemas of what a graph takes and gives."""

from __future__ import annotations

import sys
from dataclasses import MISSING as NO_DEFAULT
from dataclasses import fields, is_dataclass
from types import UnionType
from typing import TYPE_CHECKING, Annotated, Any, NotRequired, Required, Union, get_args, get_origin, get_type_hints

from tracegraph.constants import ROOT
from tracegraph.errors import GraphDefinitionError
from tracegraph.graph.schema import Schemas, is_typed_dict

if TYPE_CHECKING:
    from pydantic import BaseModel

__all__ = ["context_jsonschema", "converted", "schema_jsonschema", "schema_model"]

_TAKES_ALL_TYPED_DICTS = sys.version_info >= (3, 12)


def schema_jsonschema(schema: Any, schemas: Schemas, name: str) -> dict[str, Any]:
    """Return the JSON schema of a graph's input or output; *name* titles one that has no name of its own."""
    if is_typed_dict(schema):
        from pydantic import TypeAdapter

        return TypeAdapter(_portable(schema)).json_schema()
    return schema_model(schema, schemas, name).model_json_schema()


def schema_model(schema: Any, schemas: Schemas, name: str) -> type[BaseModel]:
    """Return a Pydantic model of *schema*: itself if it is one, else made of what its channels take."""
    from pydantic import RootModel, create_model

    if _is_model(schema):
        model: type[BaseModel] = schema
        return model
    found = schemas.fields[schema]
    if schemas.is_root(schema):
        root: Any = found[ROOT]
        return create_model(name, __base__=RootModel, root=(_portable(root.UpdateType), None))
    defaults = _defaults(schema)
    optional = _optional_keys(schema) if is_typed_dict(schema) else frozenset()
    parts: dict[str, Any] = {}
    for key, field in found.items():
        if not isinstance(field, type):
            is_optional = key in optional or _takes_none(field.UpdateType)
            parts[key] = (_portable(field.UpdateType), defaults.get(key, None if is_optional else ...))
    return create_model(name, **parts)


def context_jsonschema(schema: Any) -> dict[str, Any] | None:
    """Return the JSON schema of a context schema, None if there is none.

    Raises:
        GraphDefinitionError: it is no Pydantic model, TypedDict or dataclass.
    """
    if schema is None:
        return None
    from pydantic import TypeAdapter

    if _is_model(schema) or is_typed_dict(schema) or is_dataclass(schema):
        return TypeAdapter(_portable(schema)).json_schema()
    raise GraphDefinitionError(
        f"the context schema {schema!r} has no JSON schema; make it a Pydantic model, a TypedDict or a dataclass"
    )


def _is_model(schema: Any) -> bool:
    from pydantic import BaseModel

    return isinstance(schema, type) and issubclass(schema, BaseModel)


def _takes_none(annotation: Any) -> bool:
    while get_origin(annotation) in (Annotated, Required, NotRequired):
        annotation = get_args(annotation)[0]
    return get_origin(annotation) in (Union, UnionType) and type(None) in get_args(annotation)


def _optional_keys(schema: Any) -> frozenset[str]:
    """Return the keys of a TypedDict that may be missing.

    Its own sets do not see ``NotRequired`` in annotations that are text (``from __future__ import annotations``).
    """
    hints = get_type_hints(schema, include_extras=True)
    marked = {key for key, hint in hints.items() if get_origin(hint) is NotRequired}
    return frozenset(marked | {key for key in schema.__optional_keys__ if get_origin(hints[key]) is not Required})


def _defaults(schema: Any) -> dict[str, Any]:
    if not is_dataclass(schema):
        return {}
    made = {}
    for field in fields(schema):
        if field.default is not NO_DEFAULT:
            made[field.name] = field.default
        elif field.default_factory is not NO_DEFAULT:
            made[field.name] = field.default_factory()
    return made


def _portable(annotation: Any) -> Any:
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

    optional = _optional_keys(schema)
    parts: dict[str, Any] = {}
    for key, hint in get_type_hints(schema, include_extras=True).items():
        bare = get_args(hint)[0] if get_origin(hint) in (Required, NotRequired) else hint
        mark: Any = NotRequired if key in optional else Required
        parts[key] = mark[converted(bare, inside)]
    make: Any = TypedDict
    made = make(schema.__name__, parts)
    made.__doc__ = schema.__doc__
    return made
