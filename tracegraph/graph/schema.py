"""Schemas of a graph: which channel or managed value each annotated field becomes, and who sees which.

All schemas of a graph share one flat namespace: a field declared in two of them is one channel. A field marked
:class:`~tracegraph.channels.Nested` is none itself; its sub-fields are, under names like ``meta.tags``.
"""

from __future__ import annotations

import copy
import inspect
import warnings
from collections.abc import Callable, Mapping
from dataclasses import replace
from types import NoneType, UnionType
from typing import Any, ClassVar, NotRequired, Required, Union, get_args, get_origin, get_type_hints

from tracegraph.channels import BaseChannel, BinaryOperatorAggregate, DeltaChannel, LastValue, Nested
from tracegraph.channels.nested import Overwritable, sub_channel
from tracegraph.constants import ROOT
from tracegraph.drivers.portable_types import is_typed_dict
from tracegraph.engine.nesting import Field, NestedField, NestedKeys, leaves
from tracegraph.errors import GraphDefinitionError
from tracegraph.managed.base import ManagedValue

__all__ = ["ROOT", "Field", "Schemas", "is_typed_dict", "nested_fields", "read_field", "read_schema"]

"""Name of the only channel of a graph whose state is one value and not a set of fields."""

Path = tuple[str, ...]


def schema_name(schema: Any) -> str:
    """Return how error texts call *schema*."""
    return str(getattr(schema, "__name__", schema))


def read_schema(schema: Any, outer: Path = (), inside: tuple[Any, ...] = ()) -> dict[str, Field]:
    """Return the fields of *schema* in their order; ``__root__`` alone if it is no annotated class.

    *outer* is the path to the nested field that *schema* is the type of, *inside* are the TypedDicts around it.

    Raises:
        GraphDefinitionError: an annotation cannot be resolved, or a reducer does not take two values.
    """
    if not hasattr(schema, "__annotations__"):
        if not isinstance(schema, type) and get_origin(schema) is None:
            warnings.warn(
                f"the state schema {schema!r} is no type; give a TypedDict, a dataclass or a Pydantic model, "
                "or a type for the whole state",
                stacklevel=4,
            )
            return {ROOT: _named(LastValue(schema), ROOT)}
        return {ROOT: read_field(ROOT, schema)}
    try:
        hints = get_type_hints(schema, include_extras=True)
    except (NameError, TypeError, AttributeError, SyntaxError) as error:
        raise GraphDefinitionError(
            f"the annotations of schema {schema_name(schema)!r} cannot be resolved ({error}); define or import the names "
            "they use at the top level of the module that defines the schema"
        ) from error
    return {
        name: read_field(name, hint, outer, inside)
        for name, hint in hints.items()
        if name != "__slots__" and not _is_class_var(hint)
    }


def read_field(name: str, annotation: Any, outer: Path = (), inside: tuple[Any, ...] = ()) -> Field:
    """Return what a field becomes: a nested field, a managed value, the channel it names, a reducer, or a last value.

    >>> import operator
    >>> from typing import Annotated
    >>> read_field("log", Annotated[list, operator.add])
    <BinaryOperatorAggregate 'log': []>
    """
    path = (*outer, name)
    if _mentions_nested(annotation):
        return _nested_field(path, annotation, inside)
    field = _flat_field(".".join(path), annotation)
    return sub_channel(field) if outer and not isinstance(field, type) else field


def _flat_field(name: str, annotation: Any) -> BaseChannel[Any, Any, Any] | type[ManagedValue[Any]]:
    if get_origin(annotation) in (Required, NotRequired):
        (annotation,) = get_args(annotation)
    if (managed := _managed_in(annotation)) is not None:
        return managed
    metadata = getattr(annotation, "__metadata__", ())
    for item in metadata:
        if isinstance(item, BaseChannel) or (isinstance(item, type) and issubclass(item, BaseChannel)):
            return _named(_declared_channel(name, item, annotation), name)
    if metadata and callable(metadata[-1]):
        _check_reducer(name, metadata[-1])
        return _named(BinaryOperatorAggregate(annotation, metadata[-1]), name)
    return _named(LastValue(annotation), name)


def _is_mark(item: Any) -> bool:
    return item is Nested or isinstance(item, Nested)


def _mentions_nested(annotation: Any) -> bool:
    """Say whether the marker stands anywhere in *annotation*."""
    return _is_mark(annotation) or any(map(_mentions_nested, get_args(annotation)))


