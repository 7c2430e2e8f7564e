"""What the store keeps: an age, a size; what runs is not too old; what goes is counted, and the file becomes smaller."""

from __future__ import annotations

import logging
import sqlite3
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from span_story import Story

from tracegraph_exporters import SQLiteSpanExporter, TraceStore, prune, vacuum

HOUR_NS = 3_600 * 1_000_000_000


def counts(path: Path) -> dict[str, int]:
    tables = ("traces", "spans", "operations", "links", "open_spans", "drops")
    with TraceStore(path) as store:
        return {table: store.query(f"SELECT count(*) FROM {table}")[0][0] for table in tables}


def test_what_ended_too_long_ago_goes_with_all_that_belongs_to_it(story: Story, path: Path) -> None:
    """The maker's runs are of 2023; one that still runs is no older than now."""
    story.run("old")
    running = story.maker.start("runs")
    story.exporter.export_open([running])
    now = time.time_ns()
    recent = story.maker.tracer.start_span("recent", start_time=now)
    recent.end(now + 1)
    story.exporter.export(story.maker.take())

    done = prune(path, keep_ns=HOUR_NS)

    assert (done.traces, done.spans) == (1, 5)
    assert counts(path) == {"traces": 2, "spans": 1, "operations": 0, "links": 0, "open_spans": 1, "drops": 1}
    with TraceStore(path) as store:
        assert [(drop.reason, drop.traces, drop.spans) for drop in store.drops()] == [("expired", 1, 5)]
    assert prune(path, keep_ns=HOUR_NS).traces == 0
    story.maker.end(running)


def test_more_than_one_transaction_of_old_traces(story: Story, path: Path) -> None:
    """A thousand at a time, so that others can write; all of them in the end."""
    batch = [span for at in range(1_200) for span in story.maker.run(at_ms=at, steps=1)]
    story.exporter.export(batch)

    done = prune(path, keep_ns=HOUR_NS)

    assert done.traces == 1_200
    assert done.bytes_after < done.bytes_before / 2
    assert counts(path)["spans"] == 0
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    assert path.stat().st_size == done.bytes_after


def test_size_is_kept_to_oldest_first(story: Story, path: Path) -> None:
    """And is counted as it is for an exporter's own limit."""
    for at in range(40):
        story.exporter.export(story.maker.run(f"r{at}", at_ms=at * 1_000, steps=200))
    size = path.stat().st_size

    done = prune(path, max_bytes=size // 2)

    with TraceStore(path) as store:
        names = [trace.name for trace in store.traces(limit=-1)]
        assert [drop.reason for drop in store.drops()] == ["size_cap"]
    assert 0 < len(names) < 40
    assert names == [f"r{at}" for at in range(39, 39 - len(names), -1)]
    assert done.traces == 40 - len(names)
    assert done.bytes_after <= size // 2


def test_exporter_drops_what_is_too_old_by_itself(path: Path, maker: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the variable, in any process that writes."""
    first = SQLiteSpanExporter(path)
    first.export(maker.run())
    first.shutdown()
    monkeypatch.setenv("TRACEGRAPH_TRACES_KEEP", "1h")
    second = SQLiteSpanExporter(path)
    span = maker.tracer.start_span("recent", start_time=time.time_ns())
    span.end(time.time_ns() + 1)
    second.export(maker.take())
    second.shutdown()

    with TraceStore(path) as store:
        assert [trace.name for trace in store.traces()] == ["recent"]


def test_variable_that_is_no_duration_keeps_everything(
    path: Path, maker: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """And is said once."""
    monkeypatch.setenv("TRACEGRAPH_TRACES_KEEP", "a while")
    with caplog.at_level(logging.WARNING):
        exporter = SQLiteSpanExporter(path)
    exporter.export(maker.run())
    exporter.shutdown()

    assert "'a while' is no duration" in caplog.text
    assert counts(path)["traces"] == 1


def test_old_notes_of_losses_go_too_and_new_ones_do_not_pile_up(story: Story, path: Path) -> None:
    """One row a reason and hour; those before the time that is kept are deleted."""
    story.exporter.export(story.maker.run())
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("INSERT INTO drops (at_ns, reason, traces, spans) VALUES (1, 'export_failed', 0, 7)")
    tight = SQLiteSpanExporter(path, max_bytes=1)
    for at in range(5):
        tight.export(story.maker.run(at_ms=at))
    tight.shutdown()
    # The one of long ago, and one more, or two if the hour changes meanwhile.
    assert counts(path)["drops"] <= 3

    prune(path, keep_ns=HOUR_NS)

    with TraceStore(path) as store:
        assert [drop.reason for drop in store.drops()] == ["size_cap"]


def test_vacuum_writes_the_file_anew(story: Story, path: Path) -> None:
    """Everything is still there, and the next batch goes in."""
    story.run("g")
    before = counts(path)

    done = vacuum(path)

    assert 0 < done.bytes_after <= done.bytes_before
    assert counts(path) == before
    story.run("h", at_ms=1)
    assert counts(path)["traces"] == 2


def test_nothing_is_made_where_there_is_no_store(path: Path) -> None:
    """Tidying is no reason for a store."""
    for call in (prune, vacuum):
        with pytest.raises(FileNotFoundError, match="no trace store"):
            call(path)
    assert not path.exists()
