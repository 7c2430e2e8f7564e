"""The reducer of message lists."""

from __future__ import annotations

import inspect
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tracegraph.messages import (
    REMOVE_ALL_MESSAGES,
    AIMessage,
    AIMessageChunk,
    HumanMessage,
    RemoveMessage,
    add_message_batches,
    add_messages,
)


def said(*pairs: str) -> list[Any]:
    """Return messages from texts like ``"1:hi"`` (id and content); ``"-1"`` removes, ``"-*"`` removes all."""
    made: list[Any] = []
    for pair in pairs:
        if pair.startswith("-"):
            made.append(RemoveMessage(REMOVE_ALL_MESSAGES if pair == "-*" else pair[1:]))
        else:
            message_id, _, content = pair.partition(":")
            made.append(HumanMessage(content, id=message_id))
    return made


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        (["1:a"], ["2:b"], ["1:a", "2:b"]),
        (["1:a", "2:b"], ["1:c"], ["1:c", "2:b"]),
        (["1:a", "2:b"], ["-1"], ["2:b"]),
        (["1:a", "2:b"], ["-1", "1:c"], ["1:c", "2:b"]),
        (["1:a"], ["2:b", "-2"], ["1:a"]),
        (["1:a"], ["2:b", "3:c", "2:d"], ["1:a", "2:d", "3:c"]),
        (["1:a", "2:b", "1:c"], ["1:d"], ["1:a", "2:b", "1:d"]),
        (["1:a", "2:b", "1:c"], ["-1"], ["2:b"]),
        (["1:a"], ["-*"], []),
        (["1:a"], ["2:b", "-*", "3:c", "-*", "1:d"], ["1:d"]),
        (["1:a"], ["-*", "2:b", "2:c", "3:d", "-3"], ["2:c"]),
        (["1:a"], ["2:b", "-*", "-1", "-2", "3:c"], ["3:c"]),
        ([], [], []),
    ],
)
def test_right_is_merged_into_left(left: list[str], right: list[str], expected: list[str]) -> None:
    """Known ids are replaced in place, removals remove, the last remove-all starts anew, the rest is appended."""
    before = said(*left)
    given_left = list(before)

    assert add_messages(given_left, said(*right)) == said(*expected)
    assert given_left == before


@pytest.mark.parametrize("right", [["-9"], ["-*", "-9"], ["1:a", "-*", "1:b", "-9"]])
def test_removing_a_message_that_is_not_there_is_an_error(right: list[str]) -> None:
    """A wrong id is more likely a mistake than a wish."""
    with pytest.raises(ValueError, match="RemoveMessage names id '9', but no message has it"):
        add_messages(said("1:a"), said(*right))


def test_removal_without_id_is_an_error() -> None:
    """Such a message gets a new id, which no message has."""
    removal = RemoveMessage("")
    removal.id = None

    with pytest.raises(ValueError, match="but no message has it"):
        add_messages([], [removal])


def test_replacement_may_have_another_type() -> None:
    """The id decides, nothing else."""
    assert add_messages(said("1:a"), AIMessage("b", id="1")) == [AIMessage("b", id="1")]


def test_messages_without_id_get_one_on_the_object_itself() -> None:
    """Both sides' objects are named, so the same object written again replaces itself."""
    old, new = HumanMessage("a"), AIMessage("b")

    merged = add_messages([old], [new])

    assert merged[0] is old and merged[1] is new
    assert [str(UUID(m.id)) for m in merged] == [old.id, new.id]
    assert add_messages(merged, new) == merged


def test_single_values_are_lists_of_one() -> None:
    """A bare string is one message of a person, on either side."""
    merged = add_messages("hi", ("ai", "hello"))

    assert [(m.type, m.content) for m in merged] == [("human", "hi"), ("ai", "hello")]


def test_chunks_become_messages() -> None:
    """What a model streamed is stored whole."""
    merged = add_messages([], AIMessageChunk("a", id="1"))

    assert merged == [AIMessage("a", id="1")]
    assert type(merged[0]) is AIMessage


def test_one_missing_side_is_an_error() -> None:
    """It says which one."""
    with pytest.raises(ValueError, match="its left one is None"):
        add_messages(None, [])  # type: ignore[call-overload]
    with pytest.raises(ValueError, match="its right one is None"):
        add_messages([], None)


def test_without_messages_it_is_the_reducer_itself() -> None:
    """`Annotated[list, add_messages(format=...)]` has a reducer of two positional parameters."""
    for reducer in (add_messages(), add_messages(format="langchain-openai")):
        kinds = [p.kind for p in inspect.signature(reducer).parameters.values()]
        assert kinds.count(inspect.Parameter.POSITIONAL_OR_KEYWORD) == 2
        assert reducer(said("1:a"), said("2:b")) == said("1:a", "2:b")


def test_unknown_format_is_an_error() -> None:
    """It names the one there is."""
    with pytest.raises(ValueError, match="message format 'other' is unknown; give 'langchain-openai' or None"):
        add_messages([], [], format="other")  # type: ignore[call-overload]


WRITES = st.lists(st.lists(st.sampled_from(["1:a", "1:b", "2:c", "3:d", "-*"]), max_size=4), max_size=6)


@given(first=WRITES, second=WRITES)
@settings(max_examples=100, deadline=None, derandomize=True)
def test_batches_may_be_cut_anywhere(first: list[list[str]], second: list[list[str]]) -> None:
    """The delta reducer gives what add_messages gives write by write, and does not depend on the batching."""
    writes = [said(*write) for write in (*first, *second)]
    one_by_one: list[Any] = []
    for write in writes:
        one_by_one = add_messages(one_by_one, write)

    whole = add_message_batches([], writes)
    in_two = add_message_batches(add_message_batches([], writes[: len(first)]), writes[len(first) :])

    assert whole == in_two == one_by_one
