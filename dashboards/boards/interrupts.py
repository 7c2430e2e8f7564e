"""Interrupts: who asks people, how long they wait, what is still open."""

from __future__ import annotations

from collections.abc import Iterator

from dashboards.boards.common import GRAPH, RUN_SPAN, SERVICE, attribute_in_logs, chosen, find, of_runs
from dashboards.boards.tables import records, traces
from dashboards.grafana import Dashboard, Panel, Query, Row
from dashboards.series import share
from tracegraph.telemetry.semconv import names

__all__ = ["WAIT", "interrupts_waiting"]

WAIT = "tracegraph.interrupt.wait"
"""How long a question waited. Panels about it are there once the registry has it."""

_GRAPH, _NODE, _REASON = names.WORKFLOW_NAME, names.STEP_NAME, names.INTERRUPT_REASON


def interrupts_waiting() -> Dashboard:
    """Return the page about runs that wait for people."""
    return Dashboard(
        "tracegraph-interrupts",
        "tracegraph / Interrupts",
        "Questions to people and breakpoints. What waits right now is in the threads' state: see `tracegraph threads`.",
        (SERVICE, GRAPH),
        (Row("Questions", tuple(_questions())), *_answers(), _single_runs()),
    )


def _questions() -> Iterator[Panel]:
    asked = chosen(names.METRIC_INTERRUPTS)
    ended = of_runs(names.METRIC_WORKFLOW_DURATION)
    paused = share(ended.where({names.RUN_STATUS: '="interrupted"'}).per_second(_GRAPH), ended.per_second(_GRAPH))
    yield Panel("Asked", (Query(asked.increase()),), "stat", width=4, height=8)
    yield Panel("Asked, by node", (Query(asked.per_second(_NODE)),), unit="ops", width=10, is_stacked=True)
    yield Panel("Asked, by reason", (Query(asked.per_second(_REASON)),), unit="ops", width=10, is_stacked=True)
    yield Panel("Share of runs that end with a pause", (Query(paused),), unit="percentunit", width=24)


def _answers() -> Iterator[Row]:
    waits = find(WAIT)
    if waits is None:
        return
    by = (_NODE,) if waits.has(_NODE) else (_GRAPH,)
    # Breakpoints are no questions: nobody answers them.
    asked = chosen(names.METRIC_INTERRUPTS).where({_NODE: '!=""'})
    still = f"{asked.increase()} - ({waits.increase()} or vector(0))"
    note = "Asked and answered within the time shown. What was asked before it is not in it."
    yield Row(
        "Answers",
        (
            Panel("Asked and not answered", (Query(still),), "stat", width=4, description=note),
            Panel("Wait for the answer, median", (Query(waits.quantile(0.5, *by)),), unit="s", width=10),
            Panel("Wait for the answer, 95th percentile", (Query(waits.quantile(0.95, *by)),), unit="s", width=10),
        ),
    )


def _single_runs() -> Row:
    status, resumed = names.RUN_STATUS, names.RESUMED_FROM_INTERRUPT
    reason = attribute_in_logs(_REASON)
    return Row(
        "Single runs",
        (
            traces("Runs that paused", f'{{ {RUN_SPAN} && span.{status} = "interrupted" }}'),
            traces("Runs that brought an answer", f"{{ {RUN_SPAN} && span.{resumed} != nil }}"),
            records("Pauses", f'{reason}!=""', width=24),
        ),
    )
