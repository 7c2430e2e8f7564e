"""Latency and errors, by graph, node, model and tool."""

from __future__ import annotations

from dashboards.boards.common import GRAPH, MODEL, NODE, SERVICE, TOOL, chosen, of_runs
from dashboards.boards.tables import traces
from dashboards.grafana import Dashboard, Panel, Query, Row
from dashboards.series import Series, share
from tracegraph.telemetry.semconv import names

__all__ = ["latency_and_errors"]

_FAILED = {names.ERROR_TYPE: '!=""'}
_GRAPH, _NODE, _MODEL, _TOOL, _ERROR = (
    names.WORKFLOW_NAME,
    names.STEP_NAME,
    names.REQUEST_MODEL,
    names.TOOL_NAME,
    names.ERROR_TYPE,
)


def latency_and_errors() -> Dashboard:
    """Return the page that says which part is slow or broken."""
    return Dashboard(
        "tracegraph-latency",
        "tracegraph / Latency and errors",
        "What is slow and what fails: graphs, nodes, models, tools.",
        (SERVICE, GRAPH, NODE, MODEL, TOOL),
        (
            _row("Graphs", of_runs(names.METRIC_WORKFLOW_DURATION), _GRAPH),
            _row("Nodes", chosen(names.METRIC_STEP_DURATION, _NODE), _NODE),
            _scheduling(),
            _row("Models and retrievers", chosen(names.METRIC_OPERATION_DURATION, _NODE, _MODEL), _MODEL),
            _streaming(),
            _row("Tools", chosen(names.METRIC_TOOL_DURATION, _NODE, _TOOL), _TOOL),
            _single_spans(),
        ),
    )


def _row(title: str, durations: Series, by: str) -> Row:
    failed = durations.where(_FAILED)
    errors = share(failed.per_second(by), durations.per_second(by))
    busy = durations.total(by)
    return Row(
        title,
        (
            Panel("Median", (Query(durations.quantile(0.5, by)),), unit="s", width=8),
            Panel("95th percentile", (Query(durations.quantile(0.95, by), has_exemplars=True),), unit="s", width=8),
            Panel("How many", (Query(durations.per_second(by)),), unit="ops", width=8),
            Panel("Share that failed", (Query(errors),), unit="percentunit", width=8),
            Panel("Errors", (Query(failed.per_second(by, _ERROR)),), unit="ops", width=8, is_stacked=True),
            Panel(
                "Busy at once",
                (Query(busy),),
                width=8,
                is_stacked=True,
                description="Seconds spent in a second: how many of them are under way at once, on average.",
            ),
        ),
    )


def _scheduling() -> Row:
    retries = chosen(names.METRIC_TASK_RETRIES, _NODE)
    lookups = chosen(names.METRIC_CACHE_LOOKUPS, _NODE)
    hits = share(lookups.where({names.CACHE_HIT: '="true"'}).per_second(_NODE), lookups.per_second(_NODE))
    supersteps = chosen(names.METRIC_SUPERSTEP_DURATION)
    return Row(
        "Retries, cache, supersteps",
        (
            Panel("Retries", (Query(retries.per_second(_NODE, _ERROR)),), unit="ops", width=8, is_stacked=True),
            Panel("Served from the cache", (Query(hits),), unit="percentunit", width=8),
            Panel("Supersteps, 95th percentile", (Query(supersteps.quantile(0.95, _GRAPH)),), unit="s", width=8),
        ),
    )


def _streaming() -> Row:
    first = chosen(names.METRIC_TIME_TO_FIRST_CHUNK, _NODE, _MODEL)
    each = chosen(names.METRIC_TIME_PER_OUTPUT_CHUNK, _NODE, _MODEL)
    return Row(
        "Streamed answers",
        (
            Panel("Time to the first chunk, 95th percentile", (Query(first.quantile(0.95, _MODEL)),), unit="s"),
            Panel("Time between chunks, 95th percentile", (Query(each.quantile(0.95, _MODEL)),), unit="s"),
        ),
    )


def _single_spans() -> Row:
    node = f'name =~ "{names.RUN_STEP} ${{node:regex}}"'
    model = f'name =~ "{names.CHAT} ?${{model:regex}}"'
    tool = f'name =~ "{names.EXECUTE_TOOL} ${{tool:regex}}"'
    return Row(
        "Single runs",
        (
            traces("Nodes that failed", f"{{ {node} && status = error }}", width=8),
            traces(
                "Nodes that were tried again", f'{{ {node} }} > {{ name = "{names.ATTEMPT_SPAN}" && status = error }}', width=8
            ),
            traces(
                "Fan-outs of more than 10 tasks",
                f'{{ name = "{names.SUPERSTEP_SPAN}" && span.{names.SUPERSTEP_TASKS} > 10 }}',
                width=8,
            ),
            traces("Slow model calls", f"{{ {model} && duration > 10s }}", width=8),
            traces("Model calls that failed", f"{{ {model} && status = error }}", width=8),
            traces("Tools that failed", f"{{ {tool} && status = error }}", width=8),
        ),
    )
