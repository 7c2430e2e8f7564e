"""What can be stored, and what is refused before anything is."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from postgres_savers import THREAD, Called, asked, opened, put

from tracegraph.checkpoint.base import empty_checkpoint
from tracegraph.checkpoint.postgres import PostgresSaverError
from tracegraph.errors import InvalidInputError

NUL, HALF = "a\0b", "a\ud800b"


@pytest.fixture
def saver(emptied_tables: str, is_async: bool) -> Iterator[Called]:
    with opened(emptied_tables, is_async=is_async) as made:
        yield made


def in_channel(saver: Called, name: str) -> None:
    saver.put(THREAD, empty_checkpoint() | {"channel_values": {name: [1]}, "channel_versions": {name: "1"}}, {}, {name: "1"})


PLACES: dict[str, Callable[[Called, Any, str], Any]] = {
    "thread id": lambda saver, _kept, text: put(saver, thread_id=text),
    "namespace": lambda saver, _kept, text: saver.put(
        {"configurable": {"thread_id": "1", "checkpoint_ns": text}}, empty_checkpoint(), {}, {}
    ),
    "channel": lambda saver, _kept, text: in_channel(saver, text),
    "metadata key": lambda saver, _kept, text: put(saver, metadata={text: 1}),
    "metadata value": lambda saver, _kept, text: put(saver, metadata={"a": {"deep": [text]}}),
    "channel of a write": lambda saver, kept, text: saver.put_writes(kept, [("b", 1), (text, 1)], "t1"),
    "task id": lambda saver, kept, text: saver.put_writes(kept, [("b", 1)], text),
    "task path": lambda saver, kept, text: saver.put_writes(kept, [("b", 1)], "t1", text),
    "run id": lambda saver, _kept, text: saver.delete_for_runs([text]),
    "deleted thread": lambda saver, _kept, text: saver.delete_thread(text),
}


@pytest.mark.parametrize("text", [NUL, HALF], ids=["NUL", "half a pair"])
@pytest.mark.parametrize("where", PLACES)
def test_letters_that_postgres_lacks_are_refused(saver: Called, where: str, text: str) -> None:
    """Nothing is stored, the error is the caller's, and the connection is fit for the next call."""
    kept = put(saver)

    with pytest.raises(InvalidInputError, match="keep NUL characters and half surrogate pairs out"):
        PLACES[where](saver, kept, text)

    (found,) = saver.list()
    assert (found.config, found.pending_writes, len(saver.list_threads())) == (kept, [], 1)


@pytest.mark.parametrize("text", [NUL, "\U0001f600", "'; DROP TABLE tracegraph_writes; --", "%s ? %(a)s", '{x,"y"}\\', ""])
def test_values_and_names_may_hold_any_text_else(saver: Called, text: str) -> None:
    """Values any text at all."""
    name = text.replace("\0", "0")
    saved = put(saver, {text: [text]}, thread_id=name, metadata={name: name})
    saver.put_writes(saved, [(name, text)], name, name)

    found = saver.get_tuple(saved)

    assert found.checkpoint["channel_values"] == {"a": {text: [text]}}
    assert found.pending_writes == [(name, name, text)]
    assert found.metadata == {name: name}
    assert [each.config for each in saver.list(filter={name: name})] == [saved]


@pytest.mark.parametrize("versions", [(1, 2, 3), (1.5, 2.5, 10.25), (9, 10, 11)])
def test_channel_versions_may_be_numbers(saver: Called, versions: tuple[Any, ...]) -> None:
    """They stay numbers, and are no texts that look the same."""
    for version in (*versions, str(versions[-1])):
        checkpoint = empty_checkpoint() | {"channel_values": {"a": repr(version)}, "channel_versions": {"a": version}}
        saver.put(THREAD, checkpoint, {}, {"a": version})

    found = [(each.checkpoint["channel_versions"]["a"], each.checkpoint["channel_values"]["a"]) for each in saver.list()]
    assert found == [(version, repr(version)) for version in (str(versions[-1]), *versions[::-1])]


def test_values_of_some_megabytes(saver: Called) -> None:
    """In values and in writes, bytes that do not compress and text that does."""
    noise, text = secrets.token_bytes(3_000_000), "all work and no play " * 100_000
    saved = put(saver, {"noise": noise, "text": text})
    saver.put_writes(saved, [("a", noise), ("b", text)], "t1")

    found = saver.get_tuple(THREAD)

    assert found.checkpoint["channel_values"] == {"a": {"noise": noise, "text": text}}
    assert found.pending_writes == [("t1", "a", noise), ("t1", "b", text)]


def test_names_that_no_index_can_hold_are_an_error_that_says_so(saver: Called) -> None:
    """PostgreSQL's own error speaks of index rows."""
    put(saver)

    with pytest.raises(PostgresSaverError, match="ids, namespaces and channel names about 2,700 bytes") as caught:
        put(saver, thread_id=secrets.token_hex(9_000))

    assert caught.value.reason == "too_large"
    assert put(saver, thread_id="x" * 2_000)
    assert len(saver.list_threads()) == 2


def test_metadata_can_be_queried_as_json(saver: Called, emptied_tables: str) -> None:
    """With PostgreSQL's operators, by anybody."""
    put(saver, metadata={"source": "loop", "user": {"id": 7}})

    found = asked(emptied_tables, "SELECT metadata->>'source', metadata->'user'->>'id' FROM tracegraph_checkpoints")

    assert found == [("loop", "7")]
