"""Records that LangGraph would not have written, or that a LangGraph of the future did: their threads are refused, by name."""

from __future__ import annotations

import json
import re
import sqlite3
from contextlib import closing
from typing import Any

import pytest
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph_databases import Database
from moving_programs import PROGRAMS, Names

from tracegraph.checkpoint.memory import InMemorySaver
from tracegraph.interop.langgraph import ThreadRefusedError, import_thread, open_source
from tracegraph.interop.langgraph.decoder import Decoder
from tracegraph.interop.langgraph.stored import Place

THEIRS = Names("langgraph")
TEXT = f"{1:032}.5"


def damage(database: Database, column: str, change: Any) -> None:
    """Put *change* into the newest record or metadata of a new thread, instead of it if it is no dict."""
    with database.saver() as theirs:
        app = PROGRAMS["loop"].build(THEIRS).compile(checkpointer=theirs)
        app.invoke({"n": 0}, {"configurable": {"thread_id": "bad"}})
    newest = "WHERE checkpoint_id = (SELECT max(checkpoint_id) FROM checkpoints)"
    if "://" in database.address:
        import psycopg

        changed = "%s::jsonb" if not isinstance(change, dict) else f"{column} || %s::jsonb"
        with psycopg.connect(database.address) as connection:
            connection.execute(f"UPDATE checkpoints SET {column} = {changed} {newest}", (json.dumps(change),))
        return
    with closing(sqlite3.connect(database.address)) as connection, connection:
        kind, record, metadata = connection.execute(f"SELECT type, checkpoint, metadata FROM checkpoints {newest}").fetchone()
        held = JsonPlusSerializer().loads_typed((kind, record)) if column == "checkpoint" else json.loads(metadata)
        held = held | change if isinstance(change, dict) else change
        data = JsonPlusSerializer().dumps_typed(held)[1] if column == "checkpoint" else json.dumps(held).encode()
        connection.execute(f"UPDATE checkpoints SET {column} = ? {newest}", (data,))


def refusal(database: Database) -> str:
    target = InMemorySaver()
    with open_source(database.address) as source, pytest.raises(ThreadRefusedError) as refused:
        import_thread(source, "bad", target)
    assert list(target.list(None)) == []
    return str(refused.value)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ([1], ""),
        (None, ""),
        ({"v": "4"}, "its format is '4', not a number from 1 to 4"),
        ({"v": True}, "its format is True, not a number from 1 to 4"),
        ({"v": 0}, "its format is 0, not a number from 1 to 4"),
        ({"ts": 0}, "ts is 0, not a time"),
        ({"ts": "yesterday"}, "ts is 'yesterday', not a time"),
        ({"channel_values": [1]}, ""),
        ({"channel_versions": None}, "channel_versions is no mapping"),
        ({"channel_versions": ["log"]}, "channel_versions is no mapping"),
        ({"channel_versions": {"log": 1, "n": TEXT}}, "its versions are numbers and texts"),
        ({"channel_versions": {"log": [1]}}, "versions are numbers and texts"),
        ({"versions_seen": [1]}, "versions_seen is no mapping"),
        ({"versions_seen": {"count": 1}}, "versions_seen is no mapping"),
        ({"versions_seen": {"count": {"log": {}}}}, "versions are numbers and texts"),
        ({"pending_sends": 5}, "pending_sends is no list"),
        ({"updated_channels": "log"}, "updated_channels is no list"),
        ({"updated_channels": [1]}, "updated_channels is no list"),
    ],
)
def test_damaged_record_is_refused(database: Database, change: Any, why: str) -> None:
    """With its place, and what is wrong with it."""
    damage(database, "checkpoint", change)

    text = refusal(database)

    assert "thread 'bad' was not imported: " in text
    assert "checkpoint 1f" in text
    assert why in text


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ([1], ""),
        (5, ""),
        ({"source": 5}, "source is 5"),
        ({"step": "1"}, "step is '1'"),
        ({"parents": ["a"]}, "parents is no mapping"),
        ({"counters_since_delta_snapshot": 5}, "counters_since_delta_snapshot is no mapping"),
    ],
)
def test_damaged_metadata_are_refused(database: Database, change: Any, why: str) -> None:
    """What lists of threads show, and what tells checkpoints apart, must be there in its form."""
    damage(database, "metadata", change)

    text = refusal(database)

    assert "thread 'bad' was not imported: " in text
    assert why in text


