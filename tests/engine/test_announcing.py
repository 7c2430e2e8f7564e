"""Events are built one kind at a time: whoever wants one kind is given no other."""

from __future__ import annotations

import operator
from typing import Annotated, Any, TypedDict

import pytest
from by_hand import AT_NS, engine_for, events_of, only, started, succeed, tasks_of

from tracegraph.checkpoint.memory import InMemorySaver
from tracegraph.engine.actions import Decision, Finish
from tracegraph.engine.reports import CloseRequested, TaskFailed, Woke
from tracegraph.engine.settings import Begin
from tracegraph.events import (
    AttemptEnded,
    AttemptStarted,
    SuperstepEnded,
    SuperstepStarted,
    TaskEnded,
    TaskStarted,
    UnknownKeyIgnored,
    every_kind,
)
from tracegraph.graph import START, StateGraph
from tracegraph.types import RetryPolicy

POLICY = RetryPolicy(initial_interval=5.0, max_attempts=2, jitter=False)


class State(TypedDict, total=False):
    log: Annotated[list[str], operator.add]


def retried(**options: Any) -> Any:
    """Return a graph with one node that has a retry policy."""
    graph: StateGraph[Any, Any, Any, Any] = StateGraph(State)
    graph.add_node("a", lambda state: None, retry_policy=POLICY)
    graph.add_edge(START, "a")
    return graph.compile(**options)


def all_events(wants: int) -> list[Any]:
    """Return the events of a run that fails once, recovers, and writes a key that does not exist."""
    engine = engine_for(retried(), wants=wants)
    decision = started(engine, {"log": ["in"]})
    (a,) = tasks_of(decision)
    again = engine.receive(TaskFailed(a, 1, ValueError("boom"), POLICY), AT_NS)
    woken = engine.receive(Woke(), AT_NS + 6_000_000_000)
    done = succeed(engine, a, {"nothing": 1})
    runs = [action for found in (decision, woken) for action in found.actions if hasattr(action, "started")]
    starts = [event for run in runs for event in run.started]
    return [*decision.events, *starts, *again.events, *done.events]


@pytest.mark.parametrize(
    "kind",
    [TaskStarted, TaskEnded, AttemptStarted, AttemptEnded, SuperstepStarted, SuperstepEnded, UnknownKeyIgnored],
    ids=lambda kind: kind.__name__,
)
def test_one_kind_alone_is_what_it_is_among_all(kind: Any) -> None:
    """Nothing else is built, and nothing is missing or different."""
    alone = all_events(kind.bit)

    assert {type(event) for event in alone} == {kind}
    assert [repr(event) for event in alone] == [repr(event) for event in all_events(every_kind()) if isinstance(event, kind)]


def test_an_unknown_key_of_a_result_is_announced() -> None:
    """With the node that wrote it."""
    (ignored,) = [event for event in all_events(UnknownKeyIgnored.bit) if event.node == "a"]

    assert ignored.key == "nothing"


def test_closing_before_the_first_superstep_announces_no_superstep() -> None:
    """None had begun: its first checkpoint is still being saved."""
    saver = InMemorySaver()
    engine = engine_for(retried(), durability="sync", next_version=lambda current: saver.get_next_version(current, None))
    engine.start(Begin(input={"log": []}), AT_NS)

    decision: Decision = engine.receive(CloseRequested("abandoned", "consumer_closed"), AT_NS)

    assert only(Finish, decision.actions).status == "abandoned"
    assert events_of(SuperstepEnded, decision) == []