def _nested_field(path: Path, annotation: Any, inside: tuple[Any, ...]) -> NestedField:
    """Return the field with its sub-fields.

    Raises:
        GraphDefinitionError: the marker is in the wrong place, or what it marks cannot be nested.
    """
    name = ".".join(path)
    marked = _bare(annotation)
    metadata = getattr(marked, "__metadata__", ())
    if path == (ROOT,) or not any(map(_is_mark, metadata)):
        raise GraphDefinitionError(
            f"Nested marks a field of the state, but stands elsewhere in the annotation of {name!r}; "
            f"write {path[-1]}: Annotated[YourTypedDict, Nested]"
        )
    others = [item for item in metadata if not _is_mark(item) and (callable(item) or isinstance(item, BaseChannel))]
    if others:
        raise GraphDefinitionError(
            f"field {name!r} is marked Nested and has {others[0]!r} beside it, but its sub-fields are merged each for itself; "
            "leave one of the two out, or annotate the sub-fields"
        )
    schema = _bare(marked.__origin__)
    if not is_typed_dict(schema):
        raise GraphDefinitionError(f"field {name!r} is marked Nested, which takes a TypedDict, not {schema_name(schema)}")
    if schema in inside:
        raise GraphDefinitionError(f"the nested field {name!r} contains itself, without end; take the marker away from it")
    parts = read_schema(schema, path, (*inside, schema))
    managed = [part for part, field in parts.items() if isinstance(field, type)]
    if managed or not parts:
        what = f"has managed values ({', '.join(map(repr, managed))})" if managed else "has no sub-fields"
        raise GraphDefinitionError(f"the nested field {name!r} {what}; keep a nested field to values that nodes write")
    return NestedField(path, annotation, parts)


def _bare(annotation: Any) -> Any:
    """Return *annotation* without Required, NotRequired and the alternative None."""
    while True:
        options = [option for option in get_args(annotation) if option is not NoneType]
        if get_origin(annotation) not in (Required, NotRequired, Union, UnionType) or len(options) != 1:
            return annotation
        (annotation,) = options


def _named(channel: BaseChannel[Any, Any, Any], name: str) -> BaseChannel[Any, Any, Any]:
    channel.key = name
    return channel


def _is_class_var(hint: Any) -> bool:
    return hint is ClassVar or get_origin(hint) is ClassVar


def _managed_in(annotation: Any) -> type[ManagedValue[Any]] | None:
    """Return the managed value an annotation ends with, also inside ``Optional`` and the like."""
    metadata = getattr(annotation, "__metadata__", ())
    if metadata:
        last = get_origin(metadata[-1]) or metadata[-1]
        if isinstance(last, type) and issubclass(last, ManagedValue):
            return last
    arguments = get_args(annotation)
    return _managed_in(arguments[0]) if arguments else None


def _declared_channel(name: str, item: Any, annotation: Any) -> BaseChannel[Any, Any, Any]:
    bare = annotation.__origin__
    while get_origin(bare) in (Required, NotRequired):
        (bare,) = get_args(bare)
    try:
        if isinstance(item, DeltaChannel):
            return type(item)(item.reducer, bare, snapshot_frequency=item.snapshot_frequency)
        if isinstance(item, BaseChannel):
            # One object may stand in several fields, and each channel knows its own name.
            return item if item.key in ("", name) else copy.copy(item)
        made: BaseChannel[Any, Any, Any] = item(bare)
    except TypeError as error:
        raise GraphDefinitionError(f"field {name!r} declares a channel that cannot be made: {error}") from error
    return made


