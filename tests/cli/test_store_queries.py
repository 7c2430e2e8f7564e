"""`tracegraph stats`, `store`, `tail` and the conditions of `traces`, after runs of the same command."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from command_line import Command


def test_before_the_first_run_there_is_nothing(command: Command, tmp_path: Path) -> None:
    """No error, and no file is made by looking."""
    assert command("stats", "--json").data == []
    assert command("store", "--json").data is None
    assert [command(*words).code for words in (("stats",), ("store",), ("store", "prune"), ("store", "vacuum"))] == [0, 0, 0, 0]
    assert not (tmp_path / "home" / "traces.db").exists()


def test_conditions_choose_traces(run: Command, command: Command) -> None:
    """As the store's filters do; a list that is empty because of them says so on stderr."""
    run("good", "--input", '{"n": 1}', "--thread", "t-1")
    run("failing", "--input", '{"n": 1}')

    assert [trace["thread_id"] for trace in command("traces", "--node", "add", "--thread", "t-1", "--json").data] == ["t-1"]
    assert [trace["status"] for trace in command("traces", "--error", "--since", "1h", "--json").data] == ["failed"]
    assert [trace["status"] for trace in command("traces", "--graph", "good", "--json").data] == ["completed"]
    assert len(command("traces", "--since", "2020-01-01", "--slower", "0s", "--json").data) == 2
    assert command("traces", "--since", "2999-01-01T00:00", "--json").data == []
    nothing = command("traces", "--slower", "1h")
    assert (nothing.code, nothing.out, nothing.err) == (0, "", "no trace is like that\n")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("traces", "--slower", "soon"), "--slower: 'soon' is no duration"),
        (("traces", "--since", "yesterday"), "--since: 'yesterday' is no duration"),
        (("stats", "--by", "color"), "--by: there is no kind 'color', but graph, node, model"),
        (("store", "prune", "--keep", "x"), "--keep: 'x' is no duration"),
        (("diff", "last", "zz"), "begins with 'zz'"),
    ],
)
def test_wrong_words_are_one_line_and_code_2(run: Command, command: Command, words: tuple[str, ...], said: str) -> None:
    """Whatever is wrong about them."""
    run("good", "--input", '{"n": 1}')
    done = command(*words)
    assert (done.code, done.out, done.err.count("\n")) == (2, "", 1)
    assert said in done.err


def test_sums_are_a_table_or_json(run: Command, command: Command) -> None:
    run("good", "--input", '{"n": 1}')
    run("good", "--input", '{"n": 1}')

    headings, first, second = command("stats").out.splitlines()
    assert headings.split() == [
        "kind",
        "name",
        "count",
        "errors",
        "retries",
        "p50",
        "p95",
        "tokens",
        "in",
        "tokens",
        "out",
        "cost",
    ]
    assert first.split()[:4] == ["graph", "good", "2", "0"]
    assert second.split()[:4] == ["node", "add", "2", "0"]
    (one,) = command("stats", "--by", "node", "--json").data
    assert (one["name"], one["count"], one["cost"]) == ("add", 2, None)
    assert command("stats", "--node", "no such", "--json").data == []


def test_same_run_twice_goes_the_same_way(run: Command, command: Command) -> None:
    """And without recorded values the command says that these were not compared."""
    run("good", "--input", '{"n": 1}')
    first = command("traces", "--json").data[0]["trace_id"]
    run("good", "--input", '{"n": 1}')

    done = command("diff", first, "last")

    assert done.out.splitlines()[-1] == "both went the same way"
    assert "no values were recorded" in done.err
    assert command("diff", first, "last", "--json").data["parted_at"] is None


def test_store_tells_of_itself_and_is_pruned(run: Command, command: Command) -> None:
    run("good", "--input", '{"n": 1}')
    facts = command("store", "--json").data
    assert (facts["traces"], facts["keep_ns"], facts["max_bytes"], facts["dropped"]) == (1, None, 500_000_000, [])
    assert "1 traces" in command("store").out

    assert command("store", "prune", "--keep", "1h", "--json").data["traces"] == 0
    assert command("store", "prune", env={"TRACEGRAPH_TRACES_KEEP": "0s"}).out.startswith("dropped 1 traces ")
    assert command("traces", "--json").data == []
    # What went because its time was over is no loss to speak of in a list.
    assert command("traces").err == ""
    assert [drop["reason"] for drop in command("store", "--json").data["dropped"]] == ["expired"]
    assert command("store", "vacuum").code == 0


@pytest.mark.skipif(os.name != "posix", reason="needs SIGINT")
def test_tail_shows_another_process_and_ends_with_ctrl_c(run: Command, environment: dict[str, str]) -> None:
    """It waits for the store, prints a JSON object a line, and its code is that of every command that Ctrl-C ends."""
    program = [sys.executable, "-m", "tracegraph.cli", "tail", "--json"]
    tail = subprocess.Popen(program, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)
    assert tail.stdout is not None and tail.stderr is not None
    assert "waiting for the first" in tail.stderr.readline()
    points: list[dict[str, Any]] = []
    has_seen_end = threading.Event()

    def read() -> None:
        for line in tail.stdout or ():
            points.append(json.loads(line))
            if points[-1]["point"] == "graph.ended":
                has_seen_end.set()

    reader = threading.Thread(target=read)
    reader.start()
    # The store is opened when the first run has made it, so what is seen is a later one.
    while not has_seen_end.is_set():
        run("good", "--input", '{"n": 1}', "--thread", "t")
    tail.send_signal(signal.SIGINT)
    reader.join()
    tail.communicate()

    assert tail.returncode == 130
    assert {"graph.started", "node.started", "node.ended", "graph.ended"} <= {point["point"] for point in points}
    ended = next(point for point in points if point["point"] == "graph.ended")
    assert (ended["name"], ended["status"], ended["thread_id"]) == ("good", "completed", "t")


@pytest.mark.skipif(os.name != "posix", reason="needs pipes that break")
def test_tail_ends_when_nobody_reads(run: Command, environment: dict[str, str]) -> None:
    """As in `tracegraph tail | head -1`: code 0, no traceback."""
    run("good", "--input", '{"n": 1}')
    program = [sys.executable, "-m", "tracegraph.cli", "tail"]
    tail = subprocess.Popen(program, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)
    assert tail.stdout is not None and tail.stderr is not None
    tail.stdout.close()
    while tail.poll() is None:
        run("good", "--input", '{"n": 1}')
    assert (tail.returncode, tail.stderr.read()) == (0, "")
    tail.stderr.close()
