"""Messages in the shapes of the GenAI conventions, from ours, LangChain's, dicts, pairs and texts.

Read by duck type: nobody's classes are imported. What is returned may hold values of the user's, so it still has to go
through :func:`~tracegraph.telemetry.content.snapshot.snapshot`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from tracegraph.telemetry.content.parts import Part, parts_of, response_of, tool_call_part

__all__ = ["input_messages", "message_shape", "output_messages", "system_instructions", "tool_definitions"]

_ROLES: Final = {
    "human": "user",
    "ai": "assistant",
    "AIMessageChunk": "assistant",
    "HumanMessageChunk": "user",
    "SystemMessageChunk": "system",
    "ToolMessageChunk": "tool",
    "function": "tool",
}


def input_messages(messages: Any) -> list[dict[str, Any]]:
    """Return what a model was given: a list of message lists, or of prompts.

    >>> input_messages(["Say hi"])
    [{'role': 'user', 'parts': [{'type': 'text', 'content': 'Say hi'}]}]
    """
    return [message_shape(message) for message in _flat(messages)]


def _flat(messages: Any) -> Iterator[Any]:
    for item in messages if isinstance(messages, (list, tuple)) else [messages]:
        # A list is one of several prompts, unless it is a (role, text) pair.
        if isinstance(item, (list, tuple)) and not _is_pair(item):
            yield from item
        else:
            yield item


def message_shape(message: Any) -> dict[str, Any]:
    """Return one message as ``{role, parts}``.

    >>> message_shape(("system", "Be brief."))
    {'role': 'system', 'parts': [{'type': 'text', 'content': 'Be brief.'}]}
    """
    if _is_pair(message):
        return {"role": _ROLES.get(message[0], message[0]), "parts": parts_of(message[1])}
    if isinstance(message, Mapping):
        if "parts" in message and "role" in message:
            return dict(message)
        read = message.get
    elif hasattr(message, "content"):

        def read(key: str, default: Any = None) -> Any:
            return getattr(message, key, default)
    else:
        return {"role": "user", "parts": parts_of(message)}
    kind = read("type") if read("role") is None or read("type") not in (None, "chat") else None
    role = str(kind if isinstance(kind, str) and kind in _ROLES else read("role") or kind or "user")
    shape: dict[str, Any] = {"role": _ROLES.get(role, role), "parts": _parts(read, _ROLES.get(role, role))}
    if name := read("name"):
        shape["name"] = name
    return shape


def _parts(read: Any, role: str) -> list[Part]:
    content, call_id = read("content"), read("tool_call_id")
    if role == "tool" and (call_id is not None or not isinstance(content, (list, tuple))):
        part: Part = {"type": "tool_call_response", "response": response_of(content)}
        return [part if call_id is None else {**part, "id": call_id}]
    parts = parts_of(content)
    extra = read("additional_kwargs")
    extra = extra if isinstance(extra, Mapping) else {}
    reasoning = read("reasoning_content") or extra.get("reasoning_content")
    if reasoning and not any(part["type"] == "reasoning" for part in parts):
        parts.insert(0, {"type": "reasoning", "content": reasoning})
    # Anthropic's answers have a call both as a block and in `tool_calls`.
    known = {part.get("id") for part in parts if part["type"] == "tool_call"} - {None}
    for call in (*(read("tool_calls") or ()), *(read("invalid_tool_calls") or ())):
        made = tool_call_part(call)
        if made.get("id") not in known:
            parts.append(made)
    return parts


def output_messages(response: Any) -> list[dict[str, Any]]:
    """Return what a model answered, one message for each choice: of a message, a LangChain ``LLMResult``, or a text.

    >>> output_messages("hi")
    [{'role': 'assistant', 'parts': [{'type': 'text', 'content': 'hi'}]}]
    """
    if response is None:
        return []
    return [_answer(choice) for choice in _choices(response)]


def _choices(response: Any) -> Iterator[Any]:
    generations = getattr(response, "generations", None)
    if generations is None:
        yield from response if isinstance(response, list) else [response]
        return
    for prompt in generations:
        yield from prompt if isinstance(prompt, (list, tuple)) else [prompt]


def _answer(choice: Any) -> dict[str, Any]:
    message = getattr(choice, "message", None)
    if message is None:
        text = getattr(choice, "text", None)
        message = choice if hasattr(choice, "content") or not isinstance(text, str) else text
    shape = message_shape(message)
    if isinstance(message, str) or (isinstance(message, Mapping) and "role" not in message and "type" not in message):
        shape["role"] = "assistant"
    about = getattr(message, "response_metadata", None) or getattr(choice, "generation_info", None)
    if isinstance(about, Mapping):
        reason = about.get("finish_reason") or about.get("stop_reason")
        if isinstance(reason, str):
            shape["finish_reason"] = reason
    return shape


def system_instructions(params: Mapping[str, Any]) -> list[Part]:
    """Return the instructions a model was given beside the messages; those among the messages stay there.

    >>> system_instructions({"instructions": "Be brief."})
    [{'type': 'text', 'content': 'Be brief.'}]
    """
    params = _inner(params)
    for key in ("system", "instructions", "system_instruction", "system_instructions"):
        if params.get(key):
            return parts_of(params[key])
    return []


def tool_definitions(params: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the tools a model could choose from, of OpenAI's shape or Anthropic's.

    >>> tool_definitions({"tools": [{"name": "add", "input_schema": {"type": "object"}}]})
    [{'type': 'function', 'name': 'add', 'parameters': {'type': 'object'}}]
    """
    params = _inner(params)
    tools = params.get("tools") or params.get("functions")
    return [_definition(tool) for tool in tools] if isinstance(tools, (list, tuple)) else []


def _inner(params: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the parameters of a call, some of which LangChain's models announce as ``invocation_params``."""
    inner = params.get("invocation_params")
    return {**params, **inner} if isinstance(inner, Mapping) else params


def _definition(tool: Any) -> dict[str, Any]:
    if not isinstance(tool, Mapping):
        return {"type": "function", "name": str(getattr(tool, "name", None) or getattr(tool, "__name__", type(tool).__name__))}
    function = tool.get("function")
    named = function if isinstance(function, Mapping) else tool
    kind = tool.get("type", "function")
    shape: dict[str, Any] = {"type": "function" if kind == "custom" else kind, "name": named.get("name") or kind}
    if description := named.get("description"):
        shape["description"] = description
    parameters = named.get("parameters") or named.get("input_schema")
    return shape if parameters is None else {**shape, "parameters": parameters}


def _is_pair(value: Any) -> bool:
    return (
        isinstance(value, (list, tuple))
        and len(value) == 2
        and all(isinstance(item, str) for item in value)
        and (value[0] in _ROLES or value[0] in {"user", "assistant", "system", "tool", "developer"})
    )
