"""``tracegraph run --stream``: lines of JSON while the run goes on, and the usual result as the last one."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from command_line import GRAPHS, Command, Done
from json_schema import faults

from tracegraph.stream.wire import wire_schema


def lines_of(done: Done) -> list[Any]:
    found = [json.loads(line) for line in done.out.splitlines()]
    schema = wire_schema()
    assert [fault for line in found for fault in faults(schema, line)] == []
    return found


@contextmanager
def process(environment: dict[str, str], tmp_path: Path, name: str, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-m", "tracegraph.cli", "run", f"{GRAPHS}:{name}", "--input", "{}", "--json", *arguments]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, env=environment, cwd=tmp_path) as started:
        try:
            yield started
        finally:
            started.kill()


@pytest.mark.parametrize(
    "name", ["good", "good_async", "question", "question_async", "pausing", "failing", "pressed", "function"]
)
def test_the_last_line_is_what_the_command_prints_without(run: Command, name: str) -> None:
    """The same result, the same exit code, and the id of a trace that the parts are of."""
    given = ("--input", "1" if name == "function" else '{"n": 1}', "--json")
    plain = run(name, *given, "--thread", "plain")
    streamed = run(name, *given, "--thread", "streamed", "--stream", "updates")

    *parts, last = lines_of(streamed)
    changing = {"thread_id": None, "trace_id": None, "interrupts": None}
    assert (last["type"], last["data"] | changing) == ("result", plain.data | changing)
    assert [each["value"] for each in last["data"]["interrupts"]] == [each["value"] for each in plain.data["interrupts"]]
    assert (streamed.code, streamed.err) == (plain.code, plain.err)
    assert last["data"]["trace_id"] != plain.data["trace_id"]
    assert {part["meta"]["trace_id"] for part in parts} <= {last["data"]["trace_id"]}
    assert parts or name == "pressed"


def test_several_modes_are_lines_in_their_order(run: Command) -> None:
    """Counted from one, each with its type; blanks after commas do no harm."""
    done = run("good", "--input", '{"n": 1}', "--json", "--no-store", "--stream", "updates, tasks,events")

    *parts, _ = lines_of(done)
    assert [part["meta"]["seq"] for part in parts] == list(range(1, len(parts) + 1))
    assert {part["type"] for part in parts} == {"updates", "tasks", "events"}
    assert parts[0]["data"]["event"] == "RunStarted"


def test_what_nodes_print_is_not_among_the_lines(command: Command, tmp_path: Path) -> None:
    """It goes to stderr."""
    source = GRAPHS.read_text(encoding="utf-8").replace('return {"log": [b', 'print("a node prints"); return {"log": [b')
    (tmp_path / "loud.py").write_text(source, encoding="utf-8")

    done = command("run", "loud.py:odd_values", "--input", "{}", "--json", "--no-store", "--stream", "updates,custom")

    part, last = lines_of(done)
    assert part["data"]["odd"]["log"] == last["data"]["result"]["log"] == ["AP8=", ["a"], "<class 'object'>", "inf"]
    assert done.err == "a node prints\n"


@pytest.mark.parametrize(
    ("name", "signals", "code", "status"),
    [
        ("hanging", [signal.SIGTERM, signal.SIGTERM], 143, "terminated"),
        ("hanging_async", [signal.SIGTERM, signal.SIGTERM], 143, "terminated"),
        ("hanging_async", [signal.SIGINT], 130, "cancelled"),
    ],
    ids=["SIGTERM twice", "SIGTERM twice, on an event loop", "Ctrl-C on an event loop"],
)
@pytest.mark.parametrize("modes", ["updates", "updates,custom"])
def test_lines_come_while_the_run_goes_on_and_signals_end_it(
    environment: dict[str, str], tmp_path: Path, name: str, signals: list[signal.Signals], code: int, status: str, modes: str
) -> None:
    """The first node's update can be read while the second one hangs; the last line says how the run was stopped."""
    os.mkfifo(tmp_path / "started")
    os.mkfifo(tmp_path / "asked")
    with process(environment, tmp_path, name, "--stream", modes) as running:
        assert running.stdout is not None
        first = json.loads(running.stdout.readline())
        with (tmp_path / "started").open(encoding="utf-8"):
            running.send_signal(signals[0])
        for number in signals[1:]:
            with (tmp_path / "asked").open(encoding="utf-8"):
                pass  # it has been asked, and waits for the node
            running.send_signal(number)
        out, err = running.communicate()

    assert (first["type"], list(first["data"])) == ("updates", [name.endswith("async") * "a" + "add"])
    last = json.loads(out.splitlines()[-1])
    assert (last["type"], last["data"]["status"], running.returncode) == ("result", status, code)
    assert err.count("\n") == 1, err


def test_sigterm_stops_between_two_supersteps(environment: dict[str, str], tmp_path: Path) -> None:
    """What the node under way gives is still a line."""
    os.mkfifo(tmp_path / "started")
    with process(environment, tmp_path, "waiting", "--stream", "updates,custom") as running:
        with (tmp_path / "started").open(encoding="utf-8"):
            running.send_signal(signal.SIGTERM)
        out, _ = running.communicate()

    part, last = map(json.loads, out.splitlines())
    assert (part["data"], last["data"]["status"], running.returncode) == ({"wait": {"log": ["wait"]}}, "drained", 143)


@pytest.mark.parametrize("modes", ["updates", "custom,updates"])
def test_a_reader_that_leaves_stops_the_run(environment: dict[str, str], tmp_path: Path, modes: str) -> None:
    """With one line on stderr, and no traceback."""
    with process(environment, tmp_path, "endless", "--stream", modes, "--config", '{"recursion_limit": 1000000}') as running:
        assert running.stdout is not None
        assert running.stderr is not None
        running.stdout.readline()
        running.stdout.close()
        err = running.stderr.read()

        assert (running.wait(), err) == (1, "error: BrokenPipeError: [Errno 32] Broken pipe\n")


@pytest.mark.parametrize(
    ("arguments", "told"),
    [(["--stream", "updates,tokens", "--json"], "'tokens' does not exist"), (["--stream", "updates"], "--json")],
    ids=["no such mode", "no --json"],
)
def test_what_cannot_be_streamed_is_refused_before_anything_runs(run: Command, arguments: list[str], told: str) -> None:
    """A mode that there is not, and lines that nobody asked to be JSON."""
    done = run("good", "--input", "{}", *arguments)

    assert (done.code, done.out, done.err.count("\n")) == (2, "", 1)
    assert told in done.err
