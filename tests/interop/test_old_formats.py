"""Databases of savers that count in other ways, and of versions of LangGraph that cannot be installed beside this one.

The old formats are written by hand, after what LangGraph's own migrations expect.
"""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.checkpoint.sqlite import SqliteSaver as TheirSqliteSaver
from langgraph.types import Interrupt as TheirInterrupt
from langgraph.types import Send as TheirSend
from langgraph_databases import THREAD, Database, history, without_ids
from moving_programs import PROGRAMS, Names, run

from tracegraph.checkpoint.base.id import uuid6
from tracegraph.checkpoint.sqlite import SqliteSaver
from tracegraph.graph import END, START, StateGraph
from tracegraph.interop.langgraph import Rules, ThreadRefusedError, import_thread, open_source
from tracegraph.interop.langgraph.old_formats import upgrade
from tracegraph.interop.langgraph.versions import with_text_versions
from tracegraph.types import Command, Send, interrupt

THEIRS, OURS = Names("langgraph"), Names("tracegraph")
OLD_TABLES = """
CREATE TABLE checkpoints (thread_id TEXT, checkpoint_ns TEXT, checkpoint_id TEXT, parent_checkpoint_id TEXT, type TEXT,
    checkpoint BLOB, metadata BLOB, PRIMARY KEY (thread_id, checkpoint_ns, checkpoint_id));
CREATE TABLE writes (thread_id TEXT, checkpoint_ns TEXT, checkpoint_id TEXT, task_id TEXT, idx INTEGER, channel TEXT,
    type TEXT, value BLOB, PRIMARY KEY (thread_id, checkpoint_ns, checkpoint_id, task_id, idx));
"""


class OldDatabase:
    """A SQLite file from before writes had a task path."""

    def __init__(self, path: Path, kind: str = "msgpack") -> None:
        self.path = path
        self.kind = kind
        self.ids: list[str] = []
        self.connection = sqlite3.connect(path)
        self.connection.executescript(OLD_TABLES)

    def add(self, v: int, values: Any, versions: Any, seen: Any, step: int, **more: Any) -> str:
        """Add a checkpoint below the one before."""
        made = str(uuid6(clock_seq=step))
        record = {"v": v, "id": made, "ts": "2024-01-01T00:00:00+00:00", "channel_values": values, "channel_versions": versions}
        record |= {"versions_seen": seen} | more
        data = json.dumps(record).encode() if self.kind == "json" else JsonPlusSerializer().dumps_typed(record)[1]
        metadata = json.dumps({"source": "loop", "step": step, "parents": {}, "writes": {"a": {"x": 1}}})
        row = ("t1", "", made, self.ids[-1] if self.ids else None, self.kind, data, metadata.encode())
        self.connection.execute("INSERT INTO checkpoints VALUES (?, ?, ?, ?, ?, ?, ?)", row)
        self.ids.append(made)
        return made

    def write(self, task_id: str, idx: int, channel: str, value: Any) -> None:
        """Add a write below the newest checkpoint."""
        row = ("t1", "", self.ids[-1], task_id, idx, channel, *JsonPlusSerializer().dumps_typed(value))
        self.connection.execute("INSERT INTO writes VALUES (?, ?, ?, ?, ?, ?, ?, ?)", row)

    def move(self, target: SqliteSaver, **rules: Any) -> Any:
        self.connection.commit()
        self.connection.close()
        with open_source(str(self.path)) as source:
            return import_thread(source, "t1", target, Rules(**rules))


def chain() -> Any:
    """A graph a -> b -> c that says which nodes ran."""
    builder = StateGraph(PROGRAMS["loop"].build(OURS).state_schema)
    for name in "abc":
        builder.add_node(name, lambda state, name=name: {"log": [name]})
    return builder.add_edge(START, "a").add_edge("a", "b").add_edge("b", "c").add_edge("c", END)


@pytest.mark.parametrize("kind", ["msgpack", "json"])
def test_format_1_goes_on_behind_the_node_it_had_reached(source_path: Path, kind: str) -> None:
    """Nodes wrote channels of their own name; b had run, so c is next, and its trigger is known from an earlier round."""
    old = OldDatabase(source_path, kind)
    # A first round ran to the end, and showed the edges a -> b and b -> c; in the second one b has just run.
    first = {"__start__": {"__start__": 1}, "a": {"start:a": 2}, "b": {"a": 3}, "c": {"b": 4}}
    old.add(1, {"log": ["a", "b", "c"], "c": "c"}, {"log": 5, "__start__": 2, "start:a": 3, "a": 4, "b": 5, "c": 5}, first, 3)
    second = {"__start__": {"__start__": 6}, "a": {"start:a": 7}, "b": {"a": 8}, "c": {"b": 4}}
    old.add(
        1,
        {"log": ["a", "b", "c", "a", "b"], "b": "b"},
        {"log": 9, "__start__": 7, "start:a": 8, "a": 9, "b": 9, "c": 6},
        second,
        6,
    )
    with SqliteSaver.from_conn_string(":memory:") as target:
        assert old.move(target).checkpoints == 2
        app = chain().compile(checkpointer=target)
        state = app.get_state(THREAD)
        assert (state.values, state.next) == ({"log": ["a", "b", "c", "a", "b"]}, ("c",))
        assert "writes" not in state.metadata

        assert app.invoke(None, THREAD) == {"log": ["a", "b", "c", "a", "b", "c"]}
        assert app.invoke({"log": ["new"]}, THREAD)["log"][-4:] == ["new", "a", "b", "c"]


