"""A real Prometheus scrapes a program that makes runs of all kinds, and answers every query of the dashboards and alerts."""

from __future__ import annotations

import json
import math
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

import busy_program
import pytest
import yaml
from prometheus_server import Prometheus, running_prometheus
from scraped import UNMADE, prometheus_name

from dashboards.build import FOLDER
from dashboards.checks import queries_of, with_choices
from dashboards.prices import price_rules
from tracegraph.telemetry.semconv.registry import METRICS

pytestmark = pytest.mark.timeout(240)

ANSWER_S = 60
PAGES = {page.stem: json.loads(page.read_text("utf-8")) for page in sorted((FOLDER / "grafana" / "dashboards").glob("*.json"))}
ASKED = [asked for page in PAGES.values() for asked in queries_of(page) if asked.language == "promql"]

SILENT = {
    "otelcol_": "there is no collector",
    'up{job="otel-collector"}': "there is no collector",
    "otel_sdk_processor_span_processed_total": "the SDK drops nothing before the export",
    **{prometheus_name(METRICS[name]): why for name, why in UNMADE.items()},
}
"""What the program cannot make, by a part of the query."""


@pytest.fixture(scope="module")
def metrics_address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Where a busy program shows its metrics. Nobody takes its spans, so that it has losses to tell of."""
    folder = tmp_path_factory.mktemp("program")
    kept = {name: value for name, value in os.environ.items() if not name.startswith("OTEL_")}
    settings = {
        "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
        "TRACEGRAPH_HOME": str(folder),
        "TRACEGRAPH_CHECK": "0",
        "OTEL_METRICS_EXPORTER": "prometheus",
        "OTEL_EXPORTER_PROMETHEUS_HOST": "127.0.0.1",
        "OTEL_EXPORTER_PROMETHEUS_PORT": "0",
        "OTEL_TRACES_EXPORTER": "otlp",
        "OTEL_LOGS_EXPORTER": "none",
        "OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9",
        "OTEL_EXPORTER_OTLP_TIMEOUT": "1",
        "OTEL_BSP_SCHEDULE_DELAY": "200",
        "OTEL_PYTHON_SDK_INTERNAL_METRICS_ENABLED": "true",
    }
    command = [sys.executable, busy_program.__file__, str(folder)]
    with (folder / "errors.log").open("wb") as errors:
        process = subprocess.Popen(
            command, env=kept | settings, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True
        )
    with process:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line, (folder / "errors.log").read_text("utf-8")
        yield line.strip().removeprefix("http://").removesuffix("/metrics")
        process.communicate(timeout=60)
    assert process.returncode == 0, (folder / "errors.log").read_text("utf-8")


@pytest.fixture(scope="module")
def prometheus(metrics_address: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    """A server that scrapes it and knows the price of one of its models."""
    folder = tmp_path_factory.mktemp("prometheus")
    rules = price_rules({busy_program.PRICED: {"input": 2.0, "output": 8.0, "cache_read": 0.5, "cache_write": 2.5}})
    rules["groups"][0]["interval"] = "500ms"
    path = folder / "prices.yaml"
    path.write_text(yaml.safe_dump(rules), "utf-8")
    command = shutil.which("prometheus")
    assert command, "prometheus is missing"
    with running_prometheus(command, folder, {"agents": metrics_address}, path) as server:
        yield server


def is_answer(series: Any) -> bool:
    """Tell whether any of these has a value."""
    return any(not math.isnan(float(one["value"][1])) for one in series)


def answered(server: Prometheus, question: str) -> list[Any]:
    """Return the answer, once there is one: rates need several scrapes, and so do prices."""
    deadline = time.monotonic() + ANSWER_S
    while not is_answer(found := server.query(question)):
        assert time.monotonic() < deadline, f"no answer to {question}: {found}"
        time.sleep(0.2)  # another process scrapes
    return found


@pytest.mark.parametrize("asked", ASKED, ids=lambda asked: asked.where)
def test_a_query_has_an_answer(asked: Any, prometheus: Prometheus) -> None:
    """With everything chosen; what the program cannot make has none, and no error either."""
    question = with_choices(asked.text, window="10s", range_s=60)

    if any(part in question for part in SILENT):
        assert not is_answer(prometheus.query(question)), "it has an answer after all: ask for it"
    else:
        assert answered(prometheus, question)


def test_every_silence_has_a_query() -> None:
    """None is left of what is no longer asked."""
    assert [part for part in SILENT if not any(part in asked.text for asked in ASKED)] == []


@pytest.mark.parametrize("page", PAGES)
def test_choices_have_values(page: str, prometheus: Prometheus) -> None:
    """Each variable offers something to choose, and choosing it leaves an answer."""
    for variable in PAGES[page]["templating"]["list"]:
        metric, label = re.fullmatch(r"label_values\((\w+), (\w+)\)", variable["query"]["query"]).groups()  # type: ignore[union-attr]
        answered(prometheus, f'count({metric}{{{label}!=""}})')
        values = prometheus.ask(f"label/{label}/values", **{"match[]": metric})
        assert values, variable["name"]


def test_alerts_can_be_asked(prometheus: Prometheus) -> None:
    """Their expressions, by the server itself; one of them has reason to fire."""
    alerts = yaml.safe_load((FOLDER / "rules" / "alerts.yaml").read_text("utf-8"))["groups"][0]["rules"]

    asked = {alert["alert"]: alert["expr"] for alert in alerts}
    for expression in asked.values():
        prometheus.query(expression)
    assert answered(prometheus, asked["TracegraphCheckpointsFail"])
    assert answered(prometheus, asked["TracegraphRunsFail"])


def test_cost_is_tokens_times_prices(prometheus: Prometheus) -> None:
    """Of each call 50 tokens in, 20 of them cached and 10 written to the cache, and 30 out."""
    (page,) = [page for page in PAGES.values() if page["uid"] == "tracegraph-tokens"]
    (query,) = [one.text for one in queries_of(page) if one.where.endswith("/ An hour, by model / A")]
    calls = 'sum(rate(gen_ai_client_inference_usage_output_tokens_total{gen_ai_request_model="m-1"}[10s])) / 30'
    dollars = (20 * 2.0 + 20 * 0.5 + 10 * 2.5 + 30 * 8.0) / 1e6

    ratio = f"sum({with_choices(query, window='10s')}) / 3600 / ({calls})"

    (found,) = answered(prometheus, ratio)
    assert float(found["value"][1]) == pytest.approx(dollars)
