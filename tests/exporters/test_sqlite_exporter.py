"""The embedded store on a real file: what goes in comes out, privately, within a cap, from several processes."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.sdk.trace.export import SpanExportResult
from opentelemetry.trace import Link, NonRecordingSpan, SpanContext, StatusCode, TraceFlags

from tracegraph_exporters import (
    AmbiguousTraceError,
    SQLiteSpanExporter,
    TraceNotFoundError,
    TraceStore,
    TraceStoreError,
    default_path,
)
from tracegraph_exporters.base import to_record
from tracegraph_exporters.schema import MIGRATIONS

SUCCESS, FAILURE = SpanExportResult.SUCCESS, SpanExportResult.FAILURE


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "home" / "traces.db"


@pytest.fixture
def exporter(path: Path) -> Iterator[SQLiteSpanExporter]:
    made = SQLiteSpanExporter(path)
    yield made
    made.shutdown()


def trace_id(batch: list[Any]) -> str:
    return to_record(batch[0]).trace_id


def sql(path: Path, statement: str) -> list[Any]:
    connection = sqlite3.connect(path)
    try:
        return connection.execute(statement).fetchall()
    finally:
        connection.close()


def test_store_lies_in_tracegraph_home_else_in_the_users_data_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The place is documented and can be moved with one variable."""
    monkeypatch.setenv("TRACEGRAPH_HOME", str(tmp_path))
    assert SQLiteSpanExporter().path == default_path() == tmp_path / "traces.db"

    monkeypatch.delenv("TRACEGRAPH_HOME")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "share"))
    assert default_path().parts[-2:] == ("tracegraph", "traces.db")


def test_nothing_is_made_before_the_first_batch(path: Path, exporter: SQLiteSpanExporter, maker: Any) -> None:
    """Configuring an exporter leaves no file behind; the first batch makes folder, file and tables."""
    assert not path.parent.exists()

    assert exporter.export(maker.run()) is SUCCESS
    assert path.exists()


def test_span_comes_back_as_it_went_in(path: Path, exporter: SQLiteSpanExporter, maker: Any) -> None:
    """Ids, times, status, attributes of every type, events, links, resource and scope."""
    root = maker.start("root")
    other = Link(SpanContext(0xAB, 0xCD, is_remote=True, trace_flags=TraceFlags(1)), {"why": "resumed"})
    attributes = {"s": "text", "i": 2**53, "f": 0.5, "b": True, "list": ("a", "b"), "n": float("nan")}
    span = maker.start("child", root, at_ms=1, attributes=attributes, links=[other])
    span.add_event("happened", {"k": 1}, timestamp=span.start_time + 5)
    span.set_status(StatusCode.ERROR, "went wrong")
    maker.end(span, at_ms=3)
    maker.end(root, at_ms=4)
    batch = maker.take()
    exporter.export(batch)

    with TraceStore(path) as store:
        stored_root, child = store.spans(trace_id(batch))

    assert (stored_root.name, stored_root.parent_id, stored_root.is_local_root) == ("root", None, True)
    assert (child.name, child.parent_id, child.is_local_root) == ("child", stored_root.span_id, False)
    assert child.duration_ns == 2_000_000
    assert (child.status, child.message, child.kind, child.scope) == ("error", "went wrong", "internal", "maker")
    assert child.attributes == {"s": "text", "i": 2**53, "f": 0.5, "b": True, "list": ["a", "b"], "n": "nan"}
    assert [(ev.name, ev.at_ns, ev.attributes) for ev in child.events] == [("happened", child.start_ns + 5, {"k": 1})]
    assert [(k.trace_id, k.span_id, k.attributes) for k in child.links] == [(f"{0xAB:032x}", f"{0xCD:016x}", {"why": "resumed"})]
    assert child.resource["service.name"] == "tests"


