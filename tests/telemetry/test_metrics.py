"""Metrics of real runs through the public API, on both drivers: what a dashboard sees of graphs, nodes and pauses."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import Any

import pytest
from colours import SYNC, Colour
from measured import Measured
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF
from small_graphs import PATIENCE_S, THREAD, State, chain, parallel, says, wait_for

from tracegraph.checkpoint.memory import InMemorySaver
from tracegraph.checkpoint.sqlite import SqliteSaver
from tracegraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from tracegraph.graph import START, StateGraph
from tracegraph.telemetry import semconv, use_meter_provider, use_provider
from tracegraph.types import Command, RetryPolicy, interrupt

CALL_BUCKETS = (0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92)
WORKFLOW_BUCKETS = (1, 5, 10, 30, 60, 120, 300, 600, 1800, 3600, 7200)
RUN, STEP = "gen_ai.invoke_workflow.duration", "gen_ai.run_step.duration"


def fails(_: Any) -> Any:
    raise ValueError("boom")


def asks(_: Any) -> Any:
    return {"xs": [interrupt("sure?")]}


def named(name: str = "triage", **options: Any) -> dict[str, Any]:
    """Return compile options of a graph that somebody has named."""
    return {"name": name, **options}


def seconds(span: Any) -> float:
    return (span.end_time - span.start_time) / 1e9


def test_completed_run_and_its_tasks_take_as_long_as_their_spans(measured: Measured, spans: Any, colour: Colour) -> None:
    """Names the author chose, how it ended, the conventions' buckets, and to the nanosecond what the spans say."""
    colour.invoke(chain(named(), a=says("a"), b=says("b")), {})

    run = measured.one(RUN)
    assert (run.unit, run.count, run.bounds) == ("s", 1, WORKFLOW_BUCKETS)
    assert run.attributes == {"gen_ai.workflow.name": "triage", "tracegraph.run.status": "completed"}
    assert run.sum == seconds(spans.one("invoke_workflow triage"))
    for node in "ab":
        step = measured.one(STEP, gen_ai_step_name=node)
        assert (step.unit, step.count, step.bounds) == ("s", 1, CALL_BUCKETS)
        assert step.attributes == {
            "gen_ai.workflow.name": "triage",
            "gen_ai.step.name": node,
            "tracegraph.task.status": "completed",
        }
        assert step.sum == seconds(spans.one(f"run_step {node}"))
    assert measured.names() == {RUN, STEP, "tracegraph.runs.active"}
    assert measured.scopes() == [(semconv.SCOPE_NAME, semconv.SCHEMA_URL)]


def test_graph_without_a_name_has_no_name_on_its_metrics(measured: Measured, colour: Colour) -> None:
    """A type's name would be no meaningful one."""
    colour.invoke(chain(a=says("a")), {})

    assert measured.one(RUN).attributes == {"tracegraph.run.status": "completed"}


def test_active_runs_are_counted_while_they_run(measured: Measured, colour: Colour) -> None:
    """Up at the start and down at the end, whatever the end."""
    seen = []

    def look(_: Any) -> Any:
        seen.append(measured.one("tracegraph.runs.active"))
        return fails(_)

    with pytest.raises(ValueError, match="boom"):
        colour.invoke(chain(named(), a=look), {})

    (during,) = seen
    assert (during.sum, during.unit, during.attributes) == (1, "{run}", {"gen_ai.workflow.name": "triage"})
    assert measured.one("tracegraph.runs.active").sum == 0


def test_supersteps_with_a_span_are_measured(measured: Measured, spans: Any, colour: Colour) -> None:
    """Those of several tasks; of a lone task the task says it all."""
    colour.invoke(parallel(named(), a=says("a"), b=says("b")), {})

    step = measured.one("tracegraph.superstep.duration")
    assert (step.unit, step.count, step.bounds) == ("s", 1, CALL_BUCKETS)
    assert step.attributes == {"gen_ai.workflow.name": "triage", "tracegraph.superstep.status": "completed"}
    assert step.sum == seconds(spans.one("superstep"))


def test_failed_run_has_the_error_type_of_its_spans(measured: Measured, spans: Any, colour: Colour) -> None:
    """On the task that failed and on the run it left, not on the task that was well."""
    with pytest.raises(ValueError, match="boom"):
        colour.invoke(chain(named(), a=says("a"), b=fails), {})

    assert measured.one(RUN).attributes["error.type"] == "ValueError"
    assert measured.one(RUN).attributes["tracegraph.run.status"] == "failed"
    assert measured.one(STEP, gen_ai_step_name="b").attributes["error.type"] == "ValueError"
    assert "error.type" not in measured.one(STEP, gen_ai_step_name="a").attributes
    assert spans.one("run_step b").attributes["error.type"] == spans.one("invoke_workflow triage").attributes["error.type"]


