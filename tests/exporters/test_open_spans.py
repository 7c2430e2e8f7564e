"""Spans that have not ended, in the store on a real file: seen at once, replaced by their ends, none forgotten."""

from __future__ import annotations

import os
import shutil
import sqlite3
import threading
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.sampling import Decision, SamplingResult, StaticSampler
from opentelemetry.trace import Span, set_span_in_context

from tracegraph_exporters import SQLiteSpanExporter, StoreSpanProcessor, TraceStore, build_tree, close_abandoned, render_plain
from tracegraph_exporters.base import to_record
from tracegraph_exporters.schema import MIGRATIONS

OLD_STORE = Path(__file__).parent / "data" / "traces_v1.db"
PATIENCE_S = 10.0
NEVER_S = 3_600.0


class Feed:
    """A provider whose spans go to the store, written when a test says so."""

    def __init__(self, path: Path, exporter: SQLiteSpanExporter | None = None, delay_s: float = NEVER_S) -> None:
        self.exporter = exporter or SQLiteSpanExporter(path)
        self.processor = StoreSpanProcessor(self.exporter, open_delay_s=delay_s, schedule_delay_millis=NEVER_S * 1e3)
        self.provider = TracerProvider(resource=Resource({"service.name": "tests"}), shutdown_on_exit=False)
        self.provider.add_span_processor(self.processor)
        self.tracer = self.provider.get_tracer("feed")
        self.write = self.provider.force_flush

    def start(self, name: str, parent: Span | None = None, **attributes: Any) -> Span:
        context = None if parent is None else set_span_in_context(parent)
        return self.tracer.start_span(name, context, attributes=attributes)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "traces.db"


@pytest.fixture
def feed(path: Path) -> Iterator[Feed]:
    made = Feed(path)
    yield made
    made.provider.shutdown()


def id_of(span: Span) -> str:
    return f"{span.get_span_context().trace_id:032x}"


def sql(path: Path, statement: str, *values: Any) -> list[Any]:
    connection = sqlite3.connect(path)
    try:
        with connection:
            return connection.execute(statement, values).fetchall()
    finally:
        connection.close()


def statuses(path: Path) -> dict[str | None, str]:
    with TraceStore(path) as store:
        return {trace.name: trace.status for trace in store.traces(limit=-1)}


def test_open_span_is_seen_with_what_is_known_of_it(path: Path, feed: Feed) -> None:
    """Name, thread, attributes, the time it has taken so far; its trace is listed as running."""
    root = feed.start("invoke_workflow g", **{"gen_ai.conversation.id": "t-1", "tracegraph.run.id": "r"})
    feed.start("run_step n", root, **{"tracegraph.task.id": "x", "tracegraph.superstep": 3})
    feed.write()

    with TraceStore(path) as store:
        (trace,) = store.traces(status="running", name="workflow", thread_id="t-1")
        spans = store.spans(id_of(root))
    assert (trace.name, trace.span_count, trace.service_name) == ("invoke_workflow g", 2, "tests")
    assert trace.duration_ns > 0
    assert [(span.name, span.is_running, span.duration_ns > 0) for span in spans] == [
        ("invoke_workflow g", True, True),
        ("run_step n", True, True),
    ]
    assert spans[1].attributes["tracegraph.superstep"] == 3
    first, second = render_plain(build_tree(spans)).splitlines()
    assert first.endswith("  running")
    assert second.startswith("  run_step n  step 3  ")
    assert second.endswith("  running")


def test_end_takes_the_place_of_the_open_record(path: Path, feed: Feed) -> None:
    """Children that end leave a running trace; the root's end completes it, and nothing is left over."""
    root = feed.start("root")
    child = feed.start("child", root)
    feed.write()
    child.end()
    feed.write()
    with TraceStore(path) as store:
        before = store.summary(id_of(root))
        assert [(span.name, span.is_running) for span in store.spans(id_of(root))] == [("root", True), ("child", False)]
    root.set_attribute("tracegraph.run.status", "interrupted")
    root.end()
    feed.write()

    with TraceStore(path) as store:
        after = store.summary(id_of(root))
        assert [(span.name, span.is_running) for span in store.spans(id_of(root))] == [("root", False), ("child", False)]
    assert (before.status, before.span_count) == ("running", 2)
    assert (after.status, after.span_count, after.name) == ("interrupted", 2, "root")
    assert sql(path, "SELECT * FROM open_spans") == []


