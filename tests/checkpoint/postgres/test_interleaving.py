"""What another session does between two statements of an operation."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import pytest
from postgres_savers import Called, asked, put

from tracegraph.checkpoint.base import empty_checkpoint
from tracegraph.checkpoint.postgres import PostgresSaver
from tracegraph.checkpoint.sql.operations import Operations
from tracegraph.checkpoint.sql.orders import Operation
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


def test_thread_that_begins_while_another_is_copied_to_it_is_left_alone(saver: PostgresSaver) -> None:
    """The copy is refused, as if the thread had been there before."""
    put(Called(saver), "source", thread_id="1")
    copying = saver._operations.copy_thread("1", "2")

    with pytest.raises(InvalidInputError, match="thread '2' has checkpoints already"):
        saver._run(interrupted(copying, lambda: put(Called(saver), "mine", thread_id="2")), writes=True)

    (found,) = saver.list({"configurable": {"thread_id": "2"}})
    assert found.checkpoint["channel_values"] == {"a": "mine"}
