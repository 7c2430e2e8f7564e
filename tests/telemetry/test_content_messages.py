"""Messages of every family in the one shape of the GenAI conventions."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import langchain_core.messages as lc
import pytest
from langchain_core.documents import Document
from langchain_core.outputs import ChatGeneration, Generation, LLMResult

from tracegraph import messages as ours
from tracegraph.telemetry.content.documents import document_shapes
from tracegraph.telemetry.content.messages import (
    input_messages,
    message_shape,
    output_messages,
    system_instructions,
    tool_definitions,
)
from tracegraph.telemetry.content.parts import parts_of
from tracegraph.telemetry.content.snapshot import snapshot

pytestmark = pytest.mark.content_on_spans("content is asked for")

CALL = {"type": "tool_call", "id": "c1", "name": "add", "arguments": {"a": 1}}
TEXT = {"type": "text", "content": "hi"}


@pytest.mark.parametrize("family", [ours, lc], ids=["ours", "langchain"])
def test_messages_of_both_families_have_one_shape(family: Any) -> None:
    """Roles, texts, tool calls and their responses."""
    conversation = [
        family.SystemMessage("be brief"),
        family.HumanMessage("hi", name="ada"),
        family.AIMessage("", tool_calls=[{"name": "add", "args": {"a": 1}, "id": "c1"}]),
        family.ToolMessage("2", tool_call_id="c1"),
        family.ChatMessage(content="hi", role="critic"),
    ]

    assert input_messages([conversation]) == [
        {"role": "system", "parts": [{"type": "text", "content": "be brief"}]},
        {"role": "user", "parts": [TEXT], "name": "ada"},
        {"role": "assistant", "parts": [CALL]},
        {"role": "tool", "parts": [{"type": "tool_call_response", "response": "2", "id": "c1"}]},
        {"role": "critic", "parts": [TEXT]},
    ]
    assert snapshot({"messages": conversation})["messages"] == input_messages([conversation])


@pytest.mark.parametrize(("given", "expected"), [
    ("hi", {"role": "user", "parts": [TEXT]}),
    (("ai", "hi"), {"role": "assistant", "parts": [TEXT]}),
    (["human", "hi"], {"role": "user", "parts": [TEXT]}),
    ({"role": "developer", "content": "hi"}, {"role": "developer", "parts": [TEXT]}),
    ({"type": "human", "content": "hi"}, {"role": "user", "parts": [TEXT]}),
    ({"role": "user", "parts": [TEXT]}, {"role": "user", "parts": [TEXT]}),
    ({"role": "assistant", "content": None, "tool_calls": [
        {"id": "c1", "type": "function", "function": {"name": "add", "arguments": '{"a": 1}'}}]},
     {"role": "assistant", "parts": [CALL]}),
    ({"role": "tool", "content": "2", "tool_call_id": "c1"},
     {"role": "tool", "parts": [{"type": "tool_call_response", "response": "2", "id": "c1"}]}),
    ({"role": "assistant", "content": "hi", "reasoning_content": "well"},
     {"role": "assistant", "parts": [{"type": "reasoning", "content": "well"}, TEXT]}),
    (lc.AIMessageChunk("hi"), {"role": "assistant", "parts": [TEXT]}),
    (ours.AIMessageChunk("hi"), {"role": "assistant", "parts": [TEXT]}),
    (7, {"role": "user", "parts": [{"type": "text", "content": 7}]}),
])  # fmt: skip
def test_other_ways_to_write_a_message(given: Any, expected: Any) -> None:
    """Texts, pairs and dicts of several libraries."""
    assert message_shape(given) == expected


def test_a_call_that_is_both_a_block_and_in_tool_calls_is_one_part() -> None:
    """Anthropic's answers through LangChain have it twice."""
    block = {"type": "tool_use", "id": "c1", "name": "add", "input": {"a": 1}}
    message = lc.AIMessage([{"type": "text", "text": "hi"}, block], tool_calls=[{"name": "add", "args": {"a": 1}, "id": "c1"}])

    assert message_shape(message) == {"role": "assistant", "parts": [TEXT, CALL]}


def test_an_invalid_call_keeps_its_raw_arguments() -> None:
    """What the model wrote, although it is no JSON."""
    message = ours.AIMessage("", invalid_tool_calls=[{"name": "add", "args": "{a", "id": "c1", "error": None}])

    assert message_shape(message)["parts"] == [{**CALL, "arguments": "{a"}]


