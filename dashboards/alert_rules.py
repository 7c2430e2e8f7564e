"""The alerts. Their limits are a start; a service with goals of its own writes them in."""

from __future__ import annotations

from typing import Final

from dashboards import foreign
from dashboards.alerts import Alert, Case, share_above
from dashboards.boards.interrupts import WAIT
from dashboards.boards.telemetry import LOST
from dashboards.series import Series, label_of, per
from tracegraph.telemetry.semconv import names
from tracegraph.telemetry.semconv.registry import METRICS

__all__ = ["all_alerts"]

_GRAPH, _NODE, _MODEL, _TOOL, _ERROR = (
    names.WORKFLOW_NAME,
    names.STEP_NAME,
    names.REQUEST_MODEL,
    names.TOOL_NAME,
    names.ERROR_TYPE,
)
_RUNS: Final = Series.of(names.METRIC_WORKFLOW_DURATION).where({names.NESTED: '=""'})
_SAVES: Final = Series.of(names.METRIC_CHECKPOINT_DURATION)
_A_MINUTE: Final = "0+1x40"
"""Counted once a minute."""
_NEVER: Final = "0x40"


def all_alerts() -> tuple[Alert, ...]:
    """Return all alerts that the metrics of this version allow."""
    alerts = [_runs_fail(), _step_limit(), _stuck(), _models_fail(), _tools_fail(), _retries(), _saves_fail(), _saves_slow()]
    if LOST in METRICS:
        alerts.append(_telemetry_lost())
    if WAIT in METRICS:
        alerts.append(_unanswered())
    return (*alerts, _collector_down(), _collector_loses())


def _sample(series: Series, part: str = "", **labels: str) -> str:
    """Return one series in promtool's notation, with labels by the names of their attributes without their dots."""
    attributes = {label_of(use.attribute): use.attribute for use in series.metric.attributes} | {"job": "job"}
    return series.where({attributes[label]: f'="{value}"' for label, value in labels.items()}).selector(part)


def _ended(**labels: str) -> str:
    return _sample(Series.of(names.METRIC_WORKFLOW_DURATION), "count", gen_ai_workflow_name="triage", **labels)


def _runs_fail() -> Alert:
    failed = _RUNS.where({_ERROR: '!=""'})
    completed, broken = _ended(tracegraph_run_status="completed"), _ended(tracegraph_run_status="failed", error_type="KeyError")
    return Alert(
        "TracegraphRunsFail",
        share_above(failed, _RUNS, 0.1, _GRAPH, at_least=5),
        "More than a tenth of the runs of graph {{ $labels.gen_ai_workflow_name }} fail.",
        "tracegraph-runs",
        (
            Case({completed: _A_MINUTE, broken: _A_MINUTE}, ({"gen_ai_workflow_name": "triage"},)),
            Case({completed: "0+20x40", broken: _A_MINUTE}),
            Case({completed: _NEVER, broken: "0x25 1x15"}),  # one run is no share
        ),
        "critical",
    )


def _step_limit() -> Alert:
    looped = _RUNS.where({names.RUN_STATUS: '="step_limit"'})
    sample = _ended(tracegraph_run_status="step_limit", error_type="GraphRecursionError")
    return Alert(
        "TracegraphStepLimitReached",
        looped.happened(_GRAPH, window="15m"),
        "Graph {{ $labels.gen_ai_workflow_name }} ran into its step limit: it loops, or the limit is too low.",
        "tracegraph-runs",
        (
            Case({sample: "_x25 1x15"}, ({"gen_ai_workflow_name": "triage"},)),  # the first one makes the series
            Case({sample: "0x20 1x20"}, ({"gen_ai_workflow_name": "triage"},)),
            Case({sample: "1x40"}),  # long ago
        ),
        lasting="0m",
    )


