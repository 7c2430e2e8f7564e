"""What every saver does, whatever it keeps its checkpoints in. Runs on all savers of ``conftest.py``."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from tracegraph.constants import ERROR, INTERRUPT, MISSING, RESUME
from tracegraph.errors import ConcurrentRunError

Saver = Any


def at(thread: Any = "1", ns: str | None = "", checkpoint_id: str | None = None) -> dict[str, Any]:
    """Return a config that addresses a thread, a namespace of it, or a checkpoint."""
    parts = {"thread_id": thread, "checkpoint_ns": ns, "checkpoint_id": checkpoint_id}
    return {"configurable": {key: value for key, value in parts.items() if value is not None}}


def ids(found: list[Any]) -> list[str]:
    return [t.checkpoint["id"] for t in found]


def test_thread_nobody_wrote_has_no_checkpoint(saver: Saver) -> None:
    """Neither the latest nor any named one, and nothing to list."""
    assert saver.get_tuple(at()) is None
    assert saver.get(at()) is None
    assert saver.get_tuple(at(checkpoint_id="00000000-0000-0000-0000-000000000000")) is None
    assert saver.list(at()) == []
    assert saver.list(None) == []


def test_stored_checkpoint_comes_back_as_it_was(saver: Saver) -> None:
    """Every field, the metadata, the parent's config, and the config put() returned."""
    first, _ = saver.save(a=1)
    parent_id = first["configurable"]["checkpoint_id"]
    config, checkpoint = saver.save(
        parent=parent_id, metadata={"source": "loop", "step": 3, "parents": {"": "x"}}, a={"k": [1, None]}
    )

    found = saver.get_tuple(at())

    assert found.config == config == at(checkpoint_id=checkpoint["id"])
    assert found.checkpoint == checkpoint == saver.get(at())
    assert found.metadata == {"source": "loop", "step": 3, "parents": {"": "x"}}
    assert found.parent_config == first
    assert found.pending_writes == []
    assert saver.get_tuple(first).parent_config is None


def test_versions_seen_and_updated_channels_are_kept(saver: Saver) -> None:
    """They decide what runs next, so nothing of them may be lost."""
    config, checkpoint = saver.save(a=1)
    for round_ in range(2):
        checkpoint = checkpoint | {
            "id": str(checkpoint["id"])[:-1] + "ef"[round_],
            "versions_seen": {"x": {"a": checkpoint["channel_versions"]["a"]}, "y": {}},
            "updated_channels": ["a"],
        }
        config = saver.put(config, checkpoint, {}, {})

    assert saver.get(at()) == checkpoint


def test_latest_is_the_greatest_id_not_the_last_stored(saver: Saver) -> None:
    """Ids decide the order."""
    _, early = saver.save(a=1)
    _, late = saver.save(a=2)
    saver.put(at(), early, {"source": "update", "step": 1, "parents": {}}, {})

    assert saver.get(at())["id"] == late["id"]
    assert saver.get_tuple(at(checkpoint_id=early["id"])).metadata["source"] == "update"


def test_unchanged_channels_are_found_at_every_later_checkpoint(saver: Saver) -> None:
    """put() is given new values only; the others are those of the version they have."""
    config, first = saver.save(a=1, b=1)
    _, second = saver.save(parent=first["id"], b=2)
    _, third = saver.save(parent=second["id"], a=3)

    assert [saver.get(at(checkpoint_id=c["id"]))["channel_values"] for c in (first, second, third)] == [
        {"a": 1, "b": 1},
        {"a": 1, "b": 2},
        {"a": 3, "b": 2},
    ]


def test_branches_of_a_thread_keep_their_own_values(saver: Saver) -> None:
    """Two children of one checkpoint do not share versions."""
    _, root = saver.save(a=0)
    branches = [saver.save(parent=root["id"], a=value)[1] for value in (1, 2)]

    assert [saver.get(at(checkpoint_id=b["id"]))["channel_values"]["a"] for b in branches] == [1, 2]


def test_channel_that_became_empty_has_no_value(saver: Saver) -> None:
    """It keeps its version; None, though, is a value."""
    _, first = saver.save(a=1, b=1)
    _, second = saver.save(parent=first["id"], a=MISSING, b=None)

    found = saver.get(at())

    assert found["channel_values"] == {"b": None}
    assert found["channel_versions"] == second["channel_versions"]


