"""The reducer of message lists."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Literal, TypeAlias, overload
from uuid import uuid4

from tracegraph.messages.coerce import MessageLikeRepresentation, coerced
from tracegraph.messages.openai_format import in_openai_format

__all__ = ["REMOVE_ALL_MESSAGES", "Messages", "add_message_batches", "add_messages"]

Messages: TypeAlias = list[MessageLikeRepresentation] | MessageLikeRepresentation
Format: TypeAlias = Literal["langchain-openai"]

REMOVE_ALL_MESSAGES = "__remove_all__"
"""Id of a RemoveMessage that empties the list; what follows it in the same write is the new list."""


@overload
def add_messages(left: None = None, right: None = None, *, format: Format | None = None) -> Callable[[Any, Any], list[Any]]: ...
@overload
def add_messages(left: Messages, right: Messages, *, format: Format | None = None) -> list[Any]: ...
def add_messages(left: Any = None, right: Any = None, *, format: Format | None = None) -> Any:
    """Return *left* with *right* added: a known id replaces in place, a RemoveMessage removes, the rest is appended.

    Either side may be one message or a list, in any form that
    :func:`~tracegraph.messages.convert_to_messages` takes. Messages without an id get one, on the object
    itself. Called without messages it returns the reducer with ``format`` set, for ``Annotated``.

    With ``format="langchain-openai"`` contents become OpenAI's blocks.

    >>> from tracegraph.messages import HumanMessage, RemoveMessage
    >>> talk = add_messages([HumanMessage("hi", id="1")], [HumanMessage("hello", id="1"), HumanMessage("bye", id="2")])
    >>> talk
    [HumanMessage(content='hello', id='1'), HumanMessage(content='bye', id='2')]
    >>> add_messages(talk, RemoveMessage("1"))
    [HumanMessage(content='bye', id='2')]

    Raises:
        ValueError: a RemoveMessage names an id that is not there, one side is None, or the format is unknown.
        NotImplementedError: something is no message.
    """
    if left is None and right is None:
        return partial(add_messages, format=format) if format is not None else partial(add_messages)
    if left is None or right is None:
        raise ValueError(f"add_messages() merges two lists, but its {'left' if left is None else 'right'} one is None")
    if format not in (None, "langchain-openai"):
        raise ValueError(f"message format {format!r} is unknown; give 'langchain-openai' or None")
    old = coerced(_as_list(left), ())
    new = coerced(_as_list(right), old)
    merged = _merged(old, _with_ids(old), new, _with_ids(new))
    return in_openai_format(merged) if format else merged


def add_message_batches(state: list[Any], writes: Sequence[Messages]) -> list[Any]:
    """Return *state* with each write added in turn by :func:`add_messages`: the reducer of a ``DeltaChannel``."""
    if not writes:
        return _as_list(state)
    for write in writes:
        state = add_messages(state, write)
    return state


# Messages without an id get a random one, so that folding the same writes again would give other messages.
add_message_batches.completes_writes = True  # type: ignore[attr-defined]
# Neither changes a message that it has: one of a known id takes its place.
add_messages.keeps_items = add_message_batches.keeps_items = True  # type: ignore[attr-defined]


def _as_list(side: Any) -> list[Any]:
    return list(side) if isinstance(side, list) else [side]


def _with_ids(messages: list[Any]) -> list[str]:
    """Return the messages' ids, giving those that have none a new one."""
    ids = [m.id for m in messages]
    if None in ids:
        for position, message in enumerate(messages):
            if ids[position] is None:
                message.id = ids[position] = str(uuid4())
    return ids


def _merged(old: list[Any], old_ids: list[str], new: list[Any], new_ids: list[str]) -> list[Any]:
    is_removal = [m.type == "remove" for m in new]
    swept: set[str] = set()
    markers = [at for at, is_gone in enumerate(is_removal) if is_gone and new_ids[at] == REMOVE_ALL_MESSAGES]
    if markers:
        after = markers[-1] + 1
        # Removing one of the messages that the marker already swept away is not a mistake.
        swept.update(old_ids, new_ids[:after])
        old, old_ids = [], []
        new, new_ids, is_removal = new[after:], new_ids[after:], is_removal[after:]
    merged = list(old)
    position = dict(zip(old_ids, range(len(old)), strict=True))
    removed: set[str] = set()
    for message, message_id, is_gone in zip(new, new_ids, is_removal, strict=True):
        known = position.get(message_id)
        if is_gone:
            if known is not None:
                removed.add(message_id)
            elif message_id not in swept:
                raise ValueError(f"RemoveMessage names id {message_id!r}, but no message has it")
        elif known is not None:
            removed.discard(message_id)
            merged[known] = message
        else:
            position[message_id] = len(merged)
            merged.append(message)
    return [m for m in merged if m.id not in removed] if removed else merged
