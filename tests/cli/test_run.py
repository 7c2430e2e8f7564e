"""``tracegraph run``: results, pauses, failures, signals, and the code each ends with."""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from command_line import GRAPHS, Command

from tracegraph.cli.output import to_plain_data

TRACE_LINE = re.compile(r"^trace [0-9a-f]{32}$", re.MULTILINE)


def test_the_result_is_on_stdout_and_the_trace_id_on_stderr(run: Command) -> None:
    """So that a pipe gets nothing but the result."""
    done = run("good", "--input", '{"n": 1}')

    assert (done.code, done.data) == (0, {"n": 2, "log": ["add"]})
    assert TRACE_LINE.fullmatch(done.err.strip())


@pytest.mark.parametrize("form", ["json", "file", "stdin"])
def test_input_comes_as_json_from_a_file_or_from_stdin(run: Command, tmp_path: Path, form: str) -> None:
    """All three give the same run."""
    (tmp_path / "in.json").write_text('{"n": 4}', encoding="utf-8")
    given = {"json": '{"n": 4}', "file": "@in.json", "stdin": "-"}[form]

    assert run("good", "--input", given, "--no-store", stdin='{"n": 4}').data["n"] == 5


@pytest.mark.parametrize("name", ["good_async", "good_async_path"])
def test_what_can_only_be_awaited_is_awaited(run: Command, name: str) -> None:
    """Async nodes and async path functions need no option."""
    done = run(name, "--input", '{"n": 0}', "--no-store")

    assert (done.code, done.data["n"]) == (0, 2 if name == "good_async" else 1)


@pytest.mark.parametrize("name", ["builder", "factory"])
def test_a_builder_is_compiled_and_a_factory_called(run: Command, name: str) -> None:
    """Either stands for the graph it makes."""
    assert run(name, "--input", '{"n": 1}', "--no-store").data["n"] == 2


def test_json_tells_how_the_run_ended(run: Command) -> None:
    """One object with everything a script needs; stderr stays empty."""
    done = run("good", "--input", '{"n": 1}', "--thread", "t-1", "--json")

    trace_id = done.data.pop("trace_id")
    assert re.fullmatch("[0-9a-f]{32}", trace_id)
    assert {key: value for key, value in done.data.items() if key != "trace_id"} == {
        "status": "completed",
        "result": {"n": 2, "log": ["add"]},
        "interrupts": [],
        "thread_id": "t-1",
    }
    assert done.err == ""


def test_any_value_can_be_printed(run: Command) -> None:
    """Bytes, sets and infinity have a form in JSON, other objects show their repr."""
    done = run("odd_values", "--input", "{}", "--no-store")

    assert done.data["log"] == ["AP8=", ["a"], "<class 'object'>", "inf"]


def test_what_files_and_nodes_print_is_not_in_the_result(command: Command, tmp_path: Path) -> None:
    """It goes to stderr, so that stdout parses."""
    source = GRAPHS.read_text(encoding="utf-8").replace('return {"log": [b', 'print("a node prints"); return {"log": [b')
    (tmp_path / "loud.py").write_text(source + 'print("a file prints")\n', encoding="utf-8")

    done = command("run", "loud.py:odd_values", "--input", "{}", "--no-store", "--json")

    assert (done.data["status"], done.err) == ("completed", "a file prints\na node prints\n")
    assert command("graph", "loud.py:good", "--json").data["nodes"]


def test_a_question_ends_with_code_3(run: Command) -> None:
    """The question and its id are the output."""
    done = run("asking", "--input", '{"n": 1}', "--thread", "t")

    assert done.code == 3
    assert [question["value"] for question in done.data] == [{"question": "sure?"}]
    assert done.data[0]["id"]
    assert "waits for 1 answer" in done.err


def test_json_carries_questions_beside_the_state(run: Command) -> None:
    """The state does not have them a second time."""
    done = run("asking", "--input", '{"n": 1}', "--thread", "t", "--json")

    assert (done.code, done.data["status"], done.data["result"]) == (3, "interrupted", {"n": 1, "log": []})
    assert [question["value"] for question in done.data["interrupts"]] == [{"question": "sure?"}]