def _stuck() -> Alert:
    # A node that works for longer is stuck by this measure, also if it runs another graph, whose tasks bear that graph's name.
    active = Series.of(names.METRIC_RUNS_ACTIVE).where({names.NESTED: '=""'})
    tasks = Series.of(names.METRIC_STEP_DURATION)
    running = _sample(active, job="agents", gen_ai_workflow_name="triage")
    ended = _sample(tasks, "count", job="agents", gen_ai_workflow_name="triage", gen_ai_step_name="read")
    expression = f"{active.current('job', _GRAPH)} > 0 unless {tasks.increase('job', _GRAPH, window='15m')} > 0"
    return Alert(
        "TracegraphRunsStuck",
        expression,
        "Graph {{ $labels.gen_ai_workflow_name }} of {{ $labels.job }} has runs, but none of their tasks ended for 15 minutes.",
        "tracegraph-runs",
        (
            Case({running: "1x40", ended: "5x40"}, ({"job": "agents", "gen_ai_workflow_name": "triage"},)),
            Case({running: "1x40", ended: _A_MINUTE}),
            Case({running: "0x40", ended: "5x40"}),
        ),
        lasting="10m",
    )


def _models_fail() -> Alert:
    calls = Series.of(names.METRIC_OPERATION_DURATION)
    of_model = {"gen_ai_request_model": "m", "gen_ai_operation_name": "chat"}
    good, bad = _sample(calls, "count", **of_model), _sample(calls, "count", error_type="RateLimitError", **of_model)
    return Alert(
        "TracegraphModelCallsFail",
        share_above(calls.where({_ERROR: '!=""'}), calls, 0.2, _MODEL, at_least=5),
        "More than a fifth of the calls of model {{ $labels.gen_ai_request_model }} fail.",
        "tracegraph-latency",
        (
            Case({good: _A_MINUTE, bad: _A_MINUTE}, ({"gen_ai_request_model": "m"},)),
            Case({good: "0+9x40", bad: _A_MINUTE}),
        ),
        "critical",
    )


def _tools_fail() -> Alert:
    calls = Series.of(names.METRIC_TOOL_DURATION)
    good = _sample(calls, "count", gen_ai_tool_name="search")
    bad = _sample(calls, "count", gen_ai_tool_name="search", error_type="TimeoutError")
    return Alert(
        "TracegraphToolFails",
        share_above(calls.where({_ERROR: '!=""'}), calls, 0.5, _TOOL, at_least=5),
        "More than half of the calls of tool {{ $labels.gen_ai_tool_name }} fail.",
        "tracegraph-latency",
        (Case({good: _A_MINUTE, bad: "0+2x40"}, ({"gen_ai_tool_name": "search"},)), Case({good: "0+2x40", bad: _A_MINUTE})),
    )


def _retries() -> Alert:
    retries, tasks = Series.of(names.METRIC_TASK_RETRIES), Series.of(names.METRIC_STEP_DURATION)
    again = _sample(retries, gen_ai_step_name="read", error_type="OSError")
    ended = _sample(tasks, "count", gen_ai_step_name="read", tracegraph_task_status="completed")
    return Alert(
        "TracegraphNodeRetriesOften",
        share_above(retries, tasks, 0.5, _NODE, at_least=5),
        "Tasks of node {{ $labels.gen_ai_step_name }} are tried again more than every other time.",
        "tracegraph-latency",
        (Case({again: _A_MINUTE, ended: _A_MINUTE}, ({"gen_ai_step_name": "read"},)), Case({again: _A_MINUTE, ended: "0+3x40"})),
        lasting="10m",
    )


def _saves_fail() -> Alert:
    sample = _sample(_SAVES, "count", gen_ai_workflow_name="triage", error_type="OperationalError")
    return Alert(
        "TracegraphCheckpointsFail",
        _SAVES.where({_ERROR: '!=""'}).happened(_GRAPH, window="10m"),
        "Checkpoints of graph {{ $labels.gen_ai_workflow_name }} could not be stored: a crash would lose what they hold.",
        "tracegraph-checkpoints",
        (
            Case({sample: "_x27 1x13"}, ({"gen_ai_workflow_name": "triage"},)),
            Case({_sample(_SAVES, "count", gen_ai_workflow_name="triage"): _A_MINUTE}),
        ),
        "critical",
        "0m",
    )


