"""``tracegraph state``: what a thread holds, with and without its graph."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from command_line import GRAPHS, Command

ID = "[0-9a-f-]{36}"


@pytest.fixture
def asked(run: Command) -> str:
    """A thread that went through one node and then asked something."""
    assert run("question", "--input", '{"n": 1}', "--thread", "t").code == 3
    return "t"


def test_state_is_shown_without_the_graph(command: Command, asked: str) -> None:
    """Values, the question and its id; nothing of the channels that only steer the run."""
    done = command("state", asked)

    head, *lines = done.out.splitlines()
    assert (done.code, done.err) == (0, "")
    assert re.fullmatch(rf"thread t  checkpoint {ID}  step 1  loop  \d{{4}}-\d\d-\d\d \d\d:\d\d:\d\d", head)
    assert lines[:4] == ["values", "  n = 2", '  log = ["add"]', "questions"]
    assert re.fullmatch(r'  [0-9a-f]{32}  \{"question": "sure\?"\}', lines[4])
    assert len(lines) == 5


def test_json_has_the_same(command: Command, asked: str) -> None:
    """For machines; what only the graph knows is not there."""
    shown = command("state", asked, "--json").data

    assert (shown["thread_id"], shown["step"], shown["source"]) == ("t", 1, "loop")
    assert shown["values"] == {"n": 2, "log": ["add"]}
    assert [question["value"] for question in shown["interrupts"]] == [{"question": "sure?"}]
    assert shown["errors"] == []
    assert re.fullmatch(ID, shown["checkpoint_id"])
    assert re.fullmatch(ID, shown["parent_id"])
    assert "next" not in shown


def test_the_graph_tells_what_is_next(command: Command, asked: str) -> None:
    """And which tasks that is."""
    shown = command("state", asked, "--graph", f"{GRAPHS}:question", "--json").data

    assert shown["next"] == ["ask"]
    assert [(task["name"], task["result"], len(task["interrupts"])) for task in shown["tasks"]] == [("ask", None, 1)]
    lines = command("state", asked, "--graph", f"{GRAPHS}:question").out.splitlines()
    assert lines[1] == "next ask"
    assert re.fullmatch(rf"  ask  asks  {ID}", lines[-1])


def test_a_thread_of_a_function_shows_its_result_and_what_it_remembers(run: Command, command: Command) -> None:
    """Nothing while it waits, for it has returned nothing yet."""
    assert run("function", "--input", "3", "--thread", "t").code == 3
    assert "values" not in command("state", "t").out

    assert command("resume", f"{GRAPHS}:function", "t", "--value", '"yes"').data == [6, None, "yes"]

    assert command("state", "t", "--json").data["values"] == {"__end__": [6, None, "yes"], "__previous__": 6}
    assert command("state", "t", "--graph", f"{GRAPHS}:function", "--json").data["values"] == [6, None, "yes"]


def test_a_failed_thread_shows_its_error(run: Command, command: Command) -> None:
    """It is kept until the thread has gone on."""
    run("needing", "--input", '{"n": 1}', "--thread", "t")

    lines = command("state", "t").out.splitlines()

    assert lines[lines.index("errors") + 1].startswith("  FileNotFoundError(2, ")
    assert command("state", "t", "--graph", f"{GRAPHS}:needing", "--json").data["tasks"][0]["error"]


def test_classes_of_the_graph_are_not_imported_to_show_them(run: Command, command: Command) -> None:
    """Their data is shown; the file that defines them need not be there any more. A graph brings them to life."""
    assert run("shipping", "--input", "{}", "--thread", "t").code == 3

    shown = command("state", "t", "--json").data

    assert shown["values"]["parcel"] == shown["interrupts"][0]["value"] == {"to": "Bern"}
    assert command("state", "t", "--graph", f"{GRAPHS}:shipping", "--json").data["next"] == ["weigh"]
    done = command("resume", f"{GRAPHS}:shipping", "t", "--value", '"Basel"', "--no-store")
    assert (done.data, done.err) == ({"parcel": {"to": "Basel"}, "n": 4}, "")


def test_history_is_one_line_per_checkpoint(command: Command, asked: str) -> None:
    """Newest first, with what changed."""
    headings, *lines = command("state", asked, "--history").out.splitlines()

    assert re.split("  +", headings) == ["checkpoint", "saved", "step", "source", "changed", "stopped by"]
    rows = [re.split("  +", line) for line in lines]
    assert [row[2:] for row in rows] == [
        ["1", "loop", "n, log", "1 question"],
        ["0", "loop", "n", "-"],
        ["-1", "input", "-", "-"],
    ]
    with_graph = command("state", asked, "--history", "--graph", f"{GRAPHS}:question").out.splitlines()
    assert [re.split("  +", line)[4] for line in with_graph] == ["next", "ask", "add", "__start__"]


def test_a_checkpoint_is_addressed_by_its_id_or_the_beginning(command: Command, asked: str) -> None:
    """Its state is that at the time; its history is that of its ancestors."""
    found = command("state", asked, "--history", "--json").data
    older = found[1]["checkpoint_id"]

    assert [saved["step"] for saved in found] == [1, 0, -1]
    assert command("state", asked, "--at", older, "--json").data["values"] == {"n": 1}
    assert command("state", asked, "--at", older[:-1], "--json").data["checkpoint_id"] == older
    assert [saved["step"] for saved in command("state", asked, "--at", older, "--history", "--json").data] == [0, -1]
    several = command("state", asked, "--at", older[:2])
    assert (several.code, several.err) == (
        2,
        f"error: 3 checkpoints of thread 't' begin with '{older[:2]}': give more of the id\n",
    )


def test_changes_are_shown_per_channel(run: Command, command: Command) -> None:
    """What is new, what was something else, and of a list that grew only what came."""
    run("good", "--input", '{"n": 1}', "--thread", "t")
    run("good", "--input", '{"n": 5}', "--thread", "t")

    lines = command("state", "t", "--diff").out.splitlines()

    assert lines[lines.index("changes") + 1 :] == ["  ~ n = 6  (was 5)", '  ~ log += ["add"]']
    assert command("state", "t", "--diff", "--json").data["changes"] == {
        "n": {"kind": "changed", "before": 5, "after": 6},
        "log": {"kind": "grew", "added": ["add"]},
    }
    history = command("state", "t", "--history", "--diff").out
    steps = re.split(rf"^{ID}  step (-?\d+)  .*\n", history, flags=re.MULTILINE)[1:]
    assert list(zip(steps[::2], steps[1::2], strict=True)) == [
        ("4", '  ~ n = 6  (was 5)\n  ~ log += ["add"]\n'),
        ("3", "  ~ n = 5  (was 2)\n"),
        ("2", "  no change\n"),
        ("1", '  ~ n = 2  (was 1)\n  + log = ["add"]\n'),
        ("0", "  + n = 1\n"),
        ("-1", "  no change\n"),
    ]


def test_a_saved_state_of_every_kind_can_be_shown(command: Command, tmp_path: Path) -> None:
    """Values that are replaced, dicts that grew, arrays that have no plain equality, and a state without keys."""
    source = """
