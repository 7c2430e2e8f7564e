"""LangChain's messages as LangGraph stored them: LangChain's own where it is installed, else ours."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import fields
from functools import cache
from typing import Any, Final

from tracegraph.messages import (
    AIMessage,
    BaseMessage,
    ChatMessage,
    HumanMessage,
    RemoveMessage,
    SystemMessage,
    ToolMessage,
)

__all__ = ["is_message", "make_message"]

_LANGCHAIN: Final = "langchain_core.messages"
# Names in the oldest databases, which held LangChain's JSON, begin with the place of the time.
_PLACES: Final = (_LANGCHAIN, "langchain.schema")
_OURS: Final[dict[str, type[BaseMessage]]] = {
    "HumanMessage": HumanMessage,
    "AIMessage": AIMessage,
    "SystemMessage": SystemMessage,
    "ToolMessage": ToolMessage,
    "FunctionMessage": ToolMessage,
    "ChatMessage": ChatMessage,
    "RemoveMessage": RemoveMessage,
}


def is_message(module: str, name: str) -> bool:
    """Say whether a class is one of LangChain's messages.

    >>> is_message("langchain_core.messages.human", "HumanMessage"), is_message("app", "HumanMessage")
    (True, False)
    """
    known = name.removesuffix("Chunk") in _OURS
    return known and any(module == place or module.startswith(f"{place}.") for place in _PLACES)


@cache
def _langchain() -> Any:
    """Return LangChain's message module, None if it is not installed."""
    try:
        return importlib.import_module(_LANGCHAIN)
    except ImportError:
        return None


def make_message(name: str, held: Mapping[str, Any]) -> Any:
    """Return a message of a class with this name and these fields."""
    langchain = _langchain()
    if langchain is None:
        return _ours(name.removesuffix("Chunk"), dict(held))
    cls = getattr(langchain, name)
    try:
        return cls(**held)
    except ValueError:  # an older LangChain was less strict; its validation passed then
        return cls.model_construct(**held)


def _ours(name: str, held: dict[str, Any]) -> BaseMessage:
    if name == "RemoveMessage":
        return RemoveMessage(held["id"])
    if name == "FunctionMessage":
        held.setdefault("tool_call_id", held.get("name") or "")
    cls = _OURS[name]
    known = {field.name for field in fields(cls)}
    # What only LangChain has (`example`, the pieces of a chunk) is kept where providers put extras, unless it is empty.
    rest = {key: value for key, value in held.items() if key not in known and key != "type" and value}
    taken = {key: value for key, value in held.items() if key in known}
    taken["additional_kwargs"] = (held.get("additional_kwargs") or {}) | rest
    return cls(**taken)
