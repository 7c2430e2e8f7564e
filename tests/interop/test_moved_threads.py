"""Threads that real LangGraph runs left behind, as tracegraph finds them, and goes on with them."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import pytest
from langgraph_databases import THREAD, Database, fingerprint, history, without_ids
from moving_programs import PROGRAMS, Names, Program, run

from tracegraph.checkpoint.base import BaseCheckpointSaver
from tracegraph.checkpoint.memory import InMemorySaver
from tracegraph.checkpoint.sqlite import SqliteSaver
from tracegraph.interop.langgraph import import_thread, open_source

THEIRS, OURS = Names("langgraph"), Names("tracegraph")


def target_saver(kind: str) -> AbstractContextManager[BaseCheckpointSaver]:
    return nullcontext(InMemorySaver()) if kind == "memory" else SqliteSaver.from_conn_string(":memory:")


def moved(database: Database, target: BaseCheckpointSaver) -> Any:
    with open_source(database.address) as source:
        return import_thread(source, "t1", target)


@pytest.fixture(params=PROGRAMS)
def program(request: pytest.FixtureRequest) -> Program:
    return PROGRAMS[request.param]


@pytest.mark.parametrize("durability", ["sync", "exit"])
@pytest.mark.parametrize("kind", ["memory", "sqlite"])
def test_history_is_the_same_and_the_run_goes_on_the_same(
    program: Program, database: Database, durability: str, kind: str
) -> None:
    """Every checkpoint has its values, ids, tasks and questions; answers and new inputs have the results that LangGraph gives."""
    with database.saver() as theirs, target_saver(kind) as target:
        their_app = program.build(THEIRS).compile(checkpointer=theirs)
        run(their_app, program.before(THEIRS), THEIRS, THREAD, durability=durability)
        expected = history(their_app)

        outcome = moved(database, target)

        our_app = program.build(OURS).compile(checkpointer=target)
        assert outcome.status == "imported"
        assert outcome.checkpoints >= len(expected) > 0
        assert history(our_app) == expected
        assert our_app.get_state(THREAD).next == their_app.get_state(THREAD).next
        ours = run(our_app, program.after(OURS), OURS, THREAD)
        assert without_ids(ours) == without_ids(run(their_app, program.after(THEIRS), THEIRS, THREAD))


def test_state_of_subgraphs_moves_too(database: Database) -> None:
    """The namespaces of a subgraph that waits, and of one that lives on between calls."""
    program = PROGRAMS["subgraphs"]
    target = InMemorySaver()
    with database.saver() as theirs:
        their_app = program.build(THEIRS).compile(checkpointer=theirs)
        run(their_app, program.before(THEIRS), THEIRS, THREAD)
        (waiting,) = their_app.get_state(THREAD, subgraphs=True).tasks
        places = [waiting.state.config["configurable"]["checkpoint_ns"], "lasting"]
        configs = [{"configurable": {"thread_id": "t1", "checkpoint_ns": ns}} for ns in places]
        expected = [history(their_app, config) for config in configs]
    our_app = program.build(OURS).compile(checkpointer=target)

    moved(database, target)

    (found,) = our_app.get_state(THREAD, subgraphs=True).tasks
    assert found.state.values == waiting.state.values
    assert [question.id for question in found.interrupts] == [question.id for question in waiting.interrupts]
    assert [len(each) for each in expected] == [3, 6]
    assert [history(our_app, config) for config in configs] == expected


def test_finished_siblings_of_a_failed_task_do_not_run_again(database: Database) -> None:
    """Task ids are the same in both libraries, so results that wait for the rest of their superstep carry over."""
    ran = []

    def build(names: Names, *, fails: bool) -> Any:
        def good(state: Any) -> Any:
            ran.append(names.library)
            return {"n": 1}

        def bad(state: Any) -> Any:
            if fails:
                raise ValueError("boom")
            return {"log": ["better"]}

        builder = names.StateGraph(PROGRAMS["loop"].build(names).state_schema).add_node("good", good).add_node("bad", bad)
        return builder.add_edge(names.START, "good").add_edge(names.START, "bad")

    target = InMemorySaver()
    with database.saver() as theirs:
        their_app = build(THEIRS, fails=True).compile(checkpointer=theirs)
        with pytest.raises(ValueError, match="boom"):
            their_app.invoke({"n": 0}, THREAD)
    moved(database, target)
    our_app = build(OURS, fails=False).compile(checkpointer=target)
    (good, bad) = sorted(our_app.get_state(THREAD).tasks, key=lambda task: task.name, reverse=True)

    assert our_app.invoke(None, THREAD) == {"n": 1, "log": ["better"]}
    assert (good.result, bad.error) == ({"n": 1}, "ValueError('boom')")
    assert ran == ["langgraph"]


@pytest.mark.parametrize("name", ["loop", "delta"])
def test_branches_move_too(database: Database, name: str) -> None:
    """A thread that was forked keeps both branches, and replays from a checkpoint of the abandoned one."""
    program = PROGRAMS[name]
    target = InMemorySaver()
    with database.saver() as theirs:
        their_app = program.build(THEIRS).compile(checkpointer=theirs)
        their_app.invoke({"n": 0, "log": ["in"]}, THREAD)
        old = [found.config for found in their_app.get_state_history(THREAD)][2]
        their_app.update_state(old, {"log": ["another way"]})
        latest = their_app.invoke(None, THREAD)
        expected = history(their_app)
        moved(database, target)
        our_app = program.build(OURS).compile(checkpointer=target)

        assert history(our_app) == expected
        assert our_app.get_state(THREAD).values["log"] == latest["log"]
        assert without_ids(our_app.invoke(None, old)) == without_ids(their_app.invoke(None, old))


def test_file_is_not_changed_and_nothing_is_put_beside_it(source_path: Path) -> None:
    """Neither while LangGraph has it open, nor when it is closed and its log is gone."""
    program, database = PROGRAMS["loop"], Database(str(source_path))
    with database.saver() as theirs:
        program.build(THEIRS).compile(checkpointer=theirs).invoke({"n": 0}, THREAD)
        data = {name: digest for name, digest in fingerprint(source_path).items() if not name.endswith("-shm")}
        assert moved(database, InMemorySaver()).checkpoints == 6
        # Readers note in the shared memory up to where they read, as any other reader does.
        assert {name: digest for name, digest in fingerprint(source_path).items() if not name.endswith("-shm")} == data
        assert len(data) == 2
    closed = fingerprint(source_path)

    assert moved(database, InMemorySaver()).checkpoints == 6

    assert fingerprint(source_path) == closed
    assert list(closed) == ["langgraph.db"]


def test_postgres_is_read_in_a_read_only_transaction(postgres_url: str) -> None:
    """Which the server enforces."""
    import psycopg

    database = Database(postgres_url)
    with database.saver() as theirs:
        theirs.setup()
    with open_source(postgres_url) as source:
        connection = source._connection  # type: ignore[attr-defined]

        with pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
            connection.execute("DELETE FROM checkpoints")
        assert connection.info.transaction_status.name == "INERROR"
        connection.rollback()


def test_postgres_is_read_through_a_pooler(postgres_url: str, pgbouncer_url: str) -> None:
    """There, nothing outlives a transaction: no prepared statement, and no cursor."""
    program = PROGRAMS["loop"]
    with Database(postgres_url).saver() as theirs:
        theirs.setup()
        program.build(THEIRS).compile(checkpointer=theirs).invoke({"n": 0}, THREAD)

    assert moved(Database(pgbouncer_url), InMemorySaver()).checkpoints == 6
