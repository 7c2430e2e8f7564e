"""``tracegraph resume``: answers from another process than the one that asked."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from command_line import GRAPHS, Command, Done


@pytest.fixture
def resume(command: Command) -> Command:
    """Resume a sample graph's thread `t`."""
    return lambda name, *arguments: command("resume", f"{GRAPHS}:{name}", "t", *arguments)


def ids(done: Done) -> dict[str, str]:
    """Return the ids of the questions that a run printed, by what they ask."""
    return {json.dumps(question["value"]): question["id"] for question in done.data}


@pytest.mark.parametrize("name", ["question", "question_async", "question_inside"])
def test_an_answer_ends_the_run(run: Command, command: Command, resume: Command, name: str) -> None:
    """The result is on stdout, the trace is linked to the one that asked."""
    asked = run(name, "--input", '{"n": 1}', "--thread", "t", "--json")

    done = resume(name, "--value", '{"so": "yes"}', "--json")

    assert (done.code, done.data["status"], done.data["result"]["n"]) == (0, "completed", {"so": "yes"})
    assert (done.data["thread_id"], done.err) == ("t", "")
    links = command("trace", done.data["trace_id"], "--json").data["spans"][0]["links"]
    assert asked.data["trace_id"] in [link["trace_id"] for link in links]


@pytest.mark.parametrize("answer", ["{}", "null", "0", '""', '{"00000000000000000000000000000000": 1}'])
def test_any_json_is_an_answer(run: Command, resume: Command, answer: str) -> None:
    """Also what the API would take for no answer, or for several."""
    run("question", "--input", '{"n": 1}', "--thread", "t")

    assert resume("question", "--value", answer, "--no-store").data["n"] == json.loads(answer)


def test_several_questions_are_answered_by_id(run: Command, resume: Command) -> None:
    """One alone leaves the other open; the beginning of an id is enough."""
    asked = run("questions", "--input", '{"n": 1}', "--thread", "t")
    sure, which = ids(asked)['{"question": "sure?"}'], ids(asked)['"which one?"']

    rest = resume("questions", "--id", f"{sure}=5")
    done = resume("questions", "--id", f'{which[:12]}="both"')

    assert (rest.code, ids(rest)) == (3, {'"which one?"': which})
    assert (done.code, done.data) == (0, {"n": 5, "log": ["both"]})


def test_both_answers_at_once(run: Command, resume: Command) -> None:
    """`--id` is repeated."""
    asked = ids(run("questions", "--input", '{"n": 1}', "--thread", "t"))
    answers = [part for question in asked.values() for part in ("--id", f"{question}=1")]

    assert resume("questions", *answers).data == {"n": 1, "log": [1]}


def test_a_breakpoint_is_passed_without_an_answer(run: Command, resume: Command) -> None:
    """The run stops there once."""
    paused = run("pausing", "--input", '{"n": 1}', "--thread", "t")

    done = resume("pausing")

    assert (paused.code, done.code, done.data["n"]) == (3, 0, 3)
    assert f"to go on: tracegraph resume {GRAPHS}:pausing t\n" in paused.err


def test_a_failure_is_tried_again_without_an_answer(run: Command, resume: Command, tmp_path: Path) -> None:
    """What had finished does not run again."""
    assert run("needing", "--input", '{"n": 1}', "--thread", "t").code == 1
    (tmp_path / "needed").touch()

    assert resume("needing").data == {"n": 2, "log": ["add", "need_file"]}


def test_a_failure_beside_a_question_can_be_tried_again_first(run: Command, resume: Command, tmp_path: Path) -> None:
    """The question stays open."""
    assert run("question_beside_failure", "--input", '{"n": 1}', "--thread", "t").code == 1
    (tmp_path / "needed").touch()

    asked = resume("question_beside_failure")
    done = resume("question_beside_failure", "--value", "7")

    assert (asked.code, [question["value"] for question in asked.data]) == (3, [{"question": "sure?"}])
    assert done.data == {"n": 7, "log": ["need_file"]}


@pytest.mark.parametrize("name", ["handled", "handled_async"])
def test_the_question_of_an_error_handler_is_answered(run: Command, resume: Command, tmp_path: Path, name: str) -> None:
    """It is no task of the snapshot; without an answer it is refused, and a handler that failed is tried again."""
    asked = run(name, "--input", '{"n": 1}', "--thread", "t")
    refused = resume(name)
    (tmp_path / "broken").touch()
    failed = resume(name, "--id", f'{asked.data[0]["id"]}="yes"')
    (tmp_path / "broken").unlink()
    done = resume(name)

    assert (asked.code, [question["value"] for question in asked.data]) == (3, ["fall back?"])
    assert (refused.code, asked.data[0]["id"] in refused.err) == (6, True)
    assert (failed.code, done.code, done.data["log"][0]) == (1, 0, "yes")


def test_a_handler_s_only_question_takes_a_value(run: Command, resume: Command) -> None:
    """As the hint of `run` says."""
    run("handled", "--input", '{"n": 1}', "--thread", "t")

    assert resume("handled", "--value", '"yes"').data == {"n": 1, "log": ["yes"]}


