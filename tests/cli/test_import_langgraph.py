"""`tracegraph import-langgraph` as its users run it."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from app_types import Order
from command_line import GRAPHS, Command
from langgraph_databases import Database, fingerprint, history
from moving_programs import PROGRAMS, Names

from tracegraph.checkpoint.postgres import PostgresSaver
from tracegraph.checkpoint.sqlite import SqliteSaver
from tracegraph.types import Command as ResumeCommand

THEIRS, OURS = Names("langgraph"), Names("tracegraph")
SUPPORT = Path(__file__).parent.parent / "support"


def thread(thread_id: str) -> Any:
    return {"configurable": {"thread_id": thread_id}}


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A LangGraph file with a finished thread and one that waits for an answer."""
    folder = tmp_path / "theirs"
    folder.mkdir()
    path = folder / "langgraph.db"
    with Database(str(path)).saver() as saver:
        PROGRAMS["loop"].build(THEIRS).compile(checkpointer=saver).invoke({"n": 0}, thread("done"))
        PROGRAMS["sends"].build(THEIRS).compile(checkpointer=saver).invoke({"log": []}, thread("waiting"))
    return path


def add_thread(source: Path, thread_id: str, program: str, given: Any) -> None:
    with Database(str(source)).saver() as saver:
        PROGRAMS[program].build(THEIRS).compile(checkpointer=saver).invoke(given, thread(thread_id))


def test_all_threads_are_imported_and_the_source_stays_as_it_was(command: Command, source: Path, tmp_path: Path) -> None:
    """Byte by byte; the waiting thread is then answered."""
    before = fingerprint(source)
    target = tmp_path / "ours.db"

    done = command("import-langgraph", str(source), "--db", str(target))

    assert (done.code, done.out) == (0, "done: 6 checkpoints imported\nwaiting: 3 checkpoints imported\n")
    assert done.err == f"2 threads imported, 0 were there already, 0 refused: the checkpoint database {str(target)!r}\n"
    assert fingerprint(source) == before
    with SqliteSaver.from_conn_string(target) as ours, Database(str(source)).saver() as theirs:
        app = PROGRAMS["sends"].build(OURS).compile(checkpointer=ours)
        their_app = PROGRAMS["sends"].build(THEIRS).compile(checkpointer=theirs)
        assert history(app, thread("waiting")) == history(their_app, thread("waiting"))
        assert app.invoke(ResumeCommand(resume="this"), thread("waiting")) == {
            "log": ["fan", "work 0", "work 1 this", "work 2", "last"]
        }


def test_second_import_finds_everything_there(command: Command, source: Path, tmp_path: Path) -> None:
    """And says so."""
    arguments = ("import-langgraph", str(source), "--db", str(tmp_path / "ours.db"), "--json")
    first, second = command(*arguments), command(*arguments)

    assert [each["status"] for each in first.data] == ["imported", "imported"]
    assert second.data == [
        {"thread_id": "done", "status": "present", "checkpoints": 6, "kept_as_data": {}},
        {"thread_id": "waiting", "status": "present", "checkpoints": 3, "kept_as_data": {}},
    ]
    assert second.code == 0
    assert "0 threads imported, 2 were there already, 0 refused" in second.err


def test_default_database_is_beside_the_trace_store(command: Command, source: Path, tmp_path: Path) -> None:
    """Where the other commands look for it."""
    done = command("import-langgraph", str(source), "--thread", "done")

    assert (done.code, done.out) == (0, "done: 6 checkpoints imported\n")
    with SqliteSaver.from_conn_string(tmp_path / "home" / "checkpoints.db") as ours:
        assert {found.config["configurable"]["thread_id"] for found in ours.list(None)} == {"done"}


def test_one_refused_thread_does_not_keep_the_others(command: Command, source: Path, tmp_path: Path) -> None:
    """The code says that there is one, and a line why."""
    add_thread(source, "strange", "loop", {"n": 0, "log": [Order(1)]})
    arguments = ("import-langgraph", str(source), "--db", str(tmp_path / "ours.db"), "--json")

    done = command(*arguments)

    assert done.code == 1
    assert [each["status"] for each in done.data] == ["imported", "imported", "refused"]
    assert "app_types.Order (channel '__start__' of checkpoint" in done.err.splitlines()[0]
    assert "--allow app_types:Order" in done.err
    allowed = command(*arguments, "--allow", "app_types:Order", env={"PYTHONPATH": path_with(SUPPORT)})
    assert (allowed.code, [each["status"] for each in allowed.data]) == (0, ["present", "present", "imported"])


