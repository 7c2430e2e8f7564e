"""Messages in what nodes get and return, and in what models answer."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any, Final

from tracegraph.messages import AIMessageChunk, BaseMessage
from tracegraph.messages.coerce import is_langchain
from tracegraph.types import Command

__all__ = ["answer_of", "messages_in_state", "messages_returned", "piece_of"]

_PLAIN: Final = frozenset({bool, int, float, str, bytes, dict, type(None)})
"""Types of many values, none of which is a message or lists any: asking whether one is a sequence takes longer."""


def _is_message(value: Any) -> bool:
    # Not whatever looks like one, as in a message list: a returned state may hold anything.
    return isinstance(value, BaseMessage) or is_langchain(value)


def _among(values: Any) -> Iterator[Any]:
    if isinstance(values, Sequence) and not isinstance(values, (str, bytes)):
        for value in values:
            if _is_message(value):
                yield value


def _fields(state: Any) -> Sequence[Any]:
    if isinstance(state, dict):
        return list(state.values())
    if isinstance(fields := getattr(type(state), "model_fields", None), dict):
        return [getattr(state, name) for name in fields]
    if dataclasses.is_dataclass(state):
        return [getattr(state, field.name) for field in dataclasses.fields(state)]
    return ()


def messages_in_state(state: Any) -> Iterator[Any]:
    """Yield the messages of a state or of a part of one: those it is or lists, those in its fields, and no deeper.

    >>> from tracegraph.messages import HumanMessage
    >>> [found.id for found in messages_in_state({"a": HumanMessage("x", id="1"), "b": [HumanMessage("y", id="2")]})]
    ['1', '2']
    """
    if type(state) is not dict:
        if _is_message(state):
            yield state
            return
        yield from _among(state)
    for value in _fields(state):
        if type(value) in _PLAIN:
            continue
        if _is_message(value):
            yield value
        else:
            yield from _among(value)


def messages_returned(returned: Any) -> Iterator[Any]:
    """Yield the messages in what a node returned, its commands' updates included."""
    if isinstance(returned, (list, tuple)) and any(isinstance(part, Command) for part in returned):
        for part in returned:
            yield from messages_in_state(part.update if isinstance(part, Command) else part)
    else:
        yield from messages_in_state(returned.update if isinstance(returned, Command) else returned)


def piece_of(token: Any, chunk: Any) -> Any:
    """Return the message chunk that a model streamed: *chunk*, what it wraps, or one made of the bare text; None if none."""
    if chunk is None:
        return AIMessageChunk(token) if isinstance(token, str) else None
    if isinstance(chunk, BaseMessage) or is_langchain(chunk):
        return chunk
    wrapped = getattr(chunk, "message", None)
    return wrapped if _is_message(wrapped) else None


def answer_of(response: Any) -> Any:
    """Return the message that a model answered with: the response, or the first of its generations; None if none."""
    if _is_message(response):
        return response
    generations = getattr(response, "generations", None)
    if generations and generations[0]:
        message = getattr(generations[0][0], "message", None)
        return message if _is_message(message) else None
    return None
