"""Hand-made events through a MetricsObserver: every end of what the engine announces, and what it does not."""

from __future__ import annotations

from typing import Any, get_args
from uuid import UUID

import pytest
from event_script import CHILD, OTHER, ROOT, Script
from measured import Measured
from opentelemetry.metrics import NoOpMeterProvider
from opentelemetry.sdk.trace import TracerProvider

from tracegraph import events as e
from tracegraph.telemetry import use_meter_provider
from tracegraph.telemetry.meters import metrics_for_root
from tracegraph.telemetry.metrics import MetricsObserver

DURATIONS = {
    "gen_ai.invoke_workflow.duration": ("invoke_workflow",),
    "gen_ai.run_step.duration": ("run_step",),
    "gen_ai.client.operation.duration": ("chat", "retrieval"),
    "gen_ai.execute_tool.duration": ("execute_tool",),
    "tracegraph.superstep.duration": ("superstep",),
    "tracegraph.checkpoint.duration": ("checkpoint put",),
}
"""Instruments, and the first words of the spans that they measure."""


class MeasuredScript(Script):
    """Feeds a MetricsObserver after the SpanObserver, as the Hub does."""

    def __init__(self, provider: TracerProvider, **started: Any) -> None:
        self.metrics: MetricsObserver | None = None
        super().__init__(provider, **started)

    def send(self, *events: e.Event) -> None:
        for event in events:
            super().send(event)
            if self.metrics is None:
                assert isinstance(event, e.RunStarted)
                self.metrics = metrics_for_root(event, self.observer, self.context)
            assert self.metrics is not None
            self.metrics.observe(event)


def agrees(measured: Measured, recorder: Any) -> None:
    """Hold every duration against the spans of the same things."""
    points = measured.all()
    for name, words in DURATIONS.items():
        spans = [span for span in recorder.finished if span.name.startswith(words)]
        found = [point for point in points if point.name == name]
        assert sum(point.count for point in found) == len(spans), name
        lasted = sum(span.end_time - span.start_time for span in spans) / 1e9
        assert sum(point.sum for point in found) == pytest.approx(lasted, abs=1e-9), name
        assert {point.attributes.get("error.type") for point in found} == {s.attributes.get("error.type") for s in spans}, name


def test_every_kind_of_event_is_either_handled_or_ignored_on_purpose() -> None:
    """As for spans."""
    assert MetricsObserver.handlers.keys() | MetricsObserver.ignored == set(get_args(e.Event))
    assert not MetricsObserver.handlers.keys() & MetricsObserver.ignored
    assert MetricsObserver.wants == e.kinds(*MetricsObserver.handlers)


def test_provider_that_does_nothing_is_not_observed_for() -> None:
    """No cost where nobody measures."""
    use_meter_provider(NoOpMeterProvider())
    try:
        started = Script(TracerProvider(shutdown_on_exit=False)).run_started(ROOT)
        assert metrics_for_root(started, None, None) is None
    finally:
        use_meter_provider(None)


def test_cached_results_and_lookups(measured: Measured, provider: TracerProvider, recorder: Any) -> None:
    """A hit is a task of no length, as its span is; each question to the cache counts."""
    s = MeasuredScript(provider, workflow_name="g")
    for hit in (True, False):
        s.send(s.step(), e.CacheLooked(ROOT, "", 1, next(s.clock), "id-a", "a", hit))
        s.send(*(() if hit else (s.task("a"),)), s.task_ended("a", "cached" if hit else "completed"), s.step_ended())
    s.send(s.run_ended())

    assert {p.attributes["tracegraph.cache.hit"]: p.sum for p in measured.of("tracegraph.cache.lookups")} == {True: 1, False: 1}
    assert measured.of("tracegraph.cache.lookups")[0].attributes.keys() == {
        "gen_ai.workflow.name",
        "gen_ai.step.name",
        "tracegraph.cache.hit",
    }
    assert measured.one("gen_ai.run_step.duration", tracegraph_task_status="cached").sum == 0
    agrees(measured, recorder)


@pytest.mark.hand_made_spans("the run ends in ways without the error that comes with them")
@pytest.mark.parametrize("status", ["completed", "failed", "cancelled", "abandoned", "interrupted", "step_limit", "drained"])
def test_end_of_the_run_ends_whatever_is_still_open(
    measured: Measured, provider: TracerProvider, recorder: Any, status: Any
) -> None:
    """As the spans end, at the same moment; late ends change nothing; nothing stays active."""
    s = MeasuredScript(provider)
    s.send(s.step(1, tasks=2, has_span=True), s.task("a", has_attempts=True), s.attempt(1), s.model(70), s.tool(71, parent=70))
    s.send(s.task("b"), s.run_started(CHILD, parent_run_id=ROOT, parent_task_id="id-b", ns="b:id-b"))
    s.send(s.step(1, run_id=CHILD, has_span=True), s.task("inner", run_id=CHILD))
    s.send(s.run_started(OTHER, parent_run_id=CHILD, parent_task_id="id-inner", ns="b:id-b|inner:id-inner"))
    s.send(s.run_ended(ROOT, status, ValueError() if status == "failed" else None))
    s.send(s.task_ended("a"), s.tool_ended(71), s.attempt_ended(1), s.run_ended(CHILD), s.run_ended())

    agrees(measured, recorder)
    assert {point.sum for point in measured.of("tracegraph.runs.active")} == {0}


