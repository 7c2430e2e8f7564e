"""Schemas of a graph: which channel or managed value each annotated field becomes, and who sees which.

All schemas of a graph share one flat namespace: a field declared in two of them is one channel.
"""

from __future__ import annotations

import copy
import inspect
import warnings
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, NotRequired, Required, TypeAlias, get_args, get_origin, get_type_hints

from tracegraph.channels import BaseChannel, BinaryOperatorAggregate, DeltaChannel, LastValue
from tracegraph.constants import ROOT
from tracegraph.errors import GraphDefinitionError
from tracegraph.managed.base import ManagedValue

__all__ = ["ROOT", "Field", "Schemas", "read_field", "read_schema"]

"""Name of the only channel of a graph whose state is one value and not a set of fields."""

Field: TypeAlias = BaseChannel[Any, Any, Any] | type[ManagedValue[Any]]


def schema_name(schema: Any) -> str:
    """Return how error texts call *schema*."""
    return str(getattr(schema, "__name__", schema))


def read_schema(schema: Any) -> dict[str, Field]:
    """Return the fields of *schema* in their order; ``__root__`` alone if it is no annotated class.

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
    return {name: read_field(name, hint) for name, hint in hints.items() if name != "__slots__" and not _is_class_var(hint)}


def read_field(name: str, annotation: Any) -> Field:
    """Return what a field with this annotation becomes: a managed value, the channel it names, a reducer, or a last value.

    >>> import operator
    >>> from typing import Annotated
    >>> read_field("log", Annotated[list, operator.add])
    <BinaryOperatorAggregate 'log': []>
    """
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

    __slots__ = ("channels", "fields", "managed")

    def __init__(self) -> None:
        self.channels: dict[str, BaseChannel[Any, Any, Any]] = {}
        """All channels, in the order in which their fields were first seen."""
        self.managed: dict[str, type[ManagedValue[Any]]] = {}
        self.fields: dict[Any, dict[str, Field]] = {}
        """Schema -> its fields, each as what the graph has under that name."""

    def copy(self) -> Schemas:
        """Return an independent copy; the channels themselves are shared, for they hold no run state."""
        made = Schemas()
        made.channels, made.managed, made.fields = dict(self.channels), dict(self.managed), dict(self.fields)
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
        merged = {name: self._merged(schema, name, field) for name, field in fields.items()}
        for name, field in merged.items():
            if isinstance(field, type):
                self.managed[name] = field
            else:
                self.channels[name] = field
        self.fields[schema] = merged

    def _merged(self, schema: Any, name: str, field: Field) -> Field:
        """Return what the graph has under *name* once *field* is added: what was there first, if the two agree."""
        found: Field | None = self.managed[name] if name in self.managed else self.channels.get(name)
        if found is None or found == field:
            return field if found is None else found
        # A plain field says nothing of how the state combines writes, so any declaration beats it.
        if isinstance(field, LastValue):
            return found
        raise GraphDefinitionError(
            f"field {name!r} of schema {schema_name(schema)!r} is {_described(field)}, but the graph has it as "
            f"{_described(found)} already; declare it alike in both schemas, or plainly in the later one"
        )

    def channel_names(self, schema: Any) -> tuple[str, ...]:
        """Return the fields of *schema* that are channels."""
        return tuple(name for name, field in self.fields[schema].items() if not isinstance(field, type))

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
    if isinstance(field, BinaryOperatorAggregate):
        return f"a value with the reducer {getattr(field.operator, '__name__', field.operator)!r}"
    return f"a {type(field).__name__}"
