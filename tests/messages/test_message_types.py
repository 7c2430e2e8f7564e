"""What may be written instead of a message, and what messages can do."""

from __future__ import annotations

from typing import Any

import pytest

from tracegraph.messages import (
    AIMessage,
    AIMessageChunk,
    BaseMessage,
    ChatMessage,
    HumanMessage,
    InvalidToolCall,
    RemoveMessage,
    SystemMessage,
    ToolCall,
    ToolMessage,
    convert_to_messages,
    is_message,
)
from tracegraph.messages.chunks import ToolCallChunk

CALL = ToolCall(name="f", args={"a": 1}, id="c1", type="tool_call")


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ("hi", HumanMessage("hi")),
        (("user", "hi"), HumanMessage("hi")),
        (["human", "hi"], HumanMessage("hi")),
        (("assistant", "yo"), AIMessage("yo")),
        (("system", "be nice"), SystemMessage("be nice")),
        ({"role": "user", "content": "hi", "id": "1", "name": "bo"}, HumanMessage("hi", id="1", name="bo")),
        ({"type": "human", "content": [{"type": "text", "text": "x"}]}, HumanMessage([{"type": "text", "text": "x"}])),
        (
            {"role": "ai", "content": "", "tool_calls": [{"name": "f", "args": {"a": 1}, "id": "c1"}]},
            AIMessage("", tool_calls=[CALL]),
        ),
        (
            {"role": "assistant", "tool_calls": [{"id": "c1", "function": {"name": "f", "arguments": '{"a": 1}'}}]},
            AIMessage("", tool_calls=[CALL]),
        ),
        (
            {"role": "ai", "content": None, "odd": 1, "additional_kwargs": {"k": 2}},
            AIMessage("", additional_kwargs={"k": 2, "odd": 1}),
        ),
        (
            {"role": "ai", "content": "x", "usage_metadata": {"input_tokens": 1}},
            AIMessage("x", usage_metadata={"input_tokens": 1}),
        ),
        (
            {"role": "tool", "content": "r", "tool_call_id": "c1", "status": "error", "artifact": 3},
            ToolMessage("r", tool_call_id="c1", status="error", artifact=3),
        ),
        ({"role": "function", "content": "r", "name": "f"}, ToolMessage("r", tool_call_id="f", name="f")),
        ({"role": "developer", "content": "d"}, SystemMessage("d", additional_kwargs={"__openai_role__": "developer"})),
        ({"type": "chat", "role": "critic", "content": "c"}, ChatMessage("c", role="critic")),
        ({"role": "remove", "id": "1"}, RemoveMessage("1")),
    ],
)
def test_written_form_becomes_a_message(written: Any, message: BaseMessage) -> None:
    """Strings, pairs and dicts of each role."""
    assert convert_to_messages([written]) == [message]


def test_messages_stay_the_objects_they_are() -> None:
    """Ours, and foreign ones that have the attributes of a message."""

    class Foreign:
        type, content, id = "human", "x", None

    values = [HumanMessage("a"), Foreign()]

    converted = convert_to_messages([*values, "b"])

    assert [a is b for a, b in zip(converted, values, strict=False)] == [True, True]
    assert (is_message(Foreign), is_message(3)) == (False, False)


@pytest.mark.parametrize("written", [3, None, ("user", "a", "b"), (1, "a"), object()])
def test_other_forms_are_refused(written: Any) -> None:
    """What is no message is shown."""
    with pytest.raises(NotImplementedError, match="message"):
        convert_to_messages([written])


@pytest.mark.parametrize(
    ("written", "fault"),
    [
        (("judge", "x"), "has a role that does not exist; known roles: human, user"),
        ({"content": "x"}, "has a role that does not exist; known roles"),
        ({"role": "user"}, "has no 'content'"),
        ({"role": "tool", "content": "x"}, "has no 'tool_call_id'"),
        ({"role": "remove"}, "has no 'id'"),
    ],
)
def test_incomplete_dicts_are_refused(written: Any, fault: str) -> None:
    """The error names what is missing."""
    with pytest.raises(ValueError, match=fault):
        convert_to_messages([written])


@pytest.mark.parametrize("arguments", ["{", "[1]"])
def test_call_whose_arguments_are_no_object_is_kept_as_invalid(arguments: str) -> None:
    """The raw text is there to show the model."""
    written = {"role": "assistant", "tool_calls": [{"id": "c1", "function": {"name": "f", "arguments": arguments}}]}

    message = convert_to_messages([written])[0]

    assert message.tool_calls == []
    assert [(call["name"], call["args"], call["id"]) for call in message.invalid_tool_calls] == [("f", arguments, "c1")]


def test_text_joins_the_text_blocks() -> None:
    """Other blocks have no text."""
    assert HumanMessage("a").text == "a"
    assert HumanMessage(["a", {"type": "image"}, {"type": "text", "text": "b"}]).text == "ab"


def test_repr_leaves_out_what_was_not_given() -> None:
    """A long conversation stays readable."""
    assert repr(ToolMessage("x", tool_call_id="1")) == "ToolMessage(content='x', tool_call_id='1')"
    assert repr(RemoveMessage("1")) == "RemoveMessage(content='', id='1')"


def piece(args: str, name: str | None = None, call_id: str | None = None, index: int | None = 0) -> AIMessageChunk:
    return AIMessageChunk("", tool_call_chunks=[ToolCallChunk(name=name, args=args, id=call_id, index=index)])


def test_chunks_add_up_to_a_message() -> None:
    """Text, calls by index, token counts and the rest are put together; the pieces stay as they were."""
    first = piece('{"a"', name="f", call_id="c1")
    first.usage_metadata = {"input_tokens": 1, "input_token_details": {"cached": 1}}
    last = AIMessageChunk("hi", id="m", name="bo", usage_metadata={"input_tokens": 2, "input_token_details": {"cached": 2}})

    whole = (first + piece(": 1}") + last + piece("", index=None)).to_message()

    assert (type(whole), whole.content, whole.id, whole.name) == (AIMessage, "hi", "m", "bo")
    assert whole.tool_calls == [CALL]
    assert [call["error"] for call in whole.invalid_tool_calls] == ["a tool call needs a name and a JSON object of arguments"]
    assert whole.usage_metadata == {"input_tokens": 3, "input_token_details": {"cached": 3}}
    assert first.tool_call_chunks[0]["args"] == '{"a"'


def test_chunks_of_blocks_and_text_become_blocks() -> None:
    """An empty text adds none."""
    block: dict[str, Any] = {"type": "text", "text": "b"}

    assert (AIMessageChunk("a") + AIMessageChunk([block])).content == ["a", block]
    assert (AIMessageChunk([block]) + AIMessageChunk("")).content == [block]


def test_invalid_calls_of_a_chunk_are_kept() -> None:
    """Broken JSON at the end of a stream is no exception."""
    broken = InvalidToolCall(name="g", args="(", id=None, error="earlier")
    chunk = piece('{"a"', name="f") + AIMessageChunk("", invalid_tool_calls=[broken])

    message = chunk.to_message()

    assert [call["name"] for call in message.invalid_tool_calls] == ["g", "f"]