def test_list_is_newest_first_with_name_status_and_counts(path: Path, exporter: SQLiteSpanExporter, maker: Any) -> None:
    """What a list of traces shows, whatever order the batches came in."""
    exporter.export(maker.run("invoke_workflow late", at_ms=500, status="interrupted"))
    exporter.export(maker.run("invoke_workflow early", steps=3))

    with TraceStore(path) as store:
        late, early = store.traces()

    assert (late.name, late.status, late.span_count, late.error_count) == ("invoke_workflow late", "interrupted", 3, 0)
    assert (early.name, early.status, early.span_count, early.duration_ns) == ("invoke_workflow early", "completed", 4, 4_000_000)
    assert (late.thread_id, late.service_name) == ("t-1", "tests")


def test_list_can_be_narrowed_and_paged(path: Path, exporter: SQLiteSpanExporter, maker: Any) -> None:
    """Filters are parameters, so a name with a quote or a percent sign is only text."""
    for number, status in enumerate(["completed", "failed", "interrupted"]):
        exporter.export(maker.run(f"invoke_workflow o'{number}%", at_ms=number * 100, status=status))

    with TraceStore(path) as store:
        names = [t.name for t in store.traces()]
        assert [t.name for t in store.traces(status="failed")] == ["invoke_workflow o'1%"]
        assert [t.name for t in store.traces(name="o'2%")] == ["invoke_workflow o'2%"]
        assert store.traces(name="%'; DROP TABLE traces") == []
        assert [t.name for t in store.traces(limit=1, offset=1)] == names[1:2]
        assert [t.name for t in store.traces(since_ns=store.traces()[1].start_ns)] == names[:2]
        assert len(store.traces(thread_id="t-1")) == 3
        assert store.traces(thread_id="t-2") == []


def test_trace_whose_root_has_not_ended_is_unfinished(path: Path, exporter: SQLiteSpanExporter, maker: Any) -> None:
    """Long runs are found before their end; the root's batch completes the line."""
    root = maker.start("root", attributes={"tracegraph.run.status": "failed"})
    maker.end(maker.start("child", root, at_ms=2), at_ms=3)
    batch = maker.take()
    exporter.export(batch)

    with TraceStore(path) as store:
        before = store.summary(trace_id(batch))
        maker.end(root, at_ms=9)
        exporter.export(maker.take())
        after = store.summary(trace_id(batch))

    assert (before.name, before.status, before.span_count, before.duration_ns) == (None, "unfinished", 1, 1_000_000)
    assert (after.name, after.status, after.span_count, after.duration_ns) == ("root", "failed", 2, 9_000_000)


def test_outermost_run_gives_a_trace_its_status(path: Path, exporter: SQLiteSpanExporter, maker: Any) -> None:
    """A nested run that was handed over says nothing about the trace; a request's span around the run keeps its name."""
    request = maker.start("GET /ask")
    outer = maker.start("invoke_workflow outer", request, at_ms=1, attributes={"tracegraph.run.status": "interrupted"})
    maker.end(maker.start("invoke_workflow sub", outer, at_ms=2, attributes={"tracegraph.run.status": "handed_over"}), at_ms=3)
    nested = maker.take()
    exporter.export(nested)
    maker.end(outer, at_ms=4)
    maker.end(request, at_ms=5)
    exporter.export(maker.take())

    with TraceStore(path) as store:
        summary = store.summary(trace_id(nested))
    assert (summary.name, summary.status) == ("GET /ask", "interrupted")


def test_prefix_names_one_trace_none_or_several(path: Path, exporter: SQLiteSpanExporter, maker: Any) -> None:
    """As many digits as are needed; anything that is no hex number matches nothing."""
    for number in (0xAA11 << 112, 0xAA22 << 112):
        parent = NonRecordingSpan(SpanContext(number, 1, is_remote=True, trace_flags=TraceFlags(1)))
        maker.end(maker.start("root", parent))
    batch = maker.take()
    exporter.export(batch)

    with TraceStore(path) as store:
        assert store.resolve("AA1") == f"{0xAA11 << 112:032x}"
        assert store.resolve(f"{0xAA22 << 112:032x}") == f"{0xAA22 << 112:032x}"
        with pytest.raises(AmbiguousTraceError, match="give more digits") as found:
            store.resolve("aa")
        assert len(found.value.matches) == 2
        for wrong in ("bb", "", "%", "aa' OR '1'='1"):
            with pytest.raises(TraceNotFoundError):
                store.resolve(wrong)