def test_edge_that_never_ran_is_taken_from_the_graph(source_path: Path) -> None:
    """A thread that stopped before its first b shows no edge to it."""
    old = OldDatabase(source_path)
    old.add(
        2,
        {"log": ["a"], "a": "a"},
        {"log": 3, "__start__": 2, "start:a": 3, "a": 3},
        {"__start__": {"__start__": 1}, "a": {"start:a": 2}},
        1,
    )
    with SqliteSaver.from_conn_string(":memory:") as target:
        app = chain().compile(checkpointer=target)
        old.move(target, graph=app)

        assert app.get_state(THREAD).next == ("b",)
        assert app.invoke(None, THREAD) == {"log": ["a", "b", "c"]}


def test_branches_of_format_2_trigger_their_targets() -> None:
    """Several channels become one, of the newest version; what was seen goes with it."""
    checkpoint = {
        "v": 2,
        "channel_values": {"branch:a:route:b": "a", "start:c": "__start__"},
        "channel_versions": {"branch:a:route:b": 3, "branch:x:route:b": 5, "start:c": 2},
        "versions_seen": {"b": {"branch:a:route:b": 2, "branch:x:route:b": 5}, "c": {}, "__interrupt__": {"branch:a:route:b": 3}},
    }

    upgrade(checkpoint, [], {})

    assert checkpoint == {
        "v": 4,
        "channel_values": {"branch:to:b": "a", "branch:to:c": "__start__"},
        "channel_versions": {"branch:to:b": 5, "branch:to:c": 2},
        "versions_seen": {"b": {"branch:to:b": 5}, "c": {}, "__interrupt__": {"branch:to:b": 3}},
    }


@pytest.mark.parametrize("place", ["in the checkpoint", "among the parent's writes"])
def test_pending_sends_of_format_3_are_sent(source_path: Path, place: str) -> None:
    """They were no channel yet."""
    sends = [TheirSend("work", {"n": 1}), TheirSend("work", {"n": 2})]
    old = OldDatabase(source_path)
    old.add(3, {"log": []}, {"log": 2, "__start__": 2, "branch:to:fan": 2}, {"__start__": {"__start__": 1}}, 0)
    for at, send in enumerate(sends):
        old.write("11111111-1111-1111-1111-111111111111", at, "__pregel_tasks", send)
    held = {"pending_sends": sends} if place == "in the checkpoint" else {}
    versions = {"log": 3, "__start__": 2, "branch:to:fan": 3}
    old.add(3, {"log": ["fan"]}, versions, {"__start__": {"__start__": 1}, "fan": {"branch:to:fan": 2}}, 1, **held)
    builder = StateGraph(PROGRAMS["loop"].build(OURS).state_schema).add_node("fan", lambda state: {"log": ["fan"]})
    builder.add_node("work", lambda state: {"log": [f"work {state['n']}"]}).add_edge(START, "fan")
    builder.add_conditional_edges("fan", lambda state: [Send("work", {"n": 0})], ["work"])
    with SqliteSaver.from_conn_string(":memory:") as target:
        old.move(target)
        app = builder.compile(checkpointer=target)

        assert app.get_state(THREAD).next == ("work", "work")
        assert app.invoke(None, THREAD) == {"log": ["fan", "work 1", "work 2"]}


def test_pending_sends_of_format_3_are_found_in_postgres(postgres_url: str) -> None:
    """As LangGraph itself finds them."""
    import psycopg

    program, database = PROGRAMS["sends"], Database(postgres_url)
    with database.saver() as theirs, SqliteSaver.from_conn_string(":memory:") as target:
        theirs.setup()
        their_app = program.build(THEIRS).compile(checkpointer=theirs)
        their_app.invoke({"log": []}, THREAD)
        with psycopg.connect(postgres_url) as connection:
            connection.execute(
                "UPDATE checkpoints SET checkpoint = jsonb_set(checkpoint, '{v}', '3') #- '{channel_versions,__pregel_tasks}'"
            )
        with open_source(postgres_url) as source:
            import_thread(source, "t1", target)
        our_app = program.build(OURS).compile(checkpointer=target)

        assert our_app.get_state(THREAD).next == their_app.get_state(THREAD).next == ("work",)
        ours = run(our_app, program.after(OURS), OURS, THREAD)
        assert ours == run(their_app, program.after(THEIRS), THEIRS, THREAD)


