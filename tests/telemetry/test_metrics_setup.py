"""setup() in fresh processes, one per environment: where the metrics of a run end up."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from fresh_process import run_python
from otlp_receiver import OtlpGrpcReceiver, OtlpReceiver

PRELUDE = """
import sys
from typing import TypedDict
from urllib.request import urlopen
from tracegraph.errors import InvalidInputError
from tracegraph.graph import START, StateGraph
from tracegraph.telemetry import setup

class State(TypedDict):
    n: int

app = StateGraph(State).add_node("count", lambda state: {"n": 1}).add_edge(START, "count").compile(name="probe")

def run():
    app.invoke({"n": 0})

def refused(*words):
    try:
        setup()
    except InvalidInputError as error:
        assert all(word in str(error) for word in words), error
    else:
        raise AssertionError("it was accepted")
"""
RECORDED = {"gen_ai.invoke_workflow.duration", "gen_ai.run_step.duration", "tracegraph.runs.active"}
DROPPED = "tracegraph.telemetry.dropped"
"""Where log records are exported as well, which may get lost; 0 as a rule."""


# Nothing but metrics is exported.
python = partial(run_python, prelude=PRELUDE, OTEL_TRACES_EXPORTER="none")


@pytest.fixture
def taken_port() -> Iterator[int]:
    """A port of the loopback interface that somebody else listens at."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


def test_without_any_variable_nothing_is_measured(tmp_path: Path) -> None:
    """A store of traces has no place for metrics, so they cost nothing: no provider is made."""
    code = """
from opentelemetry import metrics
handle = setup()
run()
assert handle.meter_provider is None and handle.prometheus_url is None
assert not hasattr(metrics.get_meter_provider(), "shutdown")
assert "tracegraph.telemetry.metrics" not in sys.modules
"""
    python(code, tmp_path)


def test_otlp_endpoint_gets_metrics_as_well(tmp_path: Path, http: OtlpReceiver) -> None:
    """With the service that the spans have; leaving the process sends what was measured."""
    code = "setup(service_name='mine'); run()"
    python(code, tmp_path, OTEL_EXPORTER_OTLP_ENDPOINT=http.url, OTEL_EXPORTER_OTLP_PROTOCOL="http/protobuf")

    assert http.metric_names - {DROPPED} == RECORDED
    resource = http.metrics[0].resource_metrics[0].resource
    assert {kv.key: kv.value.string_value for kv in resource.attributes}["service.name"] == "mine"
    (ours,) = [found for found in http.metrics[0].resource_metrics[0].scope_metrics if found.scope.name == "tracegraph"]
    assert ours.schema_url.startswith("https://opentelemetry.io/schemas/")


def test_metrics_variables_win_over_those_for_all(tmp_path: Path, http: OtlpReceiver) -> None:
    """Endpoint and protocol of the one signal."""
    python(
        "setup(); run()",
        tmp_path,
        OTEL_EXPORTER_OTLP_METRICS_ENDPOINT=f"{http.url}/v1/metrics",
        OTEL_EXPORTER_OTLP_METRICS_PROTOCOL="http/protobuf",
        OTEL_EXPORTER_OTLP_PROTOCOL="grpc",
    )

    assert http.metric_names == RECORDED


def test_otlp_grpc_is_the_default_protocol(tmp_path: Path, grpc: OtlpGrpcReceiver) -> None:
    """As for traces; flushed on demand."""
    code = "handle = setup(); run(); assert handle.force_flush(); handle.shutdown(); handle.shutdown()"
    python(code, tmp_path, OTEL_EXPORTER_OTLP_ENDPOINT=grpc.url)

    assert grpc.metric_names == {*RECORDED, DROPPED}


def test_none_is_obeyed_beside_an_endpoint(tmp_path: Path, http: OtlpReceiver) -> None:
    """Traces only, for whoever wants no metrics."""
    python(
        "handle = setup(); run(); assert handle.meter_provider is None",
        tmp_path,
        OTEL_METRICS_EXPORTER="none",
        OTEL_TRACES_EXPORTER="otlp",
        OTEL_EXPORTER_OTLP_ENDPOINT=http.url,
        OTEL_EXPORTER_OTLP_PROTOCOL="http/protobuf",
    )

    assert "invoke_workflow probe" in http.span_names
    assert not http.metrics


def test_exporters_are_entry_points(tmp_path: Path) -> None:
    """The SDK's console here; sampled-out runs are measured as well."""
    done = python("setup(); run()", tmp_path, OTEL_METRICS_EXPORTER="console", OTEL_TRACES_SAMPLER="always_off")

    assert '"name": "gen_ai.invoke_workflow.duration"' in done.stdout


