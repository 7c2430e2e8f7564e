"""Contents of our messages in OpenAI's form."""

from __future__ import annotations

from typing import Any

import pytest

from tracegraph.messages import AIMessage, HumanMessage, ToolCall, ToolMessage, add_messages
from tracegraph.messages.openai_format import in_openai_format

TEXT: dict[str, Any] = {"type": "text", "text": "a"}
PNG = "data:image/png;base64,xx"


@pytest.mark.parametrize(
    ("block", "expected"),
    [
        ({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "xx"}}, PNG),
        ({"type": "image", "source": {"type": "url", "url": "u"}}, "u"),
        ({"type": "image", "base64": "xx", "mime_type": "image/png"}, PNG),
        ({"type": "image", "url": "u"}, "u"),
        ({"type": "image_url", "image_url": "u"}, "u"),
        ({"type": "image_url", "image_url": {"url": "u"}}, "u"),
    ],
)
def test_images_of_other_providers_become_image_urls(block: dict[str, Any], expected: str) -> None:
    """The text beside it becomes a block too."""
    converted = in_openai_format([HumanMessage(["a", block], id="1")])

    assert converted == [HumanMessage([TEXT, {"type": "image_url", "image_url": {"url": expected}}], id="1")]


def test_text_blocks_alone_become_one_text() -> None:
    """Extra keys of a block (cache marks of another provider) do not survive."""
    given = [HumanMessage([{**TEXT, "cache_control": {}}, "b"], id="1"), HumanMessage([], id="2"), HumanMessage("c", id="3")]

    assert add_messages([], given, format="langchain-openai") == [
        HumanMessage("a\nb", id="1"),
        HumanMessage("", id="2"),
        HumanMessage("c", id="3"),
    ]


def test_tool_use_becomes_a_call_once() -> None:
    """A call that the message lists already is not repeated, and the message given stays as it was."""
    known = ToolCall(name="f", args={"a": 1}, id="c1", type="tool_call")
    blocks: list[Any] = [
        {"type": "tool_use", "id": "c1", "name": "f", "input": {"a": 1}},
        {"type": "tool_use", "id": "c2", "name": "g"},
    ]
    message = AIMessage([TEXT, *blocks], id="1", tool_calls=[known])

    converted = in_openai_format([message])

    assert converted == [AIMessage("a", id="1", tool_calls=[known, ToolCall(name="g", args={}, id="c2", type="tool_call")])]
    assert message.tool_calls == [known]


def test_tool_results_become_messages_before_the_rest() -> None:
    """OpenAI wants the answers right after the calls; a message of results alone disappears."""
    results: list[Any] = [
        {"type": "tool_result", "tool_use_id": "c1", "content": "r"},
        {"type": "tool_result", "tool_use_id": "c2", "content": [TEXT], "is_error": True},
    ]

    answers = [ToolMessage("r", tool_call_id="c1"), ToolMessage("a", tool_call_id="c2", status="error")]

    assert in_openai_format([HumanMessage(results)]) == answers
    assert in_openai_format([HumanMessage([*results, TEXT])]) == [*answers, HumanMessage("a")]


def test_foreign_messages_and_unknown_blocks_pass_through() -> None:
    """What the converter does not know it does not touch."""

    class Foreign:
        type, content, id = "human", [TEXT], "1"

    foreign, thinking = Foreign(), AIMessage([{"type": "thinking", "thinking": "hm"}])

    assert in_openai_format([foreign, thinking]) == [foreign, thinking]
