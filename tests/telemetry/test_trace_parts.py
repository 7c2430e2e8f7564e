"""Runs with more spans than a trace should have go on in further traces, linked so that none is lost sight of."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from colours import ASYNC, SYNC, Colour
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.sampling import Decision, Sampler, SamplingResult, TraceIdRatioBased
from opentelemetry.util.types import Attributes
from small_graphs import State, chain

from tracegraph import START, Send, StateGraph
from tracegraph.checkpoint.memory import InMemorySaver
from tracegraph.errors import InvalidInputError
from tracegraph.func import entrypoint, task
from tracegraph.telemetry import TelemetryOptions, use_provider
from tracegraph.telemetry.options import DEFAULT_OPTIONS, use_options

BUDGET = 20
THREAD = {"configurable": {"thread_id": "t-1"}, "recursion_limit": 500}


@pytest.fixture(params=[SYNC, ASYNC], ids=lambda colour: colour.name)
def colour(request: pytest.FixtureRequest) -> Colour:
    chosen: Colour = request.param
    return chosen


@pytest.fixture(autouse=True)
def _small_budget() -> Iterator[None]:
    use_options(TelemetryOptions(span_budget=BUDGET))
    yield
    use_options(DEFAULT_OPTIONS)


def step(state: State) -> State:
    return {"n": state["n"] + 1}


def looping(times: int) -> Any:
    graph = StateGraph(State).add_node("step", step).add_edge(START, "step")
    graph.add_conditional_edges("step", lambda state: "step" if state["n"] < times else "__end__", ["step", "__end__"])
    return graph


def by_trace(recorder: Any) -> dict[int, list[Any]]:
    """Return the spans of each trace."""
    found: dict[int, list[Any]] = {}
    for span in recorder.finished:
        found.setdefault(span.context.trace_id, []).append(span)
    return found


def checked_parts(recorder: Any) -> list[Any]:
    """Return the roots of a run's traces in order, having checked how they hang together."""
    traces = by_trace(recorder)
    roots = {trace_id: next(span for span in spans if span.parent is None) for trace_id, spans in traces.items()}
    (run,) = [root for root in roots.values() if root.name.startswith("invoke_workflow")]
    chained = [run]
    while (following := chained[-1].attributes.get("tracegraph.trace.continued_in")) is not None:
        chained.append(roots[int(following, 16)])
    assert len(chained) == len(roots) == run.attributes["tracegraph.trace.parts"]
    for number, part in enumerate(chained[1:], start=2):
        assert part.attributes["tracegraph.trace.part"] == number
        assert part.attributes["tracegraph.run.id"] == run.attributes["tracegraph.run.id"]
        linked = {link.attributes["tracegraph.link"]: link.context.span_id for link in part.links}
        assert linked["run"] == run.context.span_id
        assert linked.get("part", run.context.span_id) == chained[number - 2].context.span_id
    for spans in traces.values():
        ids = {span.context.span_id for span in spans}
        assert all(span.parent is None or span.parent.span_id in ids for span in spans)
        assert len(spans) <= BUDGET
    return chained


def test_a_long_loop_is_in_several_traces(spans: Any, colour: Colour) -> None:
    app = looping(100).compile(name="loop", checkpointer=InMemorySaver())
    colour.invoke(app, {"n": 0}, THREAD)

    first, *others = checked_parts(spans)
    assert len(others) >= 5
    assert len(spans.named("run_step step")) == 100
    assert {part.name for part in others} == {"trace part"}
    assert {part.attributes["gen_ai.conversation.id"] for part in others} == {"t-1"}
    assert [part.attributes.get("tracegraph.run.status") for part in others] == [None] * (len(others) - 1) + ["completed"]
    assert first.attributes["tracegraph.run.status"] == "completed"


def test_a_run_within_its_budget_is_in_one_trace(spans: Any, colour: Colour) -> None:
    colour.invoke(looping(10).compile(name="loop"), {"n": 0}, THREAD)

    assert len(by_trace(spans)) == 1
    assert not [key for span in spans.finished for key in span.attributes if key.startswith("tracegraph.trace.")]


