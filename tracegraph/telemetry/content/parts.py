"""Content blocks of messages as parts of the GenAI conventions.

A block may be OpenAI's, Anthropic's, Google's or LangChain's. Binary data is left out: a part says what it was and how large.
Values inside parts are as they came; :func:`~tracegraph.telemetry.content.snapshot.snapshot` makes JSON of them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Final

from tracegraph.telemetry.content.blobs import Blob

__all__ = ["Part", "parts_of", "tool_call_part"]

Part = dict[str, Any]

_MODALITIES: Final = {
    "image": "image",
    "image_url": "image",
    "input_image": "image",
    "audio": "audio",
    "input_audio": "audio",
    "video": "video",
    "video_url": "video",
    "document": "document",
    "file": "document",
    "input_file": "document",
    "media": "document",
    "blob": "document",
    "uri": "document",
}
_REASONING: Final = frozenset({"reasoning", "thinking", "reasoning_content", "redacted_thinking"})
_TEXT: Final = frozenset({"text", "input_text", "output_text", "refusal", "plaintext", "text-plain"})


def parts_of(content: Any) -> list[Part]:
    """Return a message's content, a text or a list of blocks, as parts.

    >>> parts_of("hi")
    [{'type': 'text', 'content': 'hi'}]
    >>> parts_of([{"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}])
    [{'type': 'uri', 'modality': 'image', 'uri': 'https://example.org/a.png'}]
    """
    if content is None or content == "":
        return []
    if isinstance(content, str):
        return [{"type": "text", "content": content}]
    if isinstance(content, (list, tuple)):
        return [part for block in content for part in _parts_of_block(block)]
    return [{"type": "text", "content": content}]


def tool_call_part(call: Any) -> Part:
    """Return a model's request to call a tool, in LangChain's shape, OpenAI's or Anthropic's, as a part.

    >>> tool_call_part({"id": "1", "type": "function", "function": {"name": "add", "arguments": '{"a": 1}'}})
    {'type': 'tool_call', 'id': '1', 'name': 'add', 'arguments': {'a': 1}}
    """
    call = call if isinstance(call, Mapping) else {}
    function = call.get("function")
    named = function if isinstance(function, Mapping) else call
    arguments = next((named[key] for key in ("args", "arguments", "input") if named.get(key) is not None), None)
    part: Part = {"type": "tool_call"}
    if call_id := call.get("id") or call.get("call_id"):
        part["id"] = call_id
    part["name"] = named.get("name") or ""
    if arguments is not None:
        part["arguments"] = _parsed(arguments)
    return part


def _parts_of_block(block: Any) -> list[Part]:
    if not isinstance(block, Mapping):
        return [{"type": "text", "content": block}] if block not in (None, "") else []
    kind = block.get("type")
    if not isinstance(kind, str):
        return [{"type": "text", "content": block["text"]}] if "text" in block else [{"type": "unknown", **block}]
    if kind in _TEXT:
        text = block.get("text", block.get("content", block.get("refusal", "")))
        return [{"type": "text", "content": text}]
    if kind in _REASONING:
        return [{"type": "reasoning", "content": _reasoning(block)}]
    if kind in _MODALITIES:
        return [_media(block, block.get("modality") or _MODALITIES[kind])]
    make = _BLOCKS.get(kind)
    return [make(block) if make is not None else {**block, "type": kind}]


def _reasoning(block: Mapping[str, Any]) -> Any:
    for key in ("reasoning", "thinking", "content", "text", "reasoning_content"):
        if block.get(key) is not None:
            return block[key]
    summary = block.get("summary")  # OpenAI's responses
    if isinstance(summary, (list, tuple)):
        return "\n".join(str(item.get("text", "")) for item in summary if isinstance(item, Mapping))
    return ""  # redacted_thinking: encrypted, and for the provider only


def _media(block: Mapping[str, Any], modality: Any) -> Part:
    """Return a picture, sound, film or document as ``uri``, ``file`` or ``blob``, whichever the block holds."""
    inner = _inner(block)
    mime_type = inner.get("mime_type") or inner.get("media_type") or block.get("mime_type") or block.get("media_type")
    if not mime_type and isinstance(inner.get("format"), str):
        mime_type = f"{modality}/{inner['format']}"
    part: Part = {"type": "uri", "modality": modality}
    address = next((inner[key] for key in ("url", "uri", "file_uri", "image_url") if isinstance(inner.get(key), str)), None)
    data = next((inner[key] for key in ("base64", "data", "file_data", "bytes", "content") if inner.get(key)), None)
    if address is not None and address.startswith("data:"):
        head, _, data = address.partition(",")
        mime_type, address = head[5:].partition(";")[0] or mime_type, None
    if mime_type:
        part["mime_type"] = mime_type
    file_id = inner.get("file_id") or inner.get("id")
    if address is not None:
        part["uri"] = address
    elif data is None and file_id:
        part |= {"type": "file", "file_id": file_id}
    else:
        # The conventions want `content`; it is shown empty, for no redactor can look into a picture.
        blob = Blob(data)
        part |= {"type": "blob", "content": blob, "size": blob.size}
    return part


def _inner(block: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return where a block keeps its data: itself, or what it is named after."""
    for key in ("source", "file", "image_url", "input_audio", "audio", "video_url", "image", "video", "document"):
        value = block.get(key)
        if isinstance(value, Mapping):
            return value
    return block


def _tool_result(block: Mapping[str, Any]) -> Part:
    call_id = block.get("tool_use_id") or block.get("tool_call_id") or block.get("id")
    response = block.get("content", block.get("response", block.get("output")))
    part: Part = {"type": "tool_call_response", "response": response_of(response)}
    return part if call_id is None else {**part, "id": call_id}


def _server_call(block: Mapping[str, Any]) -> Part:
    arguments = block.get("args", block.get("input", block.get("server_tool_call", {})))
    part: Part = {"type": "server_tool_call", "name": block.get("name") or "", "server_tool_call": _typed(arguments, block)}
    return part if block.get("id") is None else {**part, "id": block["id"]}


def _server_result(block: Mapping[str, Any]) -> Part:
    call_id = block.get("tool_use_id") or block.get("tool_call_id") or block.get("id")
    answer = block.get("output", block.get("content", block.get("server_tool_call_response")))
    part: Part = {"type": "server_tool_call_response", "server_tool_call_response": _typed(answer, block)}
    return part if call_id is None else {**part, "id": call_id}


def _typed(value: Any, block: Mapping[str, Any]) -> Any:
    return (
        value if isinstance(value, Mapping) and "type" in value else {"type": block.get("name") or block["type"], "value": value}
    )


def response_of(content: Any) -> Any:
    """Return what a tool answered: its text as it is, blocks as parts."""
    if isinstance(content, (list, tuple)) and any(isinstance(item, Mapping) and "type" in item for item in content):
        return parts_of(content)
    return content


def _parsed(arguments: Any) -> Any:
    """Return arguments that came as JSON text as what they say; as they are if that is no JSON."""
    if not isinstance(arguments, str):
        return arguments
    try:
        return json.loads(arguments)
    except ValueError:
        return arguments


def _as_given(block: Mapping[str, Any]) -> Part:
    return dict(block)


_BLOCKS: Final[dict[str, Callable[[Mapping[str, Any]], Part]]] = {
    "tool_use": tool_call_part,
    "tool_call": tool_call_part,
    "function_call": tool_call_part,
    "tool_result": _tool_result,
    "tool_call_response": _tool_result,
    "server_tool_use": _server_call,
    "server_tool_call": _server_call,
    "server_tool_result": _server_result,
    "server_tool_call_response": _server_result,
    "web_search_tool_result": _server_result,
    "compaction": _as_given,
}
