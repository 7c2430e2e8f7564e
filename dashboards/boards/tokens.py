"""Tokens and cost: who spends how many, on what, and what that costs at the prices of ``rules/prices.yaml``."""

from __future__ import annotations

from dashboards.boards.common import GRAPH, MODEL, NODE, SERVICE, chosen, of_runs
from dashboards.grafana import Dashboard, Panel, Query, Row
from dashboards.prices import PRICED, cost, unpriced
from dashboards.series import Series, label_of
from tracegraph.telemetry.semconv import names

__all__ = ["tokens_and_cost"]

_GRAPH, _NODE, _MODEL = names.WORKFLOW_NAME, names.STEP_NAME, names.REQUEST_MODEL
_NAMES = {label_of(_GRAPH): "Graph", label_of(_NODE): "Node", label_of(_MODEL): "Model"}


def tokens_and_cost() -> Dashboard:
    """Return the page that says who burned the tokens."""
    return Dashboard(
        "tracegraph-tokens",
        "tracegraph / Tokens and cost",
        "Tokens as providers report them, and their cost by the price list in Prometheus' rules.",
        (SERVICE, GRAPH, NODE, MODEL),
        (_spenders(), _cost(), _calls()),
    )


def _used(metric: str) -> Series:
    return chosen(metric, _NODE, _MODEL)


def _spenders() -> Row:
    into = _used(names.METRIC_USAGE_INPUT_TOKENS)
    out = _used(names.METRIC_USAGE_OUTPUT_TOKENS)
    table = (Query(into.increase(_GRAPH, _NODE, _MODEL)), Query(out.increase(_GRAPH, _NODE, _MODEL)))
    return Row(
        "Tokens",
        (
            Panel("Input tokens, by model", (Query(into.per_second(_MODEL)),), unit="short", width=8, is_stacked=True),
            Panel("Output tokens, by model", (Query(out.per_second(_MODEL)),), unit="short", width=8, is_stacked=True),
            Panel(
                "All tokens, by node", (Query(f"{into.per_second(_NODE)} + {out.per_second(_NODE)}"),), width=8, is_stacked=True
            ),
            Panel(
                "Who spent them",
                table,
                "table",
                width=24,
                names=_NAMES | {"Value #A": "Input tokens", "Value #B": "Output tokens"},
            ),
        ),
    )


def _cost() -> Row:
    parts = {part: _used(metric) for part, metric in PRICED.items()}
    runs = of_runs(names.METRIC_WORKFLOW_DURATION)
    whole = cost(parts, window="$__range")
    return Row(
        "Cost",
        (
            Panel("In this time", (Query(f"{whole} * $__range_s"),), "stat", "currencyUSD", width=6, height=6),
            Panel(
                "Of a run, on average",
                (Query(f"{whole} / {runs.per_second(window='$__range')}"),),
                "stat",
                "currencyUSD",
                width=6,
                height=6,
            ),
            Panel(
                "Tokens of models without a price",
                (Query(unpriced(parts["input"])),),
                "table",
                width=12,
                height=6,
                description="Their cost is missing from this page. Add them to rules/prices.yaml.",
                names=_NAMES | {"Value": "Input tokens"},
            ),
            Panel("An hour, by model", (Query(f"{cost(parts, _MODEL)} * 3600"),), unit="currencyUSD", width=8, is_stacked=True),
            Panel("An hour, by graph", (Query(f"{cost(parts, _GRAPH)} * 3600"),), unit="currencyUSD", width=8, is_stacked=True),
            Panel("An hour, by node", (Query(f"{cost(parts, _NODE)} * 3600"),), unit="currencyUSD", width=8, is_stacked=True),
        ),
    )


def _calls() -> Row:
    into = _used(names.METRIC_USAGE_INPUT_TOKENS).per_second(_MODEL)
    out = _used(names.METRIC_USAGE_OUTPUT_TOKENS).per_second(_MODEL)
    cached = _used(names.METRIC_USAGE_CACHE_READ_INPUT_TOKENS).per_second(_MODEL)
    reasoning = _used(names.METRIC_USAGE_REASONING_OUTPUT_TOKENS).per_second(_MODEL)
    prompts = _used(names.METRIC_OPERATION_INPUT_TOKENS).quantile(0.95, _NODE)
    answers = _used(names.METRIC_OPERATION_OUTPUT_TOKENS).quantile(0.95, _NODE)
    growing = "A prompt that grows from turn to turn shows here."
    return Row(
        "Calls",
        (
            Panel("Input tokens of a call, 95th percentile, by node", (Query(prompts),), description=growing),
            Panel("Output tokens of a call, 95th percentile, by node", (Query(answers),)),
            Panel("Input read from the provider's cache", (Query(f"{cached} / {into}"),), unit="percentunit"),
            Panel("Output spent on reasoning", (Query(f"{reasoning} / {out}"),), unit="percentunit"),
        ),
    )
