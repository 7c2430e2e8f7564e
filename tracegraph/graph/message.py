"""States that hold a conversation."""

from __future__ import annotations

import warnings
from typing import Annotated, Any

from typing_extensions import TypedDict

from tracegraph.current import here
from tracegraph.graph.state import StateGraph
from tracegraph.messages import (
    REMOVE_ALL_MESSAGES,
    AnyMessage,
    MessageLikeRepresentation,
    Messages,
    add_messages,
    convert_to_messages,
)

__all__ = ["REMOVE_ALL_MESSAGES", "MessageGraph", "Messages", "MessagesState", "add_messages", "push_message"]


class MessagesState(TypedDict):
    """A state with one key, ``messages``, to which :func:`add_messages` adds; subclass it for more keys."""

    messages: Annotated[list[AnyMessage], add_messages]


class MessageGraph(StateGraph[list[AnyMessage]]):
    """A graph whose whole state is a list of messages. Deprecated: use ``StateGraph(MessagesState)``."""

    def __init__(self) -> None:
        warnings.warn("MessageGraph is deprecated; use StateGraph(MessagesState)", DeprecationWarning, stacklevel=2)
        super().__init__(Annotated[list[AnyMessage], add_messages])  # type: ignore[arg-type]  # an annotation as a schema


def push_message(message: MessageLikeRepresentation, *, state_key: str | None = "messages") -> Any:
    """Show a message in stream mode ``messages`` at once, and write it to *state_key* (None: to none); return it.

    >>> from tracegraph.graph import START
    >>> def speak(state):
    ...     _ = push_message({"role": "ai", "content": "one moment", "id": "1"})
    >>> app = StateGraph(MessagesState).add_node("speak", speak).add_edge(START, "speak").compile()
    >>> [message.content for message, about in app.stream({"messages": []}, stream_mode="messages")]
    ['one moment']

    Raises:
        ValueError: the message has no id, by which a reader would know it again. RuntimeError: called outside a run.
        InvalidUpdateError: the state has no such key.
    """
    current = here("push_message()")
    (whole,) = convert_to_messages([message])
    if whole.id is None:
        raise ValueError("push_message() takes a message with an id, by which readers and the state know it")
    current.push(whole, state_key)
    return whole