def test_span_that_ends_before_it_is_written_is_never_open(path: Path, feed: Feed) -> None:
    """What ends within the delay, most spans, costs the store nothing but its end."""
    feed.start("short").end()
    feed.write()

    assert statuses(path) == {"short": "completed"}
    assert sql(path, "SELECT * FROM writers") == []


def test_span_that_ends_while_it_is_about_to_be_written_is_not_open(path: Path, maker: Any) -> None:
    """Its end may be in the store by then, and nothing would take the open record away again."""
    exporter = SQLiteSpanExporter(path)
    span = maker.start("root")
    exporter.export([maker.end(span)])

    assert exporter.export_open([span])
    assert statuses(path) == {"root": "completed"}
    assert not exporter.has_open
    exporter.shutdown()


def test_span_that_is_not_sampled_is_not_shown(path: Path) -> None:
    """A recorded but unsampled span is not exported when it ends, so it is not shown before."""
    exporter = SQLiteSpanExporter(path)
    processor = StoreSpanProcessor(exporter)
    provider = TracerProvider(sampler=RecordOnly(), shutdown_on_exit=False)
    provider.add_span_processor(processor)
    provider.get_tracer("t").start_span("unsampled")
    provider.force_flush()
    provider.shutdown()

    assert not path.exists()


class RecordOnly(StaticSampler):
    def __init__(self) -> None:
        super().__init__(Decision.RECORD_ONLY)

    def should_sample(self, *args: Any, **kwargs: Any) -> SamplingResult:
        return SamplingResult(Decision.RECORD_ONLY)


def test_late_child_does_not_make_an_ended_run_a_running_one(path: Path, feed: Feed) -> None:
    """A background save may outlive its run; the run has ended."""
    root = feed.start("root")
    feed.start("late", root)
    root.end()
    feed.write()

    assert statuses(path) == {"root": "completed"}


