"""Threads of a graph that are pruned, copied and deleted while others save to them; on the databases that processes share."""

from __future__ import annotations

import itertools
import random
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import psycopg
import pytest
from databases import DATABASES, opened

from tracegraph.checkpoint.base import BaseCheckpointSaver, CheckpointTuple, empty_checkpoint
from tracegraph.checkpoint.base.id import uuid6
from tracegraph.checkpoint.postgres import PostgresSaver
from tracegraph.checkpoint.sqlite import SqliteSaver
from tracegraph.errors import ConcurrentRunError
from tracegraph.records import Checkpoint, Increment, NewCheckpoint, TaskWrites

Savers = Callable[[], BaseCheckpointSaver]

ROUNDS = 40
NAMESPACES = ("", "child", "child:1")


@pytest.fixture(params=DATABASES)
def new_saver(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Savers]:
    """Opens another saver on one database; each has connections of its own, like a process."""
    database = request.getfixturevalue("postgres_url") if request.param == "postgres" else tmp_path / "checkpoints.db"
    with ExitStack() as stack:
        yield lambda: stack.enter_context(opened(database))


def at(thread: str, ns: str = "") -> dict[str, Any]:
    return {"configurable": {"thread_id": thread, "checkpoint_ns": ns}}


def grow(saver: BaseCheckpointSaver, thread: str, ns: str, run_id: str) -> bool:
    """Add an item to the log of a thread as a run does, and what a task wrote; say whether nobody came between."""
    before = saver.get_tuple(at(thread, ns))
    record: Any = empty_checkpoint() if before is None else before.checkpoint
    log = [*record["channel_values"].get("log", ()), len(record["channel_values"].get("log", ()))]
    old = record["channel_versions"].get("log")
    version = saver.get_next_version(old, None)
    head = None if before is None else record["id"]
    made: Any = {**record, "id": str(uuid6(after=head)), "channel_values": {"log": log, "constant": "c"}}
    made["channel_versions"] = {"constant": record["channel_versions"].get("constant", version), "log": version}
    new = {"log": version} if before else {"log": version, "constant": version}
    increments = {"log": Increment("append", old, log[-1:])} if before else {}
    checkpoint = NewCheckpoint(
        checkpoint=Checkpoint(**made),
        metadata={"step": len(log), "run_id": run_id},
        new_versions=new,
        parent_id=head,
        expect_head=head,
        increments=increments,
    )
    writes = TaskWrites(checkpoint_id=made["id"], task_id="t1", task_path="", writes=[("log", log)])
    try:
        saver.put_group(at(thread, ns), [checkpoint, writes])
    except ConcurrentRunError:
        return False
    return True


def check(found: CheckpointTuple) -> None:
    """What was saved is there, whole."""
    log = list(range(found.metadata["step"]))
    assert found.checkpoint["channel_values"] == {"log": log, "constant": "c"}
    assert found.pending_writes == [("t1", "log", log)]


def check_no_leftovers(saver: BaseCheckpointSaver) -> None:
    """No row belongs to a namespace that is gone."""
    for table in ("checkpoints", "blobs", "writes"):
        query = f"SELECT count(*) FROM tracegraph_{table} WHERE place NOT IN (SELECT place FROM tracegraph_places)"
        if isinstance(saver, SqliteSaver):
            assert saver.conn.execute(query).fetchone() == (0,), table
        else:
            assert isinstance(saver, PostgresSaver)
            with psycopg.connect(saver.conn.conninfo) as connection:  # type: ignore[union-attr, arg-type]
                assert connection.execute(query).fetchone() == (0,), table  # type: ignore[arg-type]


def at_once(*jobs: Callable[[], Any]) -> list[Any]:
    """Run jobs in threads of their own, which all begin together; return what they return."""
    barrier = threading.Barrier(len(jobs))

    def begun(job: Callable[[], Any]) -> Any:
        barrier.wait()
        return job()

    with ThreadPoolExecutor(len(jobs)) as pool:
        return [each.result() for each in [pool.submit(begun, job) for job in jobs]]