def test_unknown_exporter_is_an_error_that_lists_the_known_ones(tmp_path: Path) -> None:
    """And leaves nothing behind: the next setup() starts from nothing."""
    code = """
import os
refused("OTEL_METRICS_EXPORTER", "'promtheus'", "otlp", "prometheus", "console")
os.environ["OTEL_METRICS_EXPORTER"] = "none"
assert setup().meter_provider is None
"""
    python(code, tmp_path, OTEL_METRICS_EXPORTER="console,promtheus")


def test_unknown_protocol_is_an_error(tmp_path: Path) -> None:
    """Of this signal alone, too."""
    python(
        "refused('OTEL_EXPORTER_OTLP_METRICS_PROTOCOL', 'carrier-pigeon', 'http/protobuf')",
        tmp_path,
        OTEL_METRICS_EXPORTER="otlp",
        OTEL_EXPORTER_OTLP_METRICS_PROTOCOL="carrier-pigeon",
    )


def test_prometheus_scrapes_what_was_measured(tmp_path: Path) -> None:
    """On the loopback interface, in its own text format, by the standard exporter."""
    code = """
handle = setup()
run()
print(handle.prometheus_url, file=sys.stderr)
print(urlopen(handle.prometheus_url).read().decode())
"""
    done = python(code, tmp_path, OTEL_METRICS_EXPORTER="prometheus", OTEL_EXPORTER_PROMETHEUS_PORT="0")

    assert done.stderr.startswith("http://localhost:")
    lines = done.stdout.splitlines()
    (count,) = [line for line in lines if line.startswith("gen_ai_run_step_duration_seconds_count{")]
    assert 'gen_ai_step_name="count"' in count
    assert 'gen_ai_workflow_name="probe"' in count
    assert 'tracegraph_task_status="completed"' in count
    assert count.endswith(" 1.0")
    assert any(line.startswith("gen_ai_run_step_duration_seconds_bucket{") and 'le="0.01"' in line for line in lines)
    assert any(line.startswith("tracegraph_runs_active") for line in lines)
    assert any(line.startswith("target_info{") and 'service_name="tracegraph"' in line for line in lines)


def test_prometheus_endpoint_listens_on_the_loopback_interface_only(tmp_path: Path) -> None:
    """Metrics are nobody else's business unless somebody says so."""
    code = """
handle = setup()
import socket
assert handle._meters._server.server_address[0] in ("127.0.0.1", "::1"), handle._meters._server.server_address
"""
    python(code, tmp_path, OTEL_METRICS_EXPORTER="prometheus", OTEL_EXPORTER_PROMETHEUS_PORT="0")


def test_prometheus_endpoint_is_closed_with_the_handle(tmp_path: Path) -> None:
    """Nothing is measured any more; set up again, at the same port, it measures anew."""
    code = """
import os
from urllib.error import URLError
first = setup()
url = first.prometheus_url
run()
first.shutdown()
run()
try:
    urlopen(url)
except URLError:
    pass
else:
    raise AssertionError("it still answers")
os.environ["OTEL_EXPORTER_PROMETHEUS_PORT"] = url.split(":")[-1].split("/")[0]
with setup() as second:
    assert second.prometheus_url == url and second.meter_provider is not first.meter_provider
    run()
    lines = urlopen(url).read().decode().splitlines()
    (count,) = [line for line in lines if line.startswith("gen_ai_run_step_duration_seconds_count{")]
    assert count.endswith(" 1.0"), count
run()
"""
    done = python(code, tmp_path, OTEL_METRICS_EXPORTER="prometheus", OTEL_EXPORTER_PROMETHEUS_PORT="0")

    assert done.stderr == ""


def test_prometheus_port_that_is_taken_is_named(tmp_path: Path, taken_port: int) -> None:
    """With the variable that chooses another; and what else was asked for is not half set up."""
    code = f"""
import threading
refused("127.0.0.1:{taken_port}", "OTEL_EXPORTER_PROMETHEUS_PORT")
assert threading.active_count() == 1, threading.enumerate()
"""
    python(
        code,
        tmp_path,
        OTEL_METRICS_EXPORTER="console,prometheus",
        OTEL_EXPORTER_PROMETHEUS_HOST="127.0.0.1",
        OTEL_EXPORTER_PROMETHEUS_PORT=str(taken_port),
    )


