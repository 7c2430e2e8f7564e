"""From what users write (a string, a pair, a dict) to messages, in the family of types that a state already uses.

LangChain's messages are recognised by their classes' module; langchain-core is never imported. A message
of its exists only if somebody imported it, so its converters are found among the loaded modules.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import Any, TypeAlias, cast

from tracegraph.messages.base import (
    AIMessage,
    BaseMessage,
    ChatMessage,
    HumanMessage,
    InvalidToolCall,
    RemoveMessage,
    SystemMessage,
    ToolCall,
    ToolMessage,
)
from tracegraph.messages.chunks import AIMessageChunk, parsed_tool_call
from tracegraph.refused_values import about, described, nearest

__all__ = ["MessageLikeRepresentation", "convert_to_messages", "coerced", "is_langchain", "is_message", "langchain_messages"]

MessageLikeRepresentation: TypeAlias = Any
"""A message, a text (of a person), a (role, content) pair, or a dict with role (or type) and content."""

_LANGCHAIN = "langchain_core.messages"

Make: TypeAlias = Callable[[Any], Any]


@lru_cache(maxsize=512)
def _langchain_kind(cls: type) -> str:
    """Return "message" or "chunk" for LangChain's classes and their subclasses, else ""."""
    theirs = [base.__name__ for base in cls.__mro__ if base.__module__.startswith(_LANGCHAIN)]
    if "BaseMessageChunk" in theirs:
        return "chunk"
    return "message" if "BaseMessage" in theirs else ""


def is_langchain(value: Any) -> bool:
    """Say whether *value* is one of LangChain's messages."""
    return _langchain_kind(type(value)) != ""  # type: ignore[arg-type]  # mypy looks for the instances' __hash__


def langchain_messages() -> Any:
    """Return LangChain's message module; only called with one of its messages at hand, so it is loaded."""
    return sys.modules[_LANGCHAIN]


def is_message(value: Any) -> bool:
    """Say whether *value* is a message, of ours, LangChain's, or by its attributes type, content and id.

    >>> is_message(HumanMessage("hi")), is_message("hi")
    (True, False)
    """
    if isinstance(value, BaseMessage) or is_langchain(value):
        return True
    return not isinstance(value, (type, Mapping)) and all(hasattr(value, name) for name in ("type", "content", "id"))


def convert_to_messages(values: Iterable[MessageLikeRepresentation]) -> list[Any]:
    """Return each value as a message; messages stay the objects they are, chunks become full messages.

    >>> convert_to_messages(["hi", ("ai", "hello"), {"role": "user", "content": "bye", "id": "3"}])
    [HumanMessage(content='hi'), AIMessage(content='hello'), HumanMessage(content='bye', id='3')]

    Raises:
        NotImplementedError: a value is none of these forms.
        ValueError: a dict or pair lacks what its role needs, or the role is unknown.
    """
    return coerced(list(values), ())


def coerced(values: list[Any], state: Iterable[Any]) -> list[Any]:
    """Return *values* as messages; what has to be made is of the family found in *state*, else in *values*, else ours."""
    # Nearly always everything is a message already: one look at each distinct class settles it.
    if all(map(_is_settled, set(map(type, values)))):
        return values
    make: Make | None = None
    done = []
    for value in values:
        if is_message(value):
            done.append(_whole(value))
            continue
        make = make or _maker((*state, *values))
        done.append(make(value))
    return done


@lru_cache(maxsize=512)
def _is_settled(cls: type) -> bool:
    ours = issubclass(cls, BaseMessage) and not issubclass(cls, AIMessageChunk)
    return ours or _langchain_kind(cls) == "message"


def _whole(message: Any) -> Any:
    if isinstance(message, AIMessageChunk):
        return message.to_message()
    if _langchain_kind(type(message)) == "chunk":  # type: ignore[arg-type]  # as above
        return langchain_messages().message_chunk_to_message(message)
    return message


def _maker(context: Iterable[Any]) -> Make:
    first = next((m for m in context if is_message(m)), None)
    if first is None or not is_langchain(first):
        return _message
    return _langchain_message


