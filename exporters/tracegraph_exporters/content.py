"""Content on spans (messages, inputs, results): which attributes they are, and how a reader wants to see them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

from tracegraph_exporters.base import dump_json

__all__ = ["CONTENT", "content_lines", "without_content"]

CONTENT: Final = {
    "tracegraph.run.input": "input",
    "tracegraph.task.input": "input",
    "gen_ai.system_instructions": "instructions",
    "gen_ai.input.messages": "",
    "gen_ai.output.messages": "",
    "gen_ai.tool.definitions": "tools",
    "gen_ai.tool.call.arguments": "arguments",
    "gen_ai.retrieval.query.text": "query",
    "gen_ai.memory.query.text": "query",
    "gen_ai.tool.call.result": "result",
    "gen_ai.retrieval.documents": "documents",
    "gen_ai.memory.records": "records",
    "tracegraph.task.output": "output",
    "tracegraph.run.output": "output",
    "input.value": "input",
    "output.value": "output",
}
"""Attributes that hold content -> what a line of it begins with, in the order in which they are read. Messages begin with
their role."""

_PREFIXES: Final = ("gen_ai.prompt.variable.",)
_WIDTH: Final = 110
"""Longer JSON is spread over lines."""


def without_content(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """Return the attributes that hold none.

    >>> without_content({"gen_ai.tool.name": "search", "gen_ai.tool.call.arguments": '{"q":"cats"}'})
    {'gen_ai.tool.name': 'search'}
    """
    return {key: value for key, value in attributes.items() if not _is_content(key)}


def content_lines(attributes: Mapping[str, Any]) -> Iterator[str]:
    r"""Yield the content of a span as lines.

    >>> message = '[{"role":"user","parts":[{"type":"text","content":"Two\\nlines"}]}]'
    >>> for line in content_lines({"gen_ai.input.messages": message, "tracegraph.task.output": '{"n":1}'}):
    ...     print(line)
    user: Two
      lines
    output: {"n":1}
    """
    for key in sorted(filter(_is_content, attributes), key=_position):
        value = _parsed(attributes[key])
        label = CONTENT.get(key, key.rpartition(".")[2])
        if not label and isinstance(value, list):
            for message in value:
                yield from _message(message)
        else:
            yield from _labelled(label or key, _parts(value) if label == "instructions" else value)


def _is_content(key: str) -> bool:
    return key in CONTENT or key.startswith(_PREFIXES)


def _position(key: str) -> tuple[int, str]:
    return (list(CONTENT).index(key) if key in CONTENT else -1, key)


def _parsed(value: Any) -> Any:
    try:
        return json.loads(value) if isinstance(value, str) else value
    except ValueError:
        return value


def _message(message: Any) -> Iterator[str]:
    if not isinstance(message, Mapping):
        yield from _labelled("message", message)
        return
    role = str(message.get("role", "message"))
    yield from _labelled(role, _parts(message.get("parts", message.get("content"))))


def _parts(parts: Any) -> Any:
    """Return the parts of a message as one text, if parts they are."""
    if not isinstance(parts, list):
        return parts
    return "\n".join(map(_part, parts))


def _part(part: Any) -> str:
    match part:
        case {"type": "text", "content": str(text)}:
            return text
        case {"type": "reasoning", "content": str(text)}:
            return f"(thinks) {text}"
        case {"type": "tool_call", "name": name}:
            return f"calls {name}({_text(part.get('arguments', {}))})"
        case {"type": "tool_call_response"}:
            return f"returns {_text(part.get('response', part.get('result')))}"
        case _:
            return _text(part)


def _labelled(label: str, value: Any) -> Iterator[str]:
    text = value if isinstance(value, str) else dump_json(value)
    if not isinstance(value, str) and len(text) > _WIDTH:
        text = "\n" + json.dumps(value, indent=2, ensure_ascii=False)
    first, *more = text.split("\n")
    yield f"{label}: {first}".rstrip()
    yield from (f"  {line}" for line in more)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else dump_json(value)
