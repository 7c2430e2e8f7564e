"""The page on metrics names every instrument, and asks Prometheus for time series that there are."""

from __future__ import annotations

import re
from pathlib import Path

from opentelemetry.exporter.prometheus import PrometheusMetricReader
from opentelemetry.metrics import Counter, Histogram, UpDownCounter
from opentelemetry.sdk.metrics import MeterProvider
from prometheus_client import REGISTRY, generate_latest

from tracegraph.telemetry import semconv
from tracegraph.telemetry.instruments import Instruments
from tracegraph.telemetry.losses import BatchCount
from tracegraph.telemetry.tallies import Tally

PAGE = (Path(__file__).parents[2] / "docs" / "metrics.md").read_text("utf-8")
LABELS = {value.replace(".", "_") for value in vars(semconv).values() if isinstance(value, str)}


def test_every_instrument_is_on_the_page() -> None:
    """And nothing that is none: the first column of the table of instruments is the list of them."""
    table = PAGE.split("## What there is")[1].split("\n\n")[2]
    cells = [row.split("|")[1] for row in table.splitlines()[2:]]
    listed = []
    for cell in cells:
        first, *others = re.findall(r"`([^`]+)`", cell)
        listed += [first, *(first.rsplit(".", 1)[0] + other for other in others)]

    assert sorted(listed) == sorted(value for key, value in vars(semconv).items() if key.startswith("METRIC_"))


def test_queries_ask_for_series_that_there_are() -> None:
    """By the names and labels that the standard exporter gives them."""
    reader = PrometheusMetricReader()
    provider = MeterProvider([reader], shutdown_on_exit=False)
    instruments = Instruments(provider.get_meter("tracegraph"))
    for found in vars(instruments).values():
        for instrument in found.values() if isinstance(found, dict) else [found]:
            if isinstance(instrument, (Counter, UpDownCounter)):
                instrument.add(1)
            elif isinstance(instrument, Histogram):
                instrument.record(1)
            elif isinstance(instrument, Tally):
                instrument.add(1, {})
    count = BatchCount(1, "traces", "otlp")
    series = set(re.findall(r"^(\w+)", generate_latest(REGISTRY).decode(), re.MULTILINE))
    provider.shutdown()
    count.close()

    queries = re.findall(r"\| `([^`]+)` \|$", PAGE.split("## What to look at")[1].split("\n\n")[1], re.MULTILINE)
    assert len(queries) == 10
    for query in queries:
        (name,) = re.findall(r"(?:gen_ai|tracegraph)_\w+(?=\[|\{|\)$)", query)
        assert name in series, query
        asked = set(re.findall(r"(?:gen_ai|tracegraph)_\w+|error_type", query)) - {name}
        assert asked <= LABELS, query