def _langchain_message(value: Any) -> Any:
    if isinstance(value, Mapping) and (value.get("role") or value.get("type")) == "remove":
        return langchain_messages().RemoveMessage(id=value.get("id"))
    return langchain_messages().convert_to_messages([value])[0]


def _message(value: Any) -> BaseMessage:
    if isinstance(value, str):
        return HumanMessage(value)
    if isinstance(value, Mapping):
        return _from_dict(dict(value))
    if isinstance(value, (tuple, list)):
        if len(value) == 2 and isinstance(value[0], str):
            return _from_dict({"role": value[0], "content": value[1]})
        text = f"a message as a {type(value).__name__} is a (role, content) pair, not {described(value)}"
        raise about(NotImplementedError(text), value)
    text = f"cannot make a message of {described(value)}; give a message, a string, a (role, content) pair or a dict"
    raise about(NotImplementedError(text), value)


def _from_dict(given: dict[str, Any]) -> BaseMessage:
    role = given.get("role") or given.get("type")
    make = _ROLES.get("chat" if given.get("type") == "chat" else cast("str", role))
    if make is None:
        text = f"a message has a role that does not exist{nearest(role, tuple(_ROLES))}; known roles: {', '.join(_ROLES)}"
        raise about(ValueError(text), given)
    if given.get("content") is None:
        if "content" not in given and not (given.get("tool_calls") or role == "remove"):
            raise about(ValueError(f"a message has no 'content', but {_keys(given)}"), given)
        given["content"] = ""
    return make(given)


def _keys(given: dict[str, Any]) -> str:
    return ", ".join(map(repr, given))


_COMMON = ("content", "id", "name", "response_metadata")


def _fields(given: dict[str, Any], *own: str) -> dict[str, Any]:
    """Return constructor arguments; keys that no message has go to ``additional_kwargs``, as providers add some."""
    named = {name: given[name] for name in (*_COMMON, *own) if name in given}
    rest = {k: v for k, v in given.items() if k not in named and k not in ("role", "type", "additional_kwargs")}
    return named | {"additional_kwargs": given.get("additional_kwargs", {}) | rest}


def _ai(given: dict[str, Any]) -> BaseMessage:
    calls: list[ToolCall] = []
    invalid: list[InvalidToolCall] = list(given.pop("invalid_tool_calls", ()))
    for call in given.pop("tool_calls", None) or ():
        if "function" not in call:
            calls.append(ToolCall(name=call["name"], args=call.get("args") or {}, id=call.get("id"), type="tool_call"))
            continue
        good, bad = parsed_tool_call(call["function"].get("name"), call["function"].get("arguments"), call.get("id"))
        calls += [good] if good else []
        invalid += [bad] if bad else []
    return AIMessage(tool_calls=calls, invalid_tool_calls=invalid, **_fields(given, "usage_metadata"))


def _tool(given: dict[str, Any]) -> BaseMessage:
    if given.get("tool_call_id") is None:
        raise about(ValueError(f"a message is a tool's answer, but has no 'tool_call_id', only {_keys(given)}"), given)
    return ToolMessage(**_fields(given, "tool_call_id", "status", "artifact"))


def _developer(given: dict[str, Any]) -> BaseMessage:
    message = SystemMessage(**_fields(given))
    message.additional_kwargs["__openai_role__"] = "developer"
    return message


def _remove(given: dict[str, Any]) -> BaseMessage:
    if given.get("id") is None:
        raise about(ValueError(f"a message removes a message, but has no 'id', only {_keys(given)}"), given)
    return RemoveMessage(given["id"])


_ROLES: dict[str, Callable[[dict[str, Any]], BaseMessage]] = {
    "human": lambda given: HumanMessage(**_fields(given)),
    "user": lambda given: HumanMessage(**_fields(given)),
    "ai": _ai,
    "assistant": _ai,
    "system": lambda given: SystemMessage(**_fields(given)),
    "developer": _developer,
    "tool": _tool,
    "function": lambda given: _tool({"tool_call_id": given.get("name"), **given}),
    "chat": lambda given: ChatMessage(role=given["role"], **_fields(given)),
    "remove": _remove,
}
