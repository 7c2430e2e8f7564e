"""The data sources of Grafana, and how one leads to the next: spans to logs and metrics, exemplars and log lines to traces."""

from __future__ import annotations

from typing import Any, Final, Literal, TypeAlias

from dashboards.series import Series, label_of
from tracegraph.telemetry.semconv import names

__all__ = ["JAEGER", "LOKI", "PROMETHEUS", "TEMPO", "Language", "UIDS", "provisioning", "reference"]

PROMETHEUS: Final = "tracegraph-prometheus"
TEMPO: Final = "tracegraph-tempo"
LOKI: Final = "tracegraph-loki"
JAEGER: Final = "tracegraph-jaeger"

Language: TypeAlias = Literal["promql", "traceql", "logql"]
UIDS: Final[dict[Language, str]] = {"promql": PROMETHEUS, "traceql": TEMPO, "logql": LOKI}
_TYPES: Final[dict[Language, str]] = {"promql": "prometheus", "traceql": "tempo", "logql": "loki"}

_SPAN_LABELS: Final = (names.WORKFLOW_NAME, names.STEP_NAME, names.REQUEST_MODEL, names.TOOL_NAME)
"""What a span and the metrics of its kind both say."""


def reference(language: Language) -> dict[str, str]:
    """Return how panels name the data source that answers queries in *language*.

    >>> reference("promql")
    {'type': 'prometheus', 'uid': 'tracegraph-prometheus'}
    """
    return {"type": _TYPES[language], "uid": UIDS[language]}


def provisioning() -> dict[str, Any]:
    """Return the file that Grafana reads its data sources from."""
    return {"apiVersion": 1, "prune": True, "datasources": [_prometheus(), _tempo(), _loki(), _jaeger()]}


def _source(name: str, type: str, uid: str, url: str, **settings: Any) -> dict[str, Any]:
    return {"name": name, "type": type, "uid": uid, "access": "proxy", "url": url, "jsonData": settings}


def _prometheus() -> dict[str, Any]:
    found = _source(
        "Prometheus",
        "prometheus",
        PROMETHEUS,
        "http://prometheus:9090",
        # How often programs send. Grafana takes rates over four times this, and over less there would be one value and no rate.
        timeInterval="60s",
        exemplarTraceIdDestinations=[{"name": "trace_id", "datasourceUid": TEMPO}],
    )
    return {**found, "isDefault": True}


def _tempo() -> dict[str, Any]:
    return _source(
        "Tempo",
        "tempo",
        TEMPO,
        "http://tempo:3200",
        tracesToLogsV2=_to_logs(),
        tracesToMetrics=_to_metrics(),
        nodeGraph={"enabled": True},
    )


def _jaeger() -> dict[str, Any]:
    return _source("Jaeger", "jaeger", JAEGER, "http://jaeger:16686", tracesToLogsV2=_to_logs(), tracesToMetrics=_to_metrics())


def _loki() -> dict[str, Any]:
    field = {
        "name": "trace",
        "matcherType": "label",
        "matcherRegex": "trace_id",
        "url": "$${__value.raw}",  # Grafana reads $$ as $ in a provisioning file
        "datasourceUid": TEMPO,
        "urlDisplayLabel": "Open the trace",
    }
    return _source("Loki", "loki", LOKI, "http://loki:3100", derivedFields=[field])


def _to_logs() -> dict[str, Any]:
    # The span's id alone would leave out what its children logged.
    query = '{$${__tags}} | trace_id="$${__trace.traceId}"'
    return {
        "datasourceUid": LOKI,
        "spanStartTimeShift": "-1m",
        "spanEndTimeShift": "1m",
        "tags": [{"key": "service.name", "value": "service_name"}],
        "customQuery": True,
        "query": query,
    }


def _to_metrics() -> dict[str, Any]:
    steps = Series.of(names.METRIC_STEP_DURATION)
    models = Series.of(names.METRIC_OPERATION_DURATION)
    tools = Series.of(names.METRIC_TOOL_DURATION)
    runs = Series.of(names.METRIC_WORKFLOW_DURATION)
    queries = [
        ("Runs like this: p95", runs.quantile(0.95, window="5m")),
        ("Tasks of this node: p95", steps.quantile(0.95, window="5m")),
        ("Calls of this model: p95", models.quantile(0.95, window="5m")),
        ("Calls of this tool: p95", tools.quantile(0.95, window="5m")),
    ]
    return {
        "datasourceUid": PROMETHEUS,
        "spanStartTimeShift": "-30m",
        "spanEndTimeShift": "30m",
        "tags": [{"key": attribute, "value": label_of(attribute)} for attribute in _SPAN_LABELS],
        "queries": [
            {"name": name, "query": expression.replace("_bucket[", "_bucket{$$__tags}[")} for name, expression in queries
        ],
    }
