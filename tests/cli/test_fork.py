"""``tracegraph fork``: going back, changing the state, copying a thread."""

from __future__ import annotations

import re
from typing import Any

import pytest
from command_line import GRAPHS, Command


@pytest.fixture
def fork(command: Command) -> Command:
    """Fork a sample graph's thread `t`."""
    return lambda name, *arguments: command("fork", f"{GRAPHS}:{name}", "t", *arguments)


def history(command: Command, thread: str = "t") -> list[dict[str, Any]]:
    """Return a thread's checkpoints, newest first."""
    found: list[dict[str, Any]] = command("state", thread, "--history", "--json").data
    return found


def test_going_back_runs_again_from_there(run: Command, command: Command, fork: Command) -> None:
    """The question is asked anew, and the history stays."""
    run("question", "--input", '{"n": 1}', "--thread", "t")
    command("resume", f"{GRAPHS}:question", "t", "--value", "5")
    before = history(command)

    done = fork("question", "--at", before[1]["checkpoint_id"])

    assert re.match(r"thread t  checkpoint [0-9a-f-]{36}  step 2  next ask\n", done.out)
    assert done.err == f"to go on: tracegraph resume {GRAPHS}:question t\n"
    assert history(command)[1:] == before
    assert command("resume", f"{GRAPHS}:question", "t").code == 3
    assert command("resume", f"{GRAPHS}:question", "t", "--value", "6").data == {"n": 6, "log": ["add"]}


def test_values_are_written_as_if_a_node_had_returned_them(run: Command, command: Command, fork: Command) -> None:
    """Reducers apply, and what follows the node is next."""
    run("pausing", "--input", '{"n": 1}', "--thread", "t")

    done = fork("pausing", "--values", '{"n": 40, "log": ["by hand"]}', "--as-node", "add", "--json")

    assert (done.code, done.data["thread_id"], done.data["next"]) == (0, "t", ["aadd"])
    assert done.data["branched_from"]["checkpoint_id"] == history(command)[1]["checkpoint_id"]
    assert command("state", "t", "--json").data["values"] == {"n": 40, "log": ["add", "by hand"]}
    assert command("resume", f"{GRAPHS}:pausing", "t").data == {"n": 41, "log": ["add", "by hand", "aadd"]}


def test_a_copy_goes_on_alone(run: Command, command: Command, fork: Command) -> None:
    """Its open question too; the first thread does not notice."""
    run("question", "--input", '{"n": 1}', "--thread", "t")

    done = fork("question", "--to", "copy", "--json")

    assert (done.data["thread_id"], done.data["next"]) == ("copy", ["ask"])
    assert history(command, "copy") == history(command)
    assert command("resume", f"{GRAPHS}:question", "copy", "--value", "1").code == 0
    assert command("threads", "--json").data[1]["latest"]["interrupts"] != []


def test_a_branch_in_a_copy_leaves_the_thread_as_it_was(run: Command, command: Command, fork: Command) -> None:
    """`--at`, `--values` and `--to` together: what if it had been otherwise."""
    run("question_async", "--input", '{"n": 1}', "--thread", "t")
    before = history(command)

    done = fork("question_async", "--at", before[1]["checkpoint_id"], "--values", '{"n": 9}', "--to", "copy", "--json")

    assert done.data["branched_from"] == {"thread_id": "t", "checkpoint_id": before[1]["checkpoint_id"]}
    assert history(command) == before
    shown = command("state", "copy", "--json").data
    assert (shown["values"], shown["source"], shown["parent_id"]) == ({"n": 9}, "update", before[1]["checkpoint_id"])


def test_nothing_is_next_any_more(run: Command, command: Command, fork: Command) -> None:
    """As node `__end__` a thread is brought to its end."""
    run("question", "--input", '{"n": 1}', "--thread", "t")

    done = fork("question", "--as-node", "__end__")

    assert (done.code, done.out.rstrip()[-6:], done.err) == (0, "next -", "")
    assert command("resume", f"{GRAPHS}:question", "t").code == 5