def test_a_fan_out_is_cut_within_its_superstep(spans: Any, colour: Colour) -> None:
    graph = StateGraph(State).add_node("step", lambda _: {})
    graph.add_conditional_edges(START, lambda _: [Send("step", {"n": n}) for n in range(60)], ["step"])
    colour.invoke(graph.compile(name="wide"), {"n": 0})

    assert len(spans.named("run_step step")) == 60
    # Tasks that run side by side are started before the first of them ends, so only what is below them can be too much.
    checked_parts(spans)


def test_a_graph_inside_takes_its_tasks_along(spans: Any, colour: Colour) -> None:
    """Its own span stays where it began; the steps after it are in the newest part, too."""
    inner = looping(50).compile(name="inner")
    app = chain({"name": "outer"}, before=step, inner=inner, after=step)
    colour.invoke(app, {"n": 0}, THREAD)

    _, *others = checked_parts(spans)
    (after,) = spans.named("run_step after")
    assert after.context.trace_id == others[-1].context.trace_id


def test_calls_of_task_functions_are_parted(spans: Any) -> None:
    """Though all of them are called by one task."""

    @task
    def double(number: int) -> int:
        return 2 * number

    @entrypoint()
    def work(numbers: list[int]) -> int:
        return sum(double(number).result() for number in numbers)

    assert work.invoke(list(range(50))) == 2450
    checked_parts(spans)
    assert len(spans.named("run_step double")) == 50


def test_a_failed_run_ends_its_last_part(spans: Any, colour: Colour) -> None:
    def fails(state: State) -> State:
        if state["n"] == 40:
            raise ValueError("boom")
        return {"n": state["n"] + 1}

    graph = StateGraph(State).add_node("step", fails).add_edge(START, "step").add_edge("step", "step")
    with pytest.raises(ValueError, match="boom"):
        colour.invoke(graph.compile(name="loop"), {"n": 0}, THREAD)

    assert checked_parts(spans)[-1].attributes["tracegraph.run.status"] == "failed"


def test_a_sampler_keeps_all_parts_of_a_run_or_none(recorder: Any) -> None:
    provider = TracerProvider(sampler=TraceIdRatioBased(0.3), shutdown_on_exit=False)
    provider.add_span_processor(recorder)
    use_provider(provider)
    try:
        app = looping(60).compile(name="loop")
        for _ in range(20):
            app.invoke({"n": 0}, THREAD)
    finally:
        use_provider(None)
    steps = Counter(
        run_id for part in recorder.finished if (run_id := part.attributes.get("tracegraph.run.id")) and part.parent is None
    )
    assert 0 < len(steps) < 20
    assert len(recorder.named("run_step step")) == 60 * len(steps)


class OnlyFirst(Sampler):
    """Takes the first trace, and what is below it."""

    def __init__(self) -> None:
        self.trace_ids: set[int] = set()

    def should_sample(
        self,
        parent_context: Any,
        trace_id: int,
        name: str,
        kind: Any = None,
        attributes: Attributes = None,
        links: Sequence[Any] | None = None,
        trace_state: Any = None,
    ) -> SamplingResult:
        self.trace_ids = self.trace_ids or {trace_id}
        is_taken = trace_id in self.trace_ids
        return SamplingResult(Decision.RECORD_AND_SAMPLE if is_taken else Decision.DROP, attributes)

    def get_description(self) -> str:
        return "only the first trace"


def test_where_no_further_trace_is_sampled_the_first_grows(recorder: Any) -> None:
    """A large trace is better than a gap."""
    provider = TracerProvider(sampler=OnlyFirst(), shutdown_on_exit=False)
    provider.add_span_processor(recorder)
    use_provider(provider)
    try:
        looping(50).compile(name="loop").invoke({"n": 0}, THREAD)
    finally:
        use_provider(None)
    assert len(by_trace(recorder)) == 1
    assert len(recorder.named("run_step step")) == 50


def test_a_budget_that_is_too_small_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="span_budget"):
        TelemetryOptions(span_budget=5)
