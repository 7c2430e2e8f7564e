"""The terminal reader: side by side on a terminal, line by line elsewhere, and stopped by Ctrl-C."""

from __future__ import annotations

import asyncio
import io
import json
import os
import pty
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
import terminal_reader
from held_model import HeldModel
from rich.console import Console
from small_graphs import PATIENCE_S, THREAD, State, chain, saving

from tracegraph import interrupt

EXAMPLE = Path(__file__).parents[2] / "examples" / "terminal_reader.py"
TEXT = "Owls hunt at night. Mice hide by day, and at night owls listen: the night is theirs."
ENDS = ["load", "find_key_words", "summarize", "headline", "choose", "shorten"]


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """That of a user without OpenTelemetry settings, with a trace store of its own and a model that speaks fast."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("OTEL_", "TRACEGRAPH_"))}
    mine = {"TRACEGRAPH_HOME": str(tmp_path / "home"), "PYTHONWARNINGS": "error", "PACE_S": "0.001", "TERM": "xterm-256color"}
    return kept | mine


@contextmanager
def reader(environment: dict[str, str], *arguments: str, out: int = subprocess.PIPE) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, str(EXAMPLE), *arguments]
    with subprocess.Popen(command, stdout=out, stderr=subprocess.PIPE, text=True, encoding="utf-8", env=environment) as started:
        try:
            yield started
        finally:
            started.kill()


def stored(trace_id: str, environment: dict[str, str]) -> list[dict[str, Any]]:
    """Return the spans that `tracegraph trace` finds."""
    command = [sys.executable, "-m", "tracegraph.cli", "trace", trace_id, "--json"]
    found = json.loads(subprocess.run(command, capture_output=True, check=True, env=environment).stdout)
    return list(found["spans"])


def screen_text(screen: terminal_reader.Screen, width: int = 100) -> list[str]:
    console = Console(width=width, height=40, record=True, file=io.StringIO())
    console.print(screen)
    return console.export_text().splitlines()


def test_elsewhere_than_on_a_terminal_it_prints_lines(environment: dict[str, str], tmp_path: Path) -> None:
    """Each answer once it is whole, each task as it begins and ends, those of the graph inside as well."""
    document = tmp_path / "owls.txt"
    document.write_text(TEXT, "utf-8")

    with reader(environment, str(document)) as running:
        out, err = running.communicate()

    first, *lines = out.splitlines()
    assert (running.returncode, err) == (0, "")
    assert f"summarize: {TEXT}" in lines
    assert "shorten: Mice hide by day" in lines
    # Progress is read beside the answers, so that its lines have an order of their own.
    progress = [line for line in lines if re.match(" *(step|graph) ", line)]
    assert progress == [
        "step 1: load ...",
        "step 1: load done",
        "step 2: find_key_words ...",
        "step 2: summarize ...",
        "step 2: find_key_words done",
        "step 2: summarize done",
        "step 3: headline ...",
        "    graph headline started",
        "    step 1: choose ...",
        "    step 1: choose done",
        "    step 2: shorten ...",
        "    step 2: shorten done",
        "    graph headline completed",
        "step 3: headline done",
    ]
    names = [span["name"] for span in stored(first.removeprefix("trace "), environment)]
    assert {"watch", "invoke_workflow briefing", "chat scripted"} <= set(names)


async def test_tokens_of_parallel_nodes_stand_beside_the_progress(monkeypatch: pytest.MonkeyPatch) -> None:
    """While both models are in the middle of their answers."""
    model, has_both = HeldModel(monkeypatch), asyncio.Event()
    monkeypatch.setenv("PACE_S", "0")

    class Watched(terminal_reader.Screen):
        def take_token(self, *about: Any) -> None:
            super().take_token(*about)
            if len(self._answers) == 2:
                has_both.set()

    screen = Watched(is_live=True)
    async with asyncio.timeout(PATIENCE_S):
        running = asyncio.create_task(terminal_reader.watch({"text": TEXT}, screen))
        await has_both.wait()
        early = screen_text(screen)
        model.go_on.set()
        result = await running

    assert re.search(r"─ find_key_words ─.* step 1: load done", early[0])
    assert re.search(r"│ night, +│ step 2: find_key_words \.\.\.", early[1])
    assert re.search(r"─ summarize ─", early[3])
    assert re.search(r"│ Owls +│", early[4])
    shown = "\n".join(screen_text(screen))
    assert [name for name in ENDS if f"{name} done" in shown] == ENDS
    assert "graph headline completed" in shown
    assert result["brief"]["headline"] == "Mice hide by day"


def test_on_a_terminal_it_draws(environment: dict[str, str]) -> None:
    """On the shipped text; what stands there at last is the whole."""
    ours, theirs = pty.openpty()
    with reader(environment, out=theirs) as running:
        os.close(theirs)
        drawn = b""
        with suppress(OSError):  # how a terminal says that nobody has it open any more
            while block := os.read(ours, 65536):
                drawn += block
        os.close(ours)
        assert (running.wait(), running.stderr and running.stderr.read()) == (0, "")

    text = drawn.decode()
    last = text[text.rindex("\x1b[2K") :]
    assert all(f"─ {node} ─" in last for node in ("find_key_words", "summarize", "choose", "shorten"))
    assert "graph headline completed" in last
    assert text.startswith("trace ")


def test_ctrl_c_stops_the_run(environment: dict[str, str]) -> None:
    """Nodes are cancelled, and the trace is kept."""
    with reader(environment | {"PACE_S": "3600"}) as running:
        assert running.stdout is not None
        trace_id = running.stdout.readline().strip().removeprefix("trace ")
        assert "step 2: summarize ...\n" in running.stdout  # reads as far as that
        running.send_signal(signal.SIGINT)
        _, err = running.communicate()

    assert (running.returncode, err) == (130, "")
    (run,) = [span for span in stored(trace_id, environment) if span["name"] == "invoke_workflow briefing"]
    # Either reaches the run first: the cancellation of the reader that pulls, or the end of the block around it.
    assert run["attributes"]["tracegraph.run.status"] in {"cancelled", "abandoned"}


def test_the_error_of_a_run_is_one_line(environment: dict[str, str]) -> None:
    """Below what was seen of it."""
    with reader(environment, "no/such/file") as running:
        out, err = running.communicate()

    assert running.returncode == 1
    assert out.splitlines()[1:] == ["step 1: load ...", "step 1: load failed"]
    assert err == "the run failed: FileNotFoundError: [Errno 2] No such file or directory: 'no/such/file'\n"


async def test_a_node_that_asks_is_not_done(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """It waits for an answer."""

    def ask(state: State) -> State:
        return {"n": interrupt("How many?")}

    monkeypatch.setattr(terminal_reader, "graph", chain(saving(), ask=ask).with_config(THREAD))

    await terminal_reader.watch({}, terminal_reader.Screen(is_live=False))

    assert capsys.readouterr().out == "step 1: ask ...\nstep 1: ask asks\n"
