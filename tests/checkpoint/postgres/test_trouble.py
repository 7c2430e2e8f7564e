"""What happens when the database cannot be used: a clear error, nothing half stored, and it works again afterwards."""

from __future__ import annotations

import os
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest
from postgres_savers import THREAD, Called, asked, opened, put, role, running_loop, terminated, wrapping
from psycopg.conninfo import make_conninfo
from psycopg_pool import AsyncConnectionPool, ConnectionPool

from tracegraph.checkpoint.postgres import PostgresSaver, PostgresSaverError
from tracegraph.checkpoint.postgres.aio import AsyncPostgresSaver
from tracegraph.checkpoint.postgres.errors import _ADVICE, _STATES, told
from tracegraph.errors import InvalidInputError

SECRET = "s3cret"  # noqa: S105


@contextmanager
def pooled(url: str, *, is_async: bool, timeout: float = 30, **settings: Any) -> Iterator[Called]:
    sizes: Any = {"min_size": 1, "max_size": 1, "timeout": timeout, "kwargs": {"autocommit": True, **settings}}
    with wrapping(
        lambda: ConnectionPool(url, open=True, **sizes),
        lambda: AsyncConnectionPool(url, open=False, **sizes),
        is_async=is_async,
    ) as saver:
        yield saver


@contextmanager
def locked(url: str) -> Iterator[None]:
    """Hold the lock on every thread."""
    with psycopg.connect(url) as connection:
        connection.execute("SELECT 1 FROM tracegraph_places FOR UPDATE")
        yield


def reason_of(call: Any, *args: Any, **kwargs: Any) -> str:
    with pytest.raises(PostgresSaverError) as caught:
        call(*args, **kwargs)
    assert SECRET not in str(caught.value)
    return caught.value.reason


def test_lost_sessions_cost_one_call_at_most(postgres_url: str, is_async: bool) -> None:
    """All connections of the pool go at once when a server restarts; each would fail a call of its own."""
    with opened(postgres_url, is_async=is_async) as saver:
        first = put(saver)
        with locked(postgres_url):  # so many calls at a time that there are as many connections
            calls = [threading.Thread(target=put, args=(saver,)) for _ in range(4)]
            for call in calls:
                call.start()
            while asked(postgres_url, "SELECT count(*) FROM pg_locks WHERE NOT granted") != [(4,)]:
                pass
        for call in calls:
            call.join()
        assert len(saver.list()) == 5
        assert terminated(postgres_url) >= 4

        assert reason_of(saver.get_tuple, THREAD) == "lost"
        for _ in range(6):
            assert saver.get_tuple(first).config == first
        put(saver)


def test_session_lost_in_the_middle_stores_nothing_of_that_call(postgres_url: str, is_async: bool) -> None:
    """The error says that a pool connects anew."""
    with opened(postgres_url, is_async=is_async) as saver:
        put(saver)
        found: list[str] = []
        with psycopg.connect(postgres_url) as other:
            other.execute("SELECT 1 FROM tracegraph_places FOR UPDATE")
            call = threading.Thread(target=lambda: found.append(reason_of(put, saver)))
            call.start()
            while not asked(postgres_url, "SELECT 1 FROM pg_locks WHERE NOT granted"):
                pass
            asked(postgres_url, "SELECT pg_terminate_backend(pid, 10000) FROM pg_locks WHERE NOT granted")
            call.join()

        assert found == ["lost"]
        assert len(saver.list()) == 1
        put(saver)


def test_single_connection_that_was_lost_has_to_be_opened_anew(postgres_url: str, is_async: bool) -> None:
    """The saver cannot know how; both errors say so."""
    with wrapping(
        lambda: psycopg.connect(postgres_url), lambda: psycopg.AsyncConnection.connect(postgres_url), is_async=is_async
    ) as saver:
        put(saver)
        terminated(postgres_url)

        assert [reason_of(put, saver), reason_of(saver.get_tuple, THREAD)] == ["lost", "closed"]


def test_server_that_is_not_there_is_reported_at_once_and_without_the_password(is_async: bool) -> None:
    """Not after the half minute that a pool keeps trying for; the server's own words are in it."""
    url = f"postgresql://me:{SECRET}@/checkpoints?host=%2Fnowhere%2Fat%2Fall"

    words = r"'checkpoints on /nowhere/at/all'.*No such file"
    with pytest.raises(PostgresSaverError, match=words) as caught, opened(url, is_async=is_async):
        pass

    assert caught.value.reason == "unreachable"
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        f"postgres//me:{SECRET}@host/db",
        f"postgresql://me:a@{SECRET}@host/db",
        f"postgresql://me:a/{SECRET}@host/db",
        f"pass={SECRET}",
    ],
)
def test_connection_string_with_a_mistake_is_not_quoted(is_async: bool, text: str) -> None:
    """It may hold a password; neither the error nor what led to it shows it."""
    with pytest.raises(InvalidInputError, match="no connection string") as caught, opened(text, is_async=is_async):
        pass

    assert SECRET not in str(caught.value)
    assert caught.value.__cause__ is caught.value.__context__ is None