def test_damaged_thread_does_not_keep_the_others(command: Command, source: Path, tmp_path: Path) -> None:
    """JSON stays JSON, and what was imported can be listed."""
    add_thread(source, "bad", "loop", {"n": 0})
    with closing(sqlite3.connect(source)) as connection, connection:
        newer = "CAST(replace(checkpoint, x'a17604', x'a17605') AS BLOB)"
        connection.execute(f"UPDATE checkpoints SET checkpoint = {newer} WHERE thread_id = 'bad'")
    target = str(tmp_path / "ours.db")

    done = command("import-langgraph", str(source), "--db", target, "--json")

    assert done.code == 1
    assert {each["thread_id"]: each["status"] for each in done.data} == {
        "done": "imported",
        "waiting": "imported",
        "bad": "refused",
    }
    assert done.err.startswith("error: [TG232] thread 'bad' was not imported: checkpoint ")
    assert "is of format 5" in done.err.splitlines()[0]
    assert {each["thread_id"] for each in command("threads", "--db", target, "--json").data} == {"done", "waiting"}


def test_unknown_classes_can_be_kept_as_data(command: Command, source: Path, tmp_path: Path) -> None:
    """Which classes, and where, is said for each thread."""
    add_thread(source, "strange", "loop", {"n": 0, "log": [Order(1)]})

    done = command("import-langgraph", str(source), "--db", str(tmp_path / "ours.db"), "--unknown-as-data")

    assert done.code == 0
    assert "strange: objects of app_types.Order are kept as plain data (channel '__start__' of checkpoint" in done.err


def test_graph_is_asked_for_the_edges_of_the_first_formats(command: Command, source: Path, tmp_path: Path) -> None:
    """One that does not load is told before anything is read."""
    arguments = ("import-langgraph", str(source), "--db", str(tmp_path / "ours.db"), "--graph")

    done = command(*arguments, f"{GRAPHS}:good")
    wrong = command(*arguments, f"{GRAPHS}:nothing")

    assert (done.code, wrong.code) == (0, 2)
    assert "there is no 'nothing'" in wrong.err


def path_with(*folders: Path) -> str:
    import os

    return os.pathsep.join([*map(str, folders), os.environ.get("PYTHONPATH", "")])


def test_neither_langgraph_nor_langchain_has_to_be_installed(command: Command, source: Path, tmp_path: Path) -> None:
    """Messages become ours then."""
    add_thread(source, "chat", "messages", {"messages": [{"role": "human", "content": "find x", "id": "h1"}]})
    blocked = tmp_path / "blocked"
    for name in ("langgraph", "langchain_core", "ormsgpack"):
        (blocked / name).mkdir(parents=True)
        (blocked / name / "__init__.py").write_text("raise ImportError('not installed')")
    target = tmp_path / "ours.db"

    done = command("import-langgraph", str(source), "--db", str(target), env={"PYTHONPATH": path_with(blocked)})

    assert (done.code, done.out.splitlines()[-1]) == (0, "chat: 3 checkpoints imported"), done.err
    with SqliteSaver.from_conn_string(target) as ours:
        human, ai = ours.get(thread("chat"))["channel_values"]["messages"]
    assert [(type(each).__module__, type(each).__name__) for each in (human, ai)] == [
        ("tracegraph.messages.base", "HumanMessage"),
        ("tracegraph.messages.base", "AIMessage"),
    ]
    assert ai.tool_calls == [{"name": "search", "args": {"q": "x"}, "id": "c1", "type": "tool_call"}]


def test_postgres_can_be_the_target(command: Command, source: Path, postgres_url: str) -> None:
    """A URL of a database that may be empty."""
    done = command("import-langgraph", str(source), "--db", postgres_url)

    assert (done.code, done.out) == (0, "done: 6 checkpoints imported\nwaiting: 3 checkpoints imported\n"), done.err
    assert "postgres@" not in done.err
    with PostgresSaver.from_conn_string(postgres_url) as ours:
        app = PROGRAMS["sends"].build(OURS).compile(checkpointer=ours)
        assert app.invoke(ResumeCommand(resume="this"), thread("waiting"))["log"][-1] == "last"


def test_postgres_is_imported_from_and_to(command: Command, postgres_url: str) -> None:
    """Even within one database: the tables have other names."""
    with Database(postgres_url).saver() as saver:
        saver.setup()
        PROGRAMS["loop"].build(THEIRS).compile(checkpointer=saver).invoke({"n": 0}, thread("done"))

    done = command("import-langgraph", postgres_url, "--db", postgres_url)

    assert (done.code, done.out) == (0, "done: 6 checkpoints imported\n"), done.err


def test_postgres_that_is_not_langgraph_s_is_refused(command: Command, postgres_url: str) -> None:
    """And one that is not there; a password is not shown."""
    empty = command("import-langgraph", postgres_url)
    absent = command("import-langgraph", "postgresql://me:secret@localhost:1/none")

    assert (empty.code, absent.code) == (2, 2)
    assert "is no database of LangGraph's PostgresSaver: it has no table 'checkpoints'" in empty.err
    assert "the database none on localhost cannot be read" in absent.err
    assert "secret" not in absent.err


