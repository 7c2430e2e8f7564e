"""The JSON schema of the wire form, made from the types: ``python -m tracegraph.stream.wire`` prints it."""

from __future__ import annotations

import dataclasses
import types
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, Final, Literal, TypeAlias, Union, get_args, get_origin, get_type_hints
from uuid import UUID

from tracegraph.events import CheckpointTask, Event, TaskPlanned, Wait
from tracegraph.messages import AIMessageChunk, AnyMessage
from tracegraph.stream.wire.data import CHUNK_TYPE, MESSAGE_FIRST, sent_fields
from tracegraph.stream.wire.form import WIRE_VERSION
from tracegraph.types import Interrupt, PartMeta, StreamMode, TracePolicy

__all__ = ["wire_schema"]

Schema: TypeAlias = dict[str, Any]

_ITEMS: Final = (TaskPlanned, CheckpointTask, Interrupt, Wait)
"""What events hold that has fields of its own."""

_SCALARS: Final[Mapping[Any, Schema]] = {
    str: {"type": "string"},
    bool: {"type": "boolean"},
    int: {"type": "integer"},
    float: {"type": "number"},
    type(None): {"type": "null"},
    UUID: {"type": "string", "format": "uuid"},
}


def wire_schema() -> Schema:
    """Return the JSON schema (draft 2020-12) of what :func:`~tracegraph.stream.wire.to_wire` returns.

    >>> wire_schema()["properties"]["v"]
    {'const': 1}
    """
    kinds = get_args(Event)
    definitions = {kind.__name__: _record(kind, named=True) for kind in kinds}
    definitions |= {kind.__name__: _record(kind) for kind in (*_ITEMS, PartMeta)}
    definitions |= {"Event": {"oneOf": [_ref(kind.__name__) for kind in kinds]}, "Error": _ERROR, "Message": _message()}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"tracegraph wire form, version {WIRE_VERSION}",
        "description": "A part of a stream, or the error or the result that is its last line. Later versions may add keys.",
        "type": "object",
        "properties": {
            "v": {"const": WIRE_VERSION},
            "type": {"enum": [*get_args(StreamMode), "error", "result"]},
            "ns": {"type": "array", "items": {"type": "string"}},
            "data": {},
            "interrupts": {"type": "array", "items": _ref("Interrupt")},
            "meta": {"anyOf": [_ref("PartMeta"), {"type": "null"}]},
        },
        "required": ["v", "type", "ns", "data", "meta"],
        "allOf": [_when(kind, data) for kind, data in _DATA.items()],
        "$defs": definitions,
    }


def _ref(name: str) -> Schema:
    return {"$ref": f"#/$defs/{name}"}


def _object(required: Sequence[str], **properties: Schema) -> Schema:
    return {"type": "object", "properties": properties, "required": list(required)}


def _when(kind: str, data: Schema) -> Schema:
    return {"if": {"properties": {"type": {"const": kind}}}, "then": {"properties": {"data": data}}}


_TEXT: Final[Schema] = {"type": "string"}
_ERROR: Final = _object(("type", "message"), type=_TEXT, message=_TEXT)
_DATA: Final[Mapping[str, Schema]] = {
    "messages": {"type": "array", "prefixItems": [_ref("Message"), {"type": "object"}], "minItems": 2, "maxItems": 2},
    "updates": {"type": "object"},
    "tasks": _object(("id", "name"), id=_TEXT, name=_TEXT),
    "checkpoints": _object(("config", "parent_config", "values", "metadata", "next", "tasks")),
    "debug": _object(
        ("step", "timestamp", "type", "payload"), step={"type": "integer"}, type={"enum": ["task", "task_result", "checkpoint"]}
    ),
    "tools": _object(("event", "tool_call_id"), event=_TEXT, tool_call_id=_TEXT),
    "events": _ref("Event"),
    "error": _ref("Error"),
    "result": _object(
        ("status", "result", "interrupts", "thread_id", "trace_id"),
        status=_TEXT,
        interrupts={"type": "array"},
        error=_ref("Error"),
    ),
}
"""What the data of a type is; values and custom are whatever the graph makes."""


def _record(kind: type, *, named: bool = False) -> Schema:
    """Return the schema of a dataclass; *named*: by its class, as events are."""
    hints = get_type_hints(kind, localns={"Interrupt": Interrupt, "TracePolicy": TracePolicy})
    event: Schema = {"event": {"const": kind.__name__}} if named else {}
    properties = event | {key: _of(hints[name]) for name, key in sent_fields(kind).items()}
    return _object(list(properties), **properties)


def _of(hint: Any) -> Schema:
    """Return the schema of what a field annotated with *hint* is on the wire."""
    if hint in _SCALARS:
        return _SCALARS[hint]
    if hint is Any:
        return {}
    origin, inner = get_origin(hint), get_args(hint)
    if origin is Literal:
        return {"enum": list(inner)}
    if origin in (Union, types.UnionType):
        return {"anyOf": [_of(each) for each in inner]}
    if origin is tuple and inner[-1] is not Ellipsis:
        return {"type": "array", "prefixItems": [_of(each) for each in inner], "minItems": len(inner), "maxItems": len(inner)}
    kind = origin or hint
    if not isinstance(kind, type):
        raise TypeError(f"the wire form has no schema for {hint!r}")
    if issubclass(kind, BaseException):
        return _ref("Error")
    if kind in _ITEMS:
        return _ref(kind.__name__)
    if issubclass(kind, Mapping):
        return {"type": "object"}
    if issubclass(kind, (Sequence, AbstractSet)):
        return {"type": "array", "items": _of(inner[0])}
    raise TypeError(f"the wire form has no schema for {hint!r}")


def _message() -> Schema:
    """Return the schema of messages of all kinds: what they all have, and the names of what some have."""
    kinds = get_args(AnyMessage)
    roles = [kind.type for kind in kinds]
    names = dict.fromkeys(field.name for kind in (*kinds, AIMessageChunk) for field in dataclasses.fields(kind))
    named: dict[str, Schema] = {
        "type": {"type": "string", "examples": [*roles, CHUNK_TYPE]},
        "content": {"anyOf": [{"type": "string"}, {"type": "array"}]},
        "id": {"anyOf": [{"type": "string"}, {"type": "null"}]},
    }
    return _object(["type", *MESSAGE_FIRST], **named, **{name: {} for name in names if name not in named})