def test_retries_are_counted_and_the_task_is_well_in_the_end(measured: Measured, colour: Colour) -> None:
    """What was retried stands on the counter with its error's type, and not on the task."""
    left = [ConnectionError(), ConnectionError(), None]

    def flaky(_: Any) -> Any:
        if (error := left.pop(0)) is not None:
            raise error
        return {"n": 1}

    graph: Any = StateGraph(State)
    graph.add_node("a", flaky, retry_policy=RetryPolicy(initial_interval=0.001, max_attempts=3))
    colour.invoke(graph.add_edge(START, "a").compile(**named()), {})

    retries = measured.one("tracegraph.task.retries")
    assert (retries.sum, retries.unit) == (2, "{retry}")
    assert retries.attributes == {
        "gen_ai.workflow.name": "triage",
        "gen_ai.step.name": "a",
        "error.type": "ConnectionError",
    }
    step = measured.one(STEP)
    assert step.count == 1
    assert step.attributes["tracegraph.task.status"] == "completed"
    assert "error.type" not in step.attributes


def test_pause_is_no_error_and_each_question_counts_once(measured: Measured, colour: Colour) -> None:
    """At the node that asks, however many graphs the question passes through on its way out."""
    inner = chain(named("inner"), ask=asks)
    app = chain(named("outer", checkpointer=InMemorySaver()), sub=inner)
    assert "__interrupt__" in colour.invoke(app, {}, THREAD)
    colour.invoke(app, Command(resume="yes"), THREAD)

    asked = measured.one("tracegraph.interrupts")
    assert (asked.sum, asked.unit) == (1, "{interrupt}")
    assert asked.attributes == {
        "gen_ai.workflow.name": "inner",
        "gen_ai.step.name": "ask",
        "tracegraph.interrupt.reason": "human_input",
    }
    assert {p.attributes["tracegraph.run.status"] for p in measured.of(RUN)} == {"interrupted", "completed"}
    assert {p.attributes["tracegraph.task.status"] for p in measured.of(STEP)} == {"interrupted", "completed"}
    assert not [point for point in measured.all() if "error.type" in point.attributes]


def test_breakpoints_are_counted_by_their_kind(measured: Measured, colour: Colour) -> None:
    """No node asks, so none is named."""
    app = chain(named(checkpointer=InMemorySaver()), a=says("a"), b=says("b"))
    colour.invoke(app, {}, THREAD, interrupt_before=["b"])

    point = measured.one("tracegraph.interrupts")
    assert (point.sum, point.attributes) == (
        1,
        {"gen_ai.workflow.name": "triage", "tracegraph.interrupt.reason": "interrupt_before"},
    )


def test_nested_run_is_marked(measured: Measured, spans: Any, colour: Colour) -> None:
    """So that a sum over a graph's runs can leave out those that lie within another."""
    app = chain(named("outer"), sub=chain(named("inner"), a=says("a")))
    colour.invoke(app, {})

    inner, outer = (measured.one(RUN, gen_ai_workflow_name=name) for name in ("inner", "outer"))
    assert inner.attributes["tracegraph.nested"] is True
    assert "tracegraph.nested" not in outer.attributes
    assert inner.sum == seconds(spans.one("invoke_workflow inner"))
    assert outer.sum == seconds(spans.one("invoke_workflow outer"))
    assert {point.sum for point in measured.of("tracegraph.runs.active")} == {0}


def test_closed_stream_is_no_error(measured: Measured, spans: Any, colour: Colour) -> None:
    """A reader that leaves early ends the run; nothing stays active."""
    app = chain(named(), a=says("a"), b=says("b"))

    async def leave() -> None:
        parts = app.astream({})
        async for _ in parts:
            break
        await parts.aclose()

    if colour is SYNC:
        stream = app.stream({})
        next(stream)
        stream.close()
    else:
        asyncio.run(leave())

    run = measured.one(RUN)
    assert run.attributes == {
        "gen_ai.workflow.name": "triage",
        "tracegraph.run.status": spans.one("invoke_workflow triage").attributes["tracegraph.run.status"],
    }
    assert run.attributes["tracegraph.run.status"] in {"abandoned", "cancelled"}
    assert measured.one("tracegraph.runs.active").sum == 0


