"""setup() in fresh processes, one per environment: where the spans of a run end up."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path

import pytest
from fresh_process import run_python
from otlp_receiver import OtlpGrpcReceiver, OtlpReceiver

from tracegraph_exporters import TraceStore

PRELUDE = """
import sys
from uuid import uuid4
from time import time_ns
from tracegraph.events import RunEnded, RunStarted
from tracegraph.telemetry import setup, spans_for_root

def run(name="probe"):
    run_id = uuid4()
    started = RunStarted(run_id, "", -1, time_ns(), None, None, name, {}, None, (), {}, None, False, None, (), (), name)
    observer, context = spans_for_root(started)
    if observer is not None:
        observer.observe(RunEnded(run_id, "", 0, time_ns(), name, "completed", None, None, (), None))
    return observer is not None
"""


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


python = partial(run_python, prelude=PRELUDE)


def stored(home: Path, file: str = "traces.db") -> list[str | None]:
    """Return the names in the store, none if it was not made."""
    path = home / file
    if not path.exists():
        return []
    with TraceStore(path) as store:
        return [trace.name for trace in store.traces()]


def test_import_loads_no_sdk_and_starts_no_thread(home: Path) -> None:
    """Importing telemetry costs nothing and changes nothing; without setup() a run is not observed."""
    code = """
import threading
assert not [m for m in sys.modules if m.startswith(("opentelemetry", "tracegraph_exporters", "sqlite3", "rich", "grpc"))]
assert run() is False
assert "opentelemetry" not in sys.modules
assert threading.active_count() == 1
"""
    python(code, home)
    assert stored(home) == []


def test_without_any_variable_spans_go_to_the_store(home: Path) -> None:
    """The first trace needs one line and nothing installed; leaving the process writes what is waiting."""
    python("handle = setup(); assert run(); print(handle.store_path)", home)

    assert stored(home) == ["invoke_workflow probe"]
    with TraceStore(home / "traces.db") as store:
        assert store.traces()[0].service_name == "tracegraph"


def test_service_name_from_argument_and_environment(home: Path) -> None:
    """The argument wins over OTEL_SERVICE_NAME, which wins over our default."""
    python("setup(service_name='mine'); run()", home, OTEL_SERVICE_NAME="theirs")
    python("setup(); run()", home, OTEL_SERVICE_NAME="theirs")

    with TraceStore(home / "traces.db") as store:
        assert [trace.service_name for trace in store.traces()] == ["theirs", "mine"]


def test_otlp_http_beside_the_store(home: Path, http: OtlpReceiver) -> None:
    """An endpoint alone sends there as well; the protocol variable is honoured, resources included."""
    python("setup(); run()", home, OTEL_EXPORTER_OTLP_ENDPOINT=http.url, OTEL_EXPORTER_OTLP_PROTOCOL="http/protobuf")

    assert http.span_names == ["invoke_workflow probe"]
    assert http.resource["service.name"] == "tracegraph"
    assert stored(home) == ["invoke_workflow probe"]


def test_otlp_http_with_gzip_and_a_traces_endpoint(home: Path, http: OtlpReceiver) -> None:
    """The more specific variables win; compression is the exporter's own matter."""
    python(
        "setup(store=False); run()",
        home,
        OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=f"{http.url}/v1/traces",
        OTEL_EXPORTER_OTLP_TRACES_PROTOCOL="http/protobuf",
        OTEL_EXPORTER_OTLP_PROTOCOL="grpc",
        OTEL_EXPORTER_OTLP_COMPRESSION="gzip",
    )

    assert http.span_names == ["invoke_workflow probe"]
    assert stored(home) == []


def test_otlp_grpc_is_the_default_protocol(home: Path, grpc: OtlpGrpcReceiver) -> None:
    """As in OpenTelemetry for Python."""
    python("setup(); run()", home, OTEL_EXPORTER_OTLP_ENDPOINT=grpc.url)

    assert grpc.span_names == ["invoke_workflow probe"]


