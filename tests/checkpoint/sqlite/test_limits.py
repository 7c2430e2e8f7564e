"""What happens when the database cannot be written: a clear error, and what was there before stays readable."""

from __future__ import annotations

import operator
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, TypedDict

import pytest

from tracegraph.checkpoint.base import UnsavableValueError, empty_checkpoint
from tracegraph.checkpoint.serde.errors import UnserializableValueError
from tracegraph.checkpoint.sqlite import SqliteSaver, SqliteSaverError
from tracegraph.errors import InvalidInputError
from tracegraph.graph import START, StateGraph

THREAD: dict[str, Any] = {"configurable": {"thread_id": "1", "checkpoint_ns": ""}}


class State(TypedDict):
    log: Annotated[list[str], operator.add]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "checkpoints.db"


@pytest.fixture
def saver(path: Path) -> Iterator[SqliteSaver]:
    with SqliteSaver.from_conn_string(path) as made:
        yield made


def put(saver: SqliteSaver, value: Any) -> Any:
    checkpoint = empty_checkpoint()
    checkpoint["channel_values"] = {"a": value}
    checkpoint["channel_versions"] = {"a": saver.get_next_version(None, None)}
    return saver.put(THREAD, checkpoint, {}, checkpoint["channel_versions"])


def app_on(saver: SqliteSaver) -> Any:
    builder = StateGraph(State).add_node("grow", lambda _state: {"log": ["x" * 20_000]}).add_edge(START, "grow")
    return builder.compile(checkpointer=saver)


def test_full_disk_says_so_and_keeps_what_was_there(saver: SqliteSaver) -> None:
    """The put that did not fit left nothing behind, and after making room writing goes on."""
    kept = put(saver, "x")
    pages = saver.conn.execute("PRAGMA page_count").fetchone()[0]
    saver.conn.execute(f"PRAGMA max_page_count = {pages}")

    with pytest.raises(SqliteSaverError, match=r"TG211.*checkpoints\.db.*full\): make room") as caught:
        put(saver, "y" * 100_000)
    with pytest.raises(SqliteSaverError):
        saver.put_writes(kept, [("a", "y" * 100_000)], "t1")

    assert caught.value.reason == "full"
    found = saver.get_tuple(THREAD)
    assert found is not None
    assert (found.config, found.checkpoint["channel_values"], found.pending_writes) == (kept, {"a": "x"}, [])
    saver.conn.execute("PRAGMA max_page_count = 1000000")
    assert put(saver, "y" * 100_000) != kept


@pytest.mark.parametrize("durability", ["sync", "async"])
def test_run_on_a_full_disk_fails_and_can_be_resumed_later(saver: SqliteSaver, durability: str) -> None:
    """The run raises the saver's error; the thread is where it was, or a step further."""
    app = app_on(saver)
    app.invoke({"log": ["first"]}, THREAD)
    before = app.get_state(THREAD).values["log"]
    saver.conn.execute(f"PRAGMA max_page_count = {saver.conn.execute('PRAGMA page_count').fetchone()[0] + 4}")

    with pytest.raises(SqliteSaverError, match="full"):
        app.invoke({"log": ["second"]}, THREAD, durability=durability)

    assert app.get_state(THREAD).values["log"][: len(before)] == before
    saver.conn.execute("PRAGMA max_page_count = 1000000")
    app.invoke({"log": ["third"]}, THREAD, durability=durability)
    assert "third" in app.get_state(THREAD).values["log"]


def test_read_only_database_can_be_read(saver: SqliteSaver, path: Path) -> None:
    """Everything can be read; a write says what to do."""
    kept = put(saver, "x")

    with SqliteSaver.from_conn_string(f"file:{path}?mode=ro") as reader:
        with pytest.raises(SqliteSaverError, match="may write the file and its folder") as caught:
            put(reader, "y")
        assert [found.config for found in reader.list(THREAD)] == [kept]

    assert caught.value.reason == "read_only"
    assert [found.config for found in saver.list(THREAD)] == [kept]


def test_read_only_database_without_tables_is_refused(path: Path) -> None:
    """They cannot be made."""
    path.touch()

    with (
        SqliteSaver.from_conn_string(f"file:{path}?mode=ro") as reader,
        pytest.raises(SqliteSaverError) as caught,
    ):
        reader.get_tuple(THREAD)

    assert caught.value.reason == "read_only"


def test_lock_that_is_never_released_is_an_error(saver: SqliteSaver, path: Path) -> None:
    """After the time given, with a hint at the cause; readers are not kept waiting."""
    kept = put(saver, "x")
    with SqliteSaver.from_conn_string(path, busy_timeout_s=0.01) as other:
        assert other.get_tuple(THREAD) is not None
        saver.conn.execute("BEGIN IMMEDIATE")

        with pytest.raises(SqliteSaverError, match="busy_timeout_s") as caught:
            put(other, "y")

        assert caught.value.reason == "locked"
        assert [found.config for found in other.list(THREAD)] == [kept]
        saver.conn.execute("ROLLBACK")


def test_value_that_cannot_be_stored_is_named_before_anything_is_written(saver: SqliteSaver) -> None:
    """Neither the checkpoint nor its other channels are there; nor are the task's other writes."""
    kept = put(saver, "x")
    before = saver.conn.total_changes

    with pytest.raises(UnserializableValueError) as caught:
        put(saver, {"deep": (n for n in ())})
    assert (caught.value.channel, caught.value.path) == ("a", "['deep']")
    with pytest.raises(UnserializableValueError, match="'b'"):
        saver.put_writes(kept, [("a", 1), ("b", object())], "t1")

    assert saver.conn.total_changes == before


class Broken:
    """A serialiser that fails in a way of its own."""

    def dumps_typed(self, obj: Any) -> tuple[str, bytes]:
        raise ZeroDivisionError("no")

    def loads_typed(self, data: tuple[str, bytes]) -> Any:
        return None


def test_error_of_another_serialiser_names_the_channel(path: Path) -> None:
    """Its own words stand behind."""
    with SqliteSaver.from_conn_string(path, serde=Broken()) as saver:
        with pytest.raises(UnsavableValueError, match=r"channel 'a'.*\(no\)"):
            put(saver, 1)

        assert saver.get_tuple(THREAD) is None


def test_metadata_that_is_no_json_is_refused(saver: SqliteSaver) -> None:
    """Before anything is written, with what is wrong."""
    for wrong in (float("nan"), object()):
        with pytest.raises(ValueError, match="metadata is stored as JSON"):
            saver.put(THREAD, empty_checkpoint(), {"odd": wrong}, {})  # type: ignore[typeddict-unknown-key]

    assert saver.get_tuple(THREAD) is None


@pytest.mark.parametrize("place", ["thread", "namespace", "channel"])
def test_half_of_a_surrogate_pair_is_no_name(saver: SqliteSaver, place: str) -> None:
    """It has no form in UTF-8; the error is the caller's, and nothing is stored."""
    half = "a\ud800"
    names = {"thread": "1", "namespace": "", "channel": "a"} | {place: half}
    record: Any = empty_checkpoint() | {"channel_values": {names["channel"]: 1}, "channel_versions": {names["channel"]: "1"}}
    where = {"configurable": {"thread_id": names["thread"], "checkpoint_ns": names["namespace"]}}

    with pytest.raises(InvalidInputError, match="half surrogate pairs"):
        saver.put(where, record, {}, record["channel_versions"])

    assert list(saver.list(None)) == []
