"""What telemetry and slow readers lose is counted: in a metric that never falls, and in the record of a run's end."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path

import pytest
from colours import ASYNC, SYNC, Colour
from fresh_process import run_python
from measured import Measured
from pulling import Emitter, pulled
from small_graphs import chain

from tracegraph.graph import START, StateGraph
from tracegraph.telemetry import semconv
from tracegraph.telemetry.losses import BatchCount, Loss, Losses

PRELUDE = """
import os, sqlite3, sys, threading
from pathlib import Path
from opentelemetry import metrics
from opentelemetry._logs import set_logger_provider
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import InMemoryLogRecordExporter, SimpleLogRecordProcessor
from opentelemetry.sdk._logs.export import LogRecordExporter, LogRecordExportResult
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult
from tracegraph import START, StateGraph
from tracegraph.telemetry import setup

reader, records = InMemoryMetricReader(), InMemoryLogRecordExporter()
metrics.set_meter_provider(MeterProvider([reader]))
logger_provider = LoggerProvider()
logger_provider.add_log_record_processor(SimpleLogRecordProcessor(records))
set_logger_provider(logger_provider)

graph = StateGraph(dict).add_node("a", lambda state: {"n": 1}).add_edge(START, "a").compile(name="probe")
run = lambda: graph.invoke({"n": 0})

def flushes(handle):
    flushing = StateGraph(dict).add_node("a", lambda _: {"n": int(handle.force_flush())}).add_edge(START, "a").compile()
    return bool(flushing.invoke({"n": 0})["n"])

def dropped():
    found = [m for r in reader.get_metrics_data().resource_metrics for s in r.scope_metrics for m in s.metrics]
    points = [p for m in found if m.name == "tracegraph.telemetry.dropped" for p in m.data.data_points]
    keys = ("tracegraph.telemetry.signal", "tracegraph.telemetry.sink", "tracegraph.telemetry.reason")
    return {tuple(p.attributes[key] for key in keys): p.value for p in points}

def told():
    ends = [r.log_record for r in records.get_finished_logs() if r.log_record.event_name == "tracegraph.run.ended"]
    return [end.attributes.get("tracegraph.telemetry.lost", 0) for end in ends]

STORE_FULL = ("traces", "tracegraph_sqlite", "queue_full")
STORE_FAILED = ("traces", "tracegraph_sqlite", "export_failed")
"""
SMALL = {"OTEL_BSP_MAX_QUEUE_SIZE": "4", "OTEL_BSP_MAX_EXPORT_BATCH_SIZE": "2"}


# What was lost is the process's, and so are its limits.
python = partial(run_python, prelude=PRELUDE)


def test_a_full_disk_is_told_by_the_run_and_the_metric(tmp_path: Path) -> None:
    """The store's file may not grow; its first batch does not fit, and neither do later ones."""
    code = """
import resource
with setup() as handle:
    run()
    assert handle.force_flush()
    assert told() == [0] and dropped() == {STORE_FULL: 0, STORE_FAILED: 0}, (told(), dropped())
    largest = max(each.stat().st_size for each in Path(os.environ["TRACEGRAPH_HOME"]).iterdir())
    resource.setrlimit(resource.RLIMIT_FSIZE, (largest, resource.RLIM_INFINITY))
    for _ in range(60):
        graph.invoke({"n": 0}, {"tags": ["x" * 500]})
    flushes(handle)
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    lost = dropped()[STORE_FAILED]
    assert lost >= 2, dropped()
    assert sum(told()) >= lost - 2, (told(), lost)
    assert dropped()[STORE_FULL] == 0
    told_before = len(told())
    run()
    assert handle.force_flush() and told()[told_before:] == [0] and dropped()[STORE_FAILED] == lost
"""
    python(code, tmp_path, OTEL_BSP_SCHEDULE_DELAY="600000")


def test_a_file_that_cannot_be_written_is_told_by_the_run(tmp_path: Path) -> None:
    """A folder stands where the store should be."""
    code = """
with setup() as handle:
    run()
    flushes(handle)
    assert told()[-1] >= 2, told()
assert dropped()[STORE_FAILED] == 4, dropped()
"""
    (tmp_path / "traces.db").mkdir()
    python(code, tmp_path, OTEL_BSP_SCHEDULE_DELAY="600000")


def test_a_store_that_somebody_has_locked_loses_what_finds_its_queue_full(tmp_path: Path) -> None:
    """And says so; what waits in the queue is written once the lock is gone."""
    code = """
with setup() as handle:
    run()
    assert handle.force_flush()
    other = sqlite3.connect(Path(os.environ["TRACEGRAPH_HOME"]) / "traces.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    for _ in range(8):
        run()
    other.execute("ROLLBACK")
    lost = dropped()[STORE_FULL]
    assert lost >= 8 and sum(told()) == lost, (told(), dropped())
    assert handle.force_flush()
    assert dropped() == {STORE_FULL: lost, STORE_FAILED: 0}, dropped()
from tracegraph_exporters import TraceStore
with TraceStore(Path(os.environ["TRACEGRAPH_HOME"]) / "traces.db") as store:
    assert sum(found.span_count for found in store.traces()) == 2 * 9 - lost
"""
    python(code, tmp_path, **SMALL)


