"""Message contents as OpenAI's chat API takes them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any

from tracegraph.messages.base import AIMessage, BaseMessage, ToolCall, ToolMessage
from tracegraph.messages.coerce import is_langchain, langchain_messages

__all__ = ["in_openai_format"]


def in_openai_format(messages: Sequence[Any]) -> list[Any]:
    """Return *messages* with their contents in OpenAI's form; none is changed.

    Text blocks alone become one text, images become ``image_url``, a ``tool_use`` block becomes a tool call
    of its AI message, and a ``tool_result`` block a message of its own, before the one it was in.
    Our messages keep their ids; LangChain's, converted by LangChain, lose them.
    """
    done: list[Any] = []
    for is_theirs, group in groupby(messages, key=is_langchain):
        if is_theirs:
            theirs = langchain_messages()
            done += theirs.convert_to_messages(theirs.convert_to_openai_messages(list(group)))
        else:
            for message in group:
                done += _converted(message) if isinstance(message, BaseMessage) else [message]
    return done


def _converted(message: BaseMessage) -> list[BaseMessage]:
    if isinstance(message.content, str):
        return [message]
    blocks: list[dict[str, Any]] = []
    calls: list[ToolCall] = []
    results: list[BaseMessage] = []
    for part in message.content:
        block: dict[str, Any] = {"type": "text", "text": part} if isinstance(part, str) else part
        match block.get("type"):
            case "tool_use":
                calls.append(ToolCall(name=block["name"], args=block.get("input") or {}, id=block.get("id"), type="tool_call"))
            case "tool_result":
                results.append(_tool_result(block))
            case _:
                blocks.append(_block(block))
    made = replace(message, content=_content(blocks))
    if isinstance(made, AIMessage):
        known = {call["id"] for call in made.tool_calls}
        made.tool_calls = [*made.tool_calls, *(call for call in calls if call["id"] not in known)]
    return results if results and not blocks else [*results, made]


def _tool_result(block: dict[str, Any]) -> BaseMessage:
    content = block.get("content") or ""
    parts = content if isinstance(content, list) else [{"type": "text", "text": content}]
    return ToolMessage(
        _content([_block(part) for part in parts]),
        tool_call_id=block["tool_use_id"],
        status="error" if block.get("is_error") else "success",
    )


def _content(blocks: list[dict[str, Any]]) -> Any:
    if all(block.get("type") == "text" for block in blocks):
        return "\n".join(block["text"] for block in blocks)
    return blocks


def _block(block: dict[str, Any]) -> dict[str, Any]:
    match block:
        case {"type": "text", "text": text}:
            return {"type": "text", "text": text}
        case {"type": "image", "source": {"type": "base64", "media_type": mime, "data": data}}:
            return _image(f"data:{mime};base64,{data}")
        case {"type": "image", "source": {"type": "url", "url": url}}:
            return _image(url)
        case {"type": "image", "base64": data, "mime_type": mime}:
            return _image(f"data:{mime};base64,{data}")
        case {"type": "image", "url": url}:
            return _image(url)
        case {"type": "image_url", "image_url": str(url)}:
            return _image(url)
        case _:
            return block


def _image(url: str) -> dict[str, Any]:
    return {"type": "image_url", "image_url": {"url": url}}
