"""Whatever cannot be carried out ends with code 2 and one line that names it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from command_line import GRAPHS, Command

SAMPLE = f"{GRAPHS}:good"

CASES = {
    "no such command": (["nope"], "No such command 'nope'"),
    "no argument": (["run"], "Missing argument"),
    "no such option": (["run", SAMPLE, "--nope"], "No such option"),
    "a limit that is no number": (["traces", "--limit", "x"], "Invalid value for '--limit'"),
    "a limit below one": (["traces", "--limit", "0"], "Invalid value for '--limit'"),
    "a limit beyond all measure": (["threads", "-n", "100000000000000000000"], "Invalid value for '--limit'"),
    "no such file": (["run", "nofile.py:graph"], "there is no file 'nofile.py'"),
    "a folder": (["run", "folder.py:graph"], "'folder.py' is not a file"),
    "no such module": (["run", "nomodule:graph"], "'nomodule' does not load: ModuleNotFoundError"),
    "no module name": (["graph", "a/b:graph"], "'a/b:graph' names no graph; write FILE.py:graph or module:graph"),
    "a file that is no Python": (["graph", "syntax.py:graph"], "'syntax.py' does not load: SyntaxError: .*syntax.py:1"),
    "a file that raises": (["run", "raises.py:graph"], r"'raises.py' does not load: ZeroDivisionError: .*\(raises.py:2\)"),
    "a file that exits": (["run", "exits.py:graph"], "'exits.py' does not load: SystemExit: 0"),
    "a file without a graph": (["graph", "empty.py"], "'empty.py' names no graph; no graph is defined there"),
    "several graphs and no name": (["graph", str(GRAPHS)], "names no graph; graphs there: 'good', "),
    "no such graph": (["graph", f"{GRAPHS}:goood"], "there is no 'goood' in .*; graphs there: 'good', "),
    "not a graph": (["graph", f"{GRAPHS}:answer"], "is no graph but of type 'int'; graphs there: "),
    "not a factory": (["run", f"{GRAPHS}:factory_with_parameters"], "neither a graph nor a function without parameters"),
    "a class": (["run", f"{GRAPHS}:State"], "neither a graph nor a function without parameters"),
    "a factory that raises": (["run", f"{GRAPHS}:failing_factory"], "returned no graph: RuntimeError: no graph today"),
    "a builder with faults": (["graph", f"{GRAPHS}:broken_builder"], "does not compile: GraphDefinitionError: .*nowhere"),
    "input that is no JSON": (["run", SAMPLE, "--input", "{n: 1}"], "the value of --input is no JSON: "),
    "an input file that is missing": (
        ["run", SAMPLE, "--input", "@missing.json"],
        "--input @missing.json cannot be read: No such",
    ),
    "an input file that is binary": (["run", SAMPLE, "--input", "@binary"], "--input @binary cannot be read: .*utf-8"),
    "standard input that is no JSON": (["run", SAMPLE, "--input", "-"], "standard input is no JSON"),
    "no input and nothing to continue": (["run", SAMPLE, "--no-store"], "there is nothing to run: give --input"),
    "a config that is no object": (
        ["run", SAMPLE, "--config", "[1]"],
        "the value of --config is a JSON array, but has to be object",
    ),
    "a configurable that is no object": (
        ["run", SAMPLE, "--config", '{"configurable": 1}'],
        "'configurable' of --config has to be",
    ),
    "callbacks in a config": (["run", SAMPLE, "--config", '{"callbacks": []}'], "'callbacks' of --config takes objects"),
    "a run id that is none": (["run", SAMPLE, "--config", '{"run_id": "x"}'], "'run_id' of --config has to be a UUID, not 'x'"),
    "metadata that are no object": (
        ["run", SAMPLE, "--config", '{"metadata": 3}'],
        "the key 'metadata' of --config has to be an object, not 3",
    ),
    "tags that are no strings": (["run", SAMPLE, "--config", '{"tags": [1]}'], r"'tags' of --config .*strings, not \[1\]"),
    "a step limit that is no number": (
        ["run", SAMPLE, "--config", '{"recursion_limit": "x"}'],
        "'recursion_limit' of --config has to be a whole number above zero, not \"x\"",
    ),
    "a concurrency of none": (["run", SAMPLE, "--config", '{"max_concurrency": 0}'], "whole number above zero, not 0"),
    "a thread that is no text": (
        ["run", SAMPLE, "--config", '{"configurable": {"thread_id": {}}}'],
        "'thread_id' of 'configurable' in --config has to be a string or a whole number, not {}",
    ),
    "no trace store": (["trace", "abc"], "there is no trace store at "),
}


@pytest.mark.parametrize("name", CASES)
def test_a_bad_argument_is_one_named_line_and_code_2(command: Command, tmp_path: Path, name: str) -> None:
    """No traceback, nothing on stdout, no trace store made on the way."""
    arguments, expected = CASES[name]
    (tmp_path / "folder.py").mkdir()
    (tmp_path / "empty.py").write_text("", encoding="utf-8")
    (tmp_path / "syntax.py").write_text("graph =\n", encoding="utf-8")
    (tmp_path / "raises.py").write_text("x = 0\ngraph = 1 / x\n", encoding="utf-8")
    (tmp_path / "exits.py").write_text("raise SystemExit(0)\n", encoding="utf-8")
    (tmp_path / "binary").write_bytes(b"\xff\xfe")

    done = command(*arguments)

    assert (done.code, done.out) == (2, "")
    assert re.search(f"^error: .*{expected}", done.err)
    assert done.err.count("\n") == 1
    assert not (tmp_path / "home").exists()


def test_an_unknown_exporter_is_named(command: Command) -> None:
    """The environment is an argument too."""
    done = command("run", SAMPLE, "--input", "{}", env={"OTEL_TRACES_EXPORTER": "nope"})

    assert done.code == 2
    assert re.match(r"error: \[TG102\] OTEL_TRACES_EXPORTER names 'nope'", done.err)


def test_a_file_in_the_store_s_place_is_named(command: Command, tmp_path: Path) -> None:
    """It is not touched."""
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "traces.db").write_text("no database, but text of some length", encoding="utf-8")

    done = command("traces")

    assert done.code == 2
    assert re.match("error: .*traces.db' is no trace store", done.err)
