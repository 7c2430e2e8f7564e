"""Messages of ours, without the fields that have their default: a conversation is mostly short texts."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import MISSING as NO_DEFAULT
from dataclasses import fields
from typing import Any, Final

from tracegraph.checkpoint.serde.codes import Code, Extension, Part, attributes
from tracegraph.checkpoint.serde.errors import UnreadableBytesError
from tracegraph.messages.base import (
    AIMessage,
    BaseMessage,
    ChatMessage,
    HumanMessage,
    RemoveMessage,
    SystemMessage,
    ToolMessage,
)
from tracegraph.messages.chunks import AIMessageChunk

__all__ = ["MESSAGES"]

_KINDS: Final[dict[str, type[BaseMessage]]] = {
    kind.__name__: kind
    for kind in (AIMessage, AIMessageChunk, BaseMessage, ChatMessage, HumanMessage, RemoveMessage, SystemMessage, ToolMessage)
}


def _defaults(kind: type[BaseMessage]) -> dict[str, Callable[[], Any] | None]:
    found: dict[str, Callable[[], Any] | None] = {}
    for field in fields(kind):
        if field.default_factory is not NO_DEFAULT:
            found[field.name] = field.default_factory
        else:
            found[field.name] = None if field.default is NO_DEFAULT else _constant(field.default)
    return found


def _constant(value: Any) -> Callable[[], Any]:
    return lambda: value


_FIELDS: Final = {kind: _defaults(kind) for kind in _KINDS.values()}
_DEFAULTS: Final = {
    kind: [(name, NO_DEFAULT if make is None else make()) for name, make in made.items()] for kind, made in _FIELDS.items()
}


def _data(message: BaseMessage) -> list[Any]:
    kind = type(message)
    held = {}
    for name, default in _DEFAULTS[kind]:
        item = getattr(message, name)
        # By type too: 0, 0.0 and False are equal, but not the same.
        if item is not default and (type(item) is not type(default) or item != default):
            held[name] = item
    return [kind.__name__, held]


def _message(data: Any, _types: object) -> BaseMessage:
    name, held = data
    kind = _KINDS[name]
    made = object.__new__(kind)
    for field, make in _FIELDS[kind].items():
        if field in held:
            setattr(made, field, held[field])
        elif make is not None:
            setattr(made, field, make())
        else:
            raise UnreadableBytesError(f"a {name} lacks its {field!r}")
    return made


def _parts(message: BaseMessage) -> Iterable[Part]:
    return attributes(_data(message)[1])


MESSAGES: Final[dict[type, Extension]] = dict.fromkeys(_KINDS.values(), Extension(Code.MESSAGE, _data, _message, _parts))
"""By exact type; a class that a user derived from these is a dataclass like any other."""
