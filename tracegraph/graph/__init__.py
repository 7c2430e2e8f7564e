"""Graphs over a shared state: the builder, its constants, and ready states."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from tracegraph.constants import END, START

if TYPE_CHECKING:
    from tracegraph.channels.nested import Nested
    from tracegraph.graph.message import MessageGraph, MessagesState, add_messages
    from tracegraph.graph.state import CompiledStateGraph, StateGraph

__all__ = ["END", "START", "CompiledStateGraph", "MessageGraph", "MessagesState", "Nested", "StateGraph", "add_messages"]

_HOMES = {
    "CompiledStateGraph": "tracegraph.graph.state",
    "Nested": "tracegraph.channels.nested",
    "StateGraph": "tracegraph.graph.state",
    "MessageGraph": "tracegraph.graph.message",
    "MessagesState": "tracegraph.graph.message",
    "add_messages": "tracegraph.graph.message",
}


def __getattr__(name: str) -> Any:
    # Who draws a graph or builds one without messages pays for neither the engine nor the message types.
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(importlib.import_module(_HOMES[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
