"""Alerts, and for each the series on which it must and must not fire; `promtool test rules` holds them against each other."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from dashboards.series import Series

__all__ = ["Alert", "Case", "rules_of", "share_above", "tests_of"]

_EVERY: Final = "1m"


@dataclass(frozen=True, slots=True)
class Case:
    """What an alert does after half an hour of these series: one value a minute, in promtool's notation."""

    series: Mapping[str, str]
    fires: tuple[Mapping[str, str], ...] = ()
    """The labels of each that fires, beside those of the alert itself."""
    at: str = "30m"


@dataclass(frozen=True, slots=True)
class Alert:
    """When somebody has to look, and where."""

    name: str
    expression: str
    summary: str
    """May name labels, as ``{{ $labels.job }}``."""
    dashboard: str
    cases: tuple[Case, ...]
    severity: Literal["warning", "critical"] = "warning"
    lasting: str = "5m"


def rules_of(alerts: Sequence[Alert]) -> dict[str, Any]:
    """Return Prometheus' file of rules."""
    rules = [
        {
            "alert": alert.name,
            "expr": alert.expression,
            "for": alert.lasting,
            "labels": {"severity": alert.severity},
            "annotations": {"summary": alert.summary, "dashboard": f"/d/{alert.dashboard}"},
        }
        for alert in alerts
    ]
    return {"groups": [{"name": "tracegraph", "rules": rules}]}


def tests_of(alerts: Sequence[Alert], rules: str) -> dict[str, Any]:
    """Return promtool's file of unit tests for the rules in the file of this name."""
    tests = [_test(alert, case) for alert in alerts for case in alert.cases]
    return {"rule_files": [rules], "evaluation_interval": _EVERY, "tests": tests}


def _test(alert: Alert, case: Case) -> dict[str, Any]:
    return {
        "name": f"{alert.name} {'fires' if case.fires else 'is silent'}",
        "interval": _EVERY,
        "input_series": [{"series": series, "values": values} for series, values in case.series.items()],
        "alert_rule_test": [{"eval_time": case.at, "alertname": alert.name, "exp_alerts": list(_fired(alert, case))}],
    }


def _fired(alert: Alert, case: Case) -> Iterator[dict[str, Any]]:
    for labels in case.fires:
        yield {
            "exp_labels": {"severity": alert.severity, **labels},
            "exp_annotations": {"summary": _filled(alert.summary, labels), "dashboard": f"/d/{alert.dashboard}"},
        }


def _filled(summary: str, labels: Mapping[str, str]) -> str:
    return re.sub(r"\{\{ \$labels\.(\w+) \}\}", lambda found: labels.get(found[1], ""), summary)


def share_above(part: Series, whole: Series, limit: float, *by: str, at_least: int, window: str = "10m") -> str:
    """Return the PromQL for where *part* is more than *limit* of *whole*, which is at least that many in *window*.

    >>> runs = Series.of("tracegraph.interrupts")
    >>> share_above(runs, runs, 0.5, at_least=5).endswith("> 0.5 and sum(increase(tracegraph_interrupts_total[10m])) >= 5")
    True
    """
    ratio = f"{part.per_second(*by, window=window)} / {whole.per_second(*by, window=window)}"
    return f"{ratio} > {limit:g} and {whole.increase(*by, window=window)} >= {at_least}"
