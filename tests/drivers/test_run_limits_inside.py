"""Limits on supersteps and runs hold for graphs inside, and for waits."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest
from colours import Colour
from event_log import assert_well_nested
from recording import recording
from small_graphs import THREAD, State, bounded, chain, says, wait_for
from time_limits import ENOUGH_S, LIMIT_S, Limit, failure, stuck_until

from tracegraph.checkpoint.memory import InMemorySaver
from tracegraph.errors import RunDeadlineError
from tracegraph.events import ReportIgnored, RunEnded
from tracegraph.runtime import RunControl, Runtime

# --- graphs inside -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["as a node", "called"])
def test_a_limit_holds_for_graphs_inside(colour: Colour, limit: Limit, may_end: threading.Event, how: str) -> None:
    """They end with the task that runs them, and before it."""
    inner = chain(stuck=stuck_until(may_end), next=says("next"))

    def calls(state: State) -> State:
        return inner.invoke(state)  # type: ignore[no-any-return]

    app = chain(limit.options(), outer=inner if how == "as a node" else calls)
    with recording() as recorder:
        error = failure(lambda: colour.invoke(app, {"xs": []}, **limit.call()), limit.error)
        may_end.set()

    assert error.running == ("outer",)
    ends = [(event.status, event.reason) for event in recorder.events if isinstance(event, RunEnded)]
    assert ends == [("cancelled", limit.reason), ("failed", limit.reason)]
    assert_well_nested([event for event in recorder.events if not isinstance(event, ReportIgnored)])


def test_a_step_timeout_of_a_graph_inside_is_a_failure_of_its_task(colour: Colour, may_end: threading.Event) -> None:
    """The node that runs it may handle it."""
    inner = chain({"step_timeout": LIMIT_S}, stuck=stuck_until(may_end))

    def calls(state: State) -> State:
        try:
            inner.invoke(state)
        except TimeoutError as error:
            return {"xs": [type(error).__name__]}
        return {}

    assert bounded(lambda: colour.invoke(chain(calls=calls), {"xs": []})) == {"xs": ["StepTimeoutError"]}


def test_a_deadline_of_its_own_ends_only_the_graph_inside(colour: Colour, may_end: threading.Event) -> None:
    """The outer run's deadline goes on to hold for both."""
    inner = chain(stuck=stuck_until(may_end))

    def calls(state: State) -> State:
        try:
            inner.invoke(state, control=RunControl(deadline_s=LIMIT_S))
        except TimeoutError as error:
            return {"xs": [type(error).__name__]}
        return {}

    found = bounded(lambda: colour.invoke(chain(calls=calls), {"xs": []}, control=RunControl(deadline_s=3600)))

    assert found == {"xs": ["RunDeadlineError"]}


def test_a_deadline_is_inherited_and_not_begun_anew(colour: Colour, may_end: threading.Event) -> None:
    """Also where node code passes its own control on."""
    inner = chain(stuck=stuck_until(may_end))

    def calls(state: State, runtime: Runtime) -> State:
        return inner.invoke(state, control=runtime.control)  # type: ignore[no-any-return]

    error = failure(
        lambda: colour.invoke(chain(calls=calls), {"xs": []}, control=RunControl(deadline_s=ENOUGH_S)), RunDeadlineError
    )

    assert error.running == ("calls",)


# --- waits -------------------------------------------------------------------------------------------------


def queued(saver: Any, body: Any) -> Any:
    """Return a graph whose runs on one thread wait for each other."""
    return chain({"checkpointer": saver, "concurrent_runs": "queue"}, node=body)


@pytest.fixture
def held() -> Iterator[Any]:
    """A saver with a run that holds thread ``t``, and a way to let it end."""
    saver = InMemorySaver()
    has_turn, may_leave = threading.Event(), threading.Event()

    def holds(state: State) -> State:
        has_turn.set()
        wait_for(may_leave)
        return {"xs": ["held"]}

    holder = threading.Thread(target=lambda: queued(saver, holds).invoke({"xs": []}, THREAD), daemon=True)
    holder.start()
    wait_for(has_turn)

    def leave() -> None:
        may_leave.set()
        holder.join(10)

    yield saver, leave
    leave()


def test_a_run_does_not_wait_for_its_turn_beyond_its_deadline(colour: Colour, held: Any) -> None:
    """It has begun nothing, and the runs before it lose nothing."""
    saver, leave = held
    app = queued(saver, says("mine"))

    error = failure(lambda: colour.invoke(app, {"xs": []}, THREAD, control=RunControl(deadline_s=LIMIT_S)), RunDeadlineError)
    leave()

    assert (error.step, error.running) == (None, ())
    assert "its turn" in str(error)
    assert app.get_state(THREAD).values == {"xs": ["held"]}
    assert colour.invoke(app, {"xs": []}, THREAD) == {"xs": ["held", "mine"]}


def test_a_graph_inside_does_not_wait_for_its_turn_beyond_the_deadline(colour: Colour, held: Any) -> None:
    """It never begins, however soon it has its turn afterwards."""
    saver, leave = held
    inner = queued(saver, says("never"))
    is_over = threading.Event()

    def calls(state: State) -> State:
        try:
            return inner.invoke({"xs": []}, THREAD)  # type: ignore[no-any-return]
        finally:
            is_over.set()

    failure(lambda: colour.invoke(chain(calls=calls), {"xs": []}, control=RunControl(deadline_s=ENOUGH_S)), RunDeadlineError)
    wait_for(is_over)
    leave()

    assert inner.get_state(THREAD).values == {"xs": ["held"]}