def test_a_breakpoint_ends_with_code_3_too(run: Command) -> None:
    """It asks nothing, and says which kind it is."""
    done = run("stopping", "--input", '{"n": 1}', "--thread", "t", "--no-store")

    assert (done.code, done.out) == (3, "")
    assert "breakpoint (interrupt_before)" in done.err


def test_numbers_beyond_what_python_prints_are_hexadecimal_text(run: Command, command: Command) -> None:
    """10**5000 has more digits than int's limit; a thread that has it can be shown."""
    big = hex(10**5000)
    done = run("measureless_values", "--input", "{}", "--thread", "t", "--no-store")
    shown = command("state", "t", "--diff", "--json")

    assert done.data == {"log": [big, {big: f"-{big}"}]}
    assert (shown.code, shown.data["values"]) == (0, done.data)


def test_what_cannot_print_itself_is_named_by_its_type(run: Command) -> None:
    """A value with a broken repr hides nothing beside it; an error with a broken str is still an error in a node."""
    values = run("mute_values", "--input", "{}", "--no-store")
    failure = run("mute_failure", "--input", "{}", "--no-store", "--json")
    text = run("text_of_surrogates", "--input", '"x"', "--no-store")

    assert values.data == {"log": ["<unprintable Mute>", "beside it"]}
    assert (failure.code, failure.data["error"]["type"]) == (1, "Mute")
    assert failure.err.startswith("error: Mute: <unprintable Mute> (in node 'raise_mute', sample_graphs.py:")
    assert (text.code, text.out) == (0, "\\ud800\n")


def test_a_list_that_contains_itself_is_shown_as_far_as_it_goes() -> None:
    """JSON has no word for it."""
    endless: list[Any] = [1, {"a": {2}}]
    endless.append(endless)

    assert to_plain_data(endless)[:2] == [1, {"a": [2]}]
    assert "[...]" in to_plain_data(endless)[2]


@pytest.mark.parametrize("name", ["failing", "failing_inside"])
def test_a_failed_run_names_error_node_and_line(run: Command, name: str) -> None:
    """One line, the innermost node, no traceback; the trace is kept."""
    done = run(name, "--input", '{"n": 1}')

    error, trace = done.err.strip().splitlines()
    assert (done.code, done.out) == (1, "")
    assert re.fullmatch(r"error: ValueError: first line second line \(in node 'explode', sample_graphs.py:\d+\)", error)
    assert TRACE_LINE.fullmatch(trace)


def test_json_tells_of_a_failure(run: Command) -> None:
    """Scripts get an object whatever happens."""
    done = run("failing", "--input", '{"n": 1}', "--no-store", "--json")

    assert (done.code, done.data["status"], done.data["error"]["type"]) == (1, "failed", "ValueError")
    assert "'explode'" in done.data["error"]["message"]


def test_a_traceback_is_printed_on_request(run: Command) -> None:
    """The line above it stays the same."""
    done = run("failing", "--input", '{"n": 1}', "--no-store", "--traceback")

    assert "Traceback (most recent call last)" in done.err
    assert "error: ValueError: first line" in done.err


def test_a_node_that_leaves_the_process_is_a_failed_run(run: Command) -> None:
    """SystemExit of user code neither hides the run's end nor chooses the code."""
    done = run("leaving", "--input", "{}", "--no-store")

    assert done.code == 1
    assert done.err.startswith("error: SystemExit: bye (in node 'leave', sample_graphs.py:")


def test_an_endless_loop_ends_at_the_step_limit_of_the_config(run: Command) -> None:
    """`--config` takes any key of a run's config."""
    done = run("endless", "--input", '{"n": 1}', "--no-store", "--config", '{"recursion_limit": 3}')

    assert done.code == 1
    assert done.err.startswith("error: GraphRecursionError: [TG205] ")


def test_ctrl_c_ends_with_its_own_code(run: Command) -> None:
    """130, as shells have it; the trace is flushed."""
    done = run("pressed", "--input", "{}")

    assert done.code == 130
    assert done.err.startswith("cancelled: the keyboard stopped the run\ntrace ")