def test_cancelled_run_is_no_error(measured: Measured, spans: Any) -> None:
    """Its open task is measured until it was cancelled."""
    has_begun = threading.Event()

    async def wait(_: Any) -> Any:
        has_begun.set()
        await asyncio.sleep(PATIENCE_S)

    async def cancel() -> None:
        task = asyncio.create_task(chain(named(), a=wait).ainvoke({}))
        await asyncio.to_thread(wait_for, has_begun)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancel())

    assert measured.one(RUN).attributes["tracegraph.run.status"] == "cancelled"
    assert measured.one(STEP).attributes["tracegraph.task.status"] == "cancelled"
    assert measured.one(STEP).sum == seconds(spans.one("run_step a"))
    assert not [point for point in measured.all() if "error.type" in point.attributes]
    assert measured.one("tracegraph.runs.active").sum == 0


def test_checkpoints_that_go_to_a_file_are_measured(measured: Measured, spans: Any, colour: Colour, tmp_path: Path) -> None:
    """One measurement for each `checkpoint put` span, and of the same length."""

    async def run() -> None:
        async with AsyncSqliteSaver.from_conn_string(str(tmp_path / "s.db")) as saver:
            await chain(named(checkpointer=saver), a=says("a")).ainvoke({}, THREAD, durability="sync")

    if colour is SYNC:
        with SqliteSaver.from_conn_string(str(tmp_path / "s.db")) as saver:
            chain(named(checkpointer=saver), a=says("a")).invoke({}, THREAD, durability="sync")
    else:
        asyncio.run(run())

    puts = spans.named("checkpoint put")
    point = measured.one("tracegraph.checkpoint.duration")
    assert point.unit == "s"
    assert point.attributes == {"gen_ai.workflow.name": "triage"}
    assert point.count == len(puts) > 1
    assert point.sum == pytest.approx(sum(map(seconds, puts)), rel=1e-9)


def test_checkpoints_in_memory_are_not_measured(measured: Measured, colour: Colour) -> None:
    """As they have no span: there is nothing to wait for."""
    colour.invoke(chain(named(checkpointer=InMemorySaver()), a=says("a")), {}, THREAD)

    assert not measured.of("tracegraph.checkpoint.duration")


def test_exemplars_name_the_spans(measured: Measured, spans: Any, colour: Colour) -> None:
    """From a slow bucket of a dashboard, one click to the trace: each measurement belongs to its own span."""
    colour.invoke(parallel(named(), a=says("a"), b=says("b")), {})

    # One reading: the SDK hands an exemplar out once.
    found = {(point.name, point.attributes.get("gen_ai.step.name")): point.exemplars for point in measured.all()}
    for key, name in [((RUN, None), "invoke_workflow triage"), ((STEP, "a"), "run_step a"), ((STEP, "b"), "run_step b")]:
        span = spans.one(name).context
        assert [(exemplar.trace_id, exemplar.span_id) for exemplar in found[key]] == [(span.trace_id, span.span_id)]


@pytest.mark.parametrize("traces", ["sampled out", "none"])
def test_runs_without_spans_are_measured(measured: Measured, colour: Colour, traces: str) -> None:
    """Metrics count all runs, and no exemplar points to a trace that does not exist."""
    provider = TracerProvider(sampler=ALWAYS_OFF, shutdown_on_exit=False) if traces == "sampled out" else None
    use_provider(provider)
    try:
        colour.invoke(chain(named(), a=says("a")), {})
    finally:
        use_provider(None)

    points = measured.all()
    assert {point.name for point in points} == {RUN, STEP, "tracegraph.runs.active"}
    assert not [exemplar for point in points for exemplar in point.exemplars]


def test_run_outside_a_trace_of_its_own_is_an_exemplar_of_the_ambient_span(
    measured: Measured, provider: TracerProvider, colour: Colour
) -> None:
    """An application that keeps its spans to itself still finds its requests by our metrics."""
    with provider.get_tracer("app").start_as_current_span("request") as request:
        colour.invoke(chain(named(), a=says("a")), {})

    (exemplar,) = measured.one(RUN).exemplars
    assert exemplar.span_id == request.get_span_context().span_id


def test_instruments_are_made_once(measured: Measured, colour: Colour) -> None:
    """Runs add to the same time series; so they do after another provider was in use for a while."""
    app = chain(named(), a=says("a"))
    colour.invoke(app, {})
    other = Measured()
    use_meter_provider(other.provider)
    colour.invoke(app, {})
    use_meter_provider(measured.provider)
    colour.invoke(app, {})

    assert measured.one(RUN).count == 2
    assert other.one(RUN).count == 1
    other.provider.shutdown()
