"""Signals from outside to a real process whose node hangs: it ends at once, its trace is whole, and its thread goes on later."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from command_line import GRAPHS, Command

from tracegraph.checkpoint.sqlite import SqliteSaver
from tracegraph_exporters.store import TraceStore


@pytest.fixture
def stopped(environment: dict[str, str], tmp_path: Path) -> Callable[[str, list[signal.Signals]], tuple[int, str, Any]]:
    """Run a graph on the thread "t", send signals once its node hangs, and return exit code, stderr, and what it printed."""

    def run(name: str, signals: list[signal.Signals]) -> tuple[int, str, Any]:
        os.mkfifo(tmp_path / "started")
        os.mkfifo(tmp_path / "asked")
        process = subprocess.Popen(
            [sys.executable, "-m", "tracegraph.cli", "run", f"{GRAPHS}:{name}", "--input", "{}", "--thread", "t", "--json"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment,
            cwd=tmp_path,
        )
        with (tmp_path / "started").open(encoding="utf-8"):
            process.send_signal(signals[0])
        for number in signals[1:]:
            with (tmp_path / "asked").open(encoding="utf-8"):
                pass  # it has been asked, and waits for the node
            process.send_signal(number)
        out, err = process.communicate()
        return process.returncode, err, json.loads(out)

    return run


@pytest.mark.parametrize(
    ("name", "signals", "code", "status"),
    [
        ("hanging_async", [signal.SIGINT], 130, "cancelled"),
        ("hanging_beside", [signal.SIGINT], 130, "cancelled"),
        ("hanging", [signal.SIGTERM, signal.SIGTERM], 143, "terminated"),
    ],
    ids=["Ctrl-C on an event loop", "Ctrl-C beside another node", "SIGTERM twice"],
)
def test_a_node_that_hangs_does_not_hold_the_process(
    stopped: Any, command: Command, tmp_path: Path, name: str, signals: list[signal.Signals], code: int, status: str
) -> None:
    """What had finished is saved, every span is in the store with its end, and the thread can be gone on with."""
    found, err, told = stopped(name, signals)

    assert (found, told["status"]) == (code, status)
    assert err.count("\n") == 1, err
    with TraceStore(tmp_path / "home" / "traces.db") as store:
        spans = store.spans(told["trace_id"])
    assert {span.name for span in spans} >= {"invoke_workflow", "run_step hang"}
    assert {span.parent_id for span in spans} <= {None, *(span.span_id for span in spans)}
    with SqliteSaver.from_conn_string(tmp_path / "home" / "checkpoints.db") as saver:
        head = saver.get_tuple({"configurable": {"thread_id": "t"}})
    assert head is not None
    assert head.checkpoint["channel_values"]["n"] == 1
    (tmp_path / "mended").touch()
    done = command("resume", f"{GRAPHS}:{name}", "t", "--json")
    before = head.checkpoint["channel_values"]["log"]
    assert (done.code, done.data["result"]["log"]) == (0, [*before, *["beside"] * (name == "hanging_beside"), "hang"])
