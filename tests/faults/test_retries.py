"""Tries of a node with a retry policy: each is told, and nothing of a failed one is left for the next."""

from __future__ import annotations

from typing import Any

from colours import Colour
from event_log import assert_well_nested
from left_behind import Surroundings, recorded
from small_graphs import State
from spans import Trace

from tracegraph.events import AttemptEnded, AttemptStarted
from tracegraph.graph import START, StateGraph
from tracegraph.runtime import Runtime
from tracegraph.types import RetryPolicy

AT_ONCE = RetryPolicy(initial_interval=0, jitter=False)


def test_each_try_of_a_node_with_a_policy_is_told_and_a_recovered_one_is_no_error(
    colour: Colour, surroundings: Surroundings, trace: Trace
) -> None:
    """A pair of events and a span for each try: only the failed ones are errors, not the task, not the run."""
    tries: list[BaseException] = []

    def flaky(state: State) -> Any:
        if len(tries) < 2:
            tries.append(ConnectionError(f"try {len(tries) + 1}"))
            raise tries[-1]
        return {"xs": ["at last"]}

    graph: StateGraph[Any, Any, Any, Any] = StateGraph(State)
    graph.add_node("flaky", flaky, retry_policy=AT_ONCE)
    graph.add_edge(START, "flaky")
    with recorded(surroundings) as log:
        assert colour.invoke(graph.compile(), {"xs": []}) == {"xs": ["at last"]}

    assert_well_nested(log.events)
    assert [event.attempt for event in log.events if isinstance(event, AttemptStarted)] == [1, 2, 3]
    ends = [(event.attempt, event.error, event.will_retry) for event in log.events if isinstance(event, AttemptEnded)]
    assert ends == [(1, tries[0], True), (2, tries[1], True), (3, None, False)]
    assert trace.errors == ["attempt", "attempt"]
    assert [trace.ancestors(span) for span in trace.named("attempt")] == [["run_step flaky", "invoke_workflow"]] * 3
    assert trace.is_complete()
    for number, error in enumerate(tries, 1):
        assert len(error.__notes__) == 1
        assert error.__notes__[0].endswith(f", attempt {number})")


def test_nothing_of_a_failed_try_reaches_the_next(colour: Colour) -> None:
    """Its writes, what it did to its input, and the stream of updates: as if it had never been. What it sent was sent."""
    seen: list[Any] = []

    def route(state: State) -> Any:
        if len(seen) < 3:
            raise ConnectionError("on the way out, with writes made")
        return "after"

    def flaky(state: State, runtime: Runtime[Any]) -> Any:
        seen.append([*state["xs"]])
        state["xs"].append("changed in place")
        state["n"] = 99
        runtime.stream_writer(f"try {len(seen)}")
        return {"xs": [f"try {len(seen)}"]}

    graph: StateGraph[Any, Any, Any, Any] = StateGraph(State)
    graph.add_node("flaky", flaky, retry_policy=AT_ONCE)
    graph.add_node("after", lambda state: {"xs": [state.get("n", "no n")]})
    graph.add_edge(START, "flaky")
    graph.add_conditional_edges("flaky", route, ["after"])

    parts = colour.stream(graph.compile(), {"xs": ["in"]}, stream_mode=["updates", "custom", "values"])

    assert seen == [["in"], ["in"], ["in"]]
    assert [data for mode, data in parts if mode == "updates"] == [{"flaky": {"xs": ["try 3"]}}, {"after": {"xs": ["no n"]}}]
    assert [data for mode, data in parts if mode == "custom"] == ["try 1", "try 2", "try 3"]
    assert parts[-1] == ("values", {"xs": ["in", "try 3", "no n"]})
