"""Spans of runs that a time limit ends: each ends once, the run's with an error, those of what was given up with a reason."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from colours import ASYNC, SYNC, Colour
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.trace import StatusCode
from small_graphs import State, bounded, chain, parallel, says

from tracegraph.errors import NodeTimeoutError, RunDeadlineError, StepTimeoutError
from tracegraph.graph import START, StateGraph
from tracegraph.runtime import RunControl
from tracegraph.telemetry import semconv, use_provider
from tracegraph.types import RetryPolicy, TimeoutPolicy

LIMIT_S = 0.05
ENOUGH_S = 0.5


@pytest.fixture
def spans(provider: TracerProvider, recorder: Any) -> Iterator[Any]:
    """The spans of the runs of one test, all of which must have ended with it."""
    use_provider(provider)
    yield recorder
    use_provider(None)
    assert not recorder.open


@pytest.fixture
def may_end() -> Iterator[threading.Event]:
    """Hold back bodies that outlive their run until the test is over."""
    event = threading.Event()
    yield event
    event.set()


@pytest.fixture(params=[SYNC, ASYNC], ids=lambda colour: colour.name)
def colour(request: Any) -> Colour:
    """The colour of the run under test."""
    return request.param  # type: ignore[no-any-return]


def fails(run: Callable[[], Any], kind: type[Exception]) -> None:
    """Run something that raises."""
    with pytest.raises(kind):
        bounded(run)


LIMITS: dict[str, tuple[dict[str, Any], dict[str, Any], type[Exception]]] = {
    "step_timeout": ({"step_timeout": ENOUGH_S}, {}, StepTimeoutError),
    "run_deadline": ({}, {"control": lambda: RunControl(deadline_s=ENOUGH_S)}, RunDeadlineError),
}


@pytest.mark.parametrize("reason", LIMITS)
def test_spans_of_a_run_at_its_limit(spans: Any, colour: Colour, may_end: threading.Event, reason: str) -> None:
    """The run's failed; what it gave up is cancelled, and says why, graphs inside too; what had finished is unmarked."""
    options, call, kind = LIMITS[reason]

    def stuck(state: State) -> State:
        may_end.wait()
        return {}

    inner = chain({"name": "inner"}, stuck=stuck)
    app = parallel({"name": "outer", **options}, quick=says("quick"), runs=inner)

    fails(lambda: colour.invoke(app, {"xs": []}, **{key: make() for key, make in call.items()}), kind)

    run = spans.one("invoke_workflow outer")
    assert run.status.status_code is StatusCode.ERROR
    assert run.attributes[semconv.ERROR_TYPE] == f"tracegraph.errors.{kind.__name__}"
    assert (run.attributes[semconv.RUN_STATUS], run.attributes[semconv.RUN_REASON]) == ("failed", reason)
    child = spans.one("invoke_workflow inner")
    assert (child.attributes[semconv.RUN_STATUS], child.attributes[semconv.RUN_REASON]) == ("cancelled", reason)
    given_up = [spans.one(f"run_step {name}") for name in ("runs", "stuck")]
    assert [span.attributes[semconv.TASK_STATUS] for span in given_up] == ["cancelled", "cancelled"]
    assert [span.attributes[semconv.TASK_REASON] for span in given_up] == [reason, reason]
    assert spans.one("run_step quick").attributes[semconv.TASK_STATUS] == "completed"
    assert [span.name for span in spans.finished if span.status.status_code is StatusCode.ERROR] == ["invoke_workflow outer"]
    ended = [span.name for span in spans.finished]
    may_end.set()
    assert [span.name for span in spans.finished] == ended


def test_spans_of_an_idle_attempt(spans: Any) -> None:
    """An attempt that was silent for too long has failed, like one that raised."""

    async def silent(state: State) -> State:
        await asyncio.Event().wait()
        return {}

    graph: StateGraph[Any, Any, Any, Any] = StateGraph(State)
    policy = RetryPolicy(initial_interval=0.001, jitter=False, max_attempts=2)
    graph.add_node("silent", silent, timeout=TimeoutPolicy(idle_timeout=LIMIT_S), retry_policy=policy)
    graph.add_edge(START, "silent")

    fails(lambda: asyncio.run(graph.compile().ainvoke({"xs": []})), NodeTimeoutError)

    attempts = spans.named("attempt")
    assert [span.status.status_code for span in attempts] == [StatusCode.ERROR, StatusCode.ERROR]
    assert spans.one("run_step silent").attributes[semconv.TASK_STATUS] == "failed"


def test_no_span_ends_before_it_starts(spans: Any, colour: Colour, monkeypatch: pytest.MonkeyPatch) -> None:
    """The wall clock is set back by an hour while a node runs."""
    wall_ns = time.time_ns
    is_set_back = threading.Event()
    monkeypatch.setattr(time, "time_ns", lambda: wall_ns() - is_set_back.is_set() * 3_600_000_000_000)

    def sets(state: State) -> State:
        is_set_back.set()
        return {}

    colour.invoke(chain(sets=sets, next=says("next")), {"xs": []})

    assert [span.name for span in spans.finished if span.end_time < span.start_time] == []
