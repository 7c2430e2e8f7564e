"""Connections: those that the saver opens, those it is given, and poolers between it and the server."""

from __future__ import annotations

import operator
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Annotated, Any, TypedDict

import psycopg
import pytest
from postgres_savers import THREAD, Called, asked, opened, put, running_loop, wrapping
from psycopg.rows import dict_row
from psycopg_pool import AsyncConnectionPool, AsyncNullConnectionPool, ConnectionPool, NullConnectionPool

from tracegraph.checkpoint.postgres import PostgresSaver, PostgresSaverError
from tracegraph.checkpoint.postgres.aio import AsyncPostgresSaver
from tracegraph.graph import START, StateGraph
from tracegraph.types import Command, interrupt


class State(TypedDict):
    log: Annotated[list[str], operator.add]


def work_on(saver: Called) -> None:
    """Save, read, list and delete on eight threads at once."""

    def work(number: int) -> None:
        thread_id = f"t{number}"
        where = {"configurable": {"thread_id": thread_id, "checkpoint_ns": ""}}
        for value in range(4):
            saved = put(saver, value, thread_id=thread_id, metadata={"step": value})
            saver.put_writes(saved, [("a", value)], "task")
            found = saver.get_tuple(where)
            assert (found.config, found.checkpoint["channel_values"], found.pending_writes) == (
                saved,
                {"a": value},
                [("task", "a", value)],
            )
        assert [each.metadata["step"] for each in saver.list(where)] == [3, 2, 1, 0]
        saver.prune([thread_id])
        assert [each.metadata["step"] for each in saver.list(where, filter={"step": 3})] == [3]

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))
    saver.delete_thread("t0")
    assert sorted(each.thread_id for each in saver.list_threads()) == [f"t{number}" for number in range(1, 8)]


@pytest.mark.parametrize("pipeline", [True, False])
@pytest.mark.parametrize("way", ["postgres_url", "pgbouncer_url"])
def test_saver_works_with_and_without_pipelines_and_pooler(
    request: pytest.FixtureRequest, is_async: bool, way: str, pipeline: bool
) -> None:
    """Sessions of pgbouncer are handed out for one transaction each; there are fewer than threads here."""
    url = request.getfixturevalue(way)

    with opened(url, is_async=is_async, pipeline=pipeline) as saver:
        work_on(saver)


def test_graph_asks_and_goes_on_behind_a_pooler(pgbouncer_url: str) -> None:
    """The tables are made through it too."""
    builder = StateGraph(State).add_node("ask", lambda _state: {"log": [interrupt("well?")]}).add_edge(START, "ask")

    for given in ({"log": ["x"]}, Command(resume="yes")):
        with opened(pgbouncer_url) as saver:
            result = builder.compile(checkpointer=saver.saver).invoke(given, THREAD)

    assert result == {"log": ["x", "yes"]}


def test_prepared_statements_behind_a_pooler_are_named_as_the_mistake(pgbouncer_url: str) -> None:
    """Other clients' transactions run on the session in between; psycopg prepares by default."""
    with (
        psycopg.connect(pgbouncer_url, autocommit=True, prepare_threshold=0) as one,
        psycopg.connect(pgbouncer_url, autocommit=True, prepare_threshold=0) as two,
        pytest.raises(PostgresSaverError, match="prepare_threshold=None") as caught,
    ):
        for _ in range(9):
            put(Called(PostgresSaver(one)))
            put(Called(PostgresSaver(two)))

    assert caught.value.reason == "prepared"


@pytest.mark.parametrize(
    "options",
    [
        {"autocommit": True},
        {"autocommit": False},
        {"autocommit": True, "prepare_threshold": 0},
        {"autocommit": True, "row_factory": dict_row},
        {"autocommit": False, "row_factory": dict_row, "prepare_threshold": 1},
    ],
    ids=str,
)
@pytest.mark.parametrize("pipeline", [True, False])
def test_threads_share_one_connection_of_the_users(
    emptied_tables: str, is_async: bool, pipeline: bool, options: dict[str, Any]
) -> None:
    """Whatever its habits are; what was saved is committed."""
    with wrapping(
        lambda: psycopg.connect(emptied_tables, **options),
        lambda: psycopg.AsyncConnection.connect(emptied_tables, **options),
        is_async=is_async,
        pipeline=pipeline,
    ) as saver:
        work_on(saver)

        assert asked(emptied_tables, "SELECT count(*) FROM tracegraph_checkpoints") == [(7,)]


@pytest.mark.parametrize("kind", [psycopg.ClientCursor, psycopg.RawCursor])
def test_cursors_of_another_kind_do_not_matter(emptied_tables: str, kind: Any) -> None:
    """They want other placeholders, or none."""
    with psycopg.connect(emptied_tables, cursor_factory=kind) as connection:
        saver = Called(PostgresSaver(connection))
        saved = put(saver)

        assert [each.config for each in saver.list()] == [saved]


