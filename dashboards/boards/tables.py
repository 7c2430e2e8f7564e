"""Panels that list single runs, calls and records, out of Tempo and Loki."""

from __future__ import annotations

from typing import Final

from dashboards.grafana import Panel, Query

__all__ = ["OUR_RECORDS", "records", "traces"]

OUR_RECORDS: Final = '{service_name=~"$service"} | scope_name="tracegraph"'
"""LogQL: the log records of runs' lives, without the program's own lines."""


def traces(title: str, query: str, description: str = "", width: int = 12) -> Panel:
    """Return a table of the latest traces with such spans."""
    return Panel(title, (Query(query, language="traceql"),), "table", width=width, description=description)


def records(title: str, condition: str, description: str = "", width: int = 12) -> Panel:
    """Return log records that meet a condition on their attributes."""
    return Panel(title, (Query(f"{OUR_RECORDS} | {condition}", language="logql"),), "logs", width=width, description=description)
