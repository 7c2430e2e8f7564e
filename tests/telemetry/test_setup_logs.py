"""setup() and log records, in fresh processes, one per environment: where the records of a run end up, and its lines."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

from fresh_process import run_python
from otlp_receiver import OtlpReceiver

PRELUDE = """
import logging, sys
from typing import TypedDict
from opentelemetry.sdk._logs.export import InMemoryLogRecordExporter, SimpleLogRecordProcessor
from tracegraph import START, StateGraph
from tracegraph.telemetry import setup

class State(TypedDict, total=False):
    n: int

def node(state):
    logging.getLogger("app").warning("in the node")
    return {"n": 1}

graph = StateGraph(State).add_node("a", node).add_edge(START, "a").compile(name="probe")
run = lambda: graph.invoke({"n": 0})
exporter = InMemoryLogRecordExporter()
names = lambda: [found.log_record.event_name for found in exporter.get_finished_logs()]
BOTH = ["tracegraph.run.started", "tracegraph.run.ended"]
"""


python = partial(run_python, prelude=PRELUDE)


def test_without_a_variable_no_provider_is_made(tmp_path: Path) -> None:
    """Records have nowhere to go, so none are made."""
    code = """
setup(); run()
from opentelemetry import _logs
assert type(_logs.get_logger_provider()).__name__ == "ProxyLoggerProvider"
assert "structlog" not in sys.modules
"""
    python(code, tmp_path)


def test_an_otlp_endpoint_gets_records_of_the_trace(tmp_path: Path, http: OtlpReceiver) -> None:
    """The one variable that traces follow too; the resource is the same."""
    python(
        "setup(service_name='mine'); run()",
        tmp_path,
        OTEL_EXPORTER_OTLP_ENDPOINT=http.url,
        OTEL_EXPORTER_OTLP_PROTOCOL="http/protobuf",
    )

    assert [record.event_name for record in http.records] == ["tracegraph.run.started", "tracegraph.run.ended"]
    assert len({record.trace_id for record in http.records} - {b""}) == 1
    assert http.log_resource["service.name"] == http.resource["service.name"] == "mine"
    assert {record.severity_text for record in http.records} == {"INFO"}


def test_a_logs_endpoint_with_gzip(tmp_path: Path, http: OtlpReceiver) -> None:
    """The more specific variables win; lines go there as well."""
    python(
        "setup(store=False, logs='json'); run()",
        tmp_path,
        OTEL_EXPORTER_OTLP_LOGS_ENDPOINT=f"{http.url}/v1/logs",
        OTEL_EXPORTER_OTLP_LOGS_PROTOCOL="http/protobuf",
        OTEL_EXPORTER_OTLP_COMPRESSION="gzip",
    )

    assert {record.event_name or record.body.string_value for record in http.records} == {
        "tracegraph.run.started",
        "in the node",
        "tracegraph.run.ended",
    }
    assert len(http.records) == 3


def test_the_exporters_that_the_variable_names(tmp_path: Path, http: OtlpReceiver) -> None:
    """``none`` is none, an unknown one is an error that names the known ones, before anything is set up."""
    python("setup(); run()", tmp_path, OTEL_LOGS_EXPORTER="none", OTEL_EXPORTER_OTLP_LOGS_ENDPOINT=f"{http.url}/v1/logs")
    assert http.records == []

    done = python("setup(); run()", tmp_path, OTEL_LOGS_EXPORTER="console")
    assert '"event_name": "tracegraph.run.ended"' in done.stdout

    python(
        "setup()", tmp_path, fails="'papyrus', which is no installed log exporter; known: console", OTEL_LOGS_EXPORTER="papyrus"
    )
    python("setup()", tmp_path, fails="TRACEGRAPH_EVENTS is 'both'", TRACEGRAPH_EVENTS="both")


def test_exporters_as_arguments_and_the_life_of_a_handle(tmp_path: Path) -> None:
    """Once shut down, no more records are made; set up again, they are."""
    code = """
with setup(store=False, log_exporters=[exporter]) as handle:
    assert setup(log_exporters=[exporter]) is handle
    run()
    assert handle.force_flush()
    assert names() == BOTH, names()
run()
assert names() == BOTH, names()

second = InMemoryLogRecordExporter()
handle = setup(store=False, log_exporters=[second])
run()
handle.force_flush()
assert [found.log_record.event_name for found in second.get_finished_logs()] == BOTH
handle.shutdown()
handle.shutdown()
"""
    python(code, tmp_path)


def test_the_application_s_provider_is_used_and_never_replaced(tmp_path: Path, http: OtlpReceiver) -> None:
    """The environment's exporters are its own doing; those that arguments name are added to it."""
    code = """
from opentelemetry import _logs
from opentelemetry.sdk._logs import LoggerProvider
own = LoggerProvider()
own.add_log_record_processor(SimpleLogRecordProcessor(exporter))
_logs.set_logger_provider(own)
run()
assert names() == BOTH, names()

exporter.clear()
added = InMemoryLogRecordExporter()
with setup(store=False, log_exporters=[added]) as handle:
    assert _logs.get_logger_provider() is own
    run()
    handle.force_flush()
    assert names() == [found.log_record.event_name for found in added.get_finished_logs()] == BOTH
exporter.clear()
run()
assert names() == BOTH, "the application's own exporter goes on"
"""
    python(
        code, tmp_path, OTEL_EXPORTER_OTLP_LOGS_ENDPOINT=f"{http.url}/v1/logs", OTEL_EXPORTER_OTLP_LOGS_PROTOCOL="http/protobuf"
    )
    assert http.records == []


