"""Pieces of a model's answer, as it is streamed."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, fields
from typing import Any, TypedDict, cast

from tracegraph.messages.base import AIMessage, Content, InvalidToolCall, ToolCall, UsageMetadata

__all__ = ["AIMessageChunk", "ToolCallChunk", "parsed_tool_call"]


class ToolCallChunk(TypedDict):
    """A piece of a tool call; pieces with one ``index`` belong together, and ``args`` is JSON text."""

    name: str | None
    args: str | None
    id: str | None
    index: int | None


@dataclass(slots=True, repr=False)
class AIMessageChunk(AIMessage):
    """A piece of an AI message: pieces are added up, and the sum is turned into the message.

    >>> whole = AIMessageChunk("Hel", id="m1") + AIMessageChunk("lo")
    >>> whole.to_message()
    AIMessage(content='Hello', id='m1')
    """

    tool_call_chunks: list[ToolCallChunk] = field(default_factory=list, kw_only=True)

    def __add__(self, other: AIMessageChunk) -> AIMessageChunk:
        return AIMessageChunk(
            _joined(self.content, other.content),
            id=self.id or other.id,
            name=self.name or other.name,
            additional_kwargs=self.additional_kwargs | other.additional_kwargs,
            response_metadata=self.response_metadata | other.response_metadata,
            tool_calls=self.tool_calls + other.tool_calls,
            invalid_tool_calls=self.invalid_tool_calls + other.invalid_tool_calls,
            usage_metadata=_added(self.usage_metadata, other.usage_metadata),
            tool_call_chunks=_collected([*self.tool_call_chunks, *other.tool_call_chunks]),
        )

    def to_message(self) -> AIMessage:
        """Return the full message; calls whose arguments are no JSON object are among its ``invalid_tool_calls``."""
        message = AIMessage(**{f.name: getattr(self, f.name) for f in fields(AIMessage)})
        message.tool_calls, message.invalid_tool_calls = list(self.tool_calls), list(self.invalid_tool_calls)
        for piece in self.tool_call_chunks:
            call, invalid = parsed_tool_call(piece["name"], piece["args"], piece["id"])
            if call is not None:
                message.tool_calls.append(call)
            if invalid is not None:
                message.invalid_tool_calls.append(invalid)
        return message


def parsed_tool_call(name: str | None, args: str | None, id: str | None) -> tuple[ToolCall | None, InvalidToolCall | None]:
    """Return a call as models send it (*args* is JSON text) as a ToolCall, or else as an InvalidToolCall."""
    try:
        found = json.loads(args or "{}")
    except ValueError as error:
        return None, InvalidToolCall(name=name, args=args, id=id, error=f"arguments are no JSON: {error}")
    if not isinstance(found, dict) or not name:
        return None, InvalidToolCall(name=name, args=args, id=id, error="a tool call needs a name and a JSON object of arguments")
    return ToolCall(name=name, args=found, id=id, type="tool_call"), None


def _joined(left: Content, right: Content) -> Content:
    if isinstance(left, str) and isinstance(right, str):
        return left + right
    return [*_as_blocks(left), *_as_blocks(right)]


def _as_blocks(content: Content) -> list[str | dict[str, Any]]:
    if isinstance(content, list):
        return content
    return [content] if content else []


def _collected(pieces: list[ToolCallChunk]) -> list[ToolCallChunk]:
    whole: list[ToolCallChunk] = []
    for piece in pieces:
        same = next((w for w in whole if w["index"] is not None and w["index"] == piece["index"]), None)
        if same is None:
            whole.append(piece.copy())
            continue
        same["name"] = same["name"] or piece["name"]
        same["id"] = same["id"] or piece["id"]
        same["args"] = (same["args"] or "") + (piece["args"] or "")
    return whole


def _added(left: UsageMetadata | None, right: UsageMetadata | None) -> UsageMetadata | None:
    if left is None or right is None:
        return left or right
    return cast("UsageMetadata", _summed(dict(left), dict(right)))


def _summed(left: dict[str, Any], right: dict[str, Any]) -> dict[str, Any]:
    total = dict(left)
    for key, value in right.items():
        total[key] = _summed(total.get(key, {}), value) if isinstance(value, dict) else total.get(key, 0) + value
    return total