def test_newer_format_is_refused_by_its_number(database: Database) -> None:
    """It is not taken for the newest one that is known."""
    damage(database, "checkpoint", {"v": 5})

    assert "is of format 5, and this tracegraph reads formats 1 to 4; a newer one may read it" in refusal(database)


@pytest.mark.parametrize("column", ["task_id", "idx", "channel"])
def test_damaged_write_is_refused(source_path: Any, column: str) -> None:
    """SQLite's columns take values of any type."""
    database = Database(str(source_path))
    damage(database, "checkpoint", {})
    with closing(sqlite3.connect(source_path)) as connection, connection:
        connection.execute(f"UPDATE writes SET {column} = x'00' WHERE rowid = (SELECT max(rowid) FROM writes)")

    assert re.search(r"a write of checkpoint 1f\S+ is damaged", refusal(database))


@pytest.mark.parametrize("column", ["checkpoint_ns", "parent_checkpoint_id"])
def test_damaged_address_is_refused(source_path: Any, column: str) -> None:
    """A checkpoint's own id is where it is looked up by."""
    database = Database(str(source_path))
    damage(database, "checkpoint", {})
    with closing(sqlite3.connect(source_path)) as connection, connection:
        connection.execute(f"UPDATE checkpoints SET {column} = x'00' WHERE rowid = (SELECT max(rowid) FROM checkpoints)")

    assert "is damaged: namespace, id and parent's id are no texts" in refusal(database)


@pytest.mark.parametrize("thread_id", ["x'00'", "CAST(x'ff' AS TEXT)"])
def test_thread_with_an_id_that_is_no_text_is_refused(source_path: Any, thread_id: str) -> None:
    """It is listed under what shows that, and nothing else is kept from being read."""
    database = Database(str(source_path))
    damage(database, "checkpoint", {})
    with closing(sqlite3.connect(source_path)) as connection, connection:
        connection.execute(f"UPDATE checkpoints SET thread_id = {thread_id}")

    with open_source(database.address) as source:
        (found,) = source.thread_ids()
        assert found in (r"b'\x00'", r"\xff")
        with pytest.raises(ThreadRefusedError, match="the source has no checkpoint under this id"):
            import_thread(source, found, InMemorySaver())


def test_record_that_is_no_text_where_text_should_be_is_refused(source_path: Any) -> None:
    """SQLite's driver would give up on the whole query."""
    database = Database(str(source_path))
    damage(database, "checkpoint", {})
    with closing(sqlite3.connect(source_path)) as connection, connection:
        connection.execute("UPDATE checkpoints SET checkpoint = CAST(x'ff' AS TEXT)")

    assert "cannot be read: TypeError" in refusal(database)


@pytest.mark.parametrize(
    ("module", "name", "held"),
    [
        ("re", "compile", ["(", 0]),
        ("langgraph.types", "Interrupt", {"value": 1, "id": [1]}),
        ("langgraph.types", "Send", [["node"], 1]),
    ],
)
def test_damaged_object_is_refused(module: str, name: str, held: Any) -> None:
    """What its class raises, or would raise later, is no traceback."""
    ormsgpack = pytest.importorskip("ormsgpack")
    code = 2 if isinstance(held, dict) else 1
    data = ormsgpack.packb(ormsgpack.Ext(code, ormsgpack.packb([module, name, held])))

    with pytest.raises(ThreadRefusedError, match="channel 'a' of checkpoint 1 cannot be read"):
        Decoder().value("msgpack", data, Place("t1", "", "1"), "channel 'a'")
