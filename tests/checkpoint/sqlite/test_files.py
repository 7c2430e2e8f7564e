"""Files and connections: how they are opened, what is refused, and with which words."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import threading
from pathlib import Path
from typing import Any

import pytest

from tracegraph.checkpoint.base import empty_checkpoint
from tracegraph.checkpoint.sqlite import SqliteSaver, SqliteSaverError
from tracegraph.checkpoint.sqlite.aio import AsyncSqliteSaver

THREAD: dict[str, Any] = {"configurable": {"thread_id": "1", "checkpoint_ns": ""}}


def put(saver: SqliteSaver) -> Any:
    return saver.put(THREAD, empty_checkpoint(), {}, {})


@pytest.mark.skipif(os.name != "posix", reason="file modes are POSIX")
def test_new_file_is_private_and_one_that_is_there_keeps_its_mode(tmp_path: Path) -> None:
    """The files beside it have the mode of the database, whatever the umask is."""
    path, shared = tmp_path / "a.db", tmp_path / "b.db"
    shared.touch(0o660)
    shared.chmod(0o660)

    with SqliteSaver.from_conn_string(path) as saver, SqliteSaver.from_conn_string(shared) as other:
        put(saver)
        put(other)
        modes = {each.name: each.stat().st_mode & 0o777 for each in tmp_path.iterdir()}

    assert {mode for name, mode in modes.items() if name.startswith("a.db")} == {0o600}
    assert {mode for name, mode in modes.items() if name.startswith("b.db")} == {0o660}
    assert {"a.db", "a.db-wal", "a.db-shm"} <= set(modes)


@pytest.mark.skipif(os.name != "posix", reason="file modes are POSIX")
def test_file_made_through_a_uri_is_private_too(tmp_path: Path) -> None:
    """What a URI opens in memory makes no file."""
    with SqliteSaver.from_conn_string(f"file:{tmp_path}/with%20space.db?cache=private") as saver:
        put(saver)
    with SqliteSaver.from_conn_string("file::memory:?cache=shared") as saver:
        put(saver)
    with SqliteSaver.from_conn_string(f"file:{tmp_path}/name?mode=memory") as saver:
        put(saver)

    assert {each.name: each.stat().st_mode & 0o777 for each in tmp_path.iterdir()} == {"with space.db": 0o600}


@pytest.mark.parametrize(("option", "level"), [("normal", 1), ("full", 2)])
def test_database_is_in_wal_mode_and_synced_as_asked(tmp_path: Path, option: Any, level: int) -> None:
    """Readers do not wait for writers; how much a power failure may take is the caller's choice."""
    with SqliteSaver.from_conn_string(tmp_path / "a.db", synchronous=option, busy_timeout_s=7) as saver:
        saver.setup()
        found = [saver.conn.execute(f"PRAGMA {name}").fetchone()[0] for name in ("journal_mode", "synchronous", "busy_timeout")]

    assert found == ["wal", level, 7000]


def test_own_connection_with_other_habits_works(tmp_path: Path) -> None:
    """Row factories and Python's implicit transactions do not matter."""
    connection = sqlite3.connect(tmp_path / "a.db")
    connection.row_factory = lambda _cursor, _row: "not a row"
    saver = SqliteSaver(connection)

    saved = put(saver)
    saver.put_writes(saved, [("a", 1)], "t1")

    found = saver.get_tuple(THREAD)
    assert found is not None
    assert (found.config, found.pending_writes) == (saved, [("t1", "a", 1)])
    assert [each.config for each in saver.list(None)] == [saved]
    assert not connection.in_transaction
    connection.close()


def test_tables_of_others_in_the_file_are_left_alone(tmp_path: Path) -> None:
    """An application may keep its own tables beside ours, unless it counts its versions where we do."""
    with sqlite3.connect(tmp_path / "a.db") as connection:
        connection.execute("CREATE TABLE mine (a)")
    put(SqliteSaver(connection))
    assert connection.execute("SELECT count(*) FROM mine").fetchone() == (0,)
    connection.close()

    with sqlite3.connect(tmp_path / "b.db") as connection:
        connection.execute("PRAGMA user_version = 1")
    with pytest.raises(SqliteSaverError, match="somebody else's tables") as caught:
        put(SqliteSaver(connection))
    assert caught.value.reason == "foreign"
    assert connection.execute("SELECT count(*) FROM sqlite_master").fetchone() == (0,)
    connection.close()


def test_newer_schema_is_refused(tmp_path: Path) -> None:
    """An old tracegraph does not guess what a newer one wrote."""
    with SqliteSaver.from_conn_string(tmp_path / "a.db") as saver:
        put(saver)
        saver.conn.execute("PRAGMA user_version = 99")

    with SqliteSaver.from_conn_string(tmp_path / "a.db") as saver, pytest.raises(SqliteSaverError, match="upgrade") as caught:
        saver.get_tuple(THREAD)
    assert caught.value.reason == "newer"