def test_a_node_that_failed_after_its_answer_is_tried_again(
    run: Command, command: Command, resume: Command, tmp_path: Path
) -> None:
    """With the answer that is stored; `state` shows it as failed."""
    run("paying", "--input", '{"n": 1}', "--thread", "t")
    (tmp_path / "broken").touch()
    failed = resume("paying", "--value", '"yes"')
    shown = command("state", "t", "--graph", f"{GRAPHS}:paying")
    (tmp_path / "broken").unlink()
    done = resume("paying")

    assert failed.code == 1
    assert re.search(r"^  pay  failed  ", shown.out, re.MULTILINE)
    assert (done.code, done.data) == (0, {"n": 1, "log": ["yes"]})


def test_a_second_question_waits_although_the_first_was_answered(run: Command, resume: Command) -> None:
    """The stored answer is to another question."""
    run("paying_twice", "--input", '{"n": 1}', "--thread", "t")
    asked = resume("paying_twice", "--value", "1")
    refused = resume("paying_twice")
    done = resume("paying_twice", "--value", "2")

    assert (asked.code, refused.code, done.data["log"]) == (3, 6, [1, 2])


REFUSED = {
    "no database": (None, ["--value", "1"], 4, "there is no checkpoint database at"),
    "an unknown thread": ("good other", ["--value", "1"], 4, "thread 't' has no checkpoint in the checkpoint database"),
    "a thread at its end": ("good", [], 5, "thread 't' is at its end, so there is nothing to resume"),
    "an answer at the end": ("good", ["--value", "1"], 5, "thread 't' is at its end"),
    "an answer to a breakpoint": ("pausing", ["--value", "1"], 5, "thread 't' asks nothing, but stopped at 'aadd': leave the"),
    "an id at a breakpoint": ("pausing", ["--id", "ab=1"], 5, "thread 't' asks nothing, but stopped at 'aadd': leave the"),
    "no answer": ("question", [], 6, "thread 't' waits for an answer: give --value JSON"),
    "an ambiguous answer": ("questions", ["--value", "1"], 6, "asks 2 questions, so --value is ambiguous: answer by id, --id"),
    "an unknown id": ("question", ["--id", "zz=1"], 6, "--id zz: no question has this id; pending: [0-9a-f]{32}"),
    "no pair": ("question", ["--id", "zz"], 2, "--id takes ID=JSON, not 'zz'"),
    "an id twice": ("question", ["--id", "z=1", "--id", "z=2"], 2, "--id answers 'z' twice"),
    "both": ("question", ["--id", "z=1", "--value", "2"], 2, "give one or the other"),
    "a bare word": ("question", ["--value", "yes"], 2, "the value of --value is no JSON: .*; a text needs quotes of its own"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_resumed_is_one_named_line(run: Command, resume: Command, saved: Any, name: str) -> None:
    """Each with a code that a script can tell apart, and the thread is left as it was."""
    thread, arguments, code, expected = REFUSED[name]
    graph, thread_id = (*(thread or "question").split(), "t")[:2]
    if thread is not None:
        run(graph, "--input", '{"n": 1}', "--thread", thread_id, "--no-store")
    before = saved()

    done = resume(graph, *arguments)

    assert (done.code, done.out) == (code, "")
    assert re.match(f"error: .*{expected}", done.err)
    assert done.err.count("\n") == 1
    assert saved() == before


def test_the_beginning_of_an_id_must_name_one_question_once(run: Command, resume: Command) -> None:
    """Else an answer could go astray."""
    asked = [*ids(run("questions", "--input", '{"n": 1}', "--thread", "t", "--no-store")).values()]

    done = resume("questions", "--id", f"{asked[0]}=1", "--id", f"{asked[0][:-1]}=2")

    assert (done.code, done.out) == (6, "")
    assert "another --id answers this question" in done.err


def test_a_graph_s_own_saver_is_asked(command: Command, resume: Command, tmp_path: Path) -> None:
    """Where it is in memory, it forgot the thread; a file of its own is used across processes."""
    source = GRAPHS.read_text(encoding="utf-8") + (
        "import sqlite3\nfrom tracegraph.checkpoint.sqlite import SqliteSaver\n"
        "own = line(add, ask, checkpointer=SqliteSaver(sqlite3.connect('own.db', check_same_thread=False)))\n"
    )
    (tmp_path / "owners.py").write_text(source, encoding="utf-8")
    in_memory = resume("asking", "--value", "1")
    # The file leaves its connection open; that warning is not ours.
    kept = {"PYTHONWARNINGS": "default"}
    paused = command("run", "owners.py:own", "--input", '{"n": 1}', "--thread", "t", "--no-store", env=kept)
    done = command("resume", "owners.py:own", "t", "--value", "8", "--no-store", env=kept)

    assert (in_memory.code, in_memory.out) == (4, "")
    assert "an in-memory one is gone" in in_memory.err
    assert (paused.code, done.code, done.data["n"]) == (3, 0, 8)
    assert not (tmp_path / "home").exists()
