"""What a dashboard is made of, and its JSON: rows of panels from left to right, each with its queries."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias

from dashboards.sources import Language, reference

__all__ = ["COLUMNS", "Dashboard", "Panel", "PanelKind", "Query", "Row", "Variable", "json_of"]

PanelKind: TypeAlias = Literal["timeseries", "stat", "table", "heatmap", "logs"]

COLUMNS: Final = 24
"""How wide Grafana's grid is."""

SCHEMA_VERSION: Final = 42
TAG: Final = "tracegraph"


@dataclass(frozen=True, slots=True)
class Query:
    """One question to a data source."""

    text: str
    legend: str = ""
    language: Language = "promql"
    has_exemplars: bool = False
    """Points that lead to the trace of one measurement, where the way to Prometheus keeps them (OTLP does)."""


@dataclass(frozen=True, slots=True)
class Panel:
    """A picture of the answers. ``unit`` is one of Grafana's: ``s``, ``percentunit``, ``short``, ``bytes``, ``currencyUSD``."""

    title: str
    queries: tuple[Query, ...]
    kind: PanelKind = "timeseries"
    unit: str = "short"
    width: int = 12
    height: int = 8
    description: str = ""
    is_stacked: bool = False
    steps: tuple[tuple[float | None, str], ...] = ((None, "green"),)
    """Colours from a value on; the first is the base."""
    names: Mapping[str, str] = field(default_factory=dict)
    """What columns of a table are called."""


@dataclass(frozen=True, slots=True)
class Row:
    """Panels under a heading; what does not fit beside the others goes below them."""

    title: str
    panels: tuple[Panel, ...]


@dataclass(frozen=True, slots=True)
class Variable:
    """A choice at the top of the dashboard: all values that *label* has on *metric*."""

    name: str
    title: str
    metric: str
    label: str
    everything: str = ".*"
    """What stands for all values. What has no such label is shown as well, unless this says otherwise."""

    @property
    def query(self) -> str:
        """The question that Prometheus' data source of Grafana answers with the values."""
        return f"label_values({self.metric}, {self.label})"


@dataclass(frozen=True, slots=True)
class Dashboard:
    """One page."""

    uid: str
    title: str
    description: str
    variables: tuple[Variable, ...]
    rows: tuple[Row, ...]


def json_of(dashboard: Dashboard) -> dict[str, Any]:
    """Return the dashboard as Grafana stores it, with ids and places given in reading order."""
    return {
        "uid": dashboard.uid,
        "title": dashboard.title,
        "description": dashboard.description,
        "tags": [TAG],
        "editable": True,
        "graphTooltip": 1,
        "refresh": "30s",
        "schemaVersion": SCHEMA_VERSION,
        "time": {"from": "now-1h", "to": "now"},
        "timezone": "browser",
        "links": [_links()],
        "templating": {"list": [_variable(variable) for variable in dashboard.variables]},
        "annotations": {"list": []},
        "panels": list(_panels(dashboard.rows)),
    }


def _links() -> dict[str, Any]:
    return {
        "type": "dashboards",
        "title": "tracegraph",
        "tags": [TAG],
        "asDropdown": True,
        "includeVars": True,
        "keepTime": True,
        "targetBlank": False,
        "icon": "external link",
        "tooltip": "",
        "url": "",
    }


def _variable(variable: Variable) -> dict[str, Any]:
    return {
        "type": "query",
        "name": variable.name,
        "label": variable.title,
        "datasource": reference("promql"),
        "query": {"query": variable.query, "refId": variable.name},
        "refresh": 2,
        "sort": 1,
        "multi": True,
        "includeAll": True,
        "allValue": variable.everything,
        "current": {"selected": True, "text": ["All"], "value": ["$__all"]},
    }