@pytest.mark.parametrize("opened", ["folder/is/not/there.db", "file:nowhere.db?mode=ro"])
def test_file_that_cannot_be_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, opened: str) -> None:
    """The error names it."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SqliteSaverError, match=opened.split("?")[0]) as caught, SqliteSaver.from_conn_string(opened):
        pass
    assert caught.value.reason == "cannot_open"


def test_file_that_is_no_database(tmp_path: Path) -> None:
    """It is not touched."""
    path = tmp_path / "a.db"
    path.write_text("some letter, long enough to have what could be a header" * 9)
    before = path.read_bytes()

    with pytest.raises(SqliteSaverError) as caught, SqliteSaver.from_conn_string(path) as saver:
        put(saver)

    assert caught.value.reason == "not_a_database"
    assert path.read_bytes() == before


def test_saver_after_its_block_says_what_is_wrong() -> None:
    """A graph that outlives the `with` block is a common mistake."""
    with SqliteSaver.from_conn_string(":memory:") as saver:
        put(saver)

    with pytest.raises(SqliteSaverError, match="inside the `with` block") as caught:
        saver.get_tuple(THREAD)
    assert caught.value.reason == "closed"


def test_connection_bound_to_one_thread_says_what_is_wrong() -> None:
    """sqlite3's own message does not say what to change."""
    connection = sqlite3.connect(":memory:")
    saver = SqliteSaver(connection)
    errors: list[BaseException] = []

    def use() -> None:
        try:
            saver.get_tuple(THREAD)
        except SqliteSaverError as error:
            errors.append(error)

    thread = threading.Thread(target=use)
    thread.start()
    thread.join()

    (error,) = errors
    assert "check_same_thread=False" in str(error)
    connection.close()


def test_open_transaction_of_the_caller_is_not_joined() -> None:
    """Its rollback would take checkpoints with it that a run counts on."""
    connection = sqlite3.connect(":memory:")
    saver = SqliteSaver(connection)
    connection.execute("BEGIN")

    with pytest.raises(SqliteSaverError, match="commit it") as caught:
        put(saver)

    assert caught.value.reason == "in_transaction"
    connection.close()


def test_other_libraries_connections_are_refused() -> None:
    """An aiosqlite connection, say, cannot be used by two colours."""
    with pytest.raises(TypeError, match="of the sqlite3 module, not str"):
        SqliteSaver("a.db")  # type: ignore[arg-type]
    connection = sqlite3.connect(":memory:")
    with pytest.raises(ValueError, match="'normal' or 'full'"):
        SqliteSaver(connection, synchronous="off")  # type: ignore[arg-type]
    connection.close()


def test_saver_of_the_parent_process_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """SQLite's connections do not survive a fork; using one damages files."""
    with SqliteSaver.from_conn_string(":memory:") as saver:
        put(saver)
        monkeypatch.setattr(os, "getpid", lambda: -1)

        with pytest.raises(SqliteSaverError, match="each process, after the fork") as caught:
            saver.get_tuple(THREAD)

        assert caught.value.reason == "other_process"
        monkeypatch.undo()


async def test_async_saver_of_the_parent_process_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its thread did not come along, so that waiting for it would never end."""
    async with AsyncSqliteSaver.from_conn_string(":memory:") as saver:
        await saver.setup()
        monkeypatch.setattr(os, "getpid", lambda: -1)

        with pytest.raises(SqliteSaverError, match="after the fork"):
            await saver.aget_tuple(THREAD)

        monkeypatch.undo()


async def test_cancelled_save_is_over_before_the_next_call_begins() -> None:
    """It is stored or not, but nothing overtakes it."""
    async with AsyncSqliteSaver.from_conn_string(":memory:") as saver:
        saving = asyncio.create_task(saver.aput(THREAD, empty_checkpoint(), {}, {}))
        with saver._database.lock:
            await asyncio.sleep(0)
            saving.cancel()
            following = asyncio.create_task(saver.aget_tuple(THREAD))
            await asyncio.sleep(0)
        found = await following

        assert saving.cancelled()
        assert found == saver.get_tuple(THREAD)


def test_saving_while_a_save_is_under_way_in_the_same_thread() -> None:
    """A dropped reader may save from the garbage collector; what fails inside does not undo what is around it."""
    with SqliteSaver.from_conn_string(":memory:") as saver:
        with saver._database.transaction("BEGIN IMMEDIATE"):
            saved = put(saver)
            with pytest.raises(Exception, match="head"), saver._database.transaction("BEGIN IMMEDIATE") as cursor:
                cursor.execute("DELETE FROM tracegraph_checkpoints")
                raise RuntimeError("head")

        assert [each.config for each in saver.list(None)] == [saved]


def test_closing_waits_for_a_transaction_of_another_thread(tmp_path: Path) -> None:
    """SQLite does not survive losing its connection in the middle of one."""
    is_saving, may_end, is_closed = threading.Event(), threading.Event(), threading.Event()

    def save(saver: SqliteSaver) -> None:
        with saver._database.transaction("BEGIN IMMEDIATE"):
            is_saving.set()
            assert may_end.wait(10)
            assert not is_closed.is_set()

    def use() -> None:
        with SqliteSaver.from_conn_string(tmp_path / "a.db") as saver:
            saving = threading.Thread(target=save, args=(saver,))
            saving.start()
            assert is_saving.wait(10)
            leaving.set()
        is_closed.set()
        saving.join(10)

    leaving = threading.Event()
    using = threading.Thread(target=use)
    using.start()
    assert leaving.wait(10)
    assert not is_closed.wait(0.05)  # time enough to close, had it not to wait
    may_end.set()
    using.join(10)

    assert is_closed.is_set()


async def test_async_saver_closes_its_file_and_thread(tmp_path: Path) -> None:
    """After the block neither is left."""
    others = set(threading.enumerate())
    async with AsyncSqliteSaver.from_conn_string(tmp_path / "a.db") as saver:
        await saver.setup()
        await saver.aput(THREAD, empty_checkpoint(), {}, {})
        assert saver.get_tuple(THREAD) == await saver.aget_tuple(THREAD) is not None

    assert not [each for each in threading.enumerate() if each not in others and each.name.startswith("tracegraph-sqlite")]
    with pytest.raises(SqliteSaverError, match="inside the `with` block"):
        await saver.aget_tuple(THREAD)
    assert os.listdir(tmp_path) == ["a.db"]  # noqa: PTH208  # not blocking for long
