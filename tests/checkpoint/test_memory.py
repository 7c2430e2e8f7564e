"""What only the in-memory saver has."""

from __future__ import annotations

import json
import random
import threading
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tracegraph.checkpoint.base import SerializerProtocol, UnsavableValueError, empty_checkpoint
from tracegraph.checkpoint.memory import InMemorySaver, MemorySaver
from tracegraph.constants import MISSING

THREAD: dict[str, Any] = {"configurable": {"thread_id": "1", "checkpoint_ns": ""}}


class AsJson:
    """A serialiser for tests."""

    def dumps_typed(self, obj: Any) -> tuple[str, bytes]:
        return "json", json.dumps(obj).encode()

    def loads_typed(self, data: tuple[str, bytes]) -> Any:
        return json.loads(data[1])


def put(saver: InMemorySaver, **values: Any) -> Any:
    checkpoint = empty_checkpoint()
    checkpoint["channel_values"] = values
    checkpoint["channel_versions"] = dict.fromkeys(values, saver.get_next_version(None, None))
    return saver.put(THREAD, checkpoint, {}, checkpoint["channel_versions"])


def test_versions_are_texts_of_a_counter_and_a_fraction() -> None:
    """They compare as text, follow numbers of other savers, and tell branches apart."""
    saver = InMemorySaver()

    first, second = saver.get_next_version(None, None), saver.get_next_version(7, None)

    assert [v.split(".")[0] for v in (first, second)] == ["0" * 31 + "1", "0" * 31 + "8"]
    assert saver.get_next_version(first, None) != saver.get_next_version(first, None)
    assert len(first) == len(second)


def test_programs_own_random_numbers_are_left_alone() -> None:
    """Whoever seeds the shared generator gets the same numbers with and without a saver."""
    random.seed(1)
    expected = random.random()
    random.seed(1)
    saver = InMemorySaver()
    put(saver, a=1)

    assert random.random() == expected


def test_value_that_cannot_be_copied_is_named_and_nothing_is_stored() -> None:
    """Neither the good channels of the checkpoint nor the good writes of the task."""
    saver, lock = InMemorySaver(), threading.Lock()

    with pytest.raises(UnsavableValueError, match=r"\[TG207\] channel 'bad' holds a lock that cannot be saved") as caught:
        put(saver, good=1, bad=lock)
    assert caught.value.channel == "bad"
    assert (saver.blobs, saver.get_tuple(THREAD)) == ({}, None)

    config = put(saver, good=1)
    with pytest.raises(UnsavableValueError, match="channel 'bad' holds a list"):
        saver.put_writes(config, [("good", 2), ("bad", [lock])], "t1")
    assert saver.get_tuple(config).pending_writes == []  # type: ignore[union-attr]


def test_serialiser_is_used_for_values_and_writes() -> None:
    """What is kept are its bytes."""
    serde = AsJson()
    saver = InMemorySaver(serde=serde)
    config = put(saver, a=(1, 2))
    saver.put_writes(config, [("a", (3,))], "t1")

    found = saver.get_tuple(THREAD)

    assert found is not None
    assert found.checkpoint["channel_values"] == {"a": [1, 2]}
    assert found.pending_writes == [("t1", "a", [3])]
    assert list(saver.blobs.values()) == [("json", b"[1, 2]")]
    assert isinstance(serde, SerializerProtocol)


def test_dictionaries_can_be_looked_into() -> None:
    """storage, writes and blobs are keyed as documented; *factory* makes them."""
    made: list[Any] = []

    def factory(*args: Any) -> Any:
        made.append(defaultdict(*args))
        return made[-1]

    saver = MemorySaver(factory=factory)
    checkpoint = empty_checkpoint() | {"channel_values": {"a": 1}, "channel_versions": {"a": 1, "b": 1}}
    config = saver.put(THREAD, checkpoint, {}, {"a": 1, "b": 1})  # type: ignore[arg-type]
    saver.put_writes(config, [("a", 2)], "t1")

    assert saver.storage["1"][""].keys() == {checkpoint["id"]}
    assert saver.writes["1", "", str(checkpoint["id"])].keys() == {("t1", 0)}
    assert saver.blobs == {("1", "", "a", 1): 1, ("1", "", "b", 1): MISSING}
    assert {id(d) for d in made} == {id(saver.storage), id(saver.writes), id(saver.blobs)}
    saver.delete_thread("1")
    assert made == [{}, {}, {}]


def test_seen_versions_that_did_not_change_are_kept_once() -> None:
    """The history of a long thread of many nodes stays small; readers get their own copies."""
    saver = InMemorySaver()
    checkpoint = empty_checkpoint() | {"versions_seen": {"x": {"a": 1}, "y": {"b": 1}}}
    config = saver.put(THREAD, checkpoint, {}, {})  # type: ignore[arg-type]
    later = empty_checkpoint() | {"versions_seen": {"x": {"a": 1}, "y": {"b": 2}}}
    saver.put(config, later, {}, {})  # type: ignore[arg-type]

    kept = [saver.storage["1"][""][str(c["id"])].checkpoint["versions_seen"] for c in (checkpoint, later)]

    assert kept[0]["x"] is kept[1]["x"] and kept[0]["y"] is not kept[1]["y"]
    first = saver.get(config)
    assert first is not None
    first["versions_seen"]["x"]["a"] = 9
    assert kept[0]["x"] == {"a": 1}


def test_listing_skips_what_is_deleted_meanwhile() -> None:
    """A reader in the middle of a history sees no half of it."""
    saver = InMemorySaver()
    put(saver, a=1)
    put(saver, a=2)

    listing = saver.list(THREAD)
    first = next(listing)
    saver.delete_thread("1")

    assert first.checkpoint["channel_values"] == {"a": 2}
    assert list(listing) == []


def test_many_threads_may_use_one_saver() -> None:
    """Each finds what it stored."""
    saver = InMemorySaver()

    def work(number: int) -> bool:
        config: dict[str, Any] = {"configurable": {"thread_id": str(number), "checkpoint_ns": ""}}
        for step in range(20):
            checkpoint = empty_checkpoint() | {"channel_values": {"a": step}, "channel_versions": {"a": step}}
            where = saver.put(config, checkpoint, {}, {"a": step})  # type: ignore[arg-type]
            saver.put_writes(where, [("a", step)], "t")
        found = list(saver.list(config))
        return [t.checkpoint["channel_values"]["a"] for t in found] == list(range(20))[::-1]

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(work, range(16)))