def test_question_of_format_1_is_asked_again(source_path: Path) -> None:
    """Tasks had other ids then, so nobody can say whose question it was."""
    old = OldDatabase(source_path)
    seen = {"__start__": {"__start__": 1}}
    old.add(1, {"log": ["in"], "start:a": "__start__"}, {"log": 2, "__start__": 2, "start:a": 2}, seen, 0)
    old.write("11111111-1111-1111-1111-111111111111", -3, "__interrupt__", [TheirInterrupt("what?", id="0" * 32)])
    builder = StateGraph(PROGRAMS["loop"].build(OURS).state_schema).add_node("a", lambda state: {"log": [interrupt("what?")]})
    with SqliteSaver.from_conn_string(":memory:") as target:
        old.move(target)
        app = builder.add_edge(START, "a").compile(checkpointer=target)

        (question,) = app.invoke(None, THREAD)["__interrupt__"]
        assert question.value == "what?"
        assert app.invoke(Command(resume={question.id: "this"}), THREAD) == {"log": ["in", "this"]}


class CountingSaver(TheirSqliteSaver):
    """A saver of somebody's own, which counts in numbers as LangGraph's base class does."""

    step: Any = 1

    def get_next_version(self, current: Any, channel: None) -> Any:
        return (current or 0) + self.step


@pytest.mark.parametrize("step", [1, 0.25])
@pytest.mark.parametrize("name", ["loop", "questions", "sends"])
def test_numbers_become_texts_of_the_same_order(source_path: Path, name: str, step: float) -> None:
    """Our savers go on in texts, which could not be compared with numbers."""
    program = PROGRAMS[name]
    with closing(sqlite3.connect(source_path, check_same_thread=False)) as connection:
        theirs = CountingSaver(connection)
        theirs.step = step
        their_app = program.build(THEIRS).compile(checkpointer=theirs)
        run(their_app, program.before(THEIRS), THEIRS, THREAD)
        with SqliteSaver.from_conn_string(":memory:") as target, open_source(str(source_path)) as source:
            import_thread(source, "t1", target)
            our_app = program.build(OURS).compile(checkpointer=target)

            assert history(our_app) == history(their_app)
            ours = run(our_app, program.after(OURS), OURS, THREAD)
        assert without_ids(ours) == without_ids(run(their_app, program.after(THEIRS), THEIRS, THREAD))


def test_branches_that_count_alike_keep_their_own_values(source_path: Path) -> None:
    """Two values of one number must not become one value."""
    with closing(sqlite3.connect(source_path, check_same_thread=False)) as connection:
        their_app = PROGRAMS["loop"].build(THEIRS).compile(checkpointer=CountingSaver(connection))
        their_app.invoke({"n": 0}, THREAD)
        old = [found.config for found in their_app.get_state_history(THREAD)][2]
        for text in ("left", "right"):
            their_app.update_state(old, {"log": [text]})
        with SqliteSaver.from_conn_string(":memory:") as target, open_source(str(source_path)) as source:
            import_thread(source, "t1", target)
            our_app = PROGRAMS["loop"].build(OURS).compile(checkpointer=target)

            assert history(our_app) == history(their_app)
            newest = list(our_app.get_state_history(THREAD))[:2]
            assert [found.values["log"][-1] for found in newest] == ["right", "left"]


def test_versions_grow_as_they_did() -> None:
    """Whatever they were."""
    numbers = [0, 1, 2, 9, 10, 10.5, 10.75, 11, 10**20]
    texts = []
    for number in numbers:
        checkpoint = {"channel_versions": {"a": number}, "versions_seen": {"n": {"a": number}, "older": {"a": number - 1}}}
        if number:
            with_text_versions(checkpoint, lambda channel: 10**16 - 1)
            assert checkpoint["versions_seen"]["n"]["a"] == checkpoint["channel_versions"]["a"]
            assert checkpoint["versions_seen"]["older"]["a"] < checkpoint["channel_versions"]["a"]
            texts.append(checkpoint["channel_versions"]["a"])

    assert all(old < new for old, new in pairwise(texts))


@pytest.mark.parametrize("version", ["v12", -1, None, True])
def test_version_of_unknown_order_is_refused(source_path: Path, version: Any) -> None:
    """Nothing could be put behind it."""
    old = OldDatabase(source_path)
    old.add(4, {"log": []}, {"log": version}, {}, 0)

    with (
        SqliteSaver.from_conn_string(":memory:") as target,
        pytest.raises(ThreadRefusedError, match=f"channel 'log' has version {version!r}"),
    ):
        old.move(target)


def test_versions_of_langgraph_stay_as_they_are(database: Database) -> None:
    """A counter that decides the order, and a number that tells branches apart."""
    with database.saver() as theirs:
        app = PROGRAMS["loop"].build(THEIRS).compile(checkpointer=theirs)
        app.invoke({"n": 0}, THREAD)
        expected = [found.checkpoint["channel_versions"] for found in theirs.list(THREAD)]
    with SqliteSaver.from_conn_string(":memory:") as target, open_source(database.address) as source:
        import_thread(source, "t1", target)

        assert [found.checkpoint["channel_versions"] for found in target.list(THREAD)] == expected
