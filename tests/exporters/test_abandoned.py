"""Processes that die with open spans: really killed ones, and what tells a dead process from a silent one."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tracegraph_exporters import SQLiteSpanExporter, StoreSpanProcessor, TraceStore, TraceStoreError, close_abandoned
from tracegraph_exporters.writers import LEASE_S, Writer, this_process

pytestmark = [
    pytest.mark.skipif(os.name != "posix", reason="needs signals and fork"),
    pytest.mark.hand_made_spans("the spans are an exporter's, of no run"),
]

PROGRAM = """
import os, sys
from opentelemetry import trace
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from tracegraph_exporters import SQLiteSpanExporter, StoreSpanProcessor

provider = TracerProvider(resource=Resource({"service.name": "tests"}))
provider.add_span_processor(StoreSpanProcessor(SQLiteSpanExporter(sys.argv[1]), open_delay_s=3600, schedule_delay_millis=3.6e6))
tracer = provider.get_tracer("tracegraph")
name = sys.argv[2]
with tracer.start_as_current_span(name, attributes={"tracegraph.run.id": "r", "gen_ai.conversation.id": "t"}) as run:
    with tracer.start_as_current_span("done"):
        pass
    with tracer.start_as_current_span("run_step n", attributes={"tracegraph.task.id": "x"}):
        with tracer.start_as_current_span("attempt", attributes={"tracegraph.attempt.number": 1}):
            with tracer.start_as_current_span("mine"):
                provider.force_flush()
                print("open", flush=True)
                sys.stdin.readline()
    run.set_attribute("tracegraph.run.status", "completed")
provider.shutdown()
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "traces.db"


@pytest.fixture
def start(path: Path) -> Iterator[Callable[[str], subprocess.Popen[str]]]:
    """Start a process that writes four open spans to the store and then waits for a line."""
    with ExitStack() as stack:

        def run(name: str) -> subprocess.Popen[str]:
            process = stack.enter_context(
                subprocess.Popen(
                    [sys.executable, "-c", PROGRAM, str(path), name], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
                )
            )
            stack.callback(process.kill)
            assert process.stdout is not None
            assert process.stdout.readline() == "open\n"
            return process

        yield run


def statuses(path: Path) -> dict[str | None, str]:
    with TraceStore(path) as store:
        return {trace.name: trace.status for trace in store.traces()}


def sql(path: Path, statement: str, *values: Any) -> list[Any]:
    connection = sqlite3.connect(path)
    try:
        with connection:
            return connection.execute(statement, values).fetchall()
    finally:
        connection.close()


def test_killed_process_leaves_abandoned_spans(path: Path, start: Callable[[str], subprocess.Popen[str]]) -> None:
    """As long as it lives its run is running; after `kill -9` each open span ends, with what is known."""
    process = start("invoke_workflow g")
    assert close_abandoned(path) == 0
    assert statuses(path) == {"invoke_workflow g": "running"}
    process.send_signal(signal.SIGKILL)
    process.wait()

    assert close_abandoned(path) == 4
    assert close_abandoned(path) == 0
    with TraceStore(path) as store:
        (trace,) = store.traces(status="abandoned")
        spans = {span.name: span for span in store.spans(trace.trace_id)}
    assert (trace.name, trace.thread_id, trace.span_count, trace.error_count) == ("invoke_workflow g", "t", 5, 0)
    run, task, attempt, mine = (spans[name].attributes for name in ("invoke_workflow g", "run_step n", "attempt", "mine"))
    assert run["tracegraph.run.status"] == task["tracegraph.task.status"] == attempt["tracegraph.task.status"] == "abandoned"
    assert run["tracegraph.run.reason"] == task["tracegraph.task.reason"] == "process_died"
    assert {a["process.pid"] for a in (run, task, attempt, mine)} == {process.pid}
    assert all(a["tracegraph.span.abandoned"] for a in (run, task, attempt, mine))
    assert "tracegraph.span.abandoned" not in spans["done"].attributes
    assert {span.status for span in spans.values()} == {"unset"}
    assert all(spans["done"].end_ns <= spans[name].end_ns for name in ("invoke_workflow g", "mine"))
    assert sql(path, "SELECT * FROM open_spans") == sql(path, "SELECT * FROM writers") == []


def test_killed_process_that_nobody_waited_for_is_dead(path: Path, start: Callable[[str], subprocess.Popen[str]]) -> None:
    """What is left of it in the process table is no life."""
    process = start("g")
    process.send_signal(signal.SIGKILL)
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)

    assert close_abandoned(path) == 4


def test_only_the_dead_ones_spans_are_closed(path: Path, start: Callable[[str], subprocess.Popen[str]]) -> None:
    """Several processes share a file; the survivor's run goes on to its own end."""
    dies, lives = start("dies"), start("lives")
    dies.kill()
    dies.wait()

    assert close_abandoned(path) == 4
    assert statuses(path) == {"dies": "abandoned", "lives": "running"}
    lives.communicate("\n")
    assert statuses(path) == {"dies": "abandoned", "lives": "completed"}
    assert sql(path, "SELECT * FROM writers") == []


