"""Runs overview: how many, how long, how they end, what runs now."""

from __future__ import annotations

from dashboards.boards.common import GRAPH, RUN_SPAN, SERVICE, attribute_in_logs, of_runs, quantiles
from dashboards.boards.tables import records, traces
from dashboards.grafana import Dashboard, Panel, Query, Row
from dashboards.series import share
from tracegraph.telemetry.semconv import names
from tracegraph.telemetry.semconv.registry import SPANS

__all__ = ["runs_overview"]

_FAILED = {names.ERROR_TYPE: '!=""'}
_PAUSED = {names.RUN_STATUS: '="interrupted"'}
_STATUS, _GRAPH, _ERROR = names.RUN_STATUS, names.WORKFLOW_NAME, names.ERROR_TYPE


def runs_overview() -> Dashboard:
    """Return the page that an operator opens first."""
    return Dashboard(
        "tracegraph-runs",
        "tracegraph / Runs",
        "How many runs there are, how long they take and how they end. Runs inside runs are left out.",
        (SERVICE, GRAPH),
        (_at_a_glance(), _over_time(), _calls(), _single_runs()),
    )


def _at_a_glance() -> Row:
    ended = of_runs(names.METRIC_WORKFLOW_DURATION)
    active = of_runs(names.METRIC_RUNS_ACTIVE)
    failed = share(ended.where(_FAILED).increase(), ended.increase())
    alarming = ((None, "green"), (0.01, "orange"), (0.1, "red"))
    return Row(
        "At a glance",
        (
            _stat("Ended", ended.increase()),
            _stat("Failed", failed, "percentunit", steps=alarming),
            _stat("Paused", ended.where(_PAUSED).increase(), description="They ended with a question, or at a breakpoint."),
            _stat("Running now", active.current()),
            _stat("Median", ended.quantile(0.5, window="$__range"), "s"),
            _stat("95th percentile", ended.quantile(0.95, window="$__range"), "s"),
        ),
    )


def _stat(title: str, expression: str, unit: str = "short", **rest: object) -> Panel:
    return Panel(title, (Query(expression),), "stat", unit, width=4, height=4, **rest)  # type: ignore[arg-type]


def _over_time() -> Row:
    ended = of_runs(names.METRIC_WORKFLOW_DURATION)
    active = of_runs(names.METRIC_RUNS_ACTIVE)
    errors = ended.where(_FAILED).per_second(_GRAPH, _ERROR)
    return Row(
        "Over time",
        (
            Panel("Ended, by status", (Query(ended.per_second(_STATUS)),), unit="ops", is_stacked=True),
            Panel("Failed, by graph and error", (Query(errors),), unit="ops", is_stacked=True),
            Panel("Duration", quantiles(ended), unit="s", description="Up to the end or the pause. Points lead to traces."),
            Panel("Durations", (Query(ended.buckets(), "{{le}}"),), "heatmap", "s"),
            Panel("95th percentile, by graph", (Query(ended.quantile(0.95, _GRAPH)),), unit="s"),
            Panel("Running now, by graph", (Query(active.current(_GRAPH)),), is_stacked=True),
        ),
    )


def _calls() -> Row:
    models = of_runs(names.METRIC_WORKFLOW_INFERENCE_CALLS)
    tools = of_runs(names.METRIC_WORKFLOW_TOOL_CALLS)
    description = "Of runs that make any, with the calls of the runs inside them. A loop shows here first."
    return Row(
        "Calls of a run",
        (
            Panel("Model calls of a run, 95th percentile", (Query(models.quantile(0.95, _GRAPH)),), description=description),
            Panel("Tool calls of a run, 95th percentile", (Query(tools.quantile(0.95, _GRAPH)),), description=description),
        ),
    )


def _single_runs() -> Row:
    status = attribute_in_logs(_STATUS)
    failures = "|".join(SPANS[names.INVOKE_WORKFLOW].failures)
    return Row(
        "Single runs",
        (
            traces("Failed", f'{{ {RUN_SPAN} && span.{_STATUS} =~ "{failures}" }}'),
            traces("Longer than 10 s", f"{{ {RUN_SPAN} && duration > 10s }}"),
            records("Ends that were no success", f'{status}=~"{failures}|cancelled|abandoned"', width=24),
        ),
    )
