"""Importing again, importing what changed meanwhile, and what stops an import."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from app_types import Order
from langgraph_databases import THREAD, Database
from moving_programs import PROGRAMS, Names

from tracegraph.checkpoint.base import BaseCheckpointSaver
from tracegraph.checkpoint.memory import InMemorySaver
from tracegraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from tracegraph.checkpoint.sqlite import SqliteSaver
from tracegraph.interop.langgraph import Rules, SourceError, ThreadRefusedError, import_thread, open_source

THEIRS, OURS = Names("langgraph"), Names("tracegraph")


def run_theirs(database: Database, *inputs: Any, program: str = "loop", **options: Any) -> None:
    with database.saver() as theirs:
        app = PROGRAMS[program].build(THEIRS).compile(checkpointer=theirs)
        for given in inputs:
            app.invoke(given, THREAD, **options)


def moved(database: Database, target: BaseCheckpointSaver, **rules: Any) -> Any:
    with open_source(database.address) as source:
        return import_thread(source, "t1", target, Rules(**rules))


def contents(saver: BaseCheckpointSaver) -> list[Any]:
    return list(saver.list(THREAD))


class FailingSaver(InMemorySaver):
    """Cannot store more than some checkpoints, as when the process is killed or the disk is full."""

    left = 3

    def put_group(self, *args: Any, **kwargs: Any) -> None:
        self.left -= 1
        if self.left < 0:
            raise OSError("no room")
        super().put_group(*args, **kwargs)


def test_second_import_changes_nothing(database: Database) -> None:
    """It finds all of the thread."""
    run_theirs(database, {"n": 0})
    target = InMemorySaver()
    assert moved(database, target).status == "imported"
    before = contents(target)

    assert moved(database, target).status == "present"
    assert contents(target) == before


def test_import_that_was_cut_short_is_completed(database: Database) -> None:
    """By the next one."""
    run_theirs(database, {"n": 0})
    cut, whole = FailingSaver(), InMemorySaver()
    with pytest.raises(OSError, match="no room"):
        moved(database, cut)
    assert len(contents(cut)) == 3
    cut.left = 100

    assert moved(database, cut).status == moved(database, whole).status == "imported"
    assert contents(cut) == contents(whole)


def test_what_langgraph_adds_is_added(database: Database) -> None:
    """As long as the thread did not go on in both places."""
    run_theirs(database, {"n": 0})
    target = InMemorySaver()
    moved(database, target)
    run_theirs(database, {"n": 2})

    outcome = moved(database, target)

    assert (outcome.status, outcome.checkpoints) == ("imported", len(contents(target))) == ("imported", 10)
    assert moved(database, target).status == "present"


def test_thread_that_went_on_here_is_left_alone(database: Database) -> None:
    """All of the source is there, and more."""
    run_theirs(database, {"n": 0})
    target = InMemorySaver()
    moved(database, target)
    app = PROGRAMS["loop"].build(OURS).compile(checkpointer=target)
    app.invoke({"n": 2}, THREAD)
    before = contents(target)

    assert moved(database, target).status == "present"
    assert contents(target) == before


def test_thread_that_went_on_in_both_places_is_refused(database: Database) -> None:
    """Nothing tells which of the two is right."""
    run_theirs(database, {"n": 0})
    target = InMemorySaver()
    moved(database, target)
    PROGRAMS["loop"].build(OURS).compile(checkpointer=target).invoke({"n": 2}, THREAD)
    run_theirs(database, {"n": 1})
    before = contents(target)

    with pytest.raises(ThreadRefusedError, match="'t1' was not imported: .* 4 checkpoints that are not in the source") as caught:
        moved(database, target)

    assert caught.value.thread_id == "t1"
    assert contents(target) == before


def test_answer_that_langgraph_got_meanwhile_is_added(database: Database) -> None:
    """It is stored below a checkpoint that is there already; one that was given here is not taken back."""
    run_theirs(database, {"log": []}, program="questions")
    target = InMemorySaver()
    moved(database, target)
    app = PROGRAMS["questions"].build(OURS).compile(checkpointer=target)
    asked = {str(question.value): question.id for question in app.get_state(THREAD).interrupts}
    run_theirs(database, THEIRS.Command(resume={asked["first?"]: "one"}), program="questions")

    assert moved(database, target).status == "imported"

    questions = {str(question.value): question.id for question in app.get_state(THREAD).interrupts}
    assert sorted(questions) == ["second?", "{'ask': 'third?'}"]
    app.invoke(OURS.Command(resume={questions["second?"]: "two"}), THREAD)
    assert moved(database, target).status == "present"
    assert app.get_state(THREAD).values["log"] == ["quick", "two one two"]
    run_theirs(database, THEIRS.Command(resume={questions["{'ask': 'third?'}"]: "three"}), program="questions")
    with pytest.raises(ThreadRefusedError, match="both here and in the source, tasks of checkpoint .* have gone on since"):
        moved(database, target)


def test_another_thread_of_the_same_name_is_refused(database: Database) -> None:
    """Nothing of it is touched."""
    run_theirs(database, {"n": 0})
    target = InMemorySaver()
    PROGRAMS["loop"].build(OURS).compile(checkpointer=target).invoke({"n": 0}, THREAD)
    before = contents(target)

    with pytest.raises(ThreadRefusedError, match="Delete it there first"):
        moved(database, target)
    assert contents(target) == before


def test_checkpoint_with_other_content_is_refused(database: Database) -> None:
    """Same id, but not the same checkpoint."""
    run_theirs(database, {"n": 0})
    target = InMemorySaver()
    moved(database, target)
    newest = contents(target)[0]
    target.put(newest.parent_config, newest.checkpoint | {"ts": "2020-01-01T00:00:00+00:00"}, newest.metadata, {})

    with pytest.raises(ThreadRefusedError, match=f"checkpoint {newest.checkpoint['id']} too, but with other content"):
        moved(database, target)


def test_unknown_class_refuses_the_thread_and_names_the_way_out(database: Database) -> None:
    """Before anything is written; allowed, the object comes to life, and as data it is what was stored."""
    run_theirs(database, {"n": 0, "log": [Order(7)]})
    target = InMemorySaver()

    with pytest.raises(ThreadRefusedError, match=r"app_types\.Order \(channel '__start__' of .*--allow app_types:Order"):
        moved(database, target)

    assert contents(target) == []
    assert moved(database, target, allowed=(Order,)).kept_as_data == {}
    assert contents(target)[0].checkpoint["channel_values"]["log"][0] == Order(7)
    other = InMemorySaver()
    assert list(moved(database, other, keeps_unknown=True).kept_as_data) == ["app_types.Order"]
    assert contents(other)[0].checkpoint["channel_values"]["log"][0] == {"number": 7, "lines": []}


def test_value_that_our_serialiser_refuses_undoes_the_import(source_path: Path) -> None:
    """Found only when it is written, so what was written before is taken back."""
    run_theirs(Database(str(source_path)), {"n": 0})

    class Choosy(JsonPlusSerializer):
        def dumps_typed(self, obj: Any) -> tuple[str, bytes]:
            if obj == 2:
                raise TypeError("no twos")
            return super().dumps_typed(obj)

    target = InMemorySaver(serde=Choosy())

    with pytest.raises(ThreadRefusedError, match="channel 'n' holds a int that cannot be saved"):
        moved(Database(str(source_path)), target)
    assert contents(target) == []


def test_delta_channel_that_became_a_reducer_channel_is_folded(database: Database) -> None:
    """The graph may have changed since."""
    run_theirs(database, {"n": 0, "log": ["in"]}, program="delta")
    target = InMemorySaver()

    moved(database, target)

    app = PROGRAMS["loop"].build(OURS).compile(checkpointer=target)
    assert app.get_state(THREAD).values["log"] == ["in", *(f"count {n}" for n in range(5))]


def test_delta_channel_is_kept_as_what_it_grew_by(source_path: Path) -> None:
    """A long history takes room once, not once for each checkpoint."""
    database = Database(str(source_path))
    given = {"n": 1, "log": ["x" * 1000]}
    with database.saver() as theirs:
        app = PROGRAMS["delta"].build(THEIRS, snapshot_frequency=1000).compile(checkpointer=theirs)
        for _ in range(20):
            app.invoke(given, THREAD)
            app.invoke(THEIRS.Command(resume={}), THREAD)
        expected = app.get_state(THREAD).values["log"]
    with SqliteSaver.from_conn_string(":memory:") as target:
        moved(database, target)

        found = PROGRAMS["delta"].build(OURS).compile(checkpointer=target).get_state(THREAD).values["log"]
        (size,) = target.conn.execute("SELECT sum(length(value)) FROM tracegraph_blobs WHERE channel = 'log'").fetchone()
    assert found == expected
    assert len("".join(expected)) > 20_000
    assert size < 4 * len("".join(expected))


def test_delta_channel_whose_past_is_gone_is_refused(source_path: Path) -> None:
    """LangGraph would take it for empty."""
    run_theirs(Database(str(source_path)), {"n": 0, "log": ["in"]}, program="delta")
    with closing(sqlite3.connect(source_path)) as connection, connection:
        connection.execute("DELETE FROM checkpoints WHERE checkpoint_id IN (SELECT min(checkpoint_id) FROM checkpoints)")

    with pytest.raises(ThreadRefusedError, match="channel 'log' of .* is gone, so its value cannot be known"):
        moved(Database(str(source_path)), InMemorySaver())


def test_damaged_record_is_refused(source_path: Path) -> None:
    """It names what is missing, and where."""
    run_theirs(Database(str(source_path)), {"n": 0})
    with closing(sqlite3.connect(source_path)) as connection, connection:
        connection.execute("UPDATE checkpoints SET checkpoint = ?, type = 'msgpack'", (b"\x81\xa1v\x04",))

    with pytest.raises(ThreadRefusedError, match="'t1' .* the record of checkpoint .* is damaged: it lacks ts, channel_values"):
        moved(Database(str(source_path)), InMemorySaver())


def test_metadata_that_is_no_json_is_refused(source_path: Path) -> None:
    """The same for what lies beside the record."""
    run_theirs(Database(str(source_path)), {"n": 0})
    with closing(sqlite3.connect(source_path)) as connection, connection:
        connection.execute("UPDATE checkpoints SET metadata = 'x'")

    with pytest.raises(ThreadRefusedError, match="the metadata of checkpoint .* is no JSON object"):
        moved(Database(str(source_path)), InMemorySaver())


def test_writing_while_it_is_read_is_noticed(source_path: Path) -> None:
    """A file that nobody has open is read without locks, so somebody may come."""
    database = Database(str(source_path))
    run_theirs(database, {"n": 0})

    with pytest.raises(SourceError, match="was written to while it was read; import it again"), open_source(database.address):
        run_theirs(database, {"n": 2})


def test_open_database_is_read_as_it_was_at_the_beginning(database: Database) -> None:
    """What LangGraph writes in the meantime is for the next import."""
    target = InMemorySaver()
    with database.saver() as theirs:
        app = PROGRAMS["loop"].build(THEIRS).compile(checkpointer=theirs)
        app.invoke({"n": 0}, THREAD)
        with open_source(database.address) as source:
            assert source.thread_ids() == ["t1"]
            app.invoke({"n": 2}, THREAD)
            app.invoke({"n": 2}, {"configurable": {"thread_id": "t2"}})
            assert source.thread_ids() == ["t1"]
            assert import_thread(source, "t1", target).checkpoints == 6
    assert len(contents(target)) == 6
