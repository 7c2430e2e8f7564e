"""Receivers that die, again and again, while runs go on: whatever ended arrives."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from receiver_process import ReceiverProcess
from small_graphs import State, chain

from tracegraph.telemetry import use_provider
from tracegraph_exporters.spool import SpoolSpanExporter

RUNS = int(os.environ.get("TRACEGRAPH_CHAOS_RUNS", "2000"))
KILLS = int(os.environ.get("TRACEGRAPH_CHAOS_KILLS", "10"))
"""`make chaos` has 20,000 and 50."""


class Ended(SpanProcessor):
    """Ids of the spans that ended."""

    def __init__(self) -> None:
        self.ids: list[str] = []

    def on_end(self, span: ReadableSpan) -> None:
        assert span.context is not None
        self.ids.append(f"{span.context.span_id:016x}")

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        """Say so: lower versions of the SDK take the base class's silence for a failure."""
        return True


@pytest.fixture
def receiver(tmp_path: Path) -> Iterator[ReceiverProcess]:
    made = ReceiverProcess(tmp_path / "received")
    yield made
    made.kill()


def step(state: State) -> State:
    return {"n": state["n"] + 1}


@pytest.mark.timeout(600)
def test_whatever_ended_arrives_though_the_receiver_dies(
    receiver: ReceiverProcess, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tracegraph_exporters.spool.answers._LONGEST_S", 0.5)
    exporter = SpoolSpanExporter(endpoint=receiver.endpoint, protocol="http/protobuf", path=tmp_path / "spool.db")
    ended = Ended()
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(ended)
    provider.add_span_processor(BatchSpanProcessor(exporter, max_queue_size=50_000, schedule_delay_millis=20))
    use_provider(provider)
    app = chain(only=step)
    try:
        for number in range(RUNS):
            app.invoke({"n": 0})
            if number % (RUNS // KILLS) == RUNS // KILLS // 2:
                receiver.kill()
            if number % (RUNS // KILLS) == RUNS // KILLS - 1:
                receiver.start()
    finally:
        use_provider(None)
    assert provider.force_flush()
    assert exporter.force_flush(60_000)
    provider.shutdown()

    received = receiver.span_ids
    assert len(ended.ids) == len(set(ended.ids)) >= 2 * RUNS
    assert set(received) == set(ended.ids)
    assert exporter.lost == 0
    # At least once: only what was on its way when the receiver died may have come twice.
    assert len(received) - len(set(received)) <= KILLS * 512