def _check_reducer(name: str, reducer: Callable[..., Any]) -> None:
    try:
        signature = inspect.signature(reducer)
    except (ValueError, TypeError) as error:
        raise GraphDefinitionError(
            f"the reducer {reducer!r} of field {name!r} has no signature to check ({error}); wrap it: lambda old, new: ..."
        ) from error
    positional = [p for p in signature.parameters.values() if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    if len(positional) != 2:
        raise GraphDefinitionError(
            f"the reducer of field {name!r} must take exactly two positional parameters, the value and the write, "
            f"but its signature is {signature}"
        )


class Schemas:
    """The fields of all schemas of one graph.

    Each schema is read once; nothing is added when one of its fields conflicts.
    """

    __slots__ = ("channels", "fields", "managed", "tree")

    def __init__(self) -> None:
        self.tree: dict[str, Field] = {}
        """All fields, in the order in which they were first seen; nested ones with the sub-fields of all schemas."""
        self.channels: dict[str, BaseChannel[Any, Any, Any]] = {}
        """The channels of all fields and sub-fields, in their order."""
        self.managed: dict[str, type[ManagedValue[Any]]] = {}
        self.fields: dict[Any, dict[str, Field]] = {}
        """Schema -> its fields, each as what the graph has under that name."""

    def copy(self) -> Schemas:
        """Return an independent copy; the channels themselves are shared, for they hold no run state."""
        made = Schemas()
        made.tree, made.fields = dict(self.tree), dict(self.fields)
        made.channels, made.managed = dict(self.channels), dict(self.managed)
        return made

    def register(self, schema: Any, *, role: str | None = None) -> None:
        """Add the fields of *schema*; a *role* (input, output) says that managed values are not allowed.

        Raises:
            GraphDefinitionError: a field exists already as something else, or *schema* cannot be read.
        """
        try:
            if schema in self.fields:
                return
        except TypeError as error:
            raise GraphDefinitionError(f"the schema {schema!r} cannot be used, for it is not hashable ({error})") from error
        fields = read_schema(schema)
        managed = [name for name, field in fields.items() if isinstance(field, type)]
        if role is not None and managed:
            raise GraphDefinitionError(
                f"the {role} schema {schema_name(schema)!r} has managed values, which are computed and never given or returned: "
                f"{', '.join(map(repr, managed))}; keep them in the state schema only"
            )
        merged, tree = _united(schema, self.tree, fields)
        self.channels = _checked_channels(tree)
        self.managed = {name: field for name, field in tree.items() if isinstance(field, type)}
        self.tree, self.fields[schema] = tree, merged

    def channel_names(self, schema: Any) -> tuple[str, ...]:
        """Return the channels of the fields of *schema*, which know how they are nested."""
        return NestedKeys.of([path for path, _ in leaves(self.fields[schema])])

    def all_channel_names(self) -> tuple[str, ...]:
        """Return the channels of all schemas."""
        return NestedKeys.of([path for path, _ in leaves(self.tree)])

    def managed_of(self, schema: Any) -> tuple[tuple[str, type[ManagedValue[Any]]], ...]:
        """Return the managed values of *schema*."""
        return tuple((name, field) for name, field in self.fields[schema].items() if isinstance(field, type))

    def is_root(self, schema: Any) -> bool:
        """Say whether the whole state is the one value of *schema*."""
        return list(self.fields[schema]) == [ROOT]

    def reads(self, schema: Any) -> str | tuple[str, ...]:
        """Return the channels that a reader with this schema reads, a bare name if it gets the bare value."""
        return ROOT if self.is_root(schema) else self.channel_names(schema)

    def mapper(self, schema: Any) -> Callable[[Any], Any] | None:
        """Return what makes an instance of *schema* of a dict of fields; None if the dict, or root value, is the input."""
        if self.is_root(schema) or (isinstance(schema, type) and issubclass(schema, dict)):
            return None
        return Build(schema)


def nested_fields(fields: Mapping[str, Field]) -> dict[str, NestedField]:
    """Return those of *fields* that are nested."""
    return {name: field for name, field in fields.items() if isinstance(field, NestedField)}


def _united(schema: Any, there: Mapping[str, Field], fields: Mapping[str, Field]) -> tuple[dict[str, Field], dict[str, Field]]:
    """Return *fields* as the graph has them once they are added to what is *there*, and then everything."""
    mine: dict[str, Field] = {}
    every = dict(there)
    for name, field in fields.items():
        found = there.get(name)
        if isinstance(field, NestedField) and (found is None or isinstance(found, NestedField)):
            parts, all_parts = _united(schema, {} if found is None else found.parts, field.parts)
            mine[name], every[name] = replace(field, parts=parts), replace(found or field, parts=all_parts)
        else:
            mine[name] = _agreed(schema, name, found, field)
            every.setdefault(name, field)
    return mine, every


def _agreed(schema: Any, name: str, found: Field | None, field: Field) -> Field:
    """Return what the graph has for *field* once it is added: what was there first, if the two agree."""
    if found is None or found == field:
        return field if found is None else found
    # A plain field says nothing of how the state combines writes, so any declaration beats it.
    if isinstance(_unwrapped(field), LastValue):
        return found
    label = name if isinstance(field, type) else field.key
    raise GraphDefinitionError(
        f"field {label!r} of schema {schema_name(schema)!r} is {_described(field)}, "
        f"but the graph has it as {_described(found)} already; declare it alike in both schemas, or plainly in the later one"
    )


def _checked_channels(tree: Mapping[str, Field]) -> dict[str, BaseChannel[Any, Any, Any]]:
    """Return all channels by name.

    Raises:
        GraphDefinitionError: a sub-field's channel has the name of another field.
    """
    channels: dict[str, BaseChannel[Any, Any, Any]] = {}
    for path, channel in leaves(tree):
        name = ".".join(path)
        if name in channels or (len(path) > 1 and name in tree):
            raise GraphDefinitionError(
                f"two fields would have the channel {name!r}: a sub-field of a nested field has the path to it as its name; "
                "rename one of the two"
            )
        channels[name] = channel
    return channels


class Build:
    """Makes an instance of a schema class of a dict of its fields; where validation and defaults happen."""

    __slots__ = ("schema",)

    def __init__(self, schema: Any) -> None:
        self.schema = schema

    def __call__(self, fields: Mapping[str, Any]) -> Any:
        return self.schema(**fields)


def _described(field: Field) -> str:
    if isinstance(field, type):
        return f"the managed value {field.__name__}"
    if isinstance(field, NestedField):
        return "a nested field"
    field = _unwrapped(field)
    if isinstance(field, BinaryOperatorAggregate):
        return f"a value with the reducer {getattr(field.operator, '__name__', field.operator)!r}"
    return f"a {type(field).__name__}"


def _unwrapped(field: Any) -> Any:
    return field.inner if isinstance(field, Overwritable) else field
