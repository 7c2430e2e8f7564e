"""The rules that every span of every test is held against: right spans pass, and each kind of mistake is found."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args
from uuid import UUID

import pytest
from event_script import ROOT, Script
from opentelemetry.sdk.trace import TracerProvider
from span_rules import problems_among, problems_of, problems_of_log_record
from span_watch import all_problems

from tracegraph import events as e
from tracegraph.telemetry import semconv
from tracegraph.telemetry.semconv.registry import SPANS
from tracegraph_exporters.base import EventRecord, LinkRecord, SpanRecord, to_record


def memory_calls(s: Script) -> Iterator[e.Event]:
    """Yield start and end of a call of each operation, every other one in the process."""
    for number, operation in enumerate(get_args(e.MemoryOperation)):
        call_id, is_in_process = UUID(int=80 + number), number % 2 == 0
        asked = (operation, "prefs", "tea", ("ann",), "what", None, is_in_process, (), {})
        yield e.MemoryStarted(ROOT, "", 1, next(s.clock), "id-a", call_id, None, "Store", *asked)
        yield e.MemoryEnded(ROOT, "", 1, next(s.clock), "id-a", call_id, None, "Store", None, 1, None)


ROOTS_OF_TESTS = Path(__file__).parents[1]


@pytest.fixture
def trace(provider: TracerProvider, recorder: Any) -> dict[str, SpanRecord]:
    """A right span of every kind but one, by the first word of its name; the task failed at its second try."""
    s = Script(provider, name="g", workflow_name="g", thread_id="t-1")
    error = ValueError("no")
    put = e.CheckpointStarted(ROOT, "", 1, next(s.clock), "cp-1", "cp-0", "loop", ("x",), True, True)
    s.send(s.step(1, tasks=2, has_span=True), s.task(has_attempts=True), s.attempt(1), s.model(70), s.tool(71, parent=70))
    s.send(s.tool_ended(71), e.ModelEnded(ROOT, "", 1, next(s.clock), "id-a", s.model(70).call_id, None, "m", None, None))
    s.send(e.RetrievalStarted(ROOT, "", 1, next(s.clock), "id-a", s.model(72).call_id, None, "faq", None, "q", (), {}))
    s.send(e.RetrievalEnded(ROOT, "", 1, next(s.clock), "id-a", s.model(72).call_id, None, "faq", [], None))
    s.send(*memory_calls(s))
    s.send(s.attempt_ended(1, error), s.task_ended("a", "failed", error))
    put.at_ns = next(s.clock)
    s.send(put, e.CheckpointSaved(ROOT, "", 1, next(s.clock), "cp-1", None, "loop", (), None))
    s.send(s.step_ended(status="stopped"), s.run_ended(ROOT, "failed", error))
    records = [to_record(span) for span in recorder.finished]
    return {record.name if record.name in SPANS else record.name.partition(" ")[0]: record for record in records}


def test_right_spans_pass(trace: dict[str, SpanRecord]) -> None:
    """Every kind of span but two without a complaint: a `text_completion` is a `chat`, and large runs have tests of their own."""
    assert trace.keys() | {"text_completion", semconv.TRACE_PART_SPAN} == SPANS.keys()
    assert all_problems(trace.values()) == []


def with_(span: SpanRecord, **attributes: Any) -> SpanRecord:
    """Return *span* with attributes set; underscores stand for dots, None takes one away."""
    named = {getattr(semconv, name): value for name, value in attributes.items()}
    changed = {**span.attributes, **named}
    return replace(span, attributes={name: value for name, value in changed.items() if value is not None})


def plus(span: SpanRecord, name: str, value: Any) -> SpanRecord:
    return replace(span, attributes={**span.attributes, name: value})


def event(span: SpanRecord, name: str, **attributes: Any) -> SpanRecord:
    return replace(span, events=(*span.events, EventRecord(name, span.start_ns, attributes)))


WRONG: dict[str, tuple[str, Callable[[SpanRecord], SpanRecord], str]] = {
    "unknown name": ("run_step", lambda s: replace(s, name="task a"), "no span name of ours"),
    "name of another node": ("run_step", lambda s: replace(s, name="run_step b"), "should be called 'run_step a'"),
    "superstep with its number": ("superstep", lambda s: replace(s, name="superstep 1"), "no span name of ours"),
    "another operation": ("run_step", lambda s: with_(s, OPERATION_NAME="chat"), "operation.name is 'chat'"),
    "kind": ("chat", lambda s: replace(s, kind="server"), "kind is SERVER, not CLIENT"),
    "required attribute missing": ("chat", lambda s: with_(s, PROVIDER_NAME=None), "lacks gen_ai.provider.name"),
    "integer as text": ("superstep", lambda s: with_(s, SUPERSTEP="1"), "is '1', no int"),
    "boolean as integer": ("attempt", lambda s: with_(s, ATTEMPT_NUMBER=True), "is True, no int"),
    "whole number as double": ("run_step", lambda s: with_(s, TASK_QUEUED_MS=2), "is 2, no double"),
    "text as list": ("run_step", lambda s: with_(s, TASK_TRIGGER="x"), "is 'x', no string[]"),
    "list of numbers": ("run_step", lambda s: with_(s, TASK_TRIGGER=(1,)), "no string[]"),
    "value outside the closed set": ("checkpoint put", lambda s: with_(s, CHECKPOINT_SOURCE="magic"), "is 'magic', none of"),
    "false where only true is said": ("chat", lambda s: with_(s, REQUEST_STREAM=False), "none of true"),
    "unknown gen_ai name": ("chat", lambda s: plus(s, "gen_ai.system", "openai"), "must not carry gen_ai.system"),
    "unknown name of ours": ("run_step", lambda s: plus(s, "tracegraph.mood", "good"), "must not carry tracegraph.mood"),
    "known name on the wrong span": ("superstep", lambda s: with_(s, USAGE_INPUT_TOKENS=5), "must not carry gen_ai.usage"),
    "content": ("chat", lambda s: with_(s, INPUT_MESSAGES="[]"), "carries content: gen_ai.input.messages"),
    "fat value": ("run_step", lambda s: with_(s, TASK_REASON="é" * 1001), "has 2002 bytes"),
    "fat list": ("run_step", lambda s: with_(s, TASK_TRIGGER=("x" * 1000, "y" * 1001)), "has 2001 bytes"),
    "too many attributes": (
        "run_step",
        lambda s: replace(s, attributes={**s.attributes, **{f"app.{n}": n for n in range(50)}}),
        "attributes",
    ),
    "event of another span": ("superstep", lambda s: event(s, semconv.TASK_RETRY_EVENT), "must not have an event"),
    "unknown event of ours": ("run_step", lambda s: event(s, "tracegraph.mood"), "must not have an event tracegraph.mood"),
    "event without its attributes": (
        "invoke_workflow",
        lambda s: event(s, semconv.TURN_TAKEN_EVENT),
        "lacks tracegraph.run.waited_s",
    ),
    "link of unknown kind": (
        "run_step",
        lambda s: replace(s, links=(LinkRecord("1", "2", {semconv.LINK_KIND: "resumed"}),)),
        "must not have a link",
    ),
    "OK": ("superstep", lambda s: replace(s, status="ok"), "success is Unset"),
    "error without its type": ("run_step", lambda s: with_(s, ERROR_TYPE=None), "status is error and error.type is None"),
    "error without its exception": ("run_step", lambda s: replace(s, events=()), "has 0 exception events"),
    "exception twice": ("run_step", lambda s: replace(s, events=s.events * 2), "has 2 exception events"),
    "error type without an error": ("superstep", lambda s: with_(s, ERROR_TYPE="X"), "status is unset and error.type is 'X'"),
    "interrupted task in error": ("run_step", lambda s: with_(s, TASK_STATUS="interrupted"), "task.status is 'interrupted'"),
    "abandoned run in error": ("invoke_workflow", lambda s: with_(s, RUN_STATUS="abandoned"), "run.status is 'abandoned'"),
    "failed run that is no error": (
        "invoke_workflow",
        lambda s: replace(with_(s, ERROR_TYPE=None), status="unset", events=()),
        "status is unset and tracegraph.run.status is 'failed'",
    ),
    "ends before it starts": ("run_step", lambda s: replace(s, end_ns=s.start_ns - 1), "ends before it starts"),
}


@pytest.mark.parametrize("name", WRONG)
def test_mistake_on_a_span_is_found(trace: dict[str, SpanRecord], name: str) -> None:
    """One wrong thing, one complaint that names it."""
    kind, spoil, complaint = WRONG[name]

    found = problems_of(spoil(trace[kind]))

    assert complaint in "\n".join(found)
    assert len(found) <= 2  # a fault of two facts that contradict each other may be told from both sides


def test_content_passes_where_it_is_asked_for(trace: dict[str, SpanRecord]) -> None:
    """The same span, captured on purpose."""
    assert problems_of(with_(trace["chat"], INPUT_MESSAGES="[]"), allows_content=True) == []


def test_exceptions_may_be_told_by_logs_alone(trace: dict[str, SpanRecord]) -> None:
    """Where they are asked for there, spans in error say their type and no more."""
    bare = [replace(span, events=()) for span in trace.values()]

    assert all_problems(bare, needs_exceptions=False) == []
    assert len(all_problems(bare)) == 3  # the run, the task and its attempt


MISPLACED: dict[str, tuple[str, Callable[[SpanRecord, dict[str, SpanRecord]], SpanRecord], str]] = {
    "task without a parent": ("run_step", lambda s, t: replace(s, parent_id=None), "has no parent"),
    "attempt below the run": ("attempt", lambda s, t: replace(s, parent_id=t["invoke_workflow"].span_id), "lies below 'invoke"),
    "longer than its parent": ("run_step", lambda s, t: replace(s, end_ns=t["superstep"].end_ns + 1), "does not lie inside"),
    "earlier than its parent": ("superstep", lambda s, t: replace(s, start_ns=1), "does not lie inside"),
    "another thread": ("chat", lambda s, t: with_(s, CONVERSATION_ID="t-2"), "is 't-2', its run's is 't-1'"),
    "thread missing": ("attempt", lambda s, t: with_(s, CONVERSATION_ID=None), "is None, its run's is 't-1'"),
    "another namespace": ("superstep", lambda s, t: with_(s, CHECKPOINT_NS="x"), "is 'x', its run's is ''"),
    "exception nowhere": ("run_step", lambda s, t: replace(s, events=()), "neither on it nor on its task"),
}


@pytest.mark.parametrize("name", MISPLACED)
def test_mistake_in_the_tree_is_found(trace: dict[str, SpanRecord], name: str) -> None:
    """Each span may be right by itself."""
    kind, move, complaint = MISPLACED[name]

    found = problems_among({**trace, kind: move(trace[kind], trace)}.values())

    assert complaint in "\n".join(found)


RETRY = {
    semconv.RUN_ID: "r", semconv.CHECKPOINT_NS: "", semconv.STEP_NAME: "a", semconv.TASK_ID: "t", semconv.SUPERSTEP: 1,
    semconv.ATTEMPT_NUMBER: 1, semconv.RETRY_DELAY_S: 0.5, semconv.ERROR_TYPE: "ValueError", semconv.EXCEPTION_TYPE: "ValueError",
}  # fmt: skip

RECORDS: dict[str, tuple[str, str, dict[str, Any], str]] = {
    "unknown event": ("tracegraph.mood", "INFO", {}, "no event of ours"),
    "event of spans alone": (semconv.FIRST_CHUNK_EVENT, "INFO", {}, "no event of ours"),
    "value of the wrong type": (semconv.TASK_RETRY_EVENT, "WARN", {**RETRY, semconv.SUPERSTEP: "1"}, "is '1', no int"),
    "unknown attribute": (semconv.TASK_RETRY_EVENT, "WARN", {**RETRY, "tracegraph.mood": "x"}, "must not carry tracegraph.mood"),
    "severity": (semconv.TASK_RETRY_EVENT, "INFO", RETRY, "its severity is INFO, not WARN"),
    "content": (
        semconv.TASK_RETRY_EVENT,
        "WARN",
        {**RETRY, semconv.TASK_INPUT: {"a": 1}},
        "carries content: tracegraph.task.input",
    ),
}


@pytest.mark.parametrize("case", RECORDS)
def test_mistake_on_a_log_record_is_found(case: str) -> None:
    """One complaint that names it; the right record has none."""
    name, severity, attributes, complaint = RECORDS[case]

    (found,) = problems_of_log_record(name, severity, attributes)

    assert complaint in found
    assert problems_of_log_record(semconv.TASK_RETRY_EVENT, "WARN", RETRY) == []
    assert problems_of_log_record(semconv.TASK_RETRY_EVENT, "ERROR", RETRY) == []


WATCHED = """
import pytest
from opentelemetry._logs import LogRecord
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import InMemoryLogRecordExporter, SimpleLogRecordProcessor
from opentelemetry.sdk.trace import TracerProvider
from tracegraph.telemetry import semconv