def test_a_nested_field_is_written_key_by_key(run: Command, command: Command, fork: Command) -> None:
    """Its reducers apply; `state` shows its keys together with the graph, and as the channels they are without."""
    run("nested", "--input", '{"text": "t", "meta": {"title": "Owls", "words": 1}}', "--thread", "t", "--no-store")

    done = fork("nested", "--values", '{"meta": {"title": "New", "words": 2, "deep": {"depth": 3}}}')
    replaced = fork("nested", "--values", '{"meta": {"__overwrite__": {"title": "Bare"}}}', "--to", "copy")

    assert (done.code, done.err, replaced.code) == (0, "", 0)
    whole = command("state", "t", "--graph", f"{GRAPHS}:nested", "--json").data["values"]
    assert whole == {"text": "t", "meta": {"title": "New", "words": 4, "deep": {"depth": 3}}}
    flat = command("state", "t", "--json").data["values"]
    assert flat == {"text": "t", "meta.title": "New", "meta.words": 4, "meta.deep.depth": 3}
    assert command("state", "copy", "--json").data["values"] == {"text": "t", "meta.title": "Bare", "meta.words": 0}


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ('{"meta.title": "x"}', "--values has 'meta.title', but the state's keys are 'text', 'meta'"),
        ('{"meta": {"titel": "x"}}', "--values has 'titel' in 'meta', but the keys there are 'title', 'words', 'deep'"),
        ('{"meta": {"deep": {"x": 1}}}', "--values has 'x' in 'meta.deep', but the keys there are 'depth'"),
        ('{"meta": "x"}', r".*wrote a str of length 1 to the nested field 'meta', which takes a dict"),
    ],
)
def test_a_misspelt_key_of_a_nested_field_is_named(run: Command, fork: Command, values: str, expected: str) -> None:
    """It would be ignored, and nothing be changed."""
    run("nested", "--input", '{"text": "t"}', "--thread", "t", "--no-store")

    done = fork("nested", "--values", values)

    assert (done.code, done.out) == (2, "")
    assert re.match(f"error: {expected}", done.err)


REFUSED = {
    "nothing to do": ([], 2, "there is nothing to do: give --at to go back, --values"),
    "no such thread": (["--to", "copy"], 4, "thread 't' has no checkpoint in the checkpoint database"),
    "no such checkpoint": (["--at", "zz"], 4, "thread 't' has no checkpoint 'zz'; `tracegraph state t --history` lists them"),
    "no such node": (["--values", "{}", "--as-node", "nope"], 2, r"\[TG201\] as_node='nope' names no node; known: "),
    "no such key": (["--values", '{"m": 1}'], 2, "--values has 'm', but the state's keys are 'n', 'log'"),
    "values that are no JSON": (["--values", "n=1"], 2, "the value of --values is no JSON"),
    "a copy onto a thread": (["--to", "other"], 2, "thread 'other' has checkpoints already"),
    "a copy onto itself": (["--to", "t"], 2, "thread 't' has checkpoints already"),
    "a reducer that fails": (["--values", '{"log": 1}', "--to", "copy"], 1, "the update failed: TypeError: "),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_forked_is_one_named_line(run: Command, fork: Command, saved: Any, name: str) -> None:
    """And nothing is left behind: no checkpoint, no copy."""
    arguments, code, expected = REFUSED[name]
    # The database is there in any case, if only with another thread in it.
    for thread in {"no such thread": ["other"], "a copy onto a thread": ["t", "other"]}.get(name, ["t"]):
        run("good", "--input", '{"n": 1, "log": ["given"]}', "--thread", thread, "--no-store")
    before = saved()

    done = fork("good", *arguments)

    assert (done.code, done.out) == (code, "")
    assert re.match(f"error: .*{expected}", done.err)
    assert done.err.count("\n") == 1
    assert saved() == before


def test_a_path_function_that_fails_is_named(run: Command, command: Command, fork: Command) -> None:
    """With the line of the user's own code, and code 1."""
    run("lost", "--input", '{"n": 1}', "--thread", "t")

    done = fork("lost", "--values", "{}", "--as-node", "add")

    assert (done.code, done.out) == (1, "")
    assert re.match(r"error: the update failed: LookupError: nowhere to go \(.*sample_graphs.py:\d+\)\n$", done.err)
