"""What all dashboards share: the choices at their top, and series narrowed down to what was chosen."""

from __future__ import annotations

from typing import Final

from dashboards.grafana import Query, Variable
from dashboards.series import Series, label_of, name_of
from tracegraph.telemetry.semconv import names
from tracegraph.telemetry.semconv.registry import ATTRIBUTES, METRICS

__all__ = [
    "GRAPH",
    "MODEL",
    "NODE",
    "RUN_SPAN",
    "SERVICE",
    "TOOL",
    "attribute_in_logs",
    "chosen",
    "find",
    "quantiles",
    "of_runs",
]

_CHOICES: Final = {
    names.WORKFLOW_NAME: "graph",
    names.STEP_NAME: "node",
    names.REQUEST_MODEL: "model",
    names.TOOL_NAME: "tool",
}


def _variable(name: str, title: str, metric: str, label: str, everything: str = ".*") -> Variable:
    series = name_of(METRICS[metric]) + ("_count" if METRICS[metric].instrument == "histogram" else "")
    return Variable(name, title, series, label, everything)


SERVICE: Final = _variable("service", "Service", names.METRIC_WORKFLOW_DURATION, "job", ".+")
"""Loki refuses a query all of whose matchers match nothing as well, as ``.*`` does; and each program has a name."""

GRAPH: Final = _variable("graph", "Graph", names.METRIC_WORKFLOW_DURATION, label_of(names.WORKFLOW_NAME))
NODE: Final = _variable("node", "Node", names.METRIC_STEP_DURATION, label_of(names.STEP_NAME))
MODEL: Final = _variable("model", "Model", names.METRIC_OPERATION_DURATION, label_of(names.REQUEST_MODEL))
TOOL: Final = _variable("tool", "Tool", names.METRIC_TOOL_DURATION, label_of(names.TOOL_NAME))

RUN_SPAN: Final = f'name =~ "{names.INVOKE_WORKFLOW} ?${{graph:regex}}"'
"""Spans of the chosen graphs' runs in TraceQL; the name of one without a name is the operation alone."""


def chosen(metric: str, *by: str) -> Series:
    """Return a metric of the chosen services, of the chosen graphs where it knows any, and of what else is chosen in *by*.

    >>> chosen("tracegraph.task.retries").per_second()
    'sum(rate(tracegraph_task_retries_total{job=~"$service", gen_ai_workflow_name=~"$graph"}[$__rate_interval]))'
    """
    series = Series.of(metric).where({"job": '=~"$service"'})
    narrowed = [attribute for attribute in (names.WORKFLOW_NAME, *by) if series.has(attribute)]
    return series.where({attribute: f'=~"${_CHOICES[attribute]}"' for attribute in narrowed})


def of_runs(metric: str) -> Series:
    """Return a metric of the runs that callers asked for, without those inside them."""
    return chosen(metric).where({names.NESTED: '=""'})


def find(metric: str) -> Series | None:
    """Return a metric of the chosen services, or None if the registry has none of this name."""
    return chosen(metric) if metric in METRICS else None


def quantiles(series: Series, *by: str) -> tuple[Query, ...]:
    """Return the median, the 95th and the 99th percentile, with exemplars on the last."""
    group = " ".join(f"{{{{{label_of(attribute)}}}}}" for attribute in by)
    return tuple(
        Query(series.quantile(q, *by), f"p{q * 100:g} {group}".strip(), has_exemplars=q == 0.99) for q in (0.5, 0.95, 0.99)
    )


def attribute_in_logs(attribute: str) -> str:
    """Return what Loki calls an attribute of a log record; KeyError if the registry has none of this name."""
    return label_of(ATTRIBUTES[attribute].name)
