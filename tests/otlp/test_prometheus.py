"""Prometheus scrapes a program that measures its runs, and answers what it is asked about them."""

from __future__ import annotations

import json
import re
import subprocess
import time
from pathlib import Path
from typing import Any
from urllib.parse import urlencode
from urllib.request import urlopen

import pytest
from scraped import MADE, Running, has_id, labels_of, prometheus_name

from tracegraph.telemetry import semconv
from tracegraph.telemetry.semconv.registry import METRICS

pytestmark = pytest.mark.timeout(180)

SCRAPE_S = 30
PAGE = (Path(__file__).parents[2] / "docs" / "metrics.md").read_text("utf-8")
QUERIES = re.findall(r"\| `([^`]+)` \|$", PAGE.split("## What to look at")[1].split("\n\n")[1], re.MULTILINE)


def ask(server: str, path: str, **parameters: str) -> Any:
    """Return the data of an answer of its API."""
    with urlopen(f"{server}/api/v1/{path}?{urlencode(parameters)}", timeout=10) as answer:
        told = json.load(answer)
    assert told["status"] == "success", told
    return told["data"]


def query(server: str, question: str) -> list[Any]:
    found: list[Any] = ask(server, "query", query=question)["result"]
    return found


@pytest.fixture(scope="module")
def scraped(prometheus: str) -> str:
    """URL of the Prometheus, once it has scraped the program twice: a rate needs two values."""
    deadline = time.monotonic() + SCRAPE_S
    while not query(prometheus, 'sum_over_time(up{job="program"}[1m]) >= 2'):
        assert time.monotonic() < deadline, ask(prometheus, "targets")
        time.sleep(0.1)  # another process scrapes a third
    return prometheus


def test_no_scrape_failed(scraped: str) -> None:
    """Each was up, and understood."""
    (target,) = ask(scraped, "targets")["activeTargets"]

    assert (target["health"], target["lastError"]) == ("up", "")


@pytest.mark.parametrize("name", MADE)
def test_a_metric_can_be_queried(name: str, scraped: str, measured: Running) -> None:
    """Under the name that follows from the registry, with its labels and buckets, and without any id."""
    metric = METRICS[name]
    endings = ("_bucket", "_count", "_sum") if metric.instrument == "histogram" else ("",)
    for ending in endings:
        found = query(scraped, prometheus_name(metric) + ending)
        assert found, ending
        for series in found:
            for value in labels_of(metric, series["metric"]).values():
                assert not has_id(value, measured.ids)

    if metric.buckets:
        bounds = {float(series["metric"]["le"]) for series in query(scraped, f"{prometheus_name(metric)}_bucket")}
        assert bounds == {*metric.buckets, float("inf")}


def test_it_knows_what_the_metrics_are(scraped: str) -> None:
    """Types and help texts, for whoever looks around in its interface."""
    known = ask(scraped, "metadata")

    for metric in MADE.values():
        (entry,) = known[prometheus_name(metric)] if metric.instrument != "counter" else _of_counter(known, metric)
        assert entry["type"] == metric.instrument.replace("updowncounter", "gauge")
        assert entry["help"] == metric.description


def _of_counter(known: Any, metric: Any) -> Any:
    """OpenMetrics has the help of a counter under its name without the ending, Prometheus's own format with it."""
    name = prometheus_name(metric)
    return known.get(name) or known[name.removesuffix("_total")]


def test_numbers_are_those_of_the_runs(scraped: str) -> None:
    """Sums and quantiles that the program decides."""

    def value(question: str) -> float:
        (found,) = query(scraped, question)
        return float(found["value"][1])

    assert value("sum(tracegraph_task_retries_total)") == 2
    assert value('sum(tracegraph_runs_active{tracegraph_nested=""})') == 0
    tokens = prometheus_name(METRICS[semconv.METRIC_OPERATION_INPUT_TOKENS])
    assert value(f"sum({tokens}_sum) / sum({tokens}_count)") == 50
    # Of a bucket from 16 to 64, since each call has 50.
    assert 16 < value(f"histogram_quantile(0.5, sum by (le) ({tokens}_bucket))") <= 64


@pytest.mark.parametrize("question", QUERIES)
def test_queries_of_the_page_have_an_answer(question: str, scraped: str) -> None:
    """Each of them, from what one program did."""
    assert query(scraped, question), question


def test_there_are_no_exemplars_yet(scraped: str) -> None:
    """Prometheus would keep them. The exporter shows none; if this fails, the page on metrics has news to tell."""
    now = time.time()
    window = {"start": str(now - 600), "end": str(now + 60)}

    assert ask(scraped, "query_exemplars", query='{__name__=~"gen_ai.+"}', **window) == []
    assert "The Prometheus exporter does not, yet." in PAGE


def test_promtool_has_nothing_to_say_against_it(prometheus_command: Path, measured: Running) -> None:
    """Its linter: names, units, help texts."""
    with urlopen(measured.url, timeout=10) as answer:
        text = answer.read()

    done = subprocess.run(
        [prometheus_command.with_name("promtool"), "check", "metrics"], input=text, capture_output=True, timeout=60, check=False
    )

    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
