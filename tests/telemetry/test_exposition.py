"""What `OTEL_METRICS_EXPORTER=prometheus` shows of a real program is what the registry says.

`make test-otlp` has a real Prometheus read the same: see tests/otlp/test_prometheus.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from urllib.request import urlopen

import pytest
from prometheus_client import Metric as Family
from prometheus_client.parser import text_string_to_metric_families
from scraped import MADE, UNMADE, Running, has_id, labels_of, measured_program, prometheus_name

from tracegraph.telemetry import semconv
from tracegraph.telemetry.semconv.registry import METRICS

TYPES = {"histogram": "histogram", "counter": "counter", "updowncounter": "gauge"}


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with measured_program(tmp_path_factory.mktemp("program")) as running:
        yield running


@pytest.fixture(scope="module")
def families(program: Running) -> dict[str, Family]:
    with urlopen(program.url, timeout=10) as answer:
        found = text_string_to_metric_families(answer.read().decode())
    return {family.name: family for family in found}


@pytest.mark.parametrize("name", MADE)
def test_a_metric_is_shown_as_registered(name: str, families: dict[str, Family], program: Running) -> None:
    """Its kind, what it says of itself, its labels, its buckets; and ids are nowhere."""
    metric = METRICS[name]
    family = families[prometheus_name(metric).removesuffix("_total")]

    assert (family.type, family.documentation) == (TYPES[metric.instrument], metric.description)
    assert family.samples
    for sample in family.samples:
        for value in labels_of(metric, sample.labels).values():
            assert not has_id(value, program.ids)
    bounds = {float(sample.labels["le"]) for sample in family.samples if "le" in sample.labels}
    assert bounds == ({*metric.buckets, float("inf")} if metric.buckets else set())


def test_nothing_of_ours_is_shown_that_is_not_registered(families: dict[str, Family]) -> None:
    """Nor what no run makes, yet: whoever makes it lets the program make it, too."""
    shown = {name for name in families if name.startswith(("gen_ai", "tracegraph"))}

    assert shown == {prometheus_name(metric).removesuffix("_total") for metric in MADE.values()}
    assert UNMADE.keys() <= METRICS.keys()


def test_what_is_shown_is_what_happened(families: dict[str, Family]) -> None:
    """Sums over all series."""

    def total(name: str, **labels: str) -> float:
        samples = families[prometheus_name(METRICS[name]).removesuffix("_total")].samples
        counted = [s for s in samples if s.name.endswith(("_total", "_count")) and labels.items() <= s.labels.items()]
        return sum(sample.value for sample in counted)

    assert total(semconv.METRIC_TASK_RETRIES) == 2
    assert total(semconv.METRIC_INTERRUPTS) == 2
    assert total(semconv.METRIC_INTERRUPT_WAIT) == 1
    assert total(semconv.METRIC_TOKEN_USAGE) == 2
    assert total(semconv.METRIC_USAGE_REASONING_OUTPUT_TOKENS) == 14
    assert total(semconv.METRIC_TIME_PER_OUTPUT_CHUNK) == 4
    assert total(semconv.METRIC_TOOL_DURATION, error_type="ZeroDivisionError") == 2
    assert total(semconv.METRIC_WORKFLOW_DURATION, error_type="ZeroDivisionError") == 1
    assert total(semconv.METRIC_STREAM_DROPPED) >= 1
    assert total(semconv.METRIC_TELEMETRY_DROPPED) == 0