def test_namespaces_of_a_thread_are_apart(saver: Saver) -> None:
    """A subgraph's checkpoints are not the root's; a config without namespace means the root."""
    saver.save(a="root")
    saver.save(ns="child:1", a="child")

    assert saver.get(at(ns=None))["channel_values"] == {"a": "root"}
    assert saver.get(at(ns="child:1"))["channel_values"] == {"a": "child"}
    assert saver.get(at(ns="child:2")) is None


def test_thread_ids_are_text(saver: Saver) -> None:
    """5 and "5" are one thread."""
    saver.save(5, a=1)

    assert saver.get(at("5")) == saver.get(at(5)) is not None
    assert saver.get_tuple(at(5)).config["configurable"]["thread_id"] == "5"


def test_versions_grow(saver: Saver) -> None:
    """Each version is greater than the one before it; the first follows None."""
    versions = [saver.saver.get_next_version(None, None)]
    for _ in range(12):
        versions.append(saver.saver.get_next_version(versions[-1], None))

    assert all(old < new for old, new in pairwise(versions))


def test_values_are_copies(saver: Saver) -> None:
    """What the caller does to a value before or after does not reach the store."""
    given: dict[str, Any] = {"deep": [1]}
    _, checkpoint = saver.save(a=given)
    saver.put_writes(at(checkpoint_id=checkpoint["id"]), [("a", given)], "t1")

    given["deep"].append(2)
    checkpoint["channel_versions"].clear()
    for _ in range(2):
        found = saver.get_tuple(at())
        assert found.checkpoint["channel_values"] == {"a": {"deep": [1]}}
        assert found.pending_writes == [("t1", "a", {"deep": [1]})]
        found.checkpoint["channel_values"]["a"]["deep"].append(3)
        found.checkpoint["channel_versions"].clear()
        found.pending_writes[0][2]["deep"].append(3)
        found.metadata["parents"]["x"] = "y"
    assert saver.get_tuple(at()).metadata["parents"] == {}


def test_metadata_takes_scalars_from_the_config(saver: Saver) -> None:
    """Of its metadata and configurable, without addresses, private keys and what is no scalar."""
    config = {
        "metadata": {"user": "u\x001", "step": 99, "odd": [1]},
        "configurable": {"thread_id": "1", "checkpoint_ns": "", "b": True},
    }
    saver.save(config=config | {"configurable": config["configurable"] | {"__private": 1, "langgraph_step": 7}}, a=1)

    assert saver.get_tuple(at()).metadata == {"source": "loop", "step": 0, "parents": {}, "user": "u1", "b": True}


def test_pending_writes_come_back_by_task_path_task_and_position(saver: Saver) -> None:
    """Whatever the order of arrival was."""
    config, _ = saver.save(a=1)
    saver.put_writes(config, [("a", 3), ("b", 4)], "t2", "~z")
    saver.put_writes(config, [("a", 5)], "t3", "~a")
    saver.put_writes(config, [("a", 1), ("a", 2)], "t1", "~z")

    assert saver.get_tuple(at()).pending_writes == [
        ("t3", "a", 5),
        ("t1", "a", 1),
        ("t1", "a", 2),
        ("t2", "a", 3),
        ("t2", "b", 4),
    ]


def test_first_regular_write_of_a_slot_stays(saver: Saver) -> None:
    """A task whose result was saved and that runs again does not change it."""
    config, _ = saver.save(a=1)
    saver.put_writes(config, [("a", 1)], "t1")
    saver.put_writes(config, [("a", 2), ("b", 3)], "t1")

    assert saver.get_tuple(at()).pending_writes == [("t1", "a", 1), ("t1", "b", 3)]


def test_special_writes_replace_each_other(saver: Saver) -> None:
    """A task has one pending interrupt, one error and one list of answers: the latest."""
    config, _ = saver.save(a=1)
    for value in (1, 2):
        saver.put_writes(config, [(INTERRUPT, value)], "t1")
        saver.put_writes(config, [(RESUME, [value])], "t1")
        saver.put_writes(config, [(ERROR, f"error {value}")], "t1")

    found = saver.get_tuple(at()).pending_writes

    assert found == [("t1", RESUME, [2]), ("t1", INTERRUPT, 2), ("t1", ERROR, "error 2")]


def test_error_is_kept_as_text(saver: Saver) -> None:
    """Its class need not exist where the thread is read."""
    config, _ = saver.save(a=1)
    saver.put_writes(config, [(ERROR, ValueError("boom"))], "t1")

    assert saver.get_tuple(at()).pending_writes == [("t1", ERROR, "ValueError('boom')")]