def test_traces_exporter_variable_is_taken_literally(home: Path, http: OtlpReceiver) -> None:
    """Named exporters only: no store beside an explicit otlp."""
    python(
        "setup(); run()",
        home,
        OTEL_TRACES_EXPORTER="otlp",
        OTEL_EXPORTER_OTLP_ENDPOINT=http.url,
        OTEL_EXPORTER_OTLP_PROTOCOL="http/protobuf",
    )

    assert http.span_names == ["invoke_workflow probe"]
    assert stored(home) == []


def test_traces_exporter_names_are_entry_points(home: Path) -> None:
    """Ours and those of the SDK alike, in one list."""
    done = python("setup(); run()", home, OTEL_TRACES_EXPORTER="tracegraph_sqlite, tracegraph_console, console")

    assert stored(home) == ["invoke_workflow probe"]
    assert "invoke_workflow probe  " in done.stderr
    assert '"name": "invoke_workflow probe"' in done.stdout


def test_traces_exporter_none_exports_nothing_but_what_arguments_name(home: Path) -> None:
    """The variable switches the environment's part off; a path in the code is still obeyed."""
    python("setup(); run()", home, OTEL_TRACES_EXPORTER="none")
    assert stored(home) == []

    assert "probe" in python("setup(console=True); run()", home, OTEL_TRACES_EXPORTER="none").stderr
    assert stored(home) == []
    python("import os; setup(store=os.environ['TRACEGRAPH_HOME'] + '/own.db'); run()", home, OTEL_TRACES_EXPORTER="none")
    assert stored(home, "own.db") == ["invoke_workflow probe"]


def test_unknown_exporter_is_an_error_that_lists_the_known_ones(home: Path) -> None:
    """A typing mistake must not silently lose all traces, nor leave half a configuration."""
    code = """
from tracegraph.errors import InvalidInputError
try:
    setup()
except InvalidInputError as error:
    assert "'otlpp'" in str(error) and "tracegraph_sqlite" in str(error), error
else:
    raise AssertionError
assert run() is False
"""
    python(code, home, OTEL_TRACES_EXPORTER="tracegraph_sqlite,otlpp")


def test_unknown_protocol_is_an_error(home: Path) -> None:
    """OTLP in a form nobody here speaks."""
    code = """
from tracegraph.errors import InvalidInputError
try:
    setup()
except InvalidInputError as error:
    assert "http/protobuf" in str(error), error
else:
    raise AssertionError
"""
    python(code, home, OTEL_EXPORTER_OTLP_ENDPOINT="http://127.0.0.1:1", OTEL_EXPORTER_OTLP_PROTOCOL="carrier-pigeon")


def test_disabled_sdk_means_nothing_at_all(home: Path) -> None:
    """OTEL_SDK_DISABLED wins over every argument, and the handle is harmless."""
    python("with setup(store=True) as handle: assert run() is False; assert handle.force_flush()", home, OTEL_SDK_DISABLED="true")

    assert stored(home) == []


def test_sampler_variable_is_honoured(home: Path) -> None:
    """A sampled-out run has no observer and leaves no trace."""
    python("setup(); assert run() is False", home, OTEL_TRACES_SAMPLER="always_off")

    assert stored(home) == []


def test_console_prints_a_tree_when_the_run_ends(home: Path) -> None:
    """Not at the next batch: the tree is there before the program goes on."""
    done = python("setup(console=True, store=False); run(); print('after', file=sys.stderr)", home)

    lines = done.stderr.splitlines()
    assert lines[1].startswith("invoke_workflow probe  ")
    assert lines[-1] == "after"


def test_setup_again_adds_only_what_is_new(home: Path) -> None:
    """The same handle, no span twice."""
    code = """
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
memory = InMemorySpanExporter()
first = setup()
assert setup(exporters=[memory]) is first
assert setup(store=True, exporters=[memory]) is first
run()
assert first.force_flush()
assert len(memory.get_finished_spans()) == 1
"""
    python(code, home)
    assert stored(home) == ["invoke_workflow probe"]


def test_shutdown_stops_observing_and_setup_starts_again(home: Path) -> None:
    """After shutdown runs cost nothing; a later setup() takes up the same global provider."""
    code = """
with setup():
    assert run("one")
assert run("lost") is False
with setup() as handle:
    assert run("two")
    handle.shutdown()
"""
    python(code, home)
    assert stored(home) == ["invoke_workflow two", "invoke_workflow one"]


