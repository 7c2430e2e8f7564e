"""A setup() that is refused changes nothing at all: every way to be refused, and whatever can be seen from outside."""

from __future__ import annotations

from pathlib import Path

import pytest
from fresh_process import run_python

OBSERVING = """
import gc, logging, os, socket, sys, threading
from pathlib import Path
from typing import TypedDict

import structlog
from opentelemetry import _logs, metrics, trace
from opentelemetry.sdk._logs.export import InMemoryLogRecordExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from tracegraph import START, StateGraph
from tracegraph.telemetry import setup
from tracegraph.telemetry.content import active_policy
from tracegraph.telemetry.mirroring import has_records
from tracegraph.telemetry.options import TelemetryOptions, current_options

class State(TypedDict, total=False):
    n: int

graph = StateGraph(State).add_node("a", lambda state: {"n": 1}).add_edge(START, "a").compile(name="probe")
spans, records = InMemorySpanExporter(), InMemoryLogRecordExporter()
lent, lent_records = InMemorySpanExporter(), InMemoryLogRecordExporter()
taken = socket.create_server(("127.0.0.1", 0))
port = str(taken.getsockname()[1])

ARGUMENTS = {
    "events": "spans",
    "logs": "json",
    "capture": "SPAN_AND_EVENT",
    "options": TelemetryOptions(profile="openinference"),
    "console": True,
    "store": True,
    "exporters": [lent],
    "log_exporters": [lent_records],
}
METRICS = {"OTEL_METRICS_EXPORTER": "prometheus", "OTEL_EXPORTER_PROMETHEUS_PORT": "0"}
UPLOAD = {"OTEL_INSTRUMENTATION_GENAI_COMPLETION_HOOK": "upload", "OTEL_INSTRUMENTATION_GENAI_UPLOAD_BASE_PATH": "memory://there"}
REFUSED = {
    "span exporter": ({}, METRICS | {"OTEL_TRACES_EXPORTER": "nonexistent"}),
    "log exporter": ({}, METRICS | {"OTEL_LOGS_EXPORTER": "papyrus"}),
    "metrics exporter": ({}, {"OTEL_METRICS_EXPORTER": "prometheus,abacus"}),
    "span protocol": ({}, {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1", "OTEL_EXPORTER_OTLP_PROTOCOL": "pigeon"}),
    "log protocol": ({}, {"OTEL_LOGS_EXPORTER": "otlp", "OTEL_EXPORTER_OTLP_LOGS_PROTOCOL": "pigeon"}),
    "endpoint": ({}, {"OTEL_METRICS_EXPORTER": "prometheus", "OTEL_EXPORTER_PROMETHEUS_PORT": port}),
    "events": ({"events": "both"}, METRICS),
    "events variable": ({"events": None}, METRICS | {"TRACEGRAPH_EVENTS": "both"}),
    "form of lines": ({"logs": "xml"}, METRICS),
    "capture": ({"capture": "SOMETIMES"}, METRICS),
    "capture variable": ({"capture": None}, {"OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT": "SOMETIMES"}),
    "emit variable": ({}, UPLOAD | {"OTEL_INSTRUMENTATION_GENAI_EMIT_EVENT": "perhaps"}),
    "upload variable": ({}, UPLOAD | {"OTEL_INSTRUMENTATION_GENAI_UPLOAD_FORMAT": "xml"}),
    "upload and exporter": ({}, UPLOAD | {"OTEL_TRACES_EXPORTER": "nonexistent"}),
    "options": ({"options": {"semconv": "1.41"}}, METRICS),
    "tracer provider": ({"provider": object()}, {}),
    "logger provider": ({"logger_provider": object()}, METRICS),
    # These the SDK and its exporters refuse themselves, when they are made.
    "span queue": ({}, METRICS | {"OTEL_BSP_MAX_QUEUE_SIZE": "4"}),
    "record queue": ({}, METRICS | {"OTEL_BLRP_MAX_QUEUE_SIZE": "4"}),
    "time limit": ({}, METRICS | {"OTEL_TRACES_EXPORTER": "tracegraph_sqlite,otlp", "OTEL_EXPORTER_OTLP_TRACES_TIMEOUT": "soon"}),
    "limits": ({}, METRICS | {"OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT": "many"}),
}

def settings():
    root = logging.getLogger()
    return {
        "providers": (trace.get_tracer_provider(), _logs.get_logger_provider(), metrics.get_meter_provider()),
        "lines": (tuple(root.handlers), root.level, structlog.is_configured()),
        "options": current_options(),
        "content": active_policy(),
        "has records": has_records(),
    }

def resources():
    gc.collect()
    return {
        "threads": sorted(thread.name for thread in threading.enumerate()),
        "uploads": sum(type(found).__name__ == "Upload" for found in gc.get_objects()),  # one registers itself, to flush at exit
        "files": sorted(Path(os.environ["TRACEGRAPH_HOME"]).rglob("*")),
    }

def exported():
    spans.clear(), records.clear(), lent.clear(), lent_records.clear()
    graph.invoke({"n": 0})
    if handle is not None:
        assert handle.force_flush()
    return {
        "spans": [(span.name, sorted(span.attributes)) for span in spans.get_finished_spans()],
        "records": [found.log_record.event_name for found in records.get_finished_logs()],
        "lent": (len(lent.get_finished_spans()), len(lent_records.get_finished_logs()), lent._stopped, lent_records._stopped),
    }

def is_refused(arguments, variables):
    os.environ.update(variables)
    try:
        setup(**{**ARGUMENTS, **arguments})
    except ValueError:
        return True
    finally:
        for name in variables:
            del os.environ[name]
    return False

def differences(before, after):
    return {key: (before[key], after[key]) for key in before if before[key] != after[key]}

def check(no_refusal=()):
    rows = {name: row for name, row in REFUSED.items() if name not in no_refusal}
    first, seen = settings(), exported()
    for name, row in rows.items():
        assert is_refused(*row), name  # modules are loaded now, some of which start or register something of their own
    for name, row in rows.items():
        before = resources()
        assert is_refused(*row), name
        changed = differences(first | before, settings() | resources()) | differences(seen, exported())
        assert not changed, (name, changed)
    taken.close()
"""

