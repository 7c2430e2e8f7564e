"""What Prometheus is to find, from the registry: a metric's names there, and whether a time series is as registered."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tracegraph.telemetry import semconv
from tracegraph.telemetry.semconv.model import Metric
from tracegraph.telemetry.semconv.registry import METRICS

PROGRAM = Path(__file__).parent / "measured_program.py"

UNMADE = {semconv.METRIC_CACHE_LOOKUPS: "there are no caches of node results yet"}
"""Metrics that no run makes."""

MADE = {name: metric for name, metric in METRICS.items() if name not in UNMADE}


@dataclass(frozen=True)
class Running:
    """The program, once its runs are over."""

    url: str
    ids: frozenset[str]
    """Of threads, questions, checkpoints and tasks."""


@contextmanager
def measured_program(folder: Path) -> Iterator[Running]:
    """Yield the program that makes every metric there is; it ends afterwards."""
    clean = {key: value for key, value in os.environ.items() if not key.startswith(("OTEL_", "TRACEGRAPH_"))}
    prometheus = {"OTEL_METRICS_EXPORTER": "prometheus", "OTEL_EXPORTER_PROMETHEUS_PORT": "0"}
    here = {"TRACEGRAPH_HOME": str(folder), "OTEL_EXPORTER_PROMETHEUS_HOST": "127.0.0.1"}
    command = [sys.executable, str(PROGRAM), str(folder)]
    pipe, environment = subprocess.PIPE, clean | prometheus | here
    with (
        (folder / "errors").open("wb") as errors,
        subprocess.Popen(command, env=environment, stdin=pipe, stdout=pipe, stderr=errors, text=True) as process,
    ):
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            said = process.stdout.readline()
            assert said, (folder / "errors").read_text("utf-8")
            told = json.loads(said)
            yield Running(told["url"], frozenset(told["ids"]))
        finally:
            process.stdin.close()
    assert process.returncode == 0, (folder / "errors").read_text("utf-8")


def prometheus_name(metric: Metric) -> str:
    """Return a metric's name as OpenTelemetry's rules for Prometheus make it; a histogram's series have endings beside."""
    name = metric.name.replace(".", "_")
    name += {"s": "_seconds", "By": "_bytes"}.get(metric.unit, "")
    return f"{name}_total" if metric.instrument == "counter" else name


def labels_of(metric: Metric, labels: Mapping[str, str]) -> dict[str, str]:
    """Return the labels of a time series that stand for attributes, held against the registry: none unknown, none missing.

    Prometheus has no difference between an attribute that is absent and an empty one.
    """
    of_scrapes = {"__name__", "le", "instance", "job"}
    found = {key: value for key, value in labels.items() if value and key not in of_scrapes and not key.startswith("otel_scope_")}
    registered = {use.attribute.replace(".", "_"): use for use in metric.attributes}
    assert found.keys() <= registered.keys(), (metric.name, found)
    assert {name for name, use in registered.items() if use.level == "required"} <= found.keys(), (metric.name, found)
    return found


def has_id(text: str, ids: frozenset[str]) -> bool:
    """Say whether *text* holds one of *ids*, or what looks like any."""
    return any(each in text for each in ids) or re.search(r"[0-9a-f]{8}-[0-9a-f]{4}|[0-9a-f]{16}", text) is not None
