"""Telemetry health: does what these dashboards show miss anything."""

from __future__ import annotations

from collections.abc import Iterator

from dashboards import foreign
from dashboards.boards.common import GRAPH, RUN_SPAN, SERVICE, attribute_in_logs, find
from dashboards.boards.tables import records, traces
from dashboards.grafana import Dashboard, Panel, Query, Row
from dashboards.series import per
from tracegraph.telemetry.semconv import names

__all__ = ["LOST", "UNREAD", "telemetry_health"]

LOST = "tracegraph.telemetry.dropped"
"""What exporters lost. Panels about it are there once the registry has it."""

UNREAD = "tracegraph.stream.dropped_parts"
"""What slow readers of streams lost; the same holds for it."""

_ALARM = ((None, "green"), (1, "red"))


def telemetry_health() -> Dashboard:
    """Return the page that says how far the others can be trusted."""
    return Dashboard(
        "tracegraph-telemetry",
        "tracegraph / Telemetry health",
        "What was lost on the way here: in the process, in the collector, in a trace that was too large.",
        (SERVICE, GRAPH),
        (
            *_rows("In tracegraph", _lost()),
            Row("In the SDK", tuple(_sdk())),
            Row("In the collector", tuple(_collector())),
            _single_runs(),
        ),
    )


def _rows(title: str, panels: Iterator[Panel]) -> Iterator[Row]:
    found = tuple(panels)
    if found:
        yield Row(title, found)


def _lost() -> Iterator[Panel]:
    lost = find(LOST)
    if lost is not None:
        by = tuple(use.attribute for use in lost.metric.attributes)
        yield Panel("Spans and log records lost", (Query(lost.increase()),), "stat", width=6, steps=_ALARM)
        yield Panel("Lost, by sink and reason", (Query(lost.per_second(*by)),), unit="ops", width=18, is_stacked=True)
    unread = find(UNREAD)
    if unread is not None:
        note = "Their buffer drops the oldest. It is the reader that is slow, and telemetry misses nothing."
        yield Panel(
            "Parts that readers of streams lost",
            (Query(unread.per_second(names.WORKFLOW_NAME)),),
            unit="ops",
            width=24,
            description=note,
        )


def _sdk() -> Iterator[Panel]:
    note = "OpenTelemetry's SDK counts this with OTEL_PYTHON_SDK_INTERNAL_METRICS_ENABLED=true."
    job, component, error = '{job=~"$service"}', "otel_component_name", "error_type"
    failed = '{job=~"$service", error_type!=""}'
    waiting = per(foreign.SDK_QUEUE_SIZE + job, ("job", component))
    done = per(f"rate({foreign.SDK_PROCESSED}{failed}[$__rate_interval])", (component, error))
    sent = per(f"rate({foreign.SDK_EXPORTED}{failed}[$__rate_interval])", (component, error))
    yield Panel("Spans in the queue", (Query(waiting),), width=8, description=note)
    yield Panel("Spans dropped before export", (Query(done),), unit="ops", width=8, is_stacked=True, description=note)
    yield Panel("Spans whose export failed", (Query(sent),), unit="ops", width=8, is_stacked=True, description=note)


def _collector() -> Iterator[Panel]:
    refused = _collected(foreign.COLLECTOR_REFUSED, "receiver")
    failed = _collected(foreign.COLLECTOR_SEND_FAILED, "exporter")
    full = _collected(foreign.COLLECTOR_ENQUEUE_FAILED, "exporter")
    queued = f"sum by (exporter) ({foreign.COLLECTOR_QUEUE_SIZE}) / sum by (exporter) ({foreign.COLLECTOR_QUEUE_CAPACITY})"
    yield Panel("Up", (Query('min by (job) (up{job="otel-collector"})'),), "stat", width=4, steps=((None, "red"), (1, "green")))
    yield Panel("Queues, how full", (Query(queued),), unit="percentunit", width=10)
    yield Panel("Spans refused", (Query(refused),), unit="ops", width=10)
    yield Panel("Spans that were not sent on", (Query(failed),), unit="ops", is_stacked=True)
    yield Panel("Spans that found the queue full", (Query(full),), unit="ops", is_stacked=True)


def _collected(name: str, label: str) -> str:
    # Collectors write the names of counters with and without an ending, depending on their version and configuration.
    return per(f'rate({{__name__=~"{name}(_total)?"}}[$__rate_interval])', (label,))


def _single_runs() -> Row:
    collapsed = names.SUPERSTEPS_COLLAPSED
    lost, failed = attribute_in_logs(names.TELEMETRY_LOST), attribute_in_logs(names.OBSERVERS_FAILED)
    return Row(
        "Single runs",
        (
            traces("Too large to show all supersteps", f"{{ {RUN_SPAN} && span.{collapsed} > 0 }}"),
            traces("Left open by a process that died", f"{{ span.{names.SPAN_ABANDONED} = true }}"),
            records("Runs that lost telemetry", f'{lost}!=""'),
            records("Runs whose observers failed", f'{failed}!=""'),
        ),
    )
