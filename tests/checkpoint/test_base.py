"""The saver interface and its helpers."""

from __future__ import annotations

import asyncio
import threading
from itertools import pairwise
from typing import Any
from uuid import UUID

import pytest

from tracegraph.channels import LastValue
from tracegraph.checkpoint.base import (
    WRITES_IDX_MAP,
    BaseCheckpointSaver,
    copy_checkpoint,
    create_checkpoint,
    empty_checkpoint,
    get_checkpoint_id,
    get_checkpoint_metadata,
    get_serializable_checkpoint_metadata,
    takes_parameter,
)
from tracegraph.checkpoint.base.id import uuid6
from tracegraph.checkpoint.memory import InMemorySaver

THREAD: dict[str, Any] = {"configurable": {"thread_id": "1", "checkpoint_ns": ""}}


class InThreads(BaseCheckpointSaver):
    """A user's saver with sync methods only, from before task paths and head checks; delegates to memory."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = InMemorySaver()
        self.threads: set[threading.Thread] = set()

        for method in ("get_tuple", "list", "delete_thread", "delete_for_runs", "copy_thread", "prune"):
            setattr(self, method, self.noting(getattr(self.inner, method)))

    def noting(self, method: Any) -> Any:
        def called(*args: Any, **kwargs: Any) -> Any:
            self.threads.add(threading.current_thread())
            return method(*args, **kwargs)

        return called

    def put(self, config: Any, checkpoint: Any, metadata: Any, new_versions: Any) -> Any:  # type: ignore[override]
        self.threads.add(threading.current_thread())
        return self.inner.put(config, checkpoint, metadata, new_versions)

    def put_writes(self, config: Any, writes: Any, task_id: str) -> None:  # type: ignore[override]
        self.threads.add(threading.current_thread())
        self.inner.put_writes(config, writes, task_id)


def test_async_twins_run_the_sync_methods_in_worker_threads() -> None:
    """A saver written with sync methods only serves async runs without blocking the loop."""
    saver = InThreads()

    async def use() -> Any:
        config = await saver.aput(THREAD, empty_checkpoint(), {}, {})
        await saver.aput_writes(config, [("a", 1)], "t1", "~path")
        found = [await saver.aget_tuple(config), await saver.aget(THREAD), [t async for t in saver.alist(None)]]
        await saver.acopy_thread("1", "2")
        await saver.aprune(["2"])
        await saver.adelete_for_runs(["r"])
        await saver.adelete_thread("1")
        return found

    one, latest, listed = asyncio.run(use())

    assert (listed, latest, one.pending_writes) == ([one], one.checkpoint, [("t1", "a", 1)])
    assert threading.main_thread() not in saver.threads
    assert [t.config["configurable"]["thread_id"] for t in saver.list(None)] == ["2"]
    assert saver.get({"configurable": {"thread_id": "1"}}) is None


def test_head_check_reaches_the_sync_method() -> None:
    """The async twin passes it on when it is given."""
    saver = InMemorySaver()
    asyncio.run(BaseCheckpointSaver.aput(saver, THREAD, empty_checkpoint(), {}, {}, expect_head=None))

    with pytest.raises(TypeError, match="expect_head"):
        asyncio.run(InThreads().aput(THREAD, empty_checkpoint(), {}, {}, expect_head=None))


def test_missing_method_is_named() -> None:
    """And if the saver is async only, the error says what to call instead."""

    class Half(BaseCheckpointSaver):
        async def aget_tuple(self, config: Any) -> Any:
            return None

    saver: Any = Half()
    calls = {
        "put": (THREAD, empty_checkpoint(), {}, {}),
        "put_writes": (THREAD, [], "t"),
        "list": (None,),
        "delete_thread": ("1",),
        "delete_for_runs": (["1"],),
        "copy_thread": ("1", "2"),
        "prune": (["1"],),
    }
    for method, args in calls.items():
        with pytest.raises(NotImplementedError, match=rf"Half has no {method}\(\); the saver does not offer it"):
            getattr(saver, method)(*args)
    with pytest.raises(NotImplementedError, match=r"Half has no get_tuple\(\); it has aget_tuple\(\)"):
        saver.get(THREAD)
    assert asyncio.run(saver.aget(THREAD)) is None


def test_base_saver_counts_versions_in_numbers() -> None:
    """Texts are another saver's, whose order it does not know."""
    saver = BaseCheckpointSaver()

    assert (saver.get_next_version(None, None), saver.get_next_version(1, None), saver.get_next_version(1.5, None)) == (1, 2, 2.5)
    with pytest.raises(NotImplementedError, match="counts versions in numbers, but the thread has 'x'"):
        saver.get_next_version("x", None)
    assert (saver.config_specs, saver.does_io, InMemorySaver.does_io, saver.serde) == ([], True, False, None)


def test_parameters_of_older_savers_can_be_asked_for() -> None:
    """A driver passes task paths and head checks only to savers that take them."""
    old, new = InThreads(), InMemorySaver()

    assert [takes_parameter(s.put_writes, "task_path") for s in (old, new)] == [False, True]
    assert [takes_parameter(s.put, "expect_head") for s in (old, new)] == [False, True]


