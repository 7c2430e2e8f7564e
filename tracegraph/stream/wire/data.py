"""The payload of a part as JSON data: messages, events and errors in a form of their own, the rest by the common rules."""

from __future__ import annotations

import dataclasses
from collections import deque
from collections.abc import Mapping
from typing import Any, Final, get_args
from uuid import UUID

from tracegraph.events import Event, ObserverFailed, RunStarted, TaskPlanned
from tracegraph.messages import BaseMessage
from tracegraph.messages.coerce import is_langchain
from tracegraph.plain_data import safe_repr, safe_str, to_plain_data

__all__ = ["CHUNK_TYPE", "MESSAGE_FIRST", "error_data", "sent_fields", "wire_data"]

CHUNK_TYPE: Final = "AIMessageChunk"
"""The ``type`` of a piece of a model's answer, as in LangChain's JSON; whole messages have their role."""

MESSAGE_FIRST: Final = ("content", "id")
"""What every message has on the wire, after its ``type``; of other fields those that are not empty follow."""

_EVENTS: Final = frozenset(get_args(Event))
_SCALARS: Final = frozenset({str, bool, type(None)})
_MOST: Final = 2**63
"""Integers beyond it, which Python may be unable to write, are left to the common rules."""
_MOST_LEVELS: Final = 100
_MOST_LEVELS_OF_MODELS: Final = 10


def sent_fields(kind: type) -> dict[str, str]:
    """Return the fields of a dataclass that are sent, each with its key on the wire.

    >>> from tracegraph.events import Drained
    >>> list(sent_fields(Drained))
    ['run_id', 'ns', 'step', 'at_ns', 'seq', 'reason', 'next_nodes']
    """
    names = {field.name: field.name for field in dataclasses.fields(kind)}
    if kind is TaskPlanned:
        del names["mapper"]  # code is nothing to send
    elif kind is RunStarted:
        del names["trace_policies"]  # as above
    elif kind is ObserverFailed:
        names["event"] = "observed"  # the key "event" says what this event is
    return names


def wire_data(value: Any) -> Any:
    """Return any value as JSON data; never raises, whatever a value's class does.

    Dicts keep their order, sets are sorted, and what has no form in JSON is shown by its ``repr``.

    >>> from tracegraph.messages import HumanMessage
    >>> wire_data({"messages": [HumanMessage("hi", id="1")], "seen": {2, 1}})
    {'messages': [{'type': 'human', 'content': 'hi', 'id': '1'}], 'seen': [1, 2]}
    >>> wire_data(ValueError("no"))
    {'type': 'ValueError', 'message': 'no'}
    """
    return _data(value, ())


def error_data(error: BaseException) -> dict[str, str]:
    """Return an exception as it is on the wire.

    >>> error_data(KeyError("topic"))
    {'type': 'KeyError', 'message': "'topic'"}
    """
    return {"type": type(error).__name__, "message": safe_str(error)}


def _data(value: Any, around: tuple[int, ...]) -> Any:
    """Return *value* as JSON data; *around* are the ids of the containers it is in."""
    if type(value) in _SCALARS:
        return value
    if type(value) is UUID:
        return str(value)
    if type(value) is int and -_MOST <= value <= _MOST:
        return value
    if id(value) in around:
        return safe_repr(value)
    if len(around) == _MOST_LEVELS:
        return to_plain_data(value)
    try:
        return _inside(value, (*around, id(value)))
    except Exception:  # noqa: BLE001  # the user's class is at fault
        return to_plain_data(value)


def _inside(value: Any, around: tuple[int, ...]) -> Any:
    """Return one value as JSON data; raises what the class of the value raises."""
    if isinstance(value, Mapping):
        return {_key(key): _data(item, around) for key, item in value.items()}
    if isinstance(value, (list, tuple, deque)):
        return [_data(item, around) for item in value]
    if isinstance(value, (set, frozenset)):
        return _sorted([_data(item, around) for item in value])
    if isinstance(value, BaseException):
        return error_data(value)
    if isinstance(value, BaseMessage) or is_langchain(value):
        return _message(value, around)
    kind = type(value)
    if dataclasses.is_dataclass(kind):
        named = {} if kind not in _EVENTS else {"event": kind.__name__}
        return named | {key: _data(getattr(value, name, None), around) for name, key in sent_fields(kind).items()}
    if hasattr(kind, "__pydantic_fields__"):
        return _model(value, around)
    return to_plain_data(value)


def _key(key: Any) -> str:
    # By the common rules, which know how keys of all kinds become text.
    return key if type(key) is str else next(iter(to_plain_data({key: None})))


def _sorted(items: list[Any]) -> list[Any]:
    try:
        return sorted(items)
    except TypeError:
        return sorted(items, key=repr)


def _message(message: Any, around: tuple[int, ...]) -> dict[str, Any]:
    kind = type(message)
    is_chunk = kind.__name__.endswith("Chunk")
    names = (
        [field.name for field in dataclasses.fields(kind)] if dataclasses.is_dataclass(kind) else list(kind.__pydantic_fields__)
    )
    shown = {"type": CHUNK_TYPE if is_chunk and message.type in ("ai", CHUNK_TYPE) else message.type}
    for name in MESSAGE_FIRST:
        shown[name] = _data(getattr(message, name), around)
    for name in names:
        if name not in shown and not _is_empty(value := getattr(message, name)):
            shown[name] = _data(value, around)
    return shown


def _is_empty(value: Any) -> bool:
    return value is None or (type(value) in (dict, list, str) and not value)


def _model(model: Any, around: tuple[int, ...]) -> Any:
    """Return a Pydantic model as it serialises itself, but messages in it as messages."""
    shown = to_plain_data(model)
    if isinstance(shown, dict):
        for name, value in vars(model).items():
            if name in shown and _has_message(value, _MOST_LEVELS_OF_MODELS):
                shown[name] = _data(value, around)
    return shown


def _has_message(value: Any, levels: int) -> bool:
    if isinstance(value, BaseMessage) or is_langchain(value):
        return True
    if levels == 0:
        return False
    if isinstance(value, (list, tuple)):
        return any(_has_message(item, levels - 1) for item in value)
    if isinstance(value, dict):
        return any(_has_message(item, levels - 1) for item in value.values())
    return hasattr(type(value), "__pydantic_fields__") and any(_has_message(item, levels - 1) for item in vars(value).values())