@pytest.mark.parametrize(
    "address",
    [
        "postgresql://u:s3cr3t/pw@127.0.0.1:1/db",
        "postgresql://u:s3cr3t@pw@127.0.0.1:1/db",
        "postgresql://u:s3cr3t pw@127.0.0.1:1/db",
        "postgresql://u:s3cr3t@[bad/db",
        "postgresql://u:s3cr3t%zz@127.0.0.1:1/db",
        "postgresql://u:s3cr3t",
        "postgresql://u:s3cr3t@127.0.0.1:1/db?password=s3cr3t&nothing=1",
        "POSTGRESQL://u:s3cr3t@127.0.0.1:1/db",
        " postgresql://u:s3cr3t@127.0.0.1:1/db",
        "postgresql:/u:s3cr3t@127.0.0.1:1/db",
        "mysql://u:s3cr3t@127.0.0.1:1/db",
        "host=127.0.0.1 port=1 password=s3cr3t",
        "postgresql://u:" + "s3cr3t" * 100 + "/@127.0.0.1:1/db",
        "postgresql://u:" + "s3cr3t" * 100 + "@127.0.0.1:1/db",
    ],
)
def test_no_part_of_a_password_is_shown(command: Command, source: Path, address: str) -> None:
    """However the address is wrong: one line, on which it is not."""
    done = command("import-langgraph", address, "--db", str(source.parent / "ours.db"))

    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("error: ")
    assert done.err.count("\n") == 1
    assert "s3cr3t" not in done.err
    assert "pw@" not in done.err


def test_password_is_not_shown_where_a_thread_is_not_there(command: Command, postgres_url: str) -> None:
    """The database is named by name and host."""
    with Database(postgres_url).saver() as saver:
        saver.setup()
    url = f"{postgres_url}{'&' if '?' in postgres_url else '?'}password=s3cr3t"

    done = command("import-langgraph", url, "--thread", "none")

    assert (done.code, done.err.count("\n")) == (4, 1)
    assert "has no thread 'none'; it has none" in done.err
    assert "s3cr3t" not in done.err


def make_foreign(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE checkpoints (thread_id)")


def make_ours(path: Path) -> None:
    with SqliteSaver.from_conn_string(path) as saver:
        saver.setup()


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (lambda path: None, "there is no file"),
        (Path.mkdir, "is not a file"),
        (lambda path: path.write_text("hello" * 100), "cannot be read: file is not a database"),
        (make_foreign, "its table 'checkpoints' lacks checkpoint_ns, checkpoint_id"),
        (make_ours, "it has no table 'checkpoints'"),
    ],
)
def test_what_is_no_langgraph_file_is_refused(command: Command, tmp_path: Path, make: Any, why: str) -> None:
    """In one line, and no target is made."""
    path = tmp_path / "some.db"
    make(path)

    done = command("import-langgraph", str(path), "--db", str(tmp_path / "ours.db"))

    assert done.code == (2 if path.exists() else 4)
    assert done.err.startswith("error: ")
    assert why in done.err
    assert done.err.count("\n") == 1
    assert not (tmp_path / "ours.db").exists()


def test_thread_that_is_not_there_is_named(command: Command, source: Path) -> None:
    """With those that are."""
    done = command("import-langgraph", str(source), "--thread", "don", "--thread", "done")

    assert (done.code, done.out) == (4, "")
    assert done.err.endswith("has no thread 'don'; it has 'done', 'waiting'\n")


@pytest.mark.parametrize("allow", [":Order", "app:", ""])
def test_allow_without_module_or_class_is_refused(command: Command, source: Path, allow: str) -> None:
    """It shows the form."""
    done = command("import-langgraph", str(source), "--allow", allow)

    assert done.code == 2
    assert f"--allow takes MODULE:CLASS, or MODULE for all of its classes, not {allow!r}" in done.err


def test_target_that_cannot_be_written_is_named(command: Command, source: Path, tmp_path: Path) -> None:
    """The source is fine, so the error is about the other one."""
    (tmp_path / "file").write_text("")

    done = command("import-langgraph", str(source), "--db", str(tmp_path / "file" / "ours.db"))

    assert done.code == 2
    assert "the checkpoint database" in done.err
    assert json.dumps(str(tmp_path / "file" / "ours.db"))[1:-1] in done.err


def test_target_that_is_no_database_is_named(command: Command, source: Path, tmp_path: Path) -> None:
    """Here the saver says so."""
    (tmp_path / "ours.db").write_text("hello" * 100)

    done = command("import-langgraph", str(source), "--db", str(tmp_path / "ours.db"))

    assert done.code == 2
    assert done.err.startswith("error: ")
    assert "the checkpoint database" in done.err


def test_source_is_not_the_target(command: Command, source: Path) -> None:
    """Our tables in LangGraph's file would change it."""
    before = fingerprint(source)

    done = command("import-langgraph", str(source), "--db", str(source.parent / "." / source.name))

    assert (done.code, done.err.count("\n")) == (2, 1)
    assert "--db is LangGraph's own file" in done.err
    assert fingerprint(source) == before