APPLICATION = """
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
memory = InMemorySpanExporter()
theirs = TracerProvider()
theirs.add_span_processor(SimpleSpanProcessor(memory))
"""


def test_applications_provider_is_used_without_setup(home: Path) -> None:
    """Whoever has configured OpenTelemetry sees runs at once, and we add nothing."""
    code = """
trace.set_tracer_provider(theirs)
assert run()
assert [span.name for span in memory.get_finished_spans()] == ["invoke_workflow probe"]
"""
    python(APPLICATION + code, home)
    assert stored(home) == []


def test_applications_provider_is_added_to_and_never_replaced(home: Path, http: OtlpReceiver) -> None:
    """The store joins it; OTLP is taken to be the application's own doing; its exporters outlive our shutdown."""
    code = """
trace.set_tracer_provider(theirs)
handle = setup()
assert handle.provider is theirs is trace.get_tracer_provider()
run("one")
handle.shutdown()
assert run("two")
assert [span.name for span in memory.get_finished_spans()] == ["invoke_workflow one", "invoke_workflow two"]
"""
    done = python(APPLICATION + code, home, OTEL_EXPORTER_OTLP_ENDPOINT=http.url, OTEL_EXPORTER_OTLP_PROTOCOL="http/protobuf")

    assert stored(home) == ["invoke_workflow one"]
    assert http.span_names == []
    assert done.stderr == ""


def test_given_provider_is_ours_alone(home: Path) -> None:
    """It does not become the global one, and gets no exporter that was not asked for."""
    code = """
handle = setup(provider=theirs)
assert isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider)
assert run()
assert len(memory.get_finished_spans()) == 1
handle.shutdown()
assert run() is False
with setup(provider=theirs, store=True):
    run("stored")
"""
    python(APPLICATION + code, home)
    assert stored(home) == ["invoke_workflow stored"]


def test_provider_that_takes_no_processors_is_named(home: Path) -> None:
    """A vendor's own provider class: the error says what to do instead."""
    code = """
from opentelemetry import trace
from tracegraph.errors import InvalidInputError
class Vendor(trace.TracerProvider):
    def get_tracer(self, *args, **kwargs):
        return trace.NoOpTracer()
trace.set_tracer_provider(Vendor())
try:
    setup()
except InvalidInputError as error:
    assert "Vendor" in str(error) and "provider=" in str(error)
else:
    raise AssertionError
"""
    python(code, home)


def test_store_that_cannot_be_written_harms_no_run(home: Path) -> None:
    """One log line names the file; the program's own work is unaffected."""
    home.write_text("a file in the way")

    done = python("setup(); assert run(); print('fine')", home)

    assert done.stdout == "fine\n"
    assert done.stderr.count("cannot be written to the trace store") == 1


def test_queue_is_wide_enough_for_a_fan_out(home: Path) -> None:
    """The SDK's default of 2,048 loses spans; the standard variable still wins."""
    code = "handle = setup(); print(next(iter(handle._sinks.values())).processor._batch_processor._max_queue_size)"

    assert python(code, home).stdout == "16384\n"
    assert python(code, home, OTEL_BSP_MAX_QUEUE_SIZE="4096").stdout == "4096\n"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_forked_child_exports_its_own_spans_and_not_its_parents(home: Path, http: OtlpReceiver) -> None:
    """To a backend and into the store; what the parent had waiting is exported once, by the parent."""
    code = """
import os
handle = setup()
run("before")
if (child := os.fork()) == 0:
    run("child")
    os._exit(0 if handle.force_flush() else 1)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
run("after")
"""
    python(
        code,
        home,
        OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=f"{http.url}/v1/traces",
        OTEL_EXPORTER_OTLP_TRACES_PROTOCOL="http/protobuf",
        OTEL_BSP_SCHEDULE_DELAY="600000",
    )

    assert http.span_names == ["invoke_workflow child", "invoke_workflow before", "invoke_workflow after"]
    assert sorted(filter(None, stored(home))) == ["invoke_workflow after", "invoke_workflow before", "invoke_workflow child"]
