"""Runs inside a task that is given up before they have begun: they end, once, and leave nothing behind."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from colours import Colour
from event_log import Recorder, assert_well_nested
from recording import recording
from small_graphs import PATIENCE_S, THREAD, State, bounded, says

from tracegraph.checkpoint.memory import InMemorySaver
from tracegraph.drivers.here import HereNow
from tracegraph.errors import StepTimeoutError
from tracegraph.events import Event, ReportIgnored, RunEnded, RunStarted
from tracegraph.graph import START, StateGraph

LIMIT_S = 0.2


def graph(node: Any, **options: Any) -> Any:
    """Return a graph of one node."""
    made: StateGraph[Any, Any, Any, Any] = StateGraph(State)
    made.add_node("a", node)
    made.add_edge(START, "a")
    return made.compile(**options)


def times_out(colour: Colour, app: Any) -> None:
    """Run a graph that exceeds its step timeout."""
    with pytest.raises(StepTimeoutError):
        bounded(lambda: colour.invoke(app, {"xs": []}, THREAD))


class Done:
    """Wraps a function so that others can wait until it has been called."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, owner: type[Any], name: str) -> None:
        self.event = threading.Event()
        self._function = getattr(owner, name)
        monkeypatch.setattr(owner, name, lambda *args: self(*args))

    def __call__(self, *args: Any) -> Any:
        """Call the function, and ring whatever it does."""
        try:
            return self._function(*args)
        finally:
            self.event.set()


def test_a_run_may_be_closed_while_its_start_is_told(colour: Colour, monkeypatch: pytest.MonkeyPatch) -> None:
    """An observer takes its time with the start, and meanwhile the time of the task around it is up."""
    given_up = Done(monkeypatch, HereNow, "give_up")

    class Slow(Recorder):
        def observe(self, event: Event) -> None:
            super().observe(event)
            if isinstance(event, RunStarted) and event.parent_run_id is not None:
                assert given_up.event.wait(PATIENCE_S)

    body_ran: list[str] = []
    inner = graph(lambda state: body_ran.append("inner") or {})
    over = threading.Event()

    def calls(state: State) -> State:
        try:
            return inner.invoke(state)  # type: ignore[no-any-return]
        finally:
            over.set()

    with recording(Slow()) as recorder:
        times_out(colour, graph(calls, step_timeout=LIMIT_S, checkpointer=InMemorySaver()))
        assert over.wait(PATIENCE_S)

    ends = [event.status for event in recorder.events if isinstance(event, RunEnded)]
    assert sorted(ends) == ["cancelled", "failed"]
    assert not body_ran


def test_a_run_that_was_closed_while_it_loaded_stores_and_tells_nothing(colour: Colour) -> None:
    """Its end was announced; its thread comes back from the saver later."""
    may_load, over = threading.Event(), threading.Event()
    namespaces: list[str] = []

    class Slow(InMemorySaver):
        def get_tuple(self, config: Any) -> Any:
            if config["configurable"].get("checkpoint_ns"):
                assert may_load.wait(PATIENCE_S)
            return super().get_tuple(config)

        def put(self, config: Any, *args: Any) -> Any:
            namespaces.append(config["configurable"].get("checkpoint_ns", ""))
            return super().put(config, *args)

    inner = graph(says("inner"))

    def calls(state: State) -> State:
        try:
            return inner.invoke(state)  # type: ignore[no-any-return]
        finally:
            over.set()

    with recording() as recorder:
        times_out(colour, graph(calls, step_timeout=LIMIT_S, checkpointer=Slow()))
        may_load.set()
        assert over.wait(PATIENCE_S)

    assert set(namespaces) == {""}
    assert [event.status for event in recorder.events if isinstance(event, RunEnded)] == ["cancelled", "failed"]
    assert_well_nested([event for event in recorder.events if not isinstance(event, ReportIgnored)])


def test_a_run_that_nobody_could_close_closes_itself(colour: Colour, monkeypatch: pytest.MonkeyPatch) -> None:
    """The task around it is given up between the run's look at it and the moment in which the run can be found there."""
    given_up, over = Done(monkeypatch, HereNow, "give_up"), threading.Event()
    look = HereNow.is_cut_off.fget
    assert look is not None
    first: list[HereNow] = []

    def late(here: HereNow) -> bool:
        found = look(here)
        if not first and here.run.parent is None:
            first.append(here)
            assert given_up.event.wait(PATIENCE_S)
        return found

    monkeypatch.setattr(HereNow, "is_cut_off", property(late))
    body_ran: list[str] = []
    inner = graph(lambda state: body_ran.append("inner") or {})

    def calls(state: State) -> State:
        try:
            return inner.invoke(state)  # type: ignore[no-any-return]
        finally:
            over.set()

    times_out(colour, graph(calls, step_timeout=LIMIT_S))
    assert over.wait(PATIENCE_S)

    assert first
    assert not body_ran
