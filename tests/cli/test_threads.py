"""``tracegraph threads``, and where threads are kept."""

from __future__ import annotations

import os
import re
import shlex
import sqlite3
from pathlib import Path

import pytest
from command_line import GRAPHS, Command


def test_before_the_first_saved_run_there_is_nothing_to_list(command: Command, tmp_path: Path) -> None:
    """That is no error, and makes no database."""
    assert command("threads", "--json").data == []
    done = command("threads")
    assert (done.code, done.out) == (0, "")
    assert "no threads yet in" in done.err
    assert not (tmp_path / "home").exists()


def test_threads_are_listed_last_saved_first(run: Command, command: Command) -> None:
    """With what stopped them, one a line; JSON has the questions themselves."""
    run("question_inside", "--input", '{"n": 1}', "--thread", "asks")
    run("needing", "--input", '{"n": 1}', "--thread", "fails")
    run("good", "--input", '{"n": 1}', "--thread", "ends")

    headings, *lines = command("threads").out.splitlines()

    assert re.split("  +", headings) == [
        "thread", "saved", "step", "checkpoints", "namespaces", "stopped by", "latest checkpoint",
    ]  # fmt: skip
    time, checkpoint = r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", "[0-9a-f-]{36}"
    expected = [("ends", 1, 3, 1, "-"), ("fails", 1, 3, 1, "1 error"), ("asks", 0, 5, 2, "1 question")]
    for line, (thread, *counts, stop) in zip(lines, expected, strict=True):
        assert re.fullmatch(rf"{thread} +{time} +{' +'.join(map(str, counts))} +{stop} +{checkpoint}", line)
    assert len(command("threads", "--limit", "1").out.splitlines()) == 2
    listed = command("threads", "--json").data
    assert [thread["thread_id"] for thread in listed] == ["ends", "fails", "asks"]
    assert [thread["checkpoint_count"] for thread in listed] == [3, 3, 5]
    assert [question["value"] for question in listed[2]["latest"]["interrupts"]] == [{"question": "sure?"}]
    assert "FileNotFoundError" in listed[1]["latest"]["errors"][0]


def test_a_run_with_a_thread_is_saved_beside_the_traces(run: Command, command: Command, tmp_path: Path) -> None:
    """Another process continues it: the second input adds to the state of the first run."""
    run("good", "--input", '{"n": 1}', "--thread", "t", "--no-store")
    second = run("good", "--input", '{"n": 5}', "--thread", "t", "--no-store")

    assert second.data == {"n": 6, "log": ["add", "add"]}
    assert [path.name for path in (tmp_path / "home").iterdir()] == ["checkpoints.db"]
    assert (tmp_path / "home" / "checkpoints.db").stat().st_mode & 0o077 == 0


def test_a_thread_of_the_config_is_saved_too(run: Command, command: Command) -> None:
    """`--thread` is only the short way to say it."""
    done = run("good", "--input", '{"n": 1}', "--config", '{"configurable": {"thread_id": 7}}', "--json")

    assert done.data["thread_id"] == "7"
    assert [thread["thread_id"] for thread in command("threads", "--json").data] == ["7"]


def test_another_database_is_named_by_its_path(run: Command, command: Command, tmp_path: Path) -> None:
    """A run makes it; the default one is not touched."""
    assert run("question", "--input", '{"n": 1}', "--thread", "t", "--db", "my.db", "--no-store").code == 3

    assert [thread["thread_id"] for thread in command("threads", "--db", "my.db", "--json").data] == ["t"]
    assert not (tmp_path / "home").exists()


def test_a_run_without_a_thread_is_not_saved(run: Command, tmp_path: Path) -> None:
    """There is nothing to find it by."""
    run("question", "--input", '{"n": 1}', "--no-store")

    assert not (tmp_path / "home").exists()


def test_a_pause_says_how_to_go_on_where_that_is_possible(run: Command) -> None:
    """The very command line; not where the state is gone with the process."""
    saved = run("question", "--input", '{"n": 1}', "--thread", "t 1", "--db", "my.db")
    in_memory = run("asking", "--input", '{"n": 1}', "--thread", "t")
    several = run("questions", "--input", '{"n": 1}', "--thread", "t")

    assert f"to go on: tracegraph resume {GRAPHS}:question 't 1' --db my.db --value JSON\n" in saved.err
    assert "to go on" not in in_memory.err
    assert f"to go on: tracegraph resume {GRAPHS}:questions t --id ID=JSON ...\n" in several.err