def test_pool_without_a_server_says_why(is_async: bool) -> None:
    """A pool only knows that it has no connection; what it cannot open tells more than 'timeout'."""
    url = f"postgresql://me:{SECRET}@/checkpoints?host=%2Fnowhere%2Fat%2Fall"

    with pooled(url, is_async=is_async, timeout=0.1) as saver:
        assert reason_of(saver.get_tuple, THREAD) == "unreachable"


def test_pool_that_is_exhausted_says_so(postgres_url: str, is_async: bool) -> None:
    """It goes on working when a connection comes back."""
    with pooled(postgres_url, is_async=is_async, timeout=0.1) as saver:
        pool: Any = saver.saver.conn  # type: ignore[attr-defined]
        saver.setup()
        held = pool.getconn() if saver.run is None else saver.run(pool.getconn())

        assert reason_of(saver.get_tuple, THREAD) == "busy"

        given = pool.putconn(held)
        if saver.run is not None:
            saver.run(given)
        put(saver)


@pytest.mark.parametrize("limit", ["statement_timeout", "lock_timeout"])
def test_server_that_gives_up_waiting_stores_nothing(postgres_url: str, is_async: bool, limit: str) -> None:
    """The call can be made again, on the same connection."""
    with pooled(postgres_url, is_async=is_async, options=f"-c {limit}=200") as saver:
        kept = put(saver)
        with locked(postgres_url):
            assert reason_of(put, saver) == "cancelled"

            assert [each.config for each in saver.list()] == [kept]
        put(saver)


def test_newer_tables_are_refused(postgres_url: str, is_async: bool) -> None:
    """An old tracegraph does not guess what a newer one wrote, and changes nothing."""
    with opened(postgres_url) as saver:
        put(saver)
    asked(postgres_url, "UPDATE tracegraph_schema SET version = 99")

    with (
        opened(postgres_url, is_async=is_async) as saver,
        pytest.raises(PostgresSaverError, match="version 99.*upgrade") as caught,
    ):
        saver.get_tuple(THREAD)

    assert caught.value.reason == "newer"
    assert asked(postgres_url, "SELECT version FROM tracegraph_schema") == [(99,)]


def test_read_only_database_can_be_read(postgres_url: str, is_async: bool) -> None:
    """As on a standby; a write says what is the matter."""
    with opened(postgres_url) as saver:
        kept = put(saver)

    with opened(make_conninfo(postgres_url, options="-c default_transaction_read_only=on"), is_async=is_async) as saver:
        assert saver.get_tuple(THREAD).config == kept
        assert [each.config for each in saver.list(filter={})] == [kept]
        assert reason_of(put, saver) == "read_only"
        assert reason_of(saver.delete_thread, "1") == "read_only"


def test_read_only_database_without_tables_is_refused(postgres_url: str) -> None:
    """They cannot be made."""
    with opened(make_conninfo(postgres_url, options="-c default_transaction_read_only=on")) as saver:
        assert reason_of(saver.get_tuple, THREAD) == "read_only"


def test_roles_with_less_than_all_rights(postgres_url: str, is_async: bool) -> None:
    """One that may not make tables uses those that are there; one that may only read, reads."""
    with role(postgres_url) as nobody, opened(nobody, is_async=is_async) as saver:
        assert reason_of(saver.setup) == "forbidden"
    with opened(postgres_url) as saver:
        kept = put(saver)

    tables = "ALL TABLES IN SCHEMA public"
    with role(postgres_url, f"SELECT, INSERT, UPDATE, DELETE ON {tables}") as user, opened(user, is_async=is_async) as saver:
        mine = put(saver)
        saver.put_writes(mine, [("a", 1)], "t1")
        saver.prune(["1"])
        saver.copy_thread("1", "2")
        saver.delete_thread("2")
        assert [each.config for each in saver.list()] == [mine] != [kept]
    with role(postgres_url, f"SELECT ON {tables}") as reader, opened(reader, is_async=is_async) as saver:
        assert saver.get_tuple(THREAD).config == mine
        assert reason_of(put, saver) == "forbidden"
        assert reason_of(saver.prune, ["1"]) == "forbidden"


def test_tables_that_somebody_dropped_are_made_anew(postgres_url: str, is_async: bool) -> None:
    """By the call after the one that found them missing."""
    names = "SELECT tablename FROM pg_tables WHERE tablename LIKE 'tracegraph%'"
    with opened(postgres_url, is_async=is_async) as saver:
        put(saver)
        for (name,) in asked(postgres_url, names):
            asked(postgres_url, f"DROP TABLE {name}")

        assert reason_of(saver.get_tuple, THREAD) == "no_tables"
        assert saver.get_tuple(THREAD) is None
        put(saver)

        asked(postgres_url, "DROP TABLE tracegraph_writes")
        assert [reason_of(saver.get_tuple, THREAD) for _ in range(2)] == ["no_tables"] * 2
        asked(postgres_url, "DROP TABLE tracegraph_schema")
        assert reason_of(saver.get_tuple, THREAD) == "no_tables"