NOTHING = """
handle = None
check()
"""
# A call that adds does not read again what the first one has; nor are limits read again, which are a provider's.
OWN = """
handle = setup(store=False, exporters=[spans], log_exporters=[records], capture="SPAN_ONLY", events="dup")
assert exported()["spans"] and exported()["records"]
check(no_refusal=("limits", "events variable", "capture variable"))
"""
# A provider that is given gets nothing that the environment names.
THEIRS = """
theirs = TracerProvider()
handle = setup(provider=theirs, store=False, exporters=[spans], log_exporters=[records], options=TelemetryOptions(semconv="1.41"))
ENVIRONMENT = ("span exporter", "log exporter", "metrics exporter", "span protocol", "log protocol", "endpoint",
               "upload and exporter", "time limit", "limits")
"""
SAME = """
ARGUMENTS["provider"] = theirs
check(no_refusal=(*ENVIRONMENT, "events variable", "capture variable"))
"""
OTHER = """
ARGUMENTS["provider"] = TracerProvider()
check(no_refusal=ENVIRONMENT)
"""


@pytest.mark.parametrize(
    "before",
    [
        pytest.param(NOTHING, id="nothing"),
        pytest.param(OWN, id="own-provider"),
        pytest.param(THEIRS + SAME, id="given-provider"),
        pytest.param(THEIRS + OTHER, id="other-provider"),
    ],
)
def test_a_refused_setup_changes_nothing(before: str, tmp_path: Path) -> None:
    """Neither where nothing was set up, nor where something was, which goes on as it did; nothing made on the way is left."""
    run_python(OBSERVING + before, tmp_path / "home")