@pytest.mark.parametrize("port", ["many", "70000"])
def test_prometheus_port_that_is_none_is_named(tmp_path: Path, port: str) -> None:
    """A typing mistake."""
    python(
        f"refused({port!r}, 'OTEL_EXPORTER_PROMETHEUS_PORT')",
        tmp_path,
        OTEL_METRICS_EXPORTER="prometheus",
        OTEL_EXPORTER_PROMETHEUS_PORT=port,
    )


def test_prometheus_that_is_not_installed_is_an_error_that_says_what_to_install(tmp_path: Path) -> None:
    """The exporter is an extra."""
    code = "sys.modules['opentelemetry.exporter.prometheus'] = None; refused('tracegraph[prometheus]')"
    python(code, tmp_path, OTEL_METRICS_EXPORTER="prometheus")


def test_mistake_elsewhere_closes_the_endpoint_again(tmp_path: Path) -> None:
    """An unknown exporter of traces must not leave half a configuration behind, the open port least of all."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    code = f"""
import socket
refused("'nope'")
socket.create_server(("127.0.0.1", {port})).close()
run()
assert "tracegraph.telemetry.metrics" not in sys.modules
"""
    python(
        code,
        tmp_path,
        OTEL_METRICS_EXPORTER="prometheus",
        OTEL_EXPORTER_PROMETHEUS_HOST="127.0.0.1",
        OTEL_EXPORTER_PROMETHEUS_PORT=str(port),
        OTEL_TRACES_EXPORTER="nope",
    )


APPLICATION = """
from opentelemetry import metrics
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
memory = InMemoryMetricReader()
theirs = MeterProvider([memory])

def recorded():
    return {m.name: m for r in memory.get_metrics_data().resource_metrics for s in r.scope_metrics for m in s.metrics}
"""


def test_applications_provider_is_used_and_never_replaced(tmp_path: Path, http: OtlpReceiver) -> None:
    """With setup() or without; its exporting is its own doing, and it outlives our shutdown."""
    code = f"""
metrics.set_meter_provider(theirs)
run()
assert set(recorded()) == {RECORDED!r}
with setup() as handle:
    assert handle.meter_provider is None and metrics.get_meter_provider() is theirs
    run()
run()
assert recorded()["gen_ai.run_step.duration"].data.data_points[0].count == 3
"""
    python(APPLICATION + code, tmp_path, OTEL_METRICS_EXPORTER="otlp", OTEL_EXPORTER_OTLP_ENDPOINT=http.url)

    assert not http.metrics


def test_own_instruments_of_the_application_go_the_same_way(tmp_path: Path, http: OtlpReceiver) -> None:
    """The provider made here is the global one where there was none, as the one for traces is."""
    code = "setup(); from opentelemetry import metrics; metrics.get_meter('app').create_counter('orders').add(1)"
    python(code, tmp_path, OTEL_EXPORTER_OTLP_ENDPOINT=http.url, OTEL_EXPORTER_OTLP_PROTOCOL="http/protobuf")

    assert http.metric_names == {"orders"}


def test_setup_with_a_given_tracer_provider_makes_no_meter_provider(tmp_path: Path) -> None:
    """Whoever hands over a provider configures the rest as well."""
    code = """
from opentelemetry.sdk.trace import TracerProvider
assert setup(provider=TracerProvider()).meter_provider is None
"""
    python(code, tmp_path, OTEL_METRICS_EXPORTER="console")


def test_setup_again_keeps_the_meter_provider(tmp_path: Path) -> None:
    """And adds one if the environment has changed."""
    code = """
import os
first = setup()
assert first.meter_provider is None
os.environ["OTEL_METRICS_EXPORTER"] = "console"
assert setup() is first
made = first.meter_provider
assert made is not None and setup().meter_provider is made
"""
    python(code, tmp_path)


def test_disabled_sdk_means_nothing_at_all(tmp_path: Path) -> None:
    """No endpoint, no provider."""
    python(
        "handle = setup(); assert handle.meter_provider is None and handle.prometheus_url is None",
        tmp_path,
        OTEL_SDK_DISABLED="true",
        OTEL_METRICS_EXPORTER="prometheus",
    )


def test_receiver_that_is_away_harms_no_run(tmp_path: Path) -> None:
    """The SDK says so in the log; the program goes on, and ends."""
    done = python(
        "setup(); run(); print('fine')",
        tmp_path,
        OTEL_EXPORTER_OTLP_ENDPOINT="http://127.0.0.1:1",
        OTEL_EXPORTER_OTLP_PROTOCOL="http/protobuf",
        OTEL_EXPORTER_OTLP_TIMEOUT="1",
    )

    assert done.stdout == "fine\n"
    assert "Failed to export metrics" in done.stderr
