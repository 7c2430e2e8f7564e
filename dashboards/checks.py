"""What has to hold of a dashboard's JSON, whoever wrote it; and all the queries in it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Final

from dashboards.boards.common import SERVICE
from dashboards.grafana import COLUMNS
from dashboards.sources import UIDS, Language
from dashboards.vocabulary import SERIES, unknown_in_logql, unknown_in_promql, unknown_in_traceql

__all__ = ["Asked", "mistakes", "queries_of", "with_choices"]

_LANGUAGES: Final[Mapping[str, Language]] = {uid: language for language, uid in UIDS.items()}
_UNKNOWN: Final = {"promql": unknown_in_promql, "traceql": unknown_in_traceql, "logql": unknown_in_logql}


@dataclass(frozen=True, slots=True)
class Asked:
    """A query, and where it stands."""

    where: str
    language: Language
    text: str


def queries_of(dashboard: Mapping[str, Any]) -> Iterator[Asked]:
    """Yield all queries of panels whose data source is a known one."""
    for panel in dashboard["panels"]:
        for target in panel.get("targets", ()):
            language = _LANGUAGES.get(target["datasource"]["uid"])
            if language is not None:
                where = f"{dashboard['title']} / {panel['title']} / {target['refId']}"
                yield Asked(where, language, target["query"] if language == "traceql" else target["expr"])


def with_choices(query: str, window: str = "5m", range_s: int = 3600) -> str:
    """Return a query as Grafana would ask it with everything chosen.

    >>> (
    ...     with_choices('rate(a{job=~"$service"}[$__rate_interval]) * $__range_s'),
    ...     with_choices('{ name =~ "chat ?${model:regex}" }'),
    ... )
    ('rate(a{job=~".+"}[5m]) * 3600', '{ name =~ "chat ?.*" }')
    """
    ranges = (("$__range_s", str(range_s)), ("$__range", f"{range_s}s"))
    for variable, value in (("$__rate_interval", window), *ranges, ("$service", SERVICE.everything)):
        query = query.replace(variable, value)
    return re.sub(r"\$\{(\w+):regex\}|\$(graph|node|model|tool)\b", ".*", query)


def mistakes(dashboard: Mapping[str, Any]) -> Iterator[str]:
    """Yield what is wrong, in words."""
    panels = dashboard["panels"]
    yield from _layout(panels)
    for panel in panels:
        yield from _sources(panel)
    for asked in queries_of(dashboard):
        if asked.language == "logql" and re.fullmatch(r'\{\w+=~"\.\*"\}.*', with_choices(asked.text)):
            yield f"{asked.where}: Loki refuses to look through everything"
        for word in _UNKNOWN[asked.language](asked.text):
            yield f"{asked.where}: nothing is called {word}"
        if "$" in with_choices(asked.text):
            yield f"{asked.where}: a variable that there is not, in {with_choices(asked.text)}"
    for variable in dashboard["templating"]["list"]:
        yield from _variable(variable)


def _layout(panels: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    ids = [panel["id"] for panel in panels]
    if len(set(ids)) < len(ids):
        yield f"panel ids are not unique: {ids}"
    for panel in panels:
        place = panel["gridPos"]
        if place["x"] < 0 or place["w"] < 1 or place["h"] < 1 or place["x"] + place["w"] > COLUMNS:
            yield f"{panel['title']} does not fit on the grid"
    for one, other in combinations(panels, 2):
        if _overlap(one["gridPos"], other["gridPos"]):
            yield f"{one['title']} and {other['title']} overlap"


def _overlap(a: Mapping[str, int], b: Mapping[str, int]) -> bool:
    return a["x"] < b["x"] + b["w"] and b["x"] < a["x"] + a["w"] and a["y"] < b["y"] + b["h"] and b["y"] < a["y"] + a["h"]


def _sources(panel: Mapping[str, Any]) -> Iterator[str]:
    targets = panel.get("targets", ())
    if panel["type"] != "row" and not targets:
        yield f"{panel['title']} asks nothing"
    if len({target["refId"] for target in targets}) < len(targets):
        yield f"{panel['title']} has two queries of one name"
    for asking in (*targets, *([panel] if targets else [])):
        if asking["datasource"]["uid"] not in _LANGUAGES:
            yield f"{panel['title']} asks the data source {asking['datasource']['uid']}, which is not provisioned"


def _variable(variable: Mapping[str, Any]) -> Iterator[str]:
    query = variable["query"]["query"]
    found = re.fullmatch(r"label_values\((\w+), (\w+)\)", query)
    if found is None or found[2] not in SERIES.get(found[1], ()):
        yield f"the variable {variable['name']} asks for {query}"
