"""Questions, commands for the parent graph and drains are not failures, wherever they pass."""

from __future__ import annotations

from typing import Any

import pytest
from colours import Colour
from event_log import Recorder, assert_well_nested
from left_behind import Surroundings
from small_graphs import THREAD, State, says
from spans import Trace

from tracegraph.checkpoint.memory import InMemorySaver
from tracegraph.errors import GraphDrained, NodeError, ParentCommand
from tracegraph.events import AttemptEnded, RunEnded, TaskEnded
from tracegraph.graph import START, StateGraph
from tracegraph.runtime import RunControl, Runtime
from tracegraph.types import Command, RetryPolicy, interrupt

AT_ONCE = RetryPolicy(initial_interval=0, jitter=False, retry_on=Exception)


def leave(state: State) -> Any:
    return Command(graph=Command.PARENT, update={"xs": ["up"]}, goto="after")


def leave_raising(state: State) -> Any:
    raise ParentCommand(Command(graph=Command.PARENT, update={"xs": ["up"]}, goto="after"))


def ask(state: State) -> Any:
    return {"xs": [interrupt("?")]}


def drain(state: State, runtime: Runtime[Any]) -> Any:
    assert runtime.control is not None
    runtime.control.request_drain("deploy")
    return {"xs": ["drained"]}


@pytest.mark.parametrize("body", [leave, leave_raising, ask, drain], ids=lambda body: body.__name__)
def test_control_flow_is_no_error(colour: Colour, body: Any, surroundings: Surroundings, trace: Trace) -> None:
    """Out of a graph inside a graph: no span fails, no task does, nobody retries or handles it, nothing is noted on it."""
    handled: list[Any] = []
    signals: list[Any] = []

    def rescue(state: State, error: NodeError) -> Any:
        handled.append(error)

    class Watching(Recorder):
        def observe(self, event: Any) -> None:
            super().observe(event)
            if isinstance(event, RunEnded) and event.error is not None:
                signals.append(event.error)

    inner: StateGraph[Any, Any, Any, Any] = StateGraph(State)
    inner.add_node("leaves", body, retry_policy=AT_ONCE, error_handler=rescue)
    inner.add_node("never", says("never"))
    inner.add_edge(START, "leaves")
    inner.add_edge("leaves", "never")
    outer: StateGraph[Any, Any, Any, Any] = StateGraph(State)
    outer.add_node("inside", inner.compile(), retry_policy=AT_ONCE, error_handler=rescue)
    outer.add_node("after", says("after"))
    outer.add_edge(START, "inside")
    app = outer.compile(checkpointer=InMemorySaver())
    watching = Watching()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tracegraph.pregel.launch.Hub", lambda observers=(): surroundings.hub([*observers, watching]))
        try:
            colour.invoke(app, {"xs": []}, THREAD, control=RunControl())
        except GraphDrained as signal:
            signals.append(signal)

    assert handled == []
    assert trace.errors == []
    assert trace.is_complete()
    assert [event for span in trace.ended for event in span.events if event.name == "exception"] == []
    assert [event for event in watching.events if isinstance(event, TaskEnded) and event.status == "failed"] == []
    assert [event.error for event in watching.events if isinstance(event, AttemptEnded) and event.error is not None] == []
    assert [getattr(signal, "__notes__", None) for signal in signals] == [None] * len(signals)
    assert_well_nested(watching.events)