from typing import Annotated, Any
import numpy
from tracegraph import START, StateGraph
from typing_extensions import TypedDict
def last(old, new): return new
class State(TypedDict, total=False):
    items: dict
    array: Any
    words: set
def first(state): return {"items": {"a": 1}, "array": numpy.array([1, 2]), "words": {"x", "y"}}
def second(state): return {"items": {"a": 1, "b": 2}, "array": numpy.array([1, 3]), "words": {"y", "x"}}
keyed = StateGraph(State).add_sequence([first, second]).add_edge(START, "first").compile()
bare = StateGraph(Annotated[list, last]).add_node("twice", lambda x: x * 2).add_edge(START, "twice").compile()
"""
    (tmp_path / "kinds.py").write_text(source, encoding="utf-8")
    assert command("run", "kinds.py:keyed", "--input", '{"items": {}}', "--thread", "k").code == 0
    assert command("run", "kinds.py:bare", "--input", "[1]", "--thread", "b").data == [1, 1]

    changes = command("state", "k", "--diff", "--json").data["changes"]

    assert changes["items"] == {"kind": "grew", "added": {"b": 2}}
    assert changes["array"]["kind"] == "changed"
    assert "words" not in changes
    assert command("state", "b", "--json").data["values"] == [1, 1]
    assert command("state", "b").out.splitlines()[1:] == ["values", "  value = [1, 1]"]


def test_a_delta_channel_is_shown_as_its_writes_or_folded_by_its_graph(command: Command, tmp_path: Path) -> None:
    """Its reducer is the graph's; each step's writes are what changed."""
    source = """
from typing import Annotated, TypedDict
from tracegraph import START, StateGraph
from tracegraph.channels import DeltaChannel
class State(TypedDict):
    words: Annotated[list, DeltaChannel(lambda old, writes: old + [word.upper() for word in writes], list)]
first = lambda state: {"words": "a longer word"}
second = lambda state: {"words": "b"}
delta = StateGraph(State).add_sequence([("first", first), ("second", second)]).add_edge(START, "first").compile()
"""
    (tmp_path / "deltas.py").write_text(source, encoding="utf-8")
    assert command("run", "deltas.py:delta", "--input", '{"words": "start"}', "--thread", "t").code == 0

    history = command("state", "t", "--history", "--diff", "--json").data

    assert [saved["changes"].get("words", {}).get("added") for saved in history[:2]] == [["b"], ["a longer word"]]
    assert command("state", "t", "--json").data["values"]["words"]["writes"][-1] == "b"
    with_graph = command("state", "t", "--graph", "deltas.py:delta", "--json").data
    assert with_graph["values"] == {"words": ["START", "A LONGER WORD", "B"]}


@pytest.mark.parametrize("arguments", [["state", "t"], ["state", "t", "--at", "zz"], ["state", "t", "--history"]])
def test_what_is_not_there_is_named(run: Command, command: Command, arguments: list[str]) -> None:
    """A thread, a checkpoint; code 4, one line."""
    thread = "t" if "--at" in arguments else "other"
    run("good", "--input", "{}", "--thread", thread)

    done = command(*arguments)

    assert (done.code, done.out) == (4, "")
    assert re.match("error: thread 't' has no checkpoint ('zz'|in the checkpoint database '.*checkpoints.db')", done.err)
    assert done.err.count("\n") == 1


def test_a_terminal_gets_long_values_shortened(run: Command, environment: dict[str, Any], tmp_path: Path) -> None:
    """A pipe gets everything."""
    run("good", "--input", '{"log": ["' + "x" * 1000 + '"]}', "--thread", "t")
    reader, terminal = pty.openpty()

    subprocess.run(
        [sys.executable, "-m", "tracegraph.cli", "state", "t"],
        stdout=terminal,
        env=environment | {"TERM": "xterm"},
        cwd=tmp_path,
        check=True,
    )

    os.close(terminal)
    shown = os.read(reader, 65536).decode()
    os.close(reader)
    assert re.search(r'log = \["x{300,400}\.\.\. \(101\d characters; --json has all\)', shown)
