"""States that hold a conversation."""

from __future__ import annotations

import warnings
from typing import Annotated

from typing_extensions import TypedDict

from tracegraph.graph.state import StateGraph
from tracegraph.messages import REMOVE_ALL_MESSAGES, AnyMessage, Messages, add_messages

__all__ = ["REMOVE_ALL_MESSAGES", "MessageGraph", "Messages", "MessagesState", "add_messages"]


class MessagesState(TypedDict):
    """A state with one key, ``messages``, to which :func:`add_messages` adds; subclass it for more keys."""

    messages: Annotated[list[AnyMessage], add_messages]


class MessageGraph(StateGraph[list[AnyMessage]]):
    """A graph whose whole state is a list of messages. Deprecated: use ``StateGraph(MessagesState)``."""

    def __init__(self) -> None:
        warnings.warn("MessageGraph is deprecated; use StateGraph(MessagesState)", DeprecationWarning, stacklevel=2)
        super().__init__(Annotated[list[AnyMessage], add_messages])  # type: ignore[arg-type]  # an annotation as a schema
