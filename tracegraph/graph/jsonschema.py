"""JSON schemas of what a graph takes and gives."""

from __future__ import annotations

from dataclasses import MISSING as NO_DEFAULT
from dataclasses import fields, is_dataclass
from types import UnionType
from typing import TYPE_CHECKING, Annotated, Any, NotRequired, Required, Union, get_args, get_origin

from tracegraph.constants import ROOT
from tracegraph.drivers.portable_types import converted, is_typed_dict, optional_keys, portable
from tracegraph.errors import GraphDefinitionError
from tracegraph.graph.schema import Schemas

if TYPE_CHECKING:
    from pydantic import BaseModel

__all__ = ["context_jsonschema", "converted", "schema_jsonschema", "schema_model", "value_jsonschema", "value_model"]


def schema_jsonschema(schema: Any, schemas: Schemas, name: str) -> dict[str, Any]:
    """Return the JSON schema of a graph's input or output; *name* titles one that has no name of its own."""
    if is_typed_dict(schema):
        from pydantic import TypeAdapter

        return TypeAdapter(portable(schema)).json_schema()
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
        return create_model(name, __base__=RootModel, root=(portable(root.UpdateType), None))
    defaults = _defaults(schema)
    optional = optional_keys(schema) if is_typed_dict(schema) else frozenset()
    parts: dict[str, Any] = {}
    for key, field in found.items():
        if not isinstance(field, type):
            is_optional = key in optional or _takes_none(field.UpdateType)
            parts[key] = (portable(field.UpdateType), defaults.get(key, None if is_optional else ...))
    return create_model(name, **parts)


def value_jsonschema(annotation: Any, name: str) -> dict[str, Any]:
    """Return the JSON schema of one value; *name* titles one whose type has no name of its own."""
    if is_typed_dict(annotation):
        from pydantic import TypeAdapter

        return TypeAdapter(portable(annotation)).json_schema()
    return value_model(annotation, name).model_json_schema()


def value_model(annotation: Any, name: str) -> type[BaseModel]:
    """Return a Pydantic model of one value: its type if that is one, else a root model of it."""
    from pydantic import RootModel, create_model

    if _is_model(annotation):
        model: type[BaseModel] = annotation
        return model
    return create_model(name, __base__=RootModel, root=(portable(annotation), ...))


def context_jsonschema(schema: Any) -> dict[str, Any] | None:
    """Return the JSON schema of a context schema, None if there is none.

    Raises:
        GraphDefinitionError: it is no Pydantic model, TypedDict or dataclass.
    """
    if schema is None:
        return None
    from pydantic import TypeAdapter

    if _is_model(schema) or is_typed_dict(schema) or is_dataclass(schema):
        return TypeAdapter(portable(schema)).json_schema()
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
