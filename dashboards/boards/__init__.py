"""The dashboards."""

from __future__ import annotations

from dashboards.boards.checkpoints import checkpoint_health
from dashboards.boards.interrupts import interrupts_waiting
from dashboards.boards.latency import latency_and_errors
from dashboards.boards.runs import runs_overview
from dashboards.boards.telemetry import telemetry_health
from dashboards.boards.tokens import tokens_and_cost
from dashboards.grafana import Dashboard

__all__ = ["all_dashboards"]


def all_dashboards() -> tuple[Dashboard, ...]:
    """Return each dashboard, as the registry of this version fills it."""
    return (
        runs_overview(),
        latency_and_errors(),
        tokens_and_cost(),
        interrupts_waiting(),
        checkpoint_health(),
        telemetry_health(),
    )