def test_a_graph_that_refuses_to_be_saved_is_not(run: Command, tmp_path: Path) -> None:
    """checkpointer=False is a decision of its author's."""
    assert run("unsaved", "--input", '{"n": 1}', "--thread", "t", "--no-store").data["n"] == 2
    assert not (tmp_path / "home").exists()


def test_continuing_an_unknown_thread_is_named(run: Command, tmp_path: Path) -> None:
    """In a database, in one that is not there, and in the graph's own saver."""
    missing = run("good", "--thread", "t", "--no-store")
    run("good", "--input", "{}", "--thread", "other", "--no-store")
    unknown = run("good", "--thread", "t", "--no-store")
    own = run("asking", "--thread", "t", "--no-store")

    assert [done.code for done in (missing, unknown, own)] == [4, 4, 4]
    assert "there is no checkpoint database at" in missing.err
    assert re.match("error: thread 't' has nothing to continue: it has no checkpoint in the .*checkpoints.db'", unknown.err)
    assert "in-memory one is gone" in own.err


def test_the_hint_to_go_on_can_be_pasted(run: Command, command: Command) -> None:
    """Also with a thread that looks like an option."""
    paused = run("question", "--input", '{"n": 1}', "--thread", "-x", "--db", "my db", "--no-store")
    unknown = command("state", "--db", "my db", "--at", "zz", "--", "-x")
    hint = paused.err.splitlines()[-1]

    assert hint == f"to go on: tracegraph resume --db 'my db' --value JSON -- {GRAPHS}:question -x"
    name, *arguments = shlex.split(hint.removeprefix("to go on: ").replace("JSON", "7"))
    assert "`tracegraph state --history -- -x` lists them" in unknown.err
    assert (name, command(*arguments).data["n"]) == ("tracegraph", 7)


def test_names_do_not_steer_the_terminal(run: Command, command: Command) -> None:
    """Control characters are escapes in lists, headings and hints; JSON has them as they are."""
    name = "one\ntwo\x1b[31m"
    paused = run("question", "--input", '{"n": 1}', "--thread", name, "--no-store")
    listed, shown = command("threads"), command("state", name)

    assert len(listed.out.splitlines()) == 2
    assert listed.out.splitlines()[1].startswith(r"one\ntwo\x1b[31m  ")
    assert shown.out.startswith(r"thread one\ntwo\x1b[31m  checkpoint ")
    assert r"question $'one\ntwo\x1b[31m' --value JSON" in paused.err
    assert command("threads", "--json").data[0]["thread_id"] == name


DATABASES = {
    "no thread to save under": (["run", "good", "--input", "{}", "--db", "x.db"], 2, "--db needs a thread"),
    "two savers": (
        ["run", "asking", "--input", "{}", "--thread", "t", "--db", "x.db"], 2, r"checkpointer of its own \(InMemorySaver\)",
    ),
    "no database": (["threads", "--db", "none.db"], 4, "there is no checkpoint database at .*none.db'"),
    "a folder": (["threads", "--db", "."], 2, "is not a file"),
    "no database but text": (["threads", "--db", "text"], 2, "cannot be read as a SQLite database: file is not a database"),
    "a run into text": (["run", "good", "--input", "{}", "--thread", "t", "--db", "text"], 2, r"\[TG211\] .*text"),
    "somebody else's database": (["threads", "--db", "other.db"], 2, "its tables are somebody else's"),
    "an unknown kind of URL": (["state", "t", "--db", "mysql://u:secret@h/db"], 2, "mysql:// is neither"),
    "a URL in capitals": (["threads", "--db", "POSTGRESQL://u:secret@h/db"], 2, "small letters and .*POSTGRESQL:// is neither"),
    "a URL with one slash": (["threads", "--db", "postgres:/u:secret@h/db"], 2, "with two slashes, and postgres:/ is neither"),
    "a URL that cannot be read": (["threads", "--db", "postgresql://u:secret@[bad/db"], 2, "this is no connection string"),
    "a connection string": (["threads", "--db", "host=h password=secret"], 2, "not shown, for it may hold a password"),
    "a URL without a scheme": (["threads", "--db", "u:secret@h/db"], 2, "not shown, for it may hold a password"),
    "words around a URL": (["threads", "--db", "secret postgresql://h/db"], 2, "not shown, for it may hold a password"),
    "somebody who is not there": (["threads", "--db", "~nosuchuser/x.db"], 2, "'~nosuchuser/x.db' is no path that can be used"),
    "a path that is too long": (["threads", "--db", "x" * 5000], 2, "is no path that can be used: File name too long"),
    "an import into nowhere": (["import-langgraph", "other.db", "--db", "x" * 5000], 2, "is no path that can be used"),
    "an import of a bad URL": (["import-langgraph", "postgresql://u:secret@[bad/db"], 2, "this is no connection string"),
    "an import of an unknown URL": (["import-langgraph", "mysql://u:secret@h/db"], 2, "mysql:// is neither"),
    "a state that is never saved": (["state", "t", "--graph", "unsaved"], 2, "checkpointer=False, so it has no threads"),
}  # fmt: skip