def test_of_saves_on_one_head_exactly_one_is_stored(new_saver: Savers) -> None:
    """Also of those that begin the thread."""
    savers = [new_saver() for _ in range(4)]
    reader = new_saver()
    for length in range(1, 16):
        won = at_once(*(lambda saver=saver: grow(saver, "1", "", "r") for saver in savers))  # type: ignore[misc]

        found = reader.get_tuple(at("1"))
        assert found is not None
        check(found)
        # One that read the head after another had saved was not in the race.
        assert sum(won) >= 1
        assert len(list(reader.list(at("1")))) == found.metadata["step"]
        assert found.metadata["step"] >= length


def test_pruning_and_copying_lose_nothing_of_what_is_being_saved(new_saver: Savers) -> None:
    """The head is always kept, and every checkpoint that is there can be read."""
    is_over = threading.Event()
    grow(new_saver(), "1", "", "r")

    def saving() -> int:
        saver = new_saver()
        return sum(grow(saver, "1", "", "r") for _ in range(ROUNDS))

    def upkeep() -> int:
        saver = new_saver()
        for number in itertools.count():
            saver.prune(["1"])
            saver.delete_for_runs(["other"])
            saver.copy_thread("1", f"copy {threading.get_ident()} {number}")
            for found in saver.list(at("1")):
                check(found)
            if is_over.is_set():
                return number
        return 0

    with ThreadPoolExecutor(2) as pool:
        keepers = [pool.submit(upkeep) for _ in range(2)]
        try:
            stored = at_once(saving, saving, saving)
        finally:
            is_over.set()
        rounds = [keeper.result() for keeper in keepers]

    saver = new_saver()
    head = saver.get_tuple(at("1"))
    assert head is not None and head.metadata["step"] == 1 + sum(stored) > 1
    for found in saver.list(None):
        check(found)
    assert len(saver.list_threads()) >= sum(rounds)
    check_no_leftovers(saver)


def test_deleting_while_others_save_leaves_whole_checkpoints_or_none(new_saver: Savers) -> None:
    """Threads, runs and namespaces come and go; nothing is left of what is gone."""

    def saving(seed: int) -> Callable[[], None]:
        def job() -> None:
            saver, chance = new_saver(), random.Random(seed)
            for _ in range(ROUNDS):
                grow(saver, chance.choice("12"), chance.choice(NAMESPACES), chance.choice("xyz"))

        return job

    def deleting(seed: int) -> Callable[[], None]:
        def job() -> None:
            saver, chance = new_saver(), random.Random(seed)
            for number in range(ROUNDS):
                match chance.randrange(5):
                    case 0:
                        saver.delete_thread(chance.choice("12"))
                    case 1:
                        saver.delete_for_runs([chance.choice("xyz")])
                    case 2:
                        saver.prune(["1", "2"])
                    case 3:
                        saver.copy_thread(chance.choice("12"), f"copy {seed} {number}")
                    case 4:
                        for found in saver.list(None, limit=10):
                            check(found)

        return job

    at_once(saving(1), saving(2), saving(3), deleting(4), deleting(5))

    saver = new_saver()
    for found in saver.list(None):
        check(found)
    check_no_leftovers(saver)


def test_of_copies_to_one_thread_exactly_one_is_made(new_saver: Savers) -> None:
    """The others are told that it has checkpoints already."""
    for source in "123":
        for ns in NAMESPACES:
            grow(new_saver(), source, ns, source)

    def copying(source: str) -> Callable[[], str | None]:
        def job() -> str | None:
            try:
                new_saver().copy_thread(source, "target")
            except ValueError as error:
                assert "has checkpoints already" in str(error)
                return None
            return source

        return job

    (winner,) = [source for source in at_once(*map(copying, "123")) if source]

    saver = new_saver()
    found = list(saver.list({"configurable": {"thread_id": "target"}}))
    assert [each.metadata["run_id"] for each in found] == [winner] * 3
    for each in found:
        check(each)