def test_many_may_close_at_once(path: Path, start: Callable[[str], subprocess.Popen[str]]) -> None:
    """Each span is closed once, whoever comes first."""
    process = start("g")
    process.kill()
    process.wait()
    code = "import sys, tracegraph_exporters as t; sys.stdin.readline(); print(t.close_abandoned(sys.argv[1]))"
    command = [sys.executable, "-c", code, str(path)]
    closers = [subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(4)]
    for closer in closers:
        assert closer.stdin is not None
        closer.stdin.write("\n")
        closer.stdin.flush()
    counts = [int(closer.communicate()[0]) for closer in closers]

    assert sorted(counts) == [0, 0, 0, 4]
    with TraceStore(path) as store:
        assert store.traces()[0].span_count == 5


def test_process_with_a_reused_id_is_another_one(path: Path, start: Callable[[str], subprocess.Popen[str]]) -> None:
    """The id alone says nothing: here a living process has it, which started at another time."""
    process = start("g")
    process.kill()
    process.wait()
    if not this_process().started:
        pytest.skip("this system does not tell when a process started")
    sql(path, "UPDATE writers SET pid = ?", os.getpid())

    assert close_abandoned(path) == 4


@pytest.mark.parametrize(("silence_s", "is_dead"), [(LEASE_S - 5, False), (LEASE_S + 5, True)])
def test_process_elsewhere_is_dead_when_it_has_been_silent_for_long(silence_s: int, is_dead: bool) -> None:
    """Of another machine, container or boot nothing can be asked; a living process lets hear of itself."""
    elsewhere = Writer("another machine", os.getpid(), this_process().started)
    assert elsewhere.is_dead(this_process().place, silence_s * 1_000_000_000) is is_dead


def test_living_process_may_be_silent(path: Path, start: Callable[[str], subprocess.Popen[str]]) -> None:
    """A stopped one, for instance in a debugger, is asked for, not guessed at."""
    process = start("g")
    sql(path, "UPDATE writers SET seen_ns = 0")

    assert close_abandoned(path) == 0
    process.communicate("\n")
    assert statuses(path) == {"g": "completed"}


def test_system_that_does_not_tell_start_times_still_knows_who_is_gone() -> None:
    """There an id that nobody has is a dead process; one that somebody has is believed as long as it is heard of."""
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    assert Writer("here", gone.pid, "").is_dead("here", 0)
    assert not Writer("here", os.getpid(), "").is_dead("here", 0)
    assert Writer("here", os.getpid(), "").is_dead("here", (LEASE_S + 1) * 1_000_000_000)


def test_process_that_was_taken_for_dead_takes_its_spans_back(path: Path, start: Callable[[str], subprocess.Popen[str]]) -> None:
    """A laptop slept, or two machines' clocks differ: the true ends count, as if nothing had been said."""
    process = start("invoke_workflow g")
    sql(path, "UPDATE writers SET place = 'another machine', seen_ns = 0")
    assert close_abandoned(path) == 4
    assert statuses(path) == {"invoke_workflow g": "abandoned"}

    process.communicate("\n")

    with TraceStore(path) as store:
        (trace,) = store.traces()
        spans = store.spans(trace.trace_id)
    assert (trace.status, trace.span_count, trace.name) == ("completed", 5, "invoke_workflow g")
    assert not any("tracegraph.span.abandoned" in span.attributes for span in spans)
    assert sql(path, "SELECT * FROM writers") == []


def test_what_is_still_open_then_is_open_again(path: Path, maker: Any) -> None:
    """Also without an end: the next sign of life is enough."""
    exporter = SQLiteSpanExporter(path)
    span = maker.start("root")
    assert exporter.export_open([span])
    sql(path, "UPDATE writers SET place = 'another machine', seen_ns = 0")
    assert close_abandoned(path) == 1
    exporter.export(maker.run("other", at_ms=50))

    assert statuses(path) == {"root": "running", "other": "completed"}
    exporter.export([maker.end(span)])
    assert statuses(path) == {"root": "completed", "other": "completed"}
    exporter.shutdown()


def test_forked_child_has_nothing_open_of_its_parents(path: Path, maker: Any) -> None:
    """The parent's spans are the parent's: a killed child takes none of them along, and its own are closed."""
    exporter = SQLiteSpanExporter(path)
    maker.provider.add_span_processor(processor := StoreSpanProcessor(exporter, open_delay_s=3600))
    parents = maker.start("parents")
    processor.force_flush()
    told, tells = os.pipe()
    held, holds = os.pipe()
    if (pid := os.fork()) == 0:
        try:
            os.close(holds)
            maker.start("childs")
            processor.force_flush()
            os.write(tells, b"x")
            os.read(held, 1)  # until the parent kills this process, or is gone itself
        finally:
            os._exit(1)
    try:
        assert os.read(told, 1) == b"x"
        assert statuses(path) == {"parents": "running", "childs": "running"}
        assert sorted(sql(path, "SELECT pid FROM writers")) == sorted([(os.getpid(),), (pid,)])
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        for end in (told, tells, held, holds):
            os.close(end)

    assert close_abandoned(path) == 1
    assert statuses(path) == {"parents": "running", "childs": "abandoned"}
    parents.end()
    processor.shutdown()
    assert statuses(path) == {"parents": "completed", "childs": "abandoned"}


def test_where_there_is_no_store_none_is_made(path: Path) -> None:
    """Looking for the dead must not create; a file that is something else is named."""
    assert close_abandoned(path) == 0
    assert not path.exists()
    path.write_text("not a database, but long enough to be looked at as if it were one" * 10)
    with pytest.raises(TraceStoreError, match="is no trace store"):
        close_abandoned(path)
