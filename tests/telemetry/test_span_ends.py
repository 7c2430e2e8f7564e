"""Hand-made events through a SpanObserver: every span ends exactly once, on every way out."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from event_script import CHILD, OTHER, ROOT, Script
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.trace import StatusCode

from tracegraph import events as e
from tracegraph.errors import GraphRecursionError


def test_exception_that_cannot_be_printed_still_ends_its_spans(provider: TracerProvider, recorder: Any) -> None:
    """The error is the user's, and so is its __str__."""

    class Mute(Exception):
        def __str__(self) -> str:
            raise RuntimeError("no words")

    s = Script(provider)
    s.send(s.step(), s.task(), s.task_ended("a", "failed", Mute()), s.run_ended(ROOT, "failed", Mute()))

    assert not recorder.open
    assert recorder.one("run_step a").status.description == "(the exception has no printable message)"


def everything_open(s: Script) -> None:
    """Leave one span of every kind open."""
    s.send(s.step(1, tasks=2, has_span=True), s.task("a", has_attempts=True), s.attempt(1), s.model(70), s.tool(71, parent=70))
    s.send(s.task("b"), s.run_started(CHILD, parent_run_id=ROOT, parent_task_id="id-b", ns="b:id-b"))
    s.send(s.step(1, run_id=CHILD, has_span=True), s.task("inner", run_id=CHILD))
    s.send(s.run_started(OTHER, parent_run_id=CHILD, parent_task_id="id-inner", ns="b:id-b|inner:id-inner"))
    s.send(e.CheckpointStarted(ROOT, "", 1, next(s.clock), "cp-5", "cp-4", "loop", ("x",), True, False))


OPEN_NAMES = [
    "attempt", "chat FakeModel", "checkpoint put", "execute_tool lookup", "invoke_workflow", "invoke_workflow", "invoke_workflow",
    "run_step a", "run_step b", "run_step inner", "superstep", "superstep",
]  # fmt: skip


@pytest.mark.parametrize("status", ["completed", "failed", "cancelled", "abandoned", "interrupted", "step_limit", "drained"])
def test_end_of_the_run_ends_whatever_is_still_open(
    provider: TracerProvider, recorder: Any, caplog: pytest.LogCaptureFixture, status: Any
) -> None:
    """Exactly one end per span on every exit, children before parents, and no complaint from the SDK."""
    s = Script(provider)
    everything_open(s)
    error = {"failed": KeyboardInterrupt(), "step_limit": GraphRecursionError("too many", limit=1)}.get(status)

    with caplog.at_level(logging.WARNING):
        s.send(s.run_ended(ROOT, status, error))
        s.send(
            s.task_ended("a"), s.tool_ended(71), s.attempt_ended(1), s.run_ended(CHILD), s.run_ended()
        )  # too late, all of them
        assert s.observer is not None
        s.observer.close()

    assert not recorder.open
    assert sorted(span.name for span in recorder.finished) == OPEN_NAMES
    ended = [span.context.span_id for span in recorder.finished]
    for span in recorder.finished:
        if span.parent is not None:
            assert ended.index(span.context.span_id) < ended.index(span.parent.span_id)
    assert [span.name for span in recorder.finished if span.status.status_code is StatusCode.ERROR] == (
        ["invoke_workflow"] if error is not None else []
    )
    assert not caplog.records


def test_close_ends_everything_where_no_event_will_come(provider: TracerProvider, recorder: Any) -> None:
    """The driver's last resort (garbage collection, interpreter exit): all ended, none an error."""
    s = Script(provider)
    everything_open(s)
    assert s.observer is not None

    s.observer.close()

    assert not recorder.open
    assert {span.status.status_code for span in recorder.finished} == {StatusCode.UNSET}


@pytest.mark.parametrize("kind", [RuntimeError, KeyboardInterrupt])
def test_raising_span_processor_loses_no_end(provider: TracerProvider, recorder: Any, kind: type[BaseException]) -> None:
    """Processors are the application's code; the error reaches the Hub once every span has ended."""
    s = Script(provider)
    everything_open(s)
    recorder.raises = kind

    with pytest.raises(kind, match="of the application"):
        s.send(s.run_ended())

    assert not recorder.open


def test_nested_run_ends_what_it_left_open_and_nothing_else(provider: TracerProvider, recorder: Any) -> None:
    """A child run that fails closes its own tasks; its parent's task goes on."""
    s = Script(provider)
    s.send(s.step(), s.task("b"), s.run_started(CHILD, parent_run_id=ROOT, parent_task_id="id-b", ns="b:id-b"))
    s.send(s.step(run_id=CHILD), s.task("inner", run_id=CHILD), s.run_ended(CHILD, "failed", ValueError("x")))

    assert sorted(recorder.open.values()) == ["invoke_workflow", "run_step b"]
    s.send(s.task_ended("b"), s.run_ended())
    assert recorder.edges() == [
        (None, "invoke_workflow"), ("invoke_workflow", "run_step b"), ("invoke_workflow", "run_step inner"),
        ("run_step b", "invoke_workflow"),
    ]  # fmt: skip


def test_end_of_a_task_ends_the_nested_runs_its_code_left_running(provider: TracerProvider, recorder: Any) -> None:
    """A timed-out body may never announce the end of a run it drove; nothing outlives its task."""
    s = Script(provider)
    s.send(s.step(), s.task("b"), s.run_started(CHILD, parent_run_id=ROOT, parent_task_id="id-b"))
    s.send(s.task("inner", run_id=CHILD), s.task_ended("b", "cancelled"))

    assert list(recorder.open.values()) == ["invoke_workflow"]
    s.send(s.task_ended("inner", run_id=CHILD), s.run_ended(CHILD), s.run_ended())
    assert len(recorder.finished) == 4


def test_second_attempt_may_run_the_same_nested_tasks_again(provider: TracerProvider, recorder: Any) -> None:
    """A retry goes on in the same child namespace, so ids come back; the first attempt's spans have ended by then."""
    s = Script(provider)
    child = {"parent_run_id": ROOT, "parent_task_id": "id-a"}
    s.send(s.step(), s.task(has_attempts=True), s.attempt(1), s.run_started(CHILD, **child), s.task("inner", run_id=CHILD))
    s.send(s.attempt_ended(1, TimeoutError(), will_retry=True), s.attempt(2), s.run_started(OTHER, **child))
    s.send(s.task("inner", run_id=OTHER), s.task_ended("inner", run_id=OTHER), s.run_ended(OTHER))
    s.send(s.attempt_ended(2), s.task_ended(), s.run_ended())

    assert not recorder.open
    inner = recorder.named("run_step inner")
    assert [span.attributes["tracegraph.task.status"] for span in inner] == ["abandoned", "completed"]