def test_special_slots() -> None:
    """Their numbers are part of what databases hold."""
    assert WRITES_IDX_MAP == {
        "__error__": -1,
        "__scheduled__": -2,
        "__interrupt__": -3,
        "__resume__": -4,
        "__trace__": -5,
        "__asked__": -6,
    }


def test_ids_sort_by_creation_and_show_the_step() -> None:
    """Version 6, strictly increasing also as text, across threads; the fourth group is the step."""
    made: list[str] = []
    lock = threading.Lock()

    def make() -> None:
        for _ in range(200):
            with lock:
                made.append(str(uuid6()))

    threads = [threading.Thread(target=make) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert all(a < b for a, b in pairwise(made))
    assert {UUID(i).version for i in made} == {6}
    assert [str(uuid6(clock_seq=step)).split("-")[3] for step in (-2, -1, 0, 1)] == ["bffe", "bfff", "8000", "8001"]
    assert str(uuid6(node=0xABC, clock_seq=1)).endswith("8001-000000000abc")


def test_id_sorts_after_its_parent_whatever_the_clock_says() -> None:
    """A parent made on a machine whose clock is ahead does not end up as the latest."""
    ahead = "2f1ecbe2-1922-63e0-bffe-c4e55ff73a79"

    child = str(uuid6(clock_seq=-2, after=ahead))

    assert child > ahead
    assert child.startswith("2f1ecbe2-1922-63e1-bffe-")
    assert str(uuid6()) < ahead


@pytest.mark.parametrize("foreign", ["not an id", "ffffffff-ffff-4fff-bfff-ffffffffffff"])
def test_foreign_ids_bind_nothing(foreign: str) -> None:
    """A saver's own ids have no time to be after."""
    assert str(uuid6(after=foreign)) < "3"


def test_empty_checkpoint_is_at_step_minus_two() -> None:
    """Nothing happened yet, format 4."""
    checkpoint = empty_checkpoint()

    assert (checkpoint["v"], checkpoint["id"].split("-")[3], checkpoint["updated_channels"]) == (4, "bffe", None)
    assert checkpoint["ts"].endswith("+00:00")
    assert checkpoint["channel_values"] == checkpoint["channel_versions"] == checkpoint["versions_seen"] == {}


def test_copied_checkpoint_may_be_changed() -> None:
    """Down to the versions each node has seen."""
    checkpoint = empty_checkpoint()
    checkpoint["versions_seen"] = {"x": {"a": 1}}
    checkpoint["updated_channels"] = ["a"]
    copied = copy_checkpoint(checkpoint)
    assert copied == checkpoint

    copied["versions_seen"]["x"]["a"] = 2
    copied["channel_values"]["a"] = 1
    copied["channel_versions"]["a"] = 1
    assert copied["updated_channels"] is not None
    copied["updated_channels"].append("b")

    assert checkpoint["versions_seen"] == {"x": {"a": 1}} and checkpoint["updated_channels"] == ["a"]
    assert checkpoint["channel_values"] == checkpoint["channel_versions"] == {}


def test_next_checkpoint_takes_values_of_channels_that_have_a_version() -> None:
    """Channels never written, and channels that save nothing, are left out."""
    full, empty, unseen = LastValue(int), LastValue(int), LastValue(int)
    full.update([1])
    unseen.update([2])
    before = empty_checkpoint() | {"channel_versions": {"full": 1, "empty": 1}, "channel_values": {"old": 1}}

    after = create_checkpoint(before, {"full": full, "empty": empty, "unseen": unseen}, 3)  # type: ignore[arg-type]

    assert after["channel_values"] == {"full": 1}
    assert after["id"] > str(before["id"]) and after["id"].split("-")[3] == "8003"
    assert create_checkpoint(before, None, 3, id="x")["channel_values"] == {"old": 1}  # type: ignore[arg-type]
    assert create_checkpoint(before, None, 3, id="x")["id"] == "x"  # type: ignore[arg-type]


def test_metadata_is_completed_from_the_config() -> None:
    """What metadata says wins over config metadata, which wins over configurable."""
    config = {
        "configurable": {
            "thread_id": "1",
            "a": 1,
            "n": None,
            "list": [1],
            "__p": 1,
            "text": "q\x00w",
            "langgraph_step": 4,
            "t": True,
        },
        "metadata": {"m": 1.5, "a": 7, "source": "other"},
    }

    found = get_checkpoint_metadata(config, {"source": "loop", "step": 1, "writes": {"x": 1}, "note": "k\x00"})

    assert found == {"source": "loop", "step": 1, "writes": {"x": 1}, "note": "k", "m": 1.5, "a": 7, "text": "qw", "t": True}
    assert "writes" not in get_serializable_checkpoint_metadata(config, {"writes": {"x": 1}})
    assert get_serializable_checkpoint_metadata(THREAD, {"step": 1}) == {"step": 1}


def test_checkpoint_id_of_a_config() -> None:
    """None addresses the latest."""
    assert get_checkpoint_id(THREAD) is None
    assert get_checkpoint_id({"configurable": {"checkpoint_id": "x"}}) == "x"