def test_what_was_lost_stays_counted_when_its_sink_is_closed(tmp_path: Path) -> None:
    """By the name of the exporter, or its class where the program made it; a counter that falls looks like a restart."""
    code = """
class Refusing(SpanExporter):
    def export(self, spans):
        return SpanExportResult.FAILURE

class Unwilling(LogRecordExporter):
    def export(self, batch):
        return LogRecordExportResult.FAILURE
    def shutdown(self):
        pass
    def force_flush(self, timeout_millis=0):
        return True

with setup(store=False, exporters=[Refusing()], log_exporters=[Unwilling()]) as handle:
    run()
    handle.force_flush()
    seen = dropped()
assert seen == {
    ("traces", "Refusing", "queue_full"): 0,
    ("traces", "Refusing", "export_failed"): 2,
    ("logs", "Unwilling", "queue_full"): 0,
    ("logs", "Unwilling", "export_failed"): 2,
}, seen
run()
assert dropped() == seen, dropped()

with setup(store=False, exporters=[Refusing()]) as handle:
    run()
    handle.force_flush()
assert dropped()[("traces", "Refusing", "export_failed")] == 4, dropped()
assert dropped()[("logs", "Unwilling", "export_failed")] == 2, dropped()
"""
    python(code, tmp_path, OTEL_BSP_SCHEDULE_DELAY="600000", OTEL_BLRP_SCHEDULE_DELAY="600000")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_counts_its_own_losses(tmp_path: Path) -> None:
    """Neither those of its parent nor what the parent had waiting, which the SDK empties the child's queue of."""
    code = """
class Refusing(SpanExporter):
    def export(self, spans):
        return SpanExportResult.FAILURE

handle = setup(store=False, exporters=[Refusing()])
run()
handle.force_flush()
run()
if (child := os.fork()) == 0:
    try:
        full, failed = ("traces", "Refusing", "queue_full"), ("traces", "Refusing", "export_failed")
        assert dropped() == {full: 0, failed: 0}, dropped()
        run()
        run()
        assert dropped() == {full: 0, failed: 0}, dropped()
        handle.force_flush()
        assert dropped() == {full: 0, failed: 4}, dropped()
    except BaseException as error:
        print(error, file=sys.stderr, flush=True)
        os._exit(1)
    os._exit(0)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
assert dropped()[("traces", "Refusing", "export_failed")] == 2, dropped()
"""
    python(code, tmp_path, OTEL_BSP_SCHEDULE_DELAY="600000", **{**SMALL, "OTEL_BSP_MAX_EXPORT_BATCH_SIZE": "4"})


def test_a_batch_that_is_gone_takes_nothing_back() -> None:
    """Its provider was thrown away without a shutdown."""
    losses = Losses()
    count = BatchCount(1, "logs", "otlp", losses)
    for _ in range(3):
        count.put()
    count.fail(1)
    del count

    assert losses.by_way() == {Loss("logs", "otlp", "queue_full"): 2, Loss("logs", "otlp", "export_failed"): 1}


def test_a_closed_batch_loses_nothing() -> None:
    """Its provider goes on to call it, and what it refuses was never to be exported."""
    losses = Losses()
    count = BatchCount(1, "logs", "otlp", losses)
    count.close()
    for _ in range(3):
        count.put()
    count.fail(3)

    assert (losses.total, set(losses.by_way().values())) == (0, {0})


# --- streams ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("colour", [SYNC, ASYNC], ids=lambda colour: colour.name)
def test_parts_that_slow_readers_lost_are_counted(colour: Colour, measured: Measured) -> None:
    """By graph; runs that lost none add nothing, so that the time series begins with the first loss."""
    emitter = Emitter()
    quick = StateGraph(dict).add_node("a", lambda _: {"n": 1}).add_edge(START, "a").compile(name="quick")
    colour.invoke(quick, {"n": 0})
    slow = chain({"name": "slow"}, node=emitter.node)
    with pulled(colour, slow, stream_mode="custom", buffer=(3, "drop_oldest")) as stream:
        emitter.order(1)
        stream.next()
        emitter.emit(9)
        emitter.end()
        rest = stream.rest()

    (point,) = measured.of(semconv.METRIC_STREAM_DROPPED)
    assert (point.sum, len(rest)) == (6, 3)
    assert point.attributes == {semconv.WORKFLOW_NAME: "slow"}
    assert point.unit == "{part}"
