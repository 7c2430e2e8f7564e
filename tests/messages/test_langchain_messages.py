"""LangChain's messages in a state: kept, and joined by messages of their own family."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from tracegraph.messages import HumanMessage, RemoveMessage, add_messages, is_message

theirs = pytest.importorskip("langchain_core.messages")
reducer = pytest.importorskip("langgraph.graph.message").add_messages


def kinds(messages: list[Any]) -> list[str]:
    return [f"{type(m).__module__.split('.')[0]}.{type(m).__name__}" for m in messages]


def test_state_of_langchain_messages_stays_one() -> None:
    """Strings, pairs and dicts become LangChain's messages if the state holds such."""
    state = [theirs.HumanMessage("x", id="1")]
    right = ["a", ("ai", "b"), {"role": "tool", "content": "c", "tool_call_id": "1"}, {"role": "remove", "id": "1"}]

    merged = add_messages(state, right)

    assert kinds(merged) == ["langchain_core.HumanMessage", "langchain_core.AIMessage", "langchain_core.ToolMessage"]


def test_state_of_our_messages_stays_one() -> None:
    """A LangChain message written to it is kept as it is, but nothing is made of its family."""
    added = theirs.AIMessage("b", id="2")

    merged = add_messages([HumanMessage("x", id="1")], [added, "c"])

    assert merged[1] is added
    assert kinds(merged) == ["tracegraph.HumanMessage", "langchain_core.AIMessage", "tracegraph.HumanMessage"]


def test_first_write_decides_for_an_empty_state() -> None:
    """One list is not made of two families."""
    assert kinds(add_messages([], ["a", theirs.AIMessage("b")])) == ["langchain_core.HumanMessage", "langchain_core.AIMessage"]
    assert kinds(add_messages([], ["a"])) == ["tracegraph.HumanMessage"]


def test_subclasses_and_chunks_are_recognised() -> None:
    """By the module of their base classes; chunks become full messages."""

    class Mine(theirs.HumanMessage):  # type: ignore[name-defined,misc]
        pass

    merged = add_messages([Mine("x")], [theirs.AIMessageChunk(content="a"), "b"])

    assert [type(m).__name__ for m in merged] == ["Mine", "AIMessage", "HumanMessage"]
    assert kinds(merged)[2] == "langchain_core.HumanMessage"
    assert is_message(theirs.AIMessageChunk(content="a"))


def test_removals_of_either_family_work_in_either() -> None:
    """The type attribute decides."""
    assert add_messages([theirs.HumanMessage("x", id="1")], RemoveMessage("1")) == []
    assert add_messages([HumanMessage("x", id="1")], theirs.RemoveMessage(id="1")) == []


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (["1"], ["2", "1"]),
        (["1", "2", "1"], ["1"]),
        (["1", "2"], ["-1", "1"]),
        (["1", "2"], ["3", "-3", "3"]),
        (["1", "2"], ["3", "-*", "4", "5"]),
    ],
)
def test_merging_equals_langgraphs(left: list[str], right: list[str]) -> None:
    """The oracle's list, message by message."""

    def made(ids: list[str], side: str) -> list[Any]:
        return [
            theirs.RemoveMessage(id="__remove_all__" if i == "-*" else i[1:])
            if i[0] == "-"
            else theirs.HumanMessage(side + str(n), id=i)
            for n, i in enumerate(ids)
        ]

    ours = add_messages(made(left, "l"), made(right, "r"))

    assert ours == reducer(made(left, "l"), made(right, "r"))


def test_format_is_langchains_own() -> None:
    """Its converter does the work, so contents equal LangGraph's."""
    messages = [
        theirs.HumanMessage([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}], id="1"),
        theirs.AIMessage([{"type": "tool_use", "id": "c", "name": "f", "input": {"a": 1}}], id="2"),
    ]

    ours = add_messages([], messages, format="langchain-openai")

    assert ours == reducer([], messages, format="langchain-openai")
    assert ours[0].content == "a\nb"


def test_messages_are_recognised_without_loading_langchain() -> None:
    """A state of our own messages never imports langchain-core."""
    code = (
        "import sys; from tracegraph.messages import add_messages; "
        "add_messages(['hi'], [('ai', 'x')], format='langchain-openai'); print('langchain_core' in sys.modules)"
    )

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "False"