class Telling(SQLiteSpanExporter):
    """Rings a bell when it has been told of open spans."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.bell = threading.Event()

    def export_open(self, spans: Iterable[ReadableSpan]) -> bool:
        spans = list(spans)
        has_written = super().export_open(spans)
        if self.has_open:
            self.bell.set()
        return has_written


def test_open_spans_are_written_without_being_asked_to(path: Path) -> None:
    """A thread does it once the delay is over; again after it had nothing to do."""
    exporter = Telling(path)
    feed = Feed(path, exporter, delay_s=0.005)
    for name in ("first", "second"):
        exporter.bell.clear()
        span = feed.start(name)
        assert exporter.bell.wait(PATIENCE_S)
        assert statuses(path)[name] == "running"
        span.end()
        feed.write()
    feed.provider.shutdown()

    assert statuses(path) == {"first": "completed", "second": "completed"}


def test_shutdown_while_the_thread_writes_waits_for_it_and_ends(path: Path) -> None:
    """The thread must not go back to waiting for work when it was told to stop in the middle of some."""

    class Stopping(SQLiteSpanExporter):
        def export_open(self, spans: Iterable[ReadableSpan]) -> bool:
            if threading.current_thread() is feed.processor._worker:
                stopper.start()
                assert feed.processor._is_shut_down.wait(PATIENCE_S)
                feed.processor._has_work.set()
            return super().export_open(spans)

    feed = Feed(path, Stopping(path), delay_s=0.005)
    stopper = threading.Thread(target=feed.provider.shutdown)
    feed.start("root").end()
    feed.processor._is_shut_down.wait(PATIENCE_S)
    stopper.join(PATIENCE_S)

    assert not stopper.is_alive()
    assert statuses(path) == {"root": "completed"}


def test_open_spans_that_cannot_be_written_are_written_later(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """The failure is logged once and loses nothing."""
    path.mkdir()
    feed = Feed(path / "traces.db")
    path.rmdir()
    path.write_text("a file where the folder should be")
    span = feed.start("root")
    assert feed.write() is False
    assert feed.write() is False
    path.unlink()

    assert feed.write() is True
    assert statuses(path / "traces.db") == {"root": "running"}
    span.end()
    feed.provider.shutdown()
    assert statuses(path / "traces.db") == {"root": "completed"}
    assert len(caplog.records) == 1


def test_shutdown_leaves_open_what_is_open(path: Path, feed: Feed) -> None:
    """A run that goes on in a thread of its own goes on; the next process closes it once this one has ended."""
    feed.start("still going")
    feed.start("done").end()
    feed.provider.shutdown()

    assert statuses(path) == {"still going": "running", "done": "completed"}
    assert close_abandoned(path) == 0
    sql(path, "UPDATE writers SET started = 'another time'")
    assert close_abandoned(path) == 1
    assert statuses(path) == {"still going": "abandoned", "done": "completed"}


def test_clean_end_leaves_no_writer(path: Path, feed: Feed) -> None:
    """Nobody has to look later whether that process still lives."""
    span = feed.start("root")
    feed.write()
    assert sql(path, "SELECT pid FROM writers") == [(os.getpid(),)]
    span.end()
    feed.provider.shutdown()

    assert sql(path, "SELECT * FROM writers") == []


def test_end_that_no_batch_brought_is_written_from_the_span(path: Path, feed: Feed) -> None:
    """A batch that was lost would leave its spans running for as long as the process lives."""
    span = feed.tracer.start_span("root", start_time=1_000)
    feed.write()
    feed.processor._batch_processor.emit = lambda _: None  # type: ignore[method-assign]  # a full queue drops it
    span.end(2_000)
    feed.write()

    with TraceStore(path) as store:
        (trace,) = store.traces()
    assert (trace.status, trace.duration_ns) == ("completed", 1_000)
    assert not feed.exporter.has_open


def test_running_traces_are_the_last_to_make_room(path: Path, maker: Any) -> None:
    """A run of hours began long ago, and would be the first to go if its age decided."""
    feed = Feed(path, SQLiteSpanExporter(path, max_bytes=250_000))
    running = feed.tracer.start_span("running", start_time=1_000)
    feed.write()
    for number in range(40):
        feed.exporter.export(maker.run(f"invoke_workflow {number}", at_ms=number * 10, steps=20))

    names = statuses(path)
    assert names["running"] == "running"
    assert len(names) < 40
    running.end()
    feed.provider.shutdown()
    assert statuses(path)["running"] == "completed"


# -- stores of the version before


def test_old_store_is_read_as_it_is(path: Path) -> None:
    """Looking at a store that an older version wrote changes nothing in it."""
    shutil.copy(OLD_STORE, path)

    assert statuses(path) == {"invoke_workflow finished": "completed", None: "unfinished"}
    with TraceStore(path) as store:
        assert [len(store.spans(trace.trace_id)) for trace in store.traces()] == [1, 3]
    assert sql(path, "PRAGMA user_version") == [(1,)]


def test_old_store_takes_open_spans_after_its_next_batch(path: Path) -> None:
    """Writing brings it up to date and keeps what is in it."""
    shutil.copy(OLD_STORE, path)
    feed = Feed(path)
    feed.start("new")
    feed.write()

    assert statuses(path) == {"invoke_workflow finished": "completed", None: "unfinished", "new": "running"}
    assert sql(path, "PRAGMA user_version") == [(len(MIGRATIONS),)]
    feed.provider.shutdown()


def test_record_of_an_open_span_has_no_end(feed: Feed) -> None:
    """What is made of it has one all the same, so that nobody has to ask."""
    record = to_record(feed.start("open"))  # type: ignore[arg-type]  # the SDK's span, open or not, is readable
    assert record.end_ns == record.start_ns