def test_latest_is_the_newest_trace(path: Path, exporter: SQLiteSpanExporter, maker: Any) -> None:
    """What one wants to see right after a run."""
    new, old = maker.run(at_ms=100), maker.run()
    exporter.export(new)
    exporter.export(old)

    with TraceStore(path) as store:
        assert store.resolve("latest") == trace_id(new)


def test_links_can_be_followed_backwards(path: Path, exporter: SQLiteSpanExporter, maker: Any) -> None:
    """A link points from the resumed run to the interrupted one; a reader of the interrupted one wants the way on."""
    paused = maker.run(status="interrupted")
    link = Link(paused[-1].context)
    maker.end(maker.start("invoke_workflow g", at_ms=50, links=[link]), at_ms=60)
    resumed = maker.take()
    exporter.export(paused)
    exporter.export(resumed)

    with TraceStore(path) as store:
        assert store.continuations(trace_id(paused)) == [trace_id(resumed)]
        assert store.continuations(trace_id(resumed)) == []


@pytest.mark.skipif(os.name != "posix", reason="mode bits are POSIX")
def test_store_is_private(path: Path, exporter: SQLiteSpanExporter, maker: Any) -> None:
    """Folder 0700, file 0600, and so are the files SQLite keeps beside it, whatever the umask."""
    old = os.umask(0)
    try:
        exporter.export(maker.run())
    finally:
        os.umask(old)

    assert path.parent.stat().st_mode & 0o777 == 0o700
    assert {p.name: p.stat().st_mode & 0o777 for p in path.parent.iterdir()} == {
        "traces.db": 0o600,
        "traces.db-wal": 0o600,
        "traces.db-shm": 0o600,
    }


@pytest.mark.skipif(os.name != "posix", reason="mode bits are POSIX")
def test_store_that_others_can_read_is_closed_to_them(path: Path, exporter: SQLiteSpanExporter, maker: Any) -> None:
    """A file that was made by hand or copied gets its mode back."""
    path.parent.mkdir(mode=0o700)
    path.touch()
    path.chmod(0o644)

    exporter.export(maker.run())

    assert path.stat().st_mode & 0o777 == 0o600


def test_store_is_in_wal_mode_and_says_its_version(path: Path, exporter: SQLiteSpanExporter, maker: Any) -> None:
    """Readers do not block writers, and a later version knows what it finds."""
    exporter.export(maker.run())

    assert sql(path, "PRAGMA journal_mode") == [("wal",)]
    assert sql(path, "PRAGMA user_version") == [(len(MIGRATIONS),)]