def _saves_slow() -> Alert:
    def buckets(within_a_second: str) -> dict[str, str]:
        bounds = {"0.5": _NEVER, "1.0": within_a_second, "2.5": "0+10x40", "+Inf": "0+10x40"}
        return {_SAVES.selector("bucket") + f'{{le="{bound}"}}': values for bound, values in bounds.items()}

    return Alert(
        "TracegraphCheckpointsSlow",
        f"{_SAVES.quantile(0.95, window='10m')} > 1",
        "One checkpoint in twenty takes longer than a second to store.",
        "tracegraph-checkpoints",
        (Case(buckets("0+5x40"), ({},)), Case(buckets("0+10x40"))),
        lasting="10m",
    )


def _telemetry_lost() -> Alert:
    lost = Series.of(LOST)
    by = tuple(use.attribute for use in lost.metric.attributes)
    labels = {label_of(attribute): "x" for attribute in by}
    sample = _sample(lost, **labels)
    return Alert(
        "TracegraphTelemetryLost",
        lost.happened(*by, window="10m"),
        "Spans or log records were lost on their way out: single runs are incomplete, metrics are not.",
        "tracegraph-telemetry",
        (Case({sample: "0x25 3x15"}, (labels,)), Case({sample: "3x40"})),
        lasting="0m",
    )


def _unanswered() -> Alert:
    asked = Series.of(names.METRIC_INTERRUPTS).where({_NODE: '!=""'})
    answered = Series.of(WAIT)
    questions = asked.increase(_GRAPH, window="1d")
    expression = f"{questions} - ({answered.increase(_GRAPH, window='1d')} or {questions} * 0) > 20"
    question = _sample(asked, gen_ai_workflow_name="triage", gen_ai_step_name="ask", tracegraph_interrupt_reason="interrupt")
    answer = _sample(answered, "count", gen_ai_workflow_name="triage")
    return Alert(
        "TracegraphQuestionsUnanswered",
        expression,
        "More than 20 questions of graph {{ $labels.gen_ai_workflow_name }} of the last day wait for an answer.",
        "tracegraph-interrupts",
        (
            Case({question: "0+1x400"}, ({"gen_ai_workflow_name": "triage"},), "120m"),
            Case({question: "0+1x400", answer: "0+1x400"}, at="120m"),
        ),
        lasting="1h",
    )


def _collector_down() -> Alert:
    return Alert(
        "TracegraphCollectorDown",
        'up{job="otel-collector"} == 0',
        "The collector does not answer: programs spool or lose what they measure.",
        "tracegraph-telemetry",
        (
            Case(
                {'up{job="otel-collector", instance="c:8888"}': "1x10 0x30"}, ({"job": "otel-collector", "instance": "c:8888"},)
            ),
            Case({'up{job="otel-collector", instance="c:8888"}': "1x40"}),
        ),
        "critical",
    )


def _collector_loses() -> Alert:
    failed = f"{foreign.COLLECTOR_SEND_FAILED}|{foreign.COLLECTOR_ENQUEUE_FAILED}"
    expression = per(f'rate({{__name__=~"({failed})(_total)?"}}[5m])', ("exporter",))
    sample = f'{foreign.COLLECTOR_SEND_FAILED}_total{{exporter="otlp_grpc/tempo"}}'
    return Alert(
        "TracegraphCollectorLosesSpans",
        f"{expression} > 0",
        "The collector does not get spans to {{ $labels.exporter }}.",
        "tracegraph-telemetry",
        (Case({sample: _A_MINUTE}, ({"exporter": "otlp_grpc/tempo"},)), Case({sample: "7x40"})),
    )