@pytest.mark.parametrize(("block", "part"), [
    ({"type": "thinking", "thinking": "hm", "signature": "s"}, {"type": "reasoning", "content": "hm"}),
    ({"type": "reasoning", "summary": [{"type": "summary_text", "text": "hm"}]}, {"type": "reasoning", "content": "hm"}),
    ({"type": "redacted_thinking", "data": "EmwK"}, {"type": "reasoning", "content": ""}),
    ({"type": "image_url", "image_url": {"url": "https://x/a.png"}}, {"type": "uri", "modality": "image", "uri": "https://x/a.png"}),
    ({"type": "image_url", "image_url": "https://x/a.png"}, {"type": "uri", "modality": "image", "uri": "https://x/a.png"}),
    ({"type": "image_url", "image_url": {"url": "data:image/png;base64,QUFBQQ=="}},
     {"type": "blob", "modality": "image", "mime_type": "image/png", "content": "", "size": 4}),
    ({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "QUFB"}},
     {"type": "blob", "modality": "image", "mime_type": "image/png", "content": "", "size": 3}),
    ({"type": "image", "source_type": "base64", "mime_type": "image/png", "data": "QUFB"},
     {"type": "blob", "modality": "image", "mime_type": "image/png", "content": "", "size": 3}),
    ({"type": "image", "base64": "QUFB", "mime_type": "image/png"},
     {"type": "blob", "modality": "image", "mime_type": "image/png", "content": "", "size": 3}),
    ({"type": "input_audio", "input_audio": {"data": "QUFB", "format": "wav"}},
     {"type": "blob", "modality": "audio", "mime_type": "audio/wav", "content": "", "size": 3}),
    ({"type": "file", "file": {"file_id": "f-1"}}, {"type": "file", "modality": "document", "file_id": "f-1"}),
    ({"type": "media", "mime_type": "video/mp4", "file_uri": "gs://b/a.mp4", "modality": "video"},
     {"type": "uri", "modality": "video", "mime_type": "video/mp4", "uri": "gs://b/a.mp4"}),
    ({"type": "tool_result", "tool_use_id": "c1", "content": [{"type": "text", "text": "hi"}]},
     {"type": "tool_call_response", "response": [TEXT], "id": "c1"}),
    ({"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"q": "x"}},
     {"type": "server_tool_call", "id": "s1", "name": "web_search",
      "server_tool_call": {"type": "web_search", "value": {"q": "x"}}}),
    ({"type": "something_new", "a": 1}, {"type": "something_new", "a": 1}),
])  # fmt: skip
def test_blocks_of_every_provider_become_parts(block: Any, part: Any) -> None:
    """Binary data is left out and named by its size in bytes; what is unknown is kept as it is."""
    assert snapshot(parts_of([block])) == [part]


def test_answers_have_one_message_for_each_choice() -> None:
    """LangChain's results hold them in lists of lists, with the reason why each ended."""
    result = LLMResult(generations=[[
        ChatGeneration(message=lc.AIMessage("hi", response_metadata={"finish_reason": "stop"})),
        ChatGeneration(message=lc.AIMessage("hi", response_metadata={"stop_reason": "max_tokens"})),
    ]])  # fmt: skip

    assert output_messages(result) == [
        {"role": "assistant", "parts": [TEXT], "finish_reason": "stop"},
        {"role": "assistant", "parts": [TEXT], "finish_reason": "max_tokens"},
    ]
    assert output_messages(LLMResult(generations=[[Generation(text="hi")]])) == [{"role": "assistant", "parts": [TEXT]}]
    assert output_messages(ours.AIMessage("hi")) == [{"role": "assistant", "parts": [TEXT]}]
    assert output_messages(None) == []


def test_instructions_beside_the_messages_and_tools() -> None:
    """As parameters of the call; those among the messages stay there, as the conventions say."""
    assert system_instructions({"system": [{"type": "text", "text": "hi"}]}) == [TEXT]
    assert system_instructions({"temperature": 1}) == []
    function = {"name": "add", "description": "Adds.", "parameters": {"type": "object"}}
    assert tool_definitions({"tools": [{"type": "function", "function": function}]}) == [{"type": "function", **function}]
    assert tool_definitions({"tools": [{"type": "web_search_20250305", "name": "web_search"}]}) == [
        {"type": "web_search_20250305", "name": "web_search"}
    ]
    assert tool_definitions({}) == []
    assert system_instructions({"invocation_params": {"system": "hi"}}) == [TEXT]


def test_documents_of_several_libraries() -> None:
    """With their scores, where they have any."""
    assert document_shapes([Document("hi", id="1", metadata={"score": 0.5})]) == [
        {"id": "1", "score": 0.5, "content": "hi", "metadata": {"score": 0.5}}
    ]
    assert document_shapes([(Document("hi"), 0.25), SimpleNamespace(content="hi", score=0), "hi"]) == [
        {"score": 0.25, "content": "hi"},
        {"score": 0, "content": "hi"},
        {"content": "hi"},
    ]
    assert document_shapes("no list") == []
