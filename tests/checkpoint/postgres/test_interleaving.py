"""What another session does between two statements of an operation."""

from __future__ import annotations

import select
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

import psycopg
import pytest
from postgres_savers import Called, asked, put, wrapping

from tracegraph.checkpoint.base import empty_checkpoint
from tracegraph.checkpoint.postgres import PostgresSaver
from tracegraph.checkpoint.sql.operations import Operations
from tracegraph.checkpoint.sql.orders import Many, Operation, Rows
from tracegraph.errors import InvalidInputError

T = TypeVar("T")


def interrupted(operation: Operation[T], act: Callable[[], Any]) -> Operation[T]:
    """Let something happen after the first statement of an operation, which locks what is there."""
    answer = yield next(operation)
    act()
    try:
        while True:
            answer = yield operation.send(answer)
    except StopIteration as stop:
        found: T = stop.value
        return found


@pytest.fixture
def saver(emptied_tables: str) -> Iterator[PostgresSaver]:
    with PostgresSaver.from_conn_string(emptied_tables) as made:
        yield made


def url_of(saver: PostgresSaver) -> str:
    pool: Any = saver.conn
    return str(pool.conninfo)


def put_in_namespace(saver: PostgresSaver) -> Any:
    where = {"configurable": {"thread_id": "1", "checkpoint_ns": "child"}}
    record: Any = empty_checkpoint() | {"channel_values": {"a": 1}, "channel_versions": {"a": "1"}}
    saved = saver.put(where, record, {}, {"a": "1"})
    saver.put_writes(saved, [("a", 2)], "t1")
    return saved


UPKEEP: dict[str, Callable[[Operations], Operation[None]]] = {
    "delete": lambda operations: operations.forget("1"),
    "prune": lambda operations: operations.thin("1"),
    "copy": lambda operations: operations.copy_thread("1", "2"),
}


@pytest.mark.parametrize("kind", UPKEEP)
def test_namespace_that_is_added_meanwhile_stays_whole(saver: PostgresSaver, emptied_tables: str, kind: str) -> None:
    """It is not locked, so nothing of it may be touched; least of all some of its rows."""
    put(Called(saver))
    saved: list[Any] = []

    saver._run(interrupted(UPKEEP[kind](saver._operations), lambda: saved.append(put_in_namespace(saver))), writes=True)

    found = saver.get_tuple(saved[0])
    assert found is not None
    assert (found.checkpoint["channel_values"], found.pending_writes) == ({"a": 1}, [("t1", "a", 2)])
    for table in ("checkpoints", "blobs", "writes"):
        query = f"SELECT count(*) FROM tracegraph_{table} WHERE place NOT IN (SELECT place FROM tracegraph_places)"
        assert asked(emptied_tables, query) == [(0,)]


def test_answers_that_come_late_are_not_taken_for_others(postgres_url: str, is_async: bool) -> None:
    """A notice makes the server send what it has, so that an older answer is there when the next statement is sent."""
    with wrapping(
        lambda: psycopg.connect(postgres_url), lambda: psycopg.AsyncConnection.connect(postgres_url), is_async=is_async
    ) as saver:
        saver.setup()

        def asking() -> Operation[Any]:
            yield Many("SELECT 'wrong'", [()])
            yield Many("DO $$ BEGIN RAISE NOTICE 'look'; END $$", [()])
            # With a limit, for on a busy machine the answer may have come, and been taken in, before we look.
            select.select([saver.saver.conn.fileno()], [], [], 2.0)  # type: ignore[attr-defined]
            return (yield Rows("SELECT 'right'"))

        inside: Any = saver.saver
        found = inside._run(asking(), writes=True) if saver.run is None else saver.run(inside._arun(asking(), writes=True))

        assert found == [("right",)]


def test_tickets_of_a_thread_are_seen_in_their_order(saver: PostgresSaver) -> None:
    """One that another session is just taking may not come up as the older one once a younger has had its turn."""
    younger: list[Future[None]] = []
    with ThreadPoolExecutor(1) as pool:

        def meanwhile() -> None:
            younger.append(pool.submit(saver.join_queue, "1", "younger", lease_s=60))
            while not (younger[0].done() or asked(url_of(saver), "SELECT 1 FROM pg_locks WHERE NOT granted")):
                pass

        saver._run(interrupted(saver._operations.join_queue("1", "older", 60.0), meanwhile), writes=True)

    younger[0].result()
    assert (saver.place_in_queue("older"), saver.place_in_queue("younger")) == ("first", "waiting")
    saver.join_queue("2", "alone", lease_s=60)
    assert saver.place_in_queue("alone") == "first"


def test_thread_that_begins_while_another_is_copied_to_it_is_left_alone(saver: PostgresSaver) -> None:
    """The copy is refused, as if the thread had been there before."""
    put(Called(saver), "source", thread_id="1")
    copying = saver._operations.copy_thread("1", "2")

    with pytest.raises(InvalidInputError, match="thread '2' has checkpoints already"):
        saver._run(interrupted(copying, lambda: put(Called(saver), "mine", thread_id="2")), writes=True)

    (found,) = saver.list({"configurable": {"thread_id": "2"}})
    assert found.checkpoint["channel_values"] == {"a": "mine"}
