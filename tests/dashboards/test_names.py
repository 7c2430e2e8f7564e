"""Prometheus' names, as they are derived from the registry, are those that the exporter for Prometheus gives."""

from __future__ import annotations

import re

from opentelemetry.exporter.prometheus import PrometheusMetricReader
from opentelemetry.sdk.metrics import MeterProvider
from prometheus_client import REGISTRY, generate_latest

from dashboards.series import label_of, samples_of
from tracegraph.telemetry.semconv.registry import METRICS

CREATE = {
    "histogram": ("create_histogram", "record"),
    "counter": ("create_counter", "add"),
    "updowncounter": ("create_up_down_counter", "add"),
}


def test_series_and_labels_are_those_of_the_exporter() -> None:
    """Of every metric of the registry, each measured once with all of its attributes."""
    reader = PrometheusMetricReader()
    provider = MeterProvider([reader], shutdown_on_exit=False)
    meter = provider.get_meter("names")
    for metric in METRICS.values():
        create, measure = CREATE[metric.instrument]
        instrument = getattr(meter, create)(metric.name, metric.unit, metric.description)
        getattr(instrument, measure)(1, {use.attribute: "x" for use in metric.attributes})
    shown = generate_latest(REGISTRY).decode()
    provider.shutdown()

    found: dict[str, set[str]] = {}
    for name, labels in re.findall(r"^(\w+)\{([^}]*)\} ", shown, re.MULTILINE):
        found.setdefault(name, set()).update(re.findall(r'(\w+)="', labels))
    for metric in METRICS.values():
        for sample in samples_of(metric):
            labels = {label for label in found[sample] if not label.startswith("otel_scope_")} - {"le"}
            assert labels == {label_of(use.attribute) for use in metric.attributes}, sample