@pytest.mark.parametrize("name", ["drained", "drained_async"])
def test_sigterm_lets_the_superstep_end_and_flushes(run: Command, command: Command, name: str) -> None:
    """The next node does not run, and the trace is in the store with its end."""
    done = run(name, "--input", '{"n": 1}')

    assert (done.code, done.out) == (143, "")
    assert done.err.startswith("drained: SIGTERM stopped the run between two supersteps\ntrace ")
    spans = command("trace", "last", "--json").data["spans"]
    assert "run_step terminate" in [span["name"] for span in spans]
    assert "run_step explode" not in [span["name"] for span in spans]


@pytest.mark.parametrize("name", ["waiting", "waiting_async", "waiting_beside"])
def test_sigterm_from_outside_waits_for_the_running_node(environment: dict[str, str], tmp_path: Path, name: str) -> None:
    """Alone in the main thread, in an async run, and beside another node: the node ends, the next one does not begin."""
    os.mkfifo(tmp_path / "started")
    process = subprocess.Popen(
        [sys.executable, "-m", "tracegraph.cli", "run", f"{GRAPHS}:{name}", "--input", "{}", "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
        cwd=tmp_path,
    )
    with (tmp_path / "started").open(encoding="utf-8"):
        process.send_signal(signal.SIGTERM)
    out, err = process.communicate()

    assert (process.returncode, err) == (143, "drained: SIGTERM stopped the run between two supersteps\n")
    assert json.loads(out)["status"] == "drained"


def test_a_second_sigterm_does_not_wait(run: Command) -> None:
    """Who asks twice means now."""
    done = run("terminated", "--input", "{}")

    assert done.code == 143
    assert done.err.startswith("terminated: a second SIGTERM stopped the run\ntrace ")


def test_without_a_store_nothing_is_written(run: Command, tmp_path: Path) -> None:
    """And no trace id is promised."""
    done = run("good", "--input", "{}", "--no-store")

    assert (done.code, done.err) == (0, "")
    assert not (tmp_path / "home").exists()


def test_a_trace_that_cannot_be_stored_is_said_so(run: Command, tmp_path: Path) -> None:
    """The run is none the worse."""
    (tmp_path / "home").write_text("in the way", encoding="utf-8")

    done = run("good", "--input", '{"n": 1}')

    assert (done.code, done.data["n"]) == (0, 2)
    assert re.search(r"^trace [0-9a-f]{32} could not be stored$", done.err, re.MULTILINE)


def test_a_module_is_found_in_the_current_folder(command: Command, tmp_path: Path) -> None:
    """`module:graph` imports, so the file's neighbours are importable as well."""
    (tmp_path / "neighbour.py").write_text(GRAPHS.read_text(encoding="utf-8"), encoding="utf-8")
    (tmp_path / "mine.py").write_text("from neighbour import good as graph\n", encoding="utf-8")

    for target in ("mine:graph", "mine.py:graph", "mine.py"):
        assert command("run", target, "--input", '{"n": 1}', "--no-store").data["n"] == 2


def test_a_file_may_be_called_like_a_standard_module(command: Command, tmp_path: Path) -> None:
    """It is loaded under another name and shadows nothing."""
    (tmp_path / "graphs").mkdir()
    (tmp_path / "graphs" / "logging.py").write_text(GRAPHS.read_text(encoding="utf-8"), encoding="utf-8")

    assert command("run", "graphs/logging.py:good", "--input", '{"n": 1}', "--no-store").data["n"] == 2


def test_progress_is_shown_on_a_terminal_only(environment: dict[str, str], tmp_path: Path) -> None:
    """Each node as it ends, with its step; stdout stays the result."""
    reader, terminal = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "tracegraph.cli", "run", f"{GRAPHS}:good_async", "--input", '{"n": 1}', "--no-store"],
        stdout=subprocess.PIPE,
        stderr=terminal,
        env=environment | {"TERM": "xterm", "COLUMNS": "100"},
        cwd=tmp_path,
    )
    os.close(terminal)
    shown = b""
    while True:
        try:
            piece = os.read(reader, 4096)
        except OSError:  # the other end is closed: Linux reports that as an I/O error
            break
        if not piece:
            break
        shown += piece
    os.close(reader)
    out, _ = process.communicate()

    plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown.decode())
    assert re.search(r"✓ step 1  add  [\d.]+ ms", plain)
    assert re.search(r"✓ step 2  aadd  [\d.]+ ms", plain)
    assert (process.returncode, out.startswith(b"{")) == (0, True)