@pytest.mark.parametrize("name", DATABASES)
def test_a_database_that_cannot_be_used_is_named(command: Command, tmp_path: Path, name: str) -> None:
    """One line, nothing on stdout; a file that is not ours stays as it was."""
    arguments, code, expected = DATABASES[name]
    (tmp_path / "text").write_text("text that is long enough for a header", encoding="utf-8")
    with sqlite3.connect(tmp_path / "other.db") as connection:
        connection.execute("CREATE TABLE theirs (x)")
    connection.close()
    targets = {name: f"{GRAPHS}:{name}" for name in ("good", "asking", "unsaved")}

    done = command(*(targets.get(argument, argument) for argument in arguments))

    assert (done.code, done.out) == (code, "")
    assert re.match(f"error: .*{expected}", done.err)
    assert done.err.count("\n") == 1
    assert "secret" not in done.err
    with sqlite3.connect(tmp_path / "other.db") as connection:
        assert connection.execute("SELECT name FROM sqlite_master").fetchall() == [("theirs",)]
    connection.close()
    assert not (tmp_path / "x.db").exists()


def test_a_postgres_url_without_its_extra_says_what_to_install(command: Command, tmp_path: Path) -> None:
    """The URL is repeated without user and password."""
    # Stands for an environment without the extra, whatever this one has.
    blocked = "import sys\nsys.modules['tracegraph.checkpoint.postgres'] = None\n"
    (tmp_path / "sitecustomize.py").write_text(blocked, encoding="utf-8")
    paths = os.pathsep.join(filter(None, [str(tmp_path), os.environ.get("PYTHONPATH")]))
    done = command("threads", "--db", "postgresql://me:secret@db.example/app?password=secret", env={"PYTHONPATH": paths})

    assert (done.code, done.out) == (2, "")
    assert "'postgresql://db.example/app' needs the Postgres saver" in done.err
    assert "pip install 'tracegraph[postgres]'" in done.err
    assert "secret" not in done.err


def test_a_postgres_url_opens_the_postgres_saver(command: Command, tmp_path: Path) -> None:
    """The URL is handed to its saver, which is set up and closed; here another saver stands in for the server."""
    stand_in = """
import sys, types
from contextlib import contextmanager
from tracegraph.checkpoint.sqlite import SqliteSaver

class PostgresSaver:
    @classmethod
    @contextmanager
    def from_conn_string(cls, url):
        with SqliteSaver.from_conn_string(url.rpartition("/")[2]) as saver:
            yield saver

sys.modules["tracegraph.checkpoint.postgres"] = module = types.ModuleType("postgres")
module.PostgresSaver = PostgresSaver
"""
    source = GRAPHS.read_text(encoding="utf-8")
    (tmp_path / "with_postgres.py").write_text(source + stand_in, encoding="utf-8")
    database = ["--db", "postgresql://me:secret@h/stand_in.db"]

    paused = command("run", "with_postgres.py:question", "--input", '{"n": 1}', "--thread", "t", *database)
    resumed = command("resume", "with_postgres.py:question", "t", "--value", "9", *database)

    assert (paused.code, resumed.code, resumed.data["n"]) == (3, 0, 9)
    assert "t --db URL --value JSON" in paused.err
    assert "secret" not in paused.err + resumed.err


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("postgresql://me:secret@/app?host=%2Fnowhere", "the checkpoint database 'app on /nowhere' cannot be used (connection"),
        ("postgresql://me:secret@127.0.0.1:1/app", "the checkpoint database 'app on 127.0.0.1' cannot be used (connection"),
        ("postgresql://me:a/secret@h/app", "--db: [TG102] this is no connection string of PostgreSQL"),
    ],
)
def test_a_postgres_database_that_cannot_be_opened_says_why(command: Command, url: str, said: str) -> None:
    """In one line, and without the password."""
    done = command("threads", "--db", url)

    assert (done.code, done.out) == (2, "")
    assert said in done.err and done.err.count("\n") == 1
    assert "secret" not in done.err