def test_writes_belong_to_one_checkpoint(saver: Saver) -> None:
    """The next checkpoint starts without them."""
    first_config, first = saver.save(a=1)
    saver.put_writes(first_config, [("a", 2)], "t1")
    saver.save(parent=first["id"], a=2)

    assert saver.get_tuple(at()).pending_writes == []
    assert saver.get_tuple(first_config).pending_writes == [("t1", "a", 2)]


def test_writes_may_come_before_their_checkpoint(saver: Saver) -> None:
    """Saving in the background may overtake; deleting the thread takes such writes too."""
    _, other = saver.save("2", a=1)
    early = at(checkpoint_id=other["id"])
    saver.put_writes(early, [("a", 2)], "t1")
    assert saver.get_tuple(early) is None

    saver.put(at(), other, {}, other["channel_versions"])
    assert saver.get_tuple(at()).pending_writes == [("t1", "a", 2)]

    saver.delete_thread("1")
    saver.put_writes(early, [("a", 3)], "t1")
    saver.delete_thread("1")
    saver.put(at(), other, {}, other["channel_versions"])
    assert saver.get_tuple(at()).pending_writes == []


def test_list_is_newest_first_and_can_be_narrowed(saver: Saver) -> None:
    """By namespace, id, bound, metadata and count."""
    configs = [saver.save(metadata={"source": "loop", "step": step, "even": step % 2 == 0}, a=step)[0] for step in range(4)]
    child, _ = saver.save(ns="child", a=9)
    other, _ = saver.save("2", a=8)
    made = [c["configurable"]["checkpoint_id"] for c in (*configs, child, other)]

    assert ids(saver.list(at())) == made[3::-1]
    assert ids(saver.list(at(ns=None))) == made[4::-1]
    assert ids(saver.list(None)) == made[::-1]
    assert ids(saver.list(at(), before=configs[2])) == made[1::-1]
    assert ids(saver.list(at(), limit=2)) == [made[3], made[2]]
    assert ids(saver.list(at(), limit=0)) == []
    assert ids(saver.list(at(), filter={"even": True})) == [made[2], made[0]]
    assert ids(saver.list(at(), filter={"even": True}, before=configs[2], limit=1)) == [made[0]]
    assert ids(saver.list(None, filter={"even": True, "step": 7})) == []
    assert ids(saver.list(None, filter={"absent": None})) == []
    assert ids(saver.list(configs[1])) == [made[1]]
    assert ids(saver.list(at("3"))) == []


def test_listed_checkpoints_are_whole(saver: Saver) -> None:
    """Each equals what get_tuple() gives for its config."""
    config, first = saver.save(a=1)
    saver.put_writes(config, [("a", 2)], "t1")
    saver.save(parent=first["id"], a=2)

    found = saver.list(at())

    assert found == [saver.get_tuple(t.config) for t in found]
    assert [t.checkpoint["channel_values"] for t in found] == [{"a": 2}, {"a": 1}]


def test_put_on_the_expected_head_succeeds(saver: Saver) -> None:
    """None expects a thread without checkpoints; the check is per namespace."""
    _, first = saver.save(a=1)
    _, other = saver.save("2", a=1)
    saver.put(at(checkpoint_id=first["id"]), other, {}, {}, expect_head=first["id"])
    saver.put(at(ns="child"), first, {}, {}, expect_head=None)

    assert saver.get(at())["id"] == other["id"]


@pytest.mark.parametrize("expected", [None, "00000000-0000-0000-0000-000000000000"])
def test_put_on_another_head_stores_nothing(saver: Saver, expected: str | None) -> None:
    """The run that lost finds the thread as the winner left it."""
    _, first = saver.save(a=1)
    _, other = saver.save("2", a=2)
    before = saver.list(at())

    with pytest.raises(ConcurrentRunError) as caught:
        saver.put(at(), other, {}, other["channel_versions"], expect_head=expected)

    assert (caught.value.thread_id, caught.value.expected, caught.value.found) == ("1", expected, first["id"])
    assert saver.list(at()) == before


def test_config_without_thread_is_refused(saver: Saver) -> None:
    """The error shows what to give."""
    with pytest.raises(ValueError, match="give config="):
        saver.get_tuple({"configurable": {}})


def test_writes_without_checkpoint_are_refused(saver: Saver) -> None:
    """There is nothing they could belong to."""
    with pytest.raises(ValueError, match="needs a config that names a checkpoint"):
        saver.put_writes(at(), [("a", 1)], "t1")
