"""Which traces are kept when they are over, and that nothing else of them is lost or left behind."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor
from opentelemetry.sdk.trace.sampling import TraceIdRatioBased
from opentelemetry.trace import NonRecordingSpan, SpanContext, StatusCode, TraceFlags

from tracegraph_exporters import SQLiteSpanExporter, StoreSpanProcessor
from tracegraph_exporters.tail_sampling import TailSampling, TailSpanProcessor


class Behind(SpanProcessor):
    def __init__(self) -> None:
        self.kept: list[str] = []
        self.discarded: list[str] = []
        self.is_shut_down = False

    def on_end(self, span: ReadableSpan) -> None:
        self.kept.append(span.name)

    def discard(self, spans: list[ReadableSpan]) -> None:
        self.discarded += [span.name for span in spans]

    def shutdown(self) -> None:
        self.is_shut_down = True


@pytest.fixture
def behind() -> Behind:
    return Behind()


def sampled(maker: Any, behind: Any, **options: Any) -> TailSpanProcessor:
    processor = TailSpanProcessor(behind, TailSampling(**options))
    maker.provider.add_span_processor(processor)
    return processor


def trace(maker: Any, name: str, *, fails: bool = False, ms: int = 10) -> None:

    root = maker.start(name)
    child = maker.start(f"{name} child", root)
    if fails:
        child.set_status(StatusCode.ERROR, "boom")
    maker.end(child, at_ms=ms)
    maker.end(root, at_ms=ms)


def test_errors_and_slow_ones_are_kept_and_the_rest_is_not(maker: Any, behind: Behind) -> None:
    sampled(maker, behind, slower_than_s=0.5)
    trace(maker, "fast")
    trace(maker, "failed", fails=True)
    trace(maker, "slow", ms=500)

    assert behind.kept == ["failed child", "failed", "slow child", "slow"]
    assert behind.discarded == ["fast child", "fast"]


def test_of_the_others_a_part_is_kept_which_a_sampler_of_that_ratio_keeps_too(maker: Any, behind: Behind) -> None:
    sampled(maker, behind, ratio=0.5)
    for number in range(200):
        trace(maker, str(number))

    sampler = TraceIdRatioBased(0.5)
    expected = [
        span.name for span in maker.finished if sampler.should_sample(None, span.context.trace_id, "").decision.is_sampled()
    ]
    assert behind.kept == expected
    assert 0 < len(expected) < 400


def test_a_decision_holds_for_what_ends_later(maker: Any, behind: Behind) -> None:
    sampled(maker, behind)
    for name, fails in (("kept", True), ("dropped", False)):
        root = maker.start(name)
        late = maker.start(f"{name} late", root)
        if fails:
            root.set_status(StatusCode.ERROR)
        maker.end(root)
        maker.end(late)

    assert behind.kept == ["kept", "kept late"]
    assert behind.discarded == ["dropped", "dropped late"]


def test_a_span_of_a_remote_caller_is_a_root_here(maker: Any, behind: Behind) -> None:
    """A web server: its caller's span never ends in this process."""
    sampled(maker, behind)
    remote = NonRecordingSpan(SpanContext(0x1234, 0x5678, is_remote=True, trace_flags=TraceFlags(1)))
    first = maker.start("request", remote)
    maker.end(first)
    second = maker.start("failed request", remote)
    second.set_status(StatusCode.ERROR)
    maker.end(second)

    assert behind.discarded == ["request"]
    assert behind.kept == ["failed request"]


@pytest.mark.parametrize("is_open_together", [False, True])
def test_another_request_of_the_same_caller_does_not_drop_what_failed(
    maker: Any, behind: Behind, *, is_open_together: bool
) -> None:
    sampled(maker, behind)
    remote = NonRecordingSpan(SpanContext(0x1234, 0x5678, is_remote=True, trace_flags=TraceFlags(1)))
    first = maker.start("fine", remote)
    if not is_open_together:
        maker.end(first)
    second = maker.start("request", remote)
    if is_open_together:
        maker.end(first)
    failed = maker.start("failed", second)
    failed.set_status(StatusCode.ERROR)
    maker.end(failed)
    maker.end(second)

    assert behind.kept[-2:] == ["failed", "request"]
    assert ("fine" in behind.kept) is is_open_together


def test_what_waits_is_bounded_and_kept_rather_than_lost(maker: Any, behind: Behind) -> None:
    sampled(maker, behind, max_spans=10)
    root = maker.start("long")
    for number in range(15):
        maker.end(maker.start(f"step {number}", root))
    maker.end(root)

    assert behind.kept == [*(f"step {number}" for number in range(15)), "long"]


def test_what_is_undecided_at_the_end_is_kept(maker: Any, behind: Behind) -> None:
    processor = sampled(maker, behind)
    root = maker.start("still going on")
    maker.end(maker.start("step", root))
    assert behind.kept == []
    processor.shutdown()

    assert behind.kept == ["step"]
    assert behind.is_shut_down


def test_the_store_shows_what_runs_and_forgets_what_is_not_kept(maker: Any, tmp_path: Path) -> None:
    path = tmp_path / "traces.db"
    store = StoreSpanProcessor(SQLiteSpanExporter(path), open_delay_s=60)
    processor = sampled(maker, store)
    root = maker.start("run")
    assert processor.force_flush()
    count = "SELECT (SELECT count(*) FROM open_spans), (SELECT count(*) FROM spans)"
    with sqlite3.connect(path) as connection:
        assert connection.execute(count).fetchone() == (1, 0)
        maker.end(root)
        assert processor.force_flush()
        assert connection.execute(count).fetchone() == (0, 0)
    connection.close()
    processor.shutdown()


def test_the_store_takes_no_span_for_lost_that_waits_for_a_long_runs_decision(
    maker: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tracegraph_exporters.sqlite._LOST_AFTER_NS", 0)
    path = tmp_path / "traces.db"
    processor = sampled(maker, StoreSpanProcessor(SQLiteSpanExporter(path), open_delay_s=60))
    root = maker.start("run")
    child = maker.start("step", root)
    assert processor.force_flush()
    maker.end(child)
    assert processor.force_flush()
    maker.end(root)
    assert processor.force_flush()
    with closing(sqlite3.connect(path)) as connection:
        count = "SELECT (SELECT count(*) FROM open_spans), (SELECT count(*) FROM spans)"
        assert connection.execute(count).fetchone() == (0, 0)
    processor.shutdown()


@pytest.mark.parametrize("options", [{"ratio": 1.5}, {"ratio": -0.1}, {"max_spans": 0}, {"slower_than_s": -1}])
def test_numbers_that_make_no_sense_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="must"):
        TailSampling(**options)