def test_triggers_of_others_are_named_as_the_cause(postgres_url: str, is_async: bool) -> None:
    """What the saver does not expect is an error of its own too, with psycopg's behind it."""
    with opened(postgres_url, is_async=is_async) as saver:
        put(saver)
        asked(postgres_url, "ALTER TABLE tracegraph_checkpoints ADD CHECK (metadata->>'source' <> 'loop')")

        with pytest.raises(PostgresSaverError, match="violates check constraint.*constraints or triggers") as caught:
            put(saver, metadata={"source": "loop"})

        assert caught.value.reason == "unexpected"
        assert isinstance(caught.value.__cause__, psycopg.errors.CheckViolation)
        assert len(saver.list()) == 1


def test_saver_after_its_block_says_what_is_wrong(postgres_url: str, is_async: bool) -> None:
    """A graph that outlives the `with` block is a common mistake."""
    if not is_async:
        with opened(postgres_url) as saver:
            put(saver)
        assert reason_of(saver.get_tuple, THREAD) == "closed"
        return

    async def late() -> str:
        async with AsyncPostgresSaver.from_conn_string(postgres_url) as saver:
            assert await saver.aget_tuple(THREAD) is None
        with pytest.raises(PostgresSaverError, match="inside the `with` block") as caught:
            await saver.aget_tuple(THREAD)
        return caught.value.reason

    with running_loop() as run:
        assert run(late()) == "closed"


def test_connection_that_the_user_closed_says_what_is_wrong(postgres_url: str) -> None:
    """Also if it was closed before the saver got it."""
    connection = psycopg.connect(postgres_url)
    saver = PostgresSaver(connection)
    connection.close()

    for each in (saver, PostgresSaver(connection)):
        assert reason_of(each.get_tuple, THREAD) == "closed"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks")
def test_saver_of_the_parent_process_is_refused(postgres_url: str, is_async: bool) -> None:
    """Two processes would write to one socket. The child's end does not close the parent's session."""
    reading, writing = os.pipe()
    with opened(postgres_url, is_async=is_async) as saver:
        put(saver)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # threads and forks do not mix; this is what is tested
            child = os.fork()
        if child == 0:
            try:
                saver.saver.get_tuple(THREAD)
            except PostgresSaverError as error:
                os.write(writing, error.reason.encode())
            finally:
                os._exit(0)
        os.close(writing)
        with os.fdopen(reading) as said:
            assert said.read() == "other_process"
        os.waitpid(child, 0)

        assert saver.get_tuple(THREAD) is not None


def test_block_that_a_forked_process_leaves_closes_nothing(postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its farewell would end the session of the parent process."""
    entered = PostgresSaver.from_conn_string(postgres_url)
    saver = entered.__enter__()
    put(Called(saver))
    with monkeypatch.context() as forked:
        forked.setattr(os, "getpid", lambda: -1)
        entered.__exit__(None, None, None)

    assert saver.get_tuple(THREAD) is not None
    assert isinstance(saver.conn, ConnectionPool)
    saver.conn.close()


@pytest.mark.parametrize(
    "error", [psycopg.errors.lookup(state) for state in _STATES if len(state) == 5], ids=lambda e: e.__name__
)
def test_every_state_of_the_server_has_a_reason_with_advice(error: type[psycopg.Error]) -> None:
    """The names of states are those of the server's documentation, so a mistyped one is not found."""
    found = told("db", error("what the server says\nDETAIL: what the user stored"))

    assert isinstance(found, PostgresSaverError)
    assert found.reason in _ADVICE
    assert "what the server says" in str(found) and "DETAIL" not in str(found)


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (psycopg.errors.AdminShutdown, "lost"),
        (psycopg.errors.CannotConnectNow, "lost"),
        (psycopg.errors.IdleSessionTimeout, "lost"),
        (psycopg.errors.ConnectionFailure, "lost"),
        (psycopg.OperationalError, "lost"),
        (psycopg.errors.SerializationFailure, "cancelled"),
        (psycopg.errors.DeadlockDetected, "cancelled"),
        (psycopg.errors.DiskFull, "full"),
        (psycopg.errors.OutOfMemory, "overloaded"),
        (psycopg.errors.UndefinedTable, "no_tables"),
        (psycopg.errors.UniqueViolation, "unexpected"),
        (psycopg.errors.InternalError_, "unexpected"),
        (psycopg.errors.NumericValueOutOfRange, "unexpected"),
        (psycopg.InterfaceError, "unexpected"),
    ],
)
def test_errors_of_psycopg_get_the_reason_that_fits(error: type[psycopg.Error], reason: str) -> None:
    """Whichever of its classes they have in common."""
    found = told("db", error("no"))

    assert isinstance(found, PostgresSaverError)
    assert found.reason == reason
