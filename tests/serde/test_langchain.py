"""LangChain's messages and documents."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    ChatMessage,
    HumanMessage,
    RemoveMessage,
    SystemMessage,
    ToolMessage,
)
from msgpack import packb
from sameness import SERDE, is_same

from tracegraph.checkpoint.serde.errors import UnreadableBytesError
from tracegraph.checkpoint.serde.jsonplus import JsonPlusSerializer

STRICT = JsonPlusSerializer(allowed_msgpack_modules=None)
CALL = {"name": "f", "args": {"x": 1}, "id": "c", "type": "tool_call"}
USAGE = {"input_tokens": 1, "output_tokens": 2, "total_tokens": 3}

MESSAGES: list[Any] = [
    *(HumanMessage("hi", id="1"), SystemMessage("s"), AIMessage(""), AIMessageChunk("a"), RemoveMessage("7")),
    HumanMessage([{"type": "text", "text": "b"}], name="me", additional_kwargs={"k": (1,)}, extra_field={1}),
    AIMessage("a", tool_calls=[CALL], usage_metadata=USAGE, response_metadata={"m": 1}),
    *(ToolMessage("t", tool_call_id="c", status="error", artifact={1, 2}), ChatMessage("c", role="critic")),
    Document("text", metadata={"k": (1,)}, id="d"),
]


@pytest.mark.parametrize("value", MESSAGES, ids=lambda value: type(value).__name__)
def test_messages_come_back_the_same(value: Any) -> None:
    """Even in strict mode, with the same fields counted as set."""
    restored = STRICT.loads_typed(SERDE.dumps_typed([value]))[0]

    assert restored == value
    assert is_same(restored, value)
    assert restored.model_dump(exclude_unset=True) == value.model_dump(exclude_unset=True)


def test_changed_message_is_stored_as_it_is_now() -> None:
    """Fields that were changed without being set at construction."""
    value = AIMessage("a")
    value.tool_calls.append(CALL)  # type: ignore[arg-type]
    value.additional_kwargs["k"] = 1

    restored = STRICT.loads_typed(SERDE.dumps_typed(value))

    assert (restored.tool_calls, restored.additional_kwargs) == ([CALL], {"k": 1})


def test_defaults_cost_no_bytes_and_are_not_shared() -> None:
    """A conversation is mostly short texts."""
    data = SERDE.dumps_typed(HumanMessage("hi", id="1"))

    assert len(data[1]) < 70
    first, second = STRICT.loads_typed(data), STRICT.loads_typed(data)
    first.additional_kwargs["k"] = 1
    assert second.additional_kwargs == {}


def test_place_of_a_class_inside_the_library_is_not_stored() -> None:
    """It has moved before, and the public name has not."""
    _kind, stored = SERDE.dumps_typed(HumanMessage("hi"))

    assert b"langchain_core.messages\xacHumanMessage" in stored


def test_message_without_what_it_needs_is_an_error() -> None:
    """As with any model."""
    _kind, stored = SERDE.dumps_typed(HumanMessage("hi"))

    with pytest.raises(UnreadableBytesError, match="now needs 'content'"):
        STRICT.loads_typed(("msgpack", stored.replace(packb("content"), packb("kontent"))))


def test_messages_are_read_by_a_process_that_uses_none(tmp_path: Path) -> None:
    """LangChain imports each message class when it is first asked for."""
    messages = [HumanMessage("a"), AIMessage("b"), ToolMessage("c", tool_call_id="1"), SystemMessage("d"), RemoveMessage("e")]
    kind, data = JsonPlusSerializer().dumps_typed(messages)
    (tmp_path / "stored").write_bytes(data)
    program = f"""
from pathlib import Path
from tracegraph.checkpoint.serde.jsonplus import JsonPlusSerializer
found = JsonPlusSerializer().loads_typed(({kind!r}, Path({str(tmp_path / "stored")!r}).read_bytes()))
print([(type(each).__module__.split(".")[0], type(each).__name__) for each in found])
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)

    assert done.stderr == ""
    assert done.stdout.strip() == str([("langchain_core", type(each).__name__) for each in messages])