def make(name, scope=semconv.SCOPE_NAME):
    provider = TracerProvider(shutdown_on_exit=False)
    tracer = provider.get_tracer(scope, semconv.SCOPE_VERSION, schema_url=semconv.SCHEMA_URL)
    tracer.start_span(name).end()

def test_wrong():
    make("attempt")

def test_of_somebody_else():
    make("attempt", "app")

def test_wrong_record():
    provider = LoggerProvider(shutdown_on_exit=False)
    provider.add_log_record_processor(SimpleLogRecordProcessor(InMemoryLogRecordExporter()))
    logger = provider.get_logger(semconv.SCOPE_NAME)
    logger.emit(LogRecord(event_name="tracegraph.mood"))
    logger.emit(LogRecord(body="a line"))

@pytest.mark.hand_made_spans(reason="to see that it passes")
def test_excused():
    make("attempt")
"""


def test_wrong_span_fails_the_test_that_made_it(tmp_path: Path) -> None:
    """Whoever's provider it went to; a test may be excused, and other scopes are none of our business."""
    (tmp_path / "conftest.py").write_text(
        f"import sys\nsys.path.insert(0, {str(ROOTS_OF_TESTS / 'support')!r})\nfrom span_watch import *\n"
    )
    (tmp_path / "test_watched.py").write_text(WATCHED)

    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", str(tmp_path), str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
        timeout=50,
    )

    assert re.search(r"4 passed, (\d+ warnings?, )?2 errors", done.stdout), done.stdout + done.stderr
    assert "'attempt': lacks tracegraph.attempt.number" in done.stdout
    assert "ERROR at teardown of test_wrong" in done.stdout
    assert "log record 'tracegraph.mood': no event of ours" in done.stdout
