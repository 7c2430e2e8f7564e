"""From finished content blocks to a message of the family that the model speaks."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tracegraph.messages import AIMessage
from tracegraph.messages.chunks import parsed_tool_call

__all__ = ["assembled", "events_of_message", "family_of", "finished_block"]

_LANGCHAIN = "langchain_core"


def family_of(message: Any) -> str | None:
    """Return the package whose messages *message* is one of, None for ours."""
    return _LANGCHAIN if any(c.__module__.startswith(f"{_LANGCHAIN}.") for c in type(message).__mro__) else None


def finished_block(block: Mapping[str, Any]) -> dict[str, Any]:
    """Return a block as it is once nothing more comes: arguments of a tool call are parsed.

    >>> finished_block({"type": "tool_call_chunk", "id": "c1", "name": "add", "args": '{"x": 1}'})
    {'type': 'tool_call', 'id': 'c1', 'name': 'add', 'args': {'x': 1}}
    """
    if block.get("type") != "tool_call_chunk":
        return dict(block)
    call, invalid = parsed_tool_call(block.get("name"), block.get("args"), block.get("id"))
    found: Mapping[str, Any] = call or invalid or {}
    made = {"type": "tool_call" if call is not None else "invalid_tool_call", "id": found["id"], "name": found["name"]}
    made["args"] = found["args"]
    return made if call is not None else {**made, "error": found["error"]}


def assembled(
    blocks: Sequence[tuple[int, Mapping[str, Any]]],
    *,
    message_id: str | None,
    usage: Any,
    details: Mapping[str, Any],
    family: str | None,
) -> Any:
    """Return the message made of indexed blocks; its content is their list, in the order of their indexes."""
    content: list[Any] = []
    calls: list[Any] = []
    invalid: list[Any] = []
    for index, block in sorted(blocks, key=lambda pair: pair[0]):
        block = finished_block(block)
        content.append({**block, "index": index} if block.get("type") in {"text", "reasoning"} else block)
        if block.get("type") == "tool_call":
            calls.append({"name": block["name"], "args": block["args"], "id": block["id"], "type": "tool_call"})
        elif block.get("type") == "invalid_tool_call":
            invalid.append(dict(block))
    made: type[Any] = AIMessage
    if family == _LANGCHAIN:
        # Whoever streams its chunks has imported it.
        made = sys.modules["langchain_core.messages"].AIMessage
    return made(
        content=content,
        id=message_id,
        tool_calls=calls,
        invalid_tool_calls=invalid,
        usage_metadata=usage,
        response_metadata={**details, "output_version": "v1"},
    )


def events_of_message(message: Any) -> Iterator[dict[str, Any]]:
    """Yield the events of a message that came whole."""
    yield {"event": "message-start", "role": "ai", "id": message.id}
    blocks = [] if message.content == "" else [message.content] if isinstance(message.content, str) else message.content
    index = 0
    for given in blocks:
        block = {"type": "text", "text": given} if isinstance(given, str) else dict(given)
        if block.get("type") in {"tool_use", "tool_call", "input_json_delta"}:
            continue  # they are among the tool calls
        yield from _events_of_block(index, block)
        index += 1
    for call in getattr(message, "tool_calls", ()):
        block = {"type": "tool_call", "id": call["id"], "name": call["name"], "args": call["args"]}
        yield {"event": "content-block-start", "index": index, "content": {**block, "args": {}}}
        yield {"event": "content-block-finish", "index": index, "content": block}
        index += 1
    finish: dict[str, Any] = {"event": "message-finish"}
    if (usage := getattr(message, "usage_metadata", None)) is not None:
        finish["usage"] = usage
    if message.response_metadata:
        finish["metadata"] = dict(message.response_metadata)
    yield finish


def _events_of_block(index: int, block: dict[str, Any]) -> Iterator[dict[str, Any]]:
    kind = block.get("type")
    if kind in {"text", "reasoning"} and isinstance(block.get(kind), str):
        yield {"event": "content-block-start", "index": index, "content": {"type": kind, kind: ""}}
        yield {"event": "content-block-delta", "index": index, "delta": {"type": f"{kind}-delta", kind: block[kind]}}
    else:
        yield {"event": "content-block-start", "index": index, "content": block}
    yield {"event": "content-block-finish", "index": index, "content": block}
