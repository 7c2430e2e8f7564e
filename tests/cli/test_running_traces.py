"""Runs that go on and runs that were killed, as `tracegraph traces` and `tracegraph trace` show them."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest
from colours import Colour
from command_line import Command

pytestmark = pytest.mark.skipif(os.name != "posix", reason="needs SIGKILL")

PROGRAM = """
import asyncio, os, sys
from typing import TypedDict
from tracegraph import START, StateGraph
from tracegraph.checkpoint.sqlite import SqliteSaver
from tracegraph.telemetry import setup

telemetry = setup()

class State(TypedDict, total=False):
    n: int

def wait(state):
    telemetry.force_flush()
    print("waits", flush=True)
    sys.stdin.readline()
    return {"n": 2}

async def await_(state):
    return wait(state)

graph = StateGraph(State)
graph.add_node("first", lambda state: {"n": 1})
graph.add_node("wait", await_ if sys.argv[1] == "async" else wait)
graph.add_edge(START, "first")
graph.add_edge("first", "wait")
with SqliteSaver.from_conn_string(os.path.join(os.environ["TRACEGRAPH_HOME"], "job.db")) as saver:
    compiled = graph.compile(saver, name="job")
    config = {"configurable": {"thread_id": "t"}}
    given = {} if saver.get_tuple(config) is None else None
    call = compiled.ainvoke if sys.argv[1] == "async" else compiled.invoke
    result = call(given, config, durability="sync")
    asyncio.run(result) if sys.argv[1] == "async" else None
"""


@pytest.fixture
def job(environment: dict[str, str], colour: Colour) -> Iterator[Callable[[], subprocess.Popen[str]]]:
    """Start a process whose run has come to its second node, which waits for a line."""
    with ExitStack() as stack:

        def start() -> subprocess.Popen[str]:
            Path(environment["TRACEGRAPH_HOME"]).mkdir(exist_ok=True)
            program = [sys.executable, "-c", PROGRAM, colour.name]
            process = stack.enter_context(
                subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)
            )
            stack.callback(process.kill)
            assert process.stdout is not None
            assert process.stdout.readline() == "waits\n"
            return process

        yield start


def test_running_run_is_seen_and_ends_as_usual(job: Callable[[], subprocess.Popen[str]], command: Command) -> None:
    """While a node is at work the list says so, and the tree shows where the run is."""
    process = job()

    (trace,) = command("traces", "--json").data
    assert (trace["status"], trace["name"]) == ("running", "invoke_workflow job")
    shown = command("trace", "last").out.splitlines()
    assert f"  running  {trace['span_count']} spans" in shown[0]
    lines = [line for line in shown if line.lstrip().startswith(("invoke_workflow", "run_step"))]
    assert [line.split()[:2] for line in lines] == [["invoke_workflow", "job"], ["run_step", "first"], ["run_step", "wait"]]
    assert [line.endswith("  running") for line in lines] == [True, False, True]

    process.communicate("\n")
    (trace,) = command("traces", "--json").data
    assert trace["status"] == "completed"
    assert not any(span["is_running"] for span in command("trace", "last", "--json").data["spans"])


def test_killed_run_is_abandoned(job: Callable[[], subprocess.Popen[str]], command: Command) -> None:
    """After `kill -9` the next look closes what was open, and shows what had been done and what had not."""
    process = job()
    process.send_signal(signal.SIGKILL)
    process.wait()

    assert " abandoned " in command("traces").out.splitlines()[1]
    shown = command("trace", "last", "--attributes")
    lines = [line for line in shown.out.splitlines() if line.lstrip().startswith(("invoke_workflow", "run_step"))]
    assert [line.endswith("  abandoned") for line in lines] == [True, False, True]
    assert "tracegraph.run.reason = process_died" in shown.out
    assert f"process.pid = {process.pid}" in shown.out


def test_store_that_cannot_be_written_is_read_all_the_same(
    job: Callable[[], subprocess.Popen[str]], command: Command, environment: dict[str, str]
) -> None:
    """Somebody else is writing for long, say: what is there is shown, and what may be wrong about it is said."""
    process = job()
    process.kill()
    process.wait()
    database = Path(environment["TRACEGRAPH_HOME"]) / "traces.db"
    with closing(sqlite3.connect(database, isolation_level=None)) as writer:
        writer.execute("BEGIN IMMEDIATE")
        shown = command("traces")

    assert " running " in shown.out.splitlines()[1]
    assert "the trace store cannot be written" in shown.err
    assert " abandoned " in command("traces").out.splitlines()[1]


def test_next_start_closes_what_a_killed_run_left(
    job: Callable[[], subprocess.Popen[str]], command: Command, environment: dict[str, str]
) -> None:
    """`setup()` does it too: a program that nobody looks into tidies up after the one before."""
    first = job()
    first.kill()
    first.wait()
    second = job()

    database = f"{environment['TRACEGRAPH_HOME']}/traces.db"
    code = "import sys; from tracegraph_exporters import TraceStore; print([t.status for t in TraceStore(sys.argv[1]).traces()])"
    seen = subprocess.run([sys.executable, "-c", code, database], capture_output=True, text=True, check=True)
    assert seen.stdout == "['running', 'abandoned']\n"
    second.communicate("\n")


def test_run_that_goes_on_after_a_crash_is_found_from_the_one_that_crashed(
    job: Callable[[], subprocess.Popen[str]], command: Command
) -> None:
    """The same thread in another process: a trace of its own, linked to what the dead process left."""
    first = job()
    first.kill()
    first.wait()
    second = job()
    second.communicate("\n")
    assert second.returncode == 0

    newest, crashed = command("traces", "--json").data
    assert (newest["status"], crashed["status"]) == ("completed", "abandoned")
    assert (newest["thread_id"], crashed["thread_id"]) == ("t", "t")
    assert command("trace", crashed["trace_id"], "--json").data["continued_in"] == [newest["trace_id"]]
    names = [span["name"] for span in command("trace", newest["trace_id"], "--json").data["spans"]]
    assert "run_step first" not in names