@pytest.mark.parametrize("pools", [(ConnectionPool, AsyncConnectionPool), (NullConnectionPool, AsyncNullConnectionPool)])
def test_threads_share_a_pool_of_the_users(emptied_tables: str, is_async: bool, pools: Any) -> None:
    """With psycopg's own defaults, which are neither autocommit nor tuples."""
    settings: Any = {"kwargs": {"row_factory": dict_row}, "min_size": 0, "max_size": 3}
    with wrapping(
        lambda: pools[0](emptied_tables, open=True, **settings),
        lambda: pools[1](emptied_tables, open=False, **settings),
        is_async=is_async,
    ) as saver:
        work_on(saver)


def test_pipeline_of_the_users_is_used(emptied_tables: str) -> None:
    """As in programs written for LangGraph; what the user has sent before is not disturbed."""
    with psycopg.connect(emptied_tables, autocommit=True) as connection, connection.pipeline() as pipe:
        saver = Called(PostgresSaver(connection, pipe))
        cursor = connection.execute("SELECT 42")
        saved = put(saver)

        assert saver.get_tuple(THREAD).config == saved
        assert cursor.fetchone() == (42,)


@pytest.mark.parametrize("isolation", psycopg.IsolationLevel)
def test_isolation_level_of_the_users_does_not_hide_other_saves(postgres_url: str, isolation: psycopg.IsolationLevel) -> None:
    """A stricter one would show the head of before the lock was waited for."""
    with psycopg.connect(postgres_url) as connection, psycopg.connect(postgres_url) as other:
        connection.isolation_level = isolation
        saver = Called(PostgresSaver(connection))
        first = put(saver)["configurable"]["checkpoint_id"]
        other.execute("SELECT 1 FROM tracegraph_places FOR UPDATE")
        with ThreadPoolExecutor(1) as pool:
            waiting = pool.submit(lambda: put(saver, expect_head=first))
            while not asked(postgres_url, "SELECT 1 FROM pg_locks WHERE NOT granted"):
                pass
            other.execute(
                "INSERT INTO tracegraph_checkpoints SELECT place, 'z', id, NULL, record, metadata FROM tracegraph_checkpoints"
            )
            other.commit()

            with pytest.raises(Exception, match="is now at 'z'"):
                waiting.result()


@contextmanager
def in_transaction(url: str, is_async: bool) -> Iterator[Called]:
    with wrapping(lambda: psycopg.connect(url), lambda: psycopg.AsyncConnection.connect(url), is_async=is_async) as saver:
        begun = saver.saver.conn.execute("SELECT 1")  # type: ignore[attr-defined]
        if saver.run is not None:
            saver.run(begun)
        yield saver


def test_open_transaction_of_the_user_is_not_joined(postgres_url: str, is_async: bool) -> None:
    """Its rollback would take checkpoints with it that a run counts on."""
    with in_transaction(postgres_url, is_async) as saver:
        with pytest.raises(PostgresSaverError, match="commit or end it first") as caught:
            put(saver)
        assert caught.value.reason == "in_transaction"

        ended = saver.saver.conn.rollback()  # type: ignore[attr-defined]
        if saver.run is not None:
            saver.run(ended)
        put(saver)


def test_call_inside_another_call_of_the_same_thread_does_not_wait_for_ever(postgres_url: str) -> None:
    """The garbage collector may run anywhere, and drop a run that then saves."""
    with psycopg.connect(postgres_url) as connection:
        saver = PostgresSaver(connection)
        put(Called(saver))
        with saver._connection(), pytest.raises(PostgresSaverError, match="inside another one"):
            saver.get_tuple(THREAD)

        assert saver.get_tuple(THREAD) is not None


def test_connections_of_the_other_colour_are_refused(postgres_url: str) -> None:
    """Before anything is sent."""
    with running_loop() as run:

        async def mistaken() -> None:
            async with AsyncConnectionPool(postgres_url, open=False) as pool:
                with pytest.raises(TypeError, match="not AsyncConnectionPool"):
                    PostgresSaver(pool)  # type: ignore[arg-type]
            with psycopg.connect(postgres_url) as connection, pytest.raises(TypeError, match="not Connection"):
                AsyncPostgresSaver(connection)  # type: ignore[arg-type]

        run(mistaken())
    with pytest.raises(TypeError, match="not str"):
        PostgresSaver(postgres_url)  # type: ignore[arg-type]


@pytest.mark.parametrize(("way", "is_prepared"), [("postgres_url", True), ("pgbouncer_url", False)])
def test_statements_are_prepared_where_the_session_is_ones_own(
    request: pytest.FixtureRequest, way: str, is_prepared: bool
) -> None:
    """In a session that a pooler hands to others, or takes away, they would be missing, or be somebody else's."""
    with PostgresSaver.from_conn_string(request.getfixturevalue(way), max_size=1) as saver:
        for _ in range(8):
            saver.get_tuple(THREAD)
        assert isinstance(saver.conn, ConnectionPool)
        with saver.conn.connection() as connection:
            assert (connection.prepare_threshold is not None) == is_prepared
            (count,) = connection.execute("SELECT count(*) FROM pg_prepared_statements", prepare=False).fetchone() or (None,)
    assert bool(count) == is_prepared