def test_a_provider_as_argument_is_not_made_the_global_one(tmp_path: Path) -> None:
    """And is let go of by shutdown."""
    code = """
from opentelemetry import _logs
from opentelemetry.sdk._logs import LoggerProvider
mine = LoggerProvider()
mine.add_log_record_processor(SimpleLogRecordProcessor(exporter))
with setup(store=False, logger_provider=mine):
    run()
assert names() == BOTH
assert type(_logs.get_logger_provider()).__name__ == "ProxyLoggerProvider"
run()
assert names() == BOTH
"""
    python(code, tmp_path)


def test_events_as_argument(tmp_path: Path) -> None:
    """``spans``: no records; it is forgotten with the handle."""
    code = """
with setup(store=False, log_exporters=[exporter], events="spans") as handle:
    run()
    handle.force_flush()
    assert names() == []
from tracegraph.telemetry.mirroring import has_records
assert has_records()
"""
    python(code, tmp_path)


def test_a_disabled_sdk_makes_no_records_but_lines_are_written(tmp_path: Path, http: OtlpReceiver) -> None:
    """Logging is no matter of OpenTelemetry's."""
    done = python(
        "handle = setup(logs='json', log_exporters=[exporter]); run(); assert handle.force_flush(); assert names() == []",
        tmp_path,
        OTEL_SDK_DISABLED="true",
        OTEL_EXPORTER_OTLP_ENDPOINT=http.url,
    )

    assert http.records == []
    (line,) = done.stderr.splitlines()
    assert json.loads(line).items() >= {"event": "in the node", "node": "a", "level": "warning"}.items()


def test_json_lines_of_a_traced_run(tmp_path: Path) -> None:
    """One line of code, and what nodes log names the trace in the store."""
    done = python("setup(logs='json'); run()", tmp_path)

    (line,) = done.stderr.splitlines()
    found = json.loads(line)
    assert found.items() >= {"event": "in the node", "logger": "app", "node": "a", "superstep": 1}.items()
    from tracegraph_exporters import TraceStore

    with TraceStore(tmp_path / "traces.db") as store:
        assert store.traces()[0].trace_id == found["trace_id"]


def test_a_run_says_what_was_lost_meanwhile(tmp_path: Path) -> None:
    """Spans behind a stuck exporter, and then records that an exporter refused; a run that lost nothing says nothing."""
    code = """
import threading
from opentelemetry.sdk._logs.export import LogRecordExporter, LogRecordExportResult
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult

class Stuck(SpanExporter):
    def __init__(self):
        self.go = threading.Event()
    def export(self, spans):
        self.go.wait(20)
        return SpanExportResult.SUCCESS

class Refusing(LogRecordExporter):
    def export(self, batch):
        return LogRecordExportResult.FAILURE
    def shutdown(self):
        pass
    def force_flush(self, timeout_millis=0):
        return True

own = SimpleLogRecordProcessor(exporter)
lost = lambda: [r.log_record.attributes.get("tracegraph.telemetry.lost") for r in exporter.get_finished_logs()
                if r.log_record.event_name == "tracegraph.run.ended"]
stuck = Stuck()
with setup(store=False, exporters=[stuck], log_exporters=[Refusing()]) as handle:
    from opentelemetry import _logs
    _logs.get_logger_provider().add_log_record_processor(own)
    run()
    assert lost() == [None], lost()
    for _ in range(8):
        run()
    assert sum(filter(None, lost())) >= 1, lost()

    exporter.clear()
    stuck.go.set()
    def flushing(state):
        return {"n": int(handle.force_flush())}
    StateGraph(State).add_node("a", flushing).add_edge(START, "a").compile().invoke({"n": 0})
    assert lost()[-1] >= 1, lost()

with setup(store=False, log_exporters=[InMemoryLogRecordExporter()]):
    exporter.clear()
    for _ in range(8):
        run()
    assert lost() == [None] * 8, "what is shut down has nothing to lose"
"""
    small = {"OTEL_BSP_MAX_QUEUE_SIZE": "4", "OTEL_BSP_MAX_EXPORT_BATCH_SIZE": "2"}
    python(code, tmp_path, OTEL_BLRP_SCHEDULE_DELAY="60000", **small)