def test_attempt_that_timed_out_ends_what_it_started(measured: Measured, provider: TracerProvider, recorder: Any) -> None:
    """A body left behind in its thread announces nothing any more; the next attempt starts anew."""
    s = MeasuredScript(provider)
    s.send(s.step(), s.task("a", has_attempts=True), s.attempt(1), s.model(70))
    s.send(s.run_started(CHILD, parent_run_id=ROOT, parent_task_id="id-a", ns="a:id-a"))
    s.send(s.attempt_ended(1, TimeoutError(), will_retry=True), s.tool(72), s.attempt(2), s.attempt_ended(2))
    s.send(s.task_ended("a"), s.step_ended(), s.run_ended())

    agrees(measured, recorder)
    retries = measured.one("tracegraph.task.retries")
    assert (retries.sum, retries.attributes["error.type"]) == (1, "TimeoutError")
    statuses = {point.attributes.get("tracegraph.call.status") for point in measured.of("gen_ai.client.operation.duration")}
    assert statuses == {"abandoned"}


def test_task_that_is_started_again_is_two_tasks(measured: Measured, provider: TracerProvider, recorder: Any) -> None:
    """The first one was given up, and says so."""
    s = MeasuredScript(provider)
    s.send(s.step(), s.task("a"), s.task("a"), s.task_ended("a"), s.step_ended(), s.run_ended())

    agrees(measured, recorder)
    points = measured.of("gen_ai.run_step.duration")
    assert {point.attributes["tracegraph.task.status"] for point in points} == {"abandoned", "completed"}


def test_hidden_tasks_are_not_measured(measured: Measured, provider: TracerProvider) -> None:
    """Nobody has written them."""
    s = MeasuredScript(provider)
    s.send(s.step(), s.task("a", is_hidden=True), s.task_ended("a", is_hidden=True))
    s.send(s.task_ended("b", "cached", is_hidden=True), s.step_ended(), s.run_ended())

    assert not measured.of("gen_ai.run_step.duration")


def test_save_that_failed(measured: Measured, provider: TracerProvider, recorder: Any) -> None:
    """It took its time too, and says what was raised."""
    s = MeasuredScript(provider)
    s.send(e.CheckpointStarted(ROOT, "", 1, next(s.clock), "cp-5", "cp-4", "loop", ("x",), True, False))
    s.send(e.CheckpointSaved(ROOT, "", 1, next(s.clock), "cp-5", "cp-4", "loop", ("x",), OSError("disk full")), s.run_ended())

    assert measured.one("tracegraph.checkpoint.duration").attributes == {"error.type": "OSError"}
    agrees(measured, recorder)


def test_retrieval_is_an_operation(measured: Measured, provider: TracerProvider, recorder: Any) -> None:
    """Neither a model call nor a tool call of the run."""
    s = MeasuredScript(provider)
    s.send(s.step(), s.task("a"))
    s.send(e.RetrievalStarted(ROOT, "", 1, next(s.clock), "id-a", UUID(int=7), None, "docs", None, "query", (), {}))
    s.send(e.RetrievalEnded(ROOT, "", 1, next(s.clock), "id-a", UUID(int=7), None, "docs", ["d"], None))
    s.send(s.task_ended("a"), s.step_ended(), s.run_ended())

    expected = {"gen_ai.step.name": "a", "gen_ai.operation.name": "retrieval"}
    assert measured.one("gen_ai.client.operation.duration").attributes == expected
    assert not measured.of("gen_ai.invoke_workflow.inference_calls")
    agrees(measured, recorder)


def test_numbers_of_tokens_that_make_no_sense_are_left_out(measured: Measured, provider: TracerProvider) -> None:
    """A counter only goes up, and the SDK complains of what would bring it down."""

    class Odd:
        usage_metadata = {"input_tokens": -1, "output_tokens": "many"}

    s = MeasuredScript(provider)
    s.send(s.step(), s.task("a"), s.model(70))
    s.send(e.ModelEnded(ROOT, "", 1, next(s.clock), "id-a", UUID(int=70), None, "FakeModel", Odd(), None), s.run_ended())

    assert not [name for name in measured.names() if "tokens" in name]
