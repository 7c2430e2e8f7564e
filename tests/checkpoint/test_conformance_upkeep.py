"""What every saver does to whole threads: delete, copy, prune. The second half of the conformance suite."""

from __future__ import annotations

from typing import Any

import pytest

from tracegraph.checkpoint.base.id import uuid6

Saver = Any


def at(thread: Any = "1", ns: str | None = "", checkpoint_id: str | None = None) -> dict[str, Any]:
    """Return a config that addresses a thread, a namespace of it, or a checkpoint."""
    parts = {"thread_id": thread, "checkpoint_ns": ns, "checkpoint_id": checkpoint_id}
    return {"configurable": {key: value for key, value in parts.items() if value is not None}}


def test_deleted_thread_leaves_nothing(saver: Saver) -> None:
    """All namespaces, writes and values go; other threads stay; a new start is a fresh one."""
    config, first = saver.save(a=1)
    saver.put_writes(config, [("a", 2)], "t1")
    saver.save(ns="child", a=1)
    kept, _ = saver.save("2", a=1)

    saver.delete_thread("1")
    saver.delete_thread("never there")

    assert [t.config for t in saver.list(None)] == [kept]
    saver.put(at(), first | {"channel_values": {}}, {}, {}, expect_head=None)
    assert saver.get_tuple(at()).checkpoint["channel_values"] == {}
    assert saver.get_tuple(at()).pending_writes == []


def test_threads_are_listed_by_their_last_save(saver: Saver) -> None:
    """With the number of checkpoints in all namespaces, and the root's head; what has only writes is no thread yet."""
    _, first = saver.save(a=1)
    _, head = saver.save(parent=first["id"], a=2)
    saver.save("2", ns="child", a=1)
    saver.save(ns="child", a=9)
    saver.put_writes(at("3", checkpoint_id=head["id"]), [("a", 1)], "t1")

    assert saver.list_threads() == [("1", 3, 2, head["id"]), ("2", 1, 1, None)]
    assert [thread.thread_id for thread in saver.list_threads(limit=1)] == ["1"]


def test_copied_thread_has_the_whole_history(saver: Saver) -> None:
    """Checkpoints, namespaces and pending writes; the two go on apart."""
    _, first = saver.save(a=1)
    config, second = saver.save(parent=first["id"], a=2)
    saver.put_writes(config, [("a", 3)], "t1")
    saver.save(ns="child", a=9)

    saver.copy_thread("1", "2")

    def without_thread(thread: str) -> list[Any]:
        return [
            (t.checkpoint, t.metadata, t.pending_writes, t.config["configurable"]["checkpoint_ns"])
            for t in saver.list(at(thread, None))
        ]

    assert without_thread("2") == without_thread("1")
    assert saver.get_tuple(at("2")).parent_config == at("2", checkpoint_id=first["id"])
    saver.save("2", parent=second["id"], a=3)
    assert saver.get(at())["channel_values"] == {"a": 2}


def test_thread_is_not_copied_over_another(saver: Saver) -> None:
    """Two histories in one thread would be neither."""
    saver.save(a=1)
    saver.save("2", a=2)

    with pytest.raises(ValueError, match="thread '2' has checkpoints already"):
        saver.copy_thread("1", "2")

    assert saver.get(at("2"))["channel_values"] == {"a": 2}


def test_checkpoints_of_runs_can_be_deleted(saver: Saver) -> None:
    """By run_id in the metadata; what other runs saved stays readable, shared values included."""
    _, first = saver.save(metadata={"run_id": "r1"}, a=1, b=1)
    gone, second = saver.save(parent=first["id"], metadata={"run_id": "r2"}, b=2)
    saver.put_writes(gone, [("a", 3)], "t1")
    saver.save("2", metadata={"run_id": "r2"}, a=1)

    saver.delete_for_runs(["r2", "r9"])

    assert [t.checkpoint for t in saver.list(None)] == [first]
    assert saver.get(at())["id"] == first["id"]


def test_pruning_keeps_the_newest_checkpoint_of_each_namespace(saver: Saver) -> None:
    """With its values and writes, but without parent; calls whose root checkpoint is gone go with it."""
    _, first = saver.save(a=1, b=1)
    saver.save(ns="node:old", metadata={"parents": {"": first["id"]}}, a=5)
    config, second = saver.save(parent=first["id"], a=2)
    saver.put_writes(config, [("a", 3)], "t1")
    call, _ = saver.save(ns="node:new", metadata={"parents": {"": second["id"]}}, a=6)
    stateful, _ = saver.save(ns="node", metadata={"parents": {"": first["id"]}}, a=7)
    other = [saver.save("2", a=1)[0] for _ in range(2)]

    saver.prune(["1", "never there"])

    assert [t.config for t in saver.list(at(ns=None))] == [stateful, call, config]
    found = saver.get_tuple(at())
    assert (found.checkpoint, found.parent_config) == (second, None)
    assert found.pending_writes == [("t1", "a", 3)]
    assert len(saver.list(at("2"))) == len(other)


def test_pruning_spares_a_call_whose_root_checkpoint_is_not_there_yet(saver: Saver) -> None:
    """Runs save in the background, so a subgraph's checkpoint may come before the one it belongs to; some name none."""
    saver.save(a=1)
    _, newest = saver.save(a=2)
    early, _ = saver.save(ns="node:early", metadata={"parents": {"": str(uuid6(after=newest["id"]))}}, a=3)
    rootless, _ = saver.save(ns="node:rootless", metadata={"parents": {}}, a=4)

    saver.prune(["1"])

    assert [t.config for t in saver.list(at(ns=None))] == [rootless, early, at(checkpoint_id=newest["id"])]


def test_pruning_can_delete(saver: Saver) -> None:
    """Strategy "delete" empties the threads named."""
    saver.save(a=1)
    kept, _ = saver.save("2", a=1)

    saver.prune(["1"], strategy="delete")

    assert [t.config for t in saver.list(None)] == [kept]


def test_pruning_refuses_what_it_does_not_understand(saver: Saver) -> None:
    """An unknown strategy, and a text where a list of ids belongs."""
    saver.save(a=1)

    with pytest.raises(ValueError, match="prune strategy 'some' is unknown"):
        saver.prune(["1"], strategy="some")
    with pytest.raises(TypeError, match="thread_ids is a list of ids"):
        saver.prune("1")
    with pytest.raises(TypeError, match="run_ids is a list of ids"):
        saver.delete_for_runs("r1")
    assert len(saver.list(at())) == 1