def test_store_of_a_newer_version_is_left_alone(
    path: Path, exporter: SQLiteSpanExporter, maker: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """Neither side touches what it does not understand; the message says what to do."""
    exporter.export(maker.run())
    sql(path, "PRAGMA user_version = 99")

    with pytest.raises(TraceStoreError, match="version 99.*upgrade"):
        TraceStore(path)
    newcomer = SQLiteSpanExporter(path)
    assert newcomer.export(maker.run()) is FAILURE
    assert "upgrade" in caplog.text
    assert sql(path, "SELECT count(*) FROM traces") == [(1,)]


def test_file_that_is_no_database_is_named(path: Path) -> None:
    """A clear error instead of a traceback from SQLite."""
    path.parent.mkdir()
    path.write_text("not a database, but long enough to be looked at as if it were one" * 10)

    with pytest.raises(TraceStoreError, match="is no trace store"):
        TraceStore(path)
    assert path.read_text().startswith("not a database")


def test_reader_of_a_store_that_does_not_exist_makes_none(path: Path) -> None:
    """Looking must not create."""
    with pytest.raises(FileNotFoundError, match="no trace store"):
        TraceStore(path)
    assert not path.exists()


def test_reader_cannot_write(path: Path, exporter: SQLiteSpanExporter, maker: Any) -> None:
    """The read side is read-only for SQLite too."""
    exporter.export(maker.run())

    with TraceStore(path) as store, pytest.raises(sqlite3.OperationalError, match="readonly"):
        store._connection.execute("DELETE FROM traces")


def test_batch_is_one_transaction(path: Path, exporter: SQLiteSpanExporter, maker: Any) -> None:
    """A reader sees none of a batch or all of it."""
    seen: list[int] = []
    batch = maker.run(steps=5)
    exporter.export(maker.run())
    with TraceStore(path) as store:
        exporter._connection.set_trace_callback(lambda _: seen.append(len(store.traces())))  # type: ignore[union-attr]
        exporter.export(batch)
        exporter._connection.set_trace_callback(None)  # type: ignore[union-attr]
        assert set(seen) == {1}
        assert len(store.traces()) == 2


def test_batch_exported_twice_counts_once(path: Path, exporter: SQLiteSpanExporter, maker: Any) -> None:
    """A batch that is sent again after a time-out changes nothing."""
    batch = maker.run()
    exporter.export(batch)
    exporter.export(batch)

    with TraceStore(path) as store:
        assert store.summary(trace_id(batch)).span_count == 3
        assert len(store.spans(trace_id(batch))) == 3


def test_lone_surrogate_does_not_sink_its_batch(path: Path, exporter: SQLiteSpanExporter, maker: Any) -> None:
    """Text that is no valid Unicode is stored as well as it goes."""
    maker.end(maker.start("bad \ud800 name", attributes={"k": "\udfff"}))
    maker.end(maker.start("good"))
    batch = maker.take()

    assert exporter.export(batch) is SUCCESS
    with TraceStore(path) as store:
        (bad,) = store.spans(trace_id(batch))
    assert (bad.name, dict(bad.attributes)) == ("bad ? name", {"k": "?"})


def test_oldest_traces_make_room_and_are_counted(path: Path, maker: Any) -> None:
    """The store never grows beyond its cap; what was dropped can be read from it."""
    exporter = SQLiteSpanExporter(path, max_bytes=250_000)
    batches = [maker.run(f"invoke_workflow {number}", at_ms=number * 10, steps=20) for number in range(60)]
    for batch in batches:
        assert exporter.export(batch) is SUCCESS

    with TraceStore(path) as store:
        kept = [trace.trace_id for trace in store.traces(limit=-1)]
        (drops,) = store.drops()
        assert store.spans(trace_id(batches[0])) == []
    exporter.shutdown()

    assert kept == [trace_id(batch) for batch in reversed(batches)][: len(kept)]
    assert 0 < len(kept) < 60
    assert (drops.reason, drops.traces, drops.spans) == ("size_cap", 60 - len(kept), 21 * (60 - len(kept)))
    assert path.stat().st_size <= 250_000
    assert sql(path, "SELECT count(*) FROM spans") == [(21 * len(kept),)]


def test_single_trace_beyond_the_cap_is_dropped_too(path: Path, maker: Any) -> None:
    """The cap is hard: no trace is too important to be counted as dropped."""
    exporter = SQLiteSpanExporter(path, max_bytes=50_000)
    assert exporter.export(maker.run(steps=300)) is SUCCESS
    exporter.shutdown()

    with TraceStore(path) as store:
        assert store.traces() == []
        assert store.drops()[0].spans == 301


def test_cap_comes_from_the_environment(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    """In millions of bytes; a wrong value is reported and the default holds."""
    assert SQLiteSpanExporter().max_bytes == 500_000_000
    monkeypatch.setenv("TRACEGRAPH_TRACES_MAX_MB", "1.5")
    assert SQLiteSpanExporter().max_bytes == 1_500_000
    monkeypatch.setenv("TRACEGRAPH_TRACES_MAX_MB", "much")
    assert SQLiteSpanExporter().max_bytes == 500_000_000
    assert "'much'" in caplog.text


def test_batches_that_cannot_be_written_are_logged_once_and_counted_later(
    path: Path, exporter: SQLiteSpanExporter, maker: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """The application never sees an exception, and the store says what it lacks once it works again."""
    path.parent.write_text("a file where the folder should be")
    assert exporter.export(maker.run()) is FAILURE
    assert exporter.export(maker.run(steps=4)) is FAILURE
    path.parent.unlink()

    assert exporter.export(maker.run()) is SUCCESS

    assert len(caplog.records) == 1
    assert str(path) in caplog.text
    with TraceStore(path) as store:
        (drops,) = store.drops()
        assert (drops.reason, drops.spans) == ("export_failed", 8)
        assert len(store.traces()) == 1


def test_failed_batch_leaves_nothing_half_written(path: Path, exporter: SQLiteSpanExporter, maker: Any) -> None:
    """An error in the middle of a batch rolls all of it back, and the next one is written as usual."""
    exporter.export(maker.run())
    sql(path, "ALTER TABLE traces RENAME TO hidden")
    assert exporter.export(maker.run()) is FAILURE
    assert sql(path, "SELECT count(*) FROM spans") == [(3,)]
    sql(path, "ALTER TABLE hidden RENAME TO traces")

    assert exporter.export(maker.run()) is SUCCESS


def test_exporter_that_is_shut_down_refuses(exporter: SQLiteSpanExporter, maker: Any) -> None:
    """Twice is fine, and nothing is opened again."""
    exporter.export(maker.run())
    exporter.shutdown()
    exporter.shutdown()

    assert exporter.export(maker.run()) is FAILURE
    assert exporter.force_flush()


WRITER = """
import sys
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from tracegraph_exporters import SQLiteSpanExporter
provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(SQLiteSpanExporter(sys.argv[1])))
tracer = provider.get_tracer("writer")
print("ready", flush=True)
sys.stdin.readline()
for number in range(100):
    with tracer.start_as_current_span(f"{sys.argv[2]} {number}"):
        pass
"""


def test_several_processes_write_at_once(path: Path) -> None:
    """From making the file on, four processes share it and no span is lost."""
    command = [sys.executable, "-W", "error", "-c", WRITER, str(path)]
    writers = [
        subprocess.Popen(
            [*command, f"w{number}"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        for number in range(4)
    ]
    for writer in writers:
        assert writer.stdout is not None
        assert writer.stdout.readline() == "ready\n"
    for writer in writers:
        assert writer.stdin is not None
        writer.stdin.write("go\n")
        writer.stdin.flush()
    for writer in writers:
        _, errors = writer.communicate(timeout=50)
        assert (writer.returncode, errors) == (0, "")

    with TraceStore(path) as store:
        names = {trace.name for trace in store.traces(limit=-1)}
        assert names == {f"w{number} {i}" for number in range(4) for i in range(100)}
        assert store.drops() == []


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_forked_child_writes_through_a_connection_of_its_own(path: Path, exporter: SQLiteSpanExporter, maker: Any) -> None:
    """SQLite connections must not cross a fork; the parent's keeps working."""
    exporter.export(maker.run())
    in_child = maker.run("invoke_workflow child", at_ms=50)
    pid = os.fork()
    if pid == 0:
        os._exit(0 if exporter.export(in_child) is SUCCESS else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0

    exporter.export(maker.run("invoke_workflow parent", at_ms=100))
    with TraceStore(path) as store:
        assert [t.name for t in store.traces()] == ["invoke_workflow parent", "invoke_workflow child", "invoke_workflow g"]