def _panels(rows: tuple[Row, ...]) -> Iterator[dict[str, Any]]:
    number = 0
    top = 0
    for row in rows:
        number += 1
        place = {"h": 1, "w": COLUMNS, "x": 0, "y": top}
        yield {"id": number, "type": "row", "title": row.title, "collapsed": False, "gridPos": place, "panels": []}
        top += 1
        left = tallest = 0
        for panel in row.panels:
            if left + panel.width > COLUMNS:
                top, left, tallest = top + tallest, 0, 0
            number += 1
            yield _panel(number, panel, {"h": panel.height, "w": panel.width, "x": left, "y": top})
            left, tallest = left + panel.width, max(tallest, panel.height)
        top += tallest


def _panel(number: int, panel: Panel, place: dict[str, int]) -> dict[str, Any]:
    found: dict[str, Any] = {
        "id": number,
        "type": panel.kind,
        "title": panel.title,
        "description": panel.description,
        "datasource": reference(panel.queries[0].language),
        "gridPos": place,
        "targets": [_target(query, chr(ord("A") + at), panel.kind) for at, query in enumerate(panel.queries)],
        "fieldConfig": {"defaults": _field(panel), "overrides": []},
        "options": _OPTIONS[panel.kind],
    }
    if panel.kind == "table" and panel.queries[0].language == "promql":
        found["transformations"] = _columns(panel)
    return found


def _field(panel: Panel) -> dict[str, Any]:
    steps = [{"value": value, "color": colour} for value, colour in panel.steps]
    defaults: dict[str, Any] = {"unit": panel.unit, "thresholds": {"mode": "absolute", "steps": steps}}
    if panel.kind == "timeseries":
        mode = "normal" if panel.is_stacked else "none"
        defaults["custom"] = {"fillOpacity": 15, "showPoints": "never", "stacking": {"group": "A", "mode": mode}}
        defaults["color"] = {"mode": "palette-classic"}
    elif panel.kind == "stat":
        defaults["color"] = {"mode": "thresholds"}
    return defaults


def _target(query: Query, ref: str, kind: PanelKind) -> dict[str, Any]:
    target: dict[str, Any] = {"refId": ref, "datasource": reference(query.language)}
    if query.language == "traceql":
        return {**target, "query": query.text, "queryType": "traceql", "tableType": "traces", "limit": 20, "spss": 3}
    if query.language == "logql":
        return {**target, "expr": query.text, "queryType": "range", "maxLines": 100}
    is_instant = kind in {"stat", "table"}
    target |= {"expr": query.text, "legendFormat": query.legend or "__auto", "instant": is_instant, "range": not is_instant}
    if kind in {"table", "heatmap"}:
        target["format"] = kind
    if query.has_exemplars:
        target["exemplar"] = True
    return target


def _columns(panel: Panel) -> list[dict[str, Any]]:
    merged = [{"id": "merge", "options": {}}] if len(panel.queries) > 1 else []
    return [*merged, {"id": "organize", "options": {"excludeByName": {"Time": True}, "renameByName": dict(panel.names)}}]


_REDUCED: Final = {"calcs": ["lastNotNull"], "fields": "", "values": False}
_OPTIONS: Final[dict[PanelKind, dict[str, Any]]] = {
    "timeseries": {
        "legend": {"calcs": ["mean", "lastNotNull"], "displayMode": "table", "placement": "bottom", "showLegend": True},
        "tooltip": {"mode": "multi", "sort": "desc"},
    },
    "stat": {"colorMode": "value", "graphMode": "none", "justifyMode": "auto", "textMode": "auto", "reduceOptions": _REDUCED},
    "table": {"showHeader": True, "cellHeight": "sm", "sortBy": []},
    "heatmap": {
        "calculate": False,
        "color": {"mode": "scheme", "scheme": "Oranges"},
        "yAxis": {"unit": "s"},
        "legend": {"show": True},
    },
    "logs": {
        "showTime": True,
        "wrapLogMessage": True,
        "enableLogDetails": True,
        "sortOrder": "Descending",
        "dedupStrategy": "none",
    },
}
