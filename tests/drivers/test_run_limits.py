"""Limits on supersteps and on whole runs: they hold for whatever a node does, and the thread can be resumed."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from datetime import timedelta
from typing import Any

import pytest
from colours import Colour
from event_log import assert_numbered, assert_well_nested
from recording import recording
from small_graphs import THREAD, State, bounded, chain, parallel, saving, says, wait_for
from time_limits import ENOUGH_S, Limit, Watch, failure, stuck_until

from tracegraph.checkpoint.memory import InMemorySaver
from tracegraph.checkpoint.sqlite import SqliteSaver
from tracegraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from tracegraph.checkpoint.sqlite.database import connect
from tracegraph.errors import InvalidInputError, RunClosed
from tracegraph.events import CustomEmitted, ReportIgnored, RunEnded, TaskEnded
from tracegraph.func import task
from tracegraph.graph import START, StateGraph
from tracegraph.runtime import RunControl, Runtime
from tracegraph.types import RetryPolicy, interrupt

FOR_EVER = RetryPolicy(initial_interval=3600.0, jitter=False, retry_on=Exception)


# --- it ends, and says what happened -----------------------------------------------------------------------


def test_a_node_that_blocks_for_ever_does_not_hold_up_the_run(colour: Colour, limit: Limit, may_end: threading.Event) -> None:
    """A lone sync node, which otherwise runs in the thread or task that drives."""
    app = chain(limit.options(), stuck=stuck_until(may_end))

    error = failure(lambda: colour.invoke(app, {"xs": []}, **limit.call()), limit.error)

    assert isinstance(error, TimeoutError)
    assert (error.step, error.limit, error.running, error.waiting) == (1, limit.seconds, ("stuck",), ())
    assert error.elapsed >= limit.seconds
    assert f"{limit.seconds} s" in str(error)
    assert "'stuck'" in str(error)


def test_limits_may_be_timedeltas(colour: Colour, limit: Limit, may_end: threading.Event) -> None:
    """As all time limits may."""
    short = timedelta(seconds=limit.seconds)
    app = chain(limit.options(short), stuck=stuck_until(may_end))

    assert failure(lambda: colour.invoke(app, {"xs": []}, **limit.call(short)), limit.error).limit == limit.seconds


def test_an_async_node_is_cancelled(limit: Limit) -> None:
    """It may clean up; nobody waits for that."""
    cancelled: list[str] = []

    async def hangs(state: State) -> State:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.append("hangs")
            raise
        return {}

    app = chain(limit.options(), hangs=hangs)

    assert failure(lambda: asyncio.run(app.ainvoke({"xs": []}, **limit.call())), limit.error).running == ("hangs",)
    assert cancelled == ["hangs"]


def test_an_async_node_that_swallows_its_cancellation_is_left_behind(limit: Limit) -> None:
    """The run ends while its code goes on."""

    async def run() -> None:
        run_ended = asyncio.Event()

        async def stubborn(state: State) -> State:
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.Event().wait()
            await run_ended.wait()
            return {"xs": ["late"]}

        with pytest.raises(limit.error):
            await chain(limit.options(), stubborn=stubborn).ainvoke({"xs": []}, **limit.call())
        run_ended.set()

    bounded(lambda: asyncio.run(run()))


def test_a_reader_gets_what_came_before_the_limit(colour: Colour, limit: Limit, may_end: threading.Event) -> None:
    """Then the error."""
    app = parallel(limit.options(ENOUGH_S), quick=says("quick"), stuck=stuck_until(may_end))
    parts: list[Any] = []

    failure(lambda: colour.each(app, {"xs": []}, parts.append, stream_mode="updates", **limit.call(ENOUGH_S)), limit.error)

    assert parts == [{"quick": {"xs": ["quick"]}}]


@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
def test_what_finished_is_kept_and_the_rest_is_done_on_resume(
    colour: Colour, limit: Limit, may_end: threading.Event, durability: str
) -> None:
    """No channel changes; nothing is done twice."""
    begun: list[str] = []

    def quick(state: State) -> State:
        begun.append("quick")
        return {"xs": ["quick"]}

    def stuck(state: State) -> State:
        begun.append("stuck")
        may_end.wait()
        return {"xs": ["stuck"]}

    saver = InMemorySaver()
    app = parallel(limit.options(ENOUGH_S, **saving(saver)), quick=quick, stuck=stuck)
    failure(
        lambda: colour.invoke(app, {"xs": ["in"]}, THREAD, durability=durability, **limit.call(ENOUGH_S)),
        limit.error,
    )
    saved = saver.get(THREAD)
    assert saved is not None
    assert saved["channel_values"]["xs"] == ["in"]
    assert app.get_state(THREAD).next == ("stuck",)
    may_end.set()

    assert colour.invoke(app, None, THREAD, durability=durability) == {"xs": ["in", "quick", "stuck"]}
    assert sorted(begun) == ["quick", "stuck", "stuck"]


def test_a_database_can_be_resumed_too(colour: Colour, limit: Limit, may_end: threading.Event) -> None:
    """Its saves are stored by a worker or a task of their own."""
    saver: Any = (SqliteSaver if colour.name == "sync" else AsyncSqliteSaver)(connect(":memory:"))
    app = chain(limit.options(ENOUGH_S, checkpointer=saver), first=says("first"), stuck=stuck_until(may_end))
    failure(lambda: colour.invoke(app, {"xs": []}, THREAD, **limit.call(ENOUGH_S)), limit.error)
    may_end.set()

    assert colour.invoke(app, None, THREAD) == {"xs": ["first", "late"]}


# --- what it does not do -----------------------------------------------------------------------------------


def test_limits_that_are_not_reached_change_nothing(colour: Colour, limit: Limit) -> None:
    """Every superstep has all of its time, and a control may be given to another run."""
    app = chain(limit.options(3600.0), a=says("a"), b=says("b"), c=says("c"))
    call = limit.call(3600.0)

    for _ in range(2):
        assert colour.invoke(app, {"xs": []}, **call) == {"xs": ["a", "b", "c"]}
        assert colour.stream(app, {"xs": []}, stream_mode="updates", **call) == [{x: {"xs": [x]}} for x in "abc"]


def test_the_longest_limit_there_is_can_be_waited_for(colour: Colour, limit: Limit) -> None:
    """It is longer than a thread can wait in one go."""
    app = parallel(limit.options(1e300), a=says("a"), b=says("b"))

    assert colour.invoke(app, {"xs": []}, **limit.call(1e300)) == {"xs": ["a", "b"]}


def test_a_limit_is_neither_retried_nor_handled(colour: Colour, limit: Limit, may_end: threading.Event) -> None:
    """It is about the step or the run, not about the node."""
    begun: list[str] = []

    def stuck(state: State) -> State:
        begun.append("stuck")
        may_end.wait()
        return {}

    def handler(state: State) -> State:
        begun.append("handler")
        return {}

    graph: StateGraph[Any, Any, Any, Any] = StateGraph(State)
    at_once = RetryPolicy(initial_interval=0.001, jitter=False, retry_on=Exception)
    graph.add_node("stuck", stuck, retry_policy=at_once, error_handler=handler).add_edge(START, "stuck")
    app = graph.compile(**limit.options())

    failure(lambda: colour.invoke(app, {"xs": []}, **limit.call()), limit.error)
    assert begun == ["stuck"]


def test_a_retry_is_not_waited_for_beyond_the_limit(colour: Colour, limit: Limit) -> None:
    """It would begin in an hour."""

    def fails(state: State) -> State:
        raise KeyError("for now")

    graph: StateGraph[Any, Any, Any, Any] = StateGraph(State)
    graph.add_node("fails", fails, retry_policy=FOR_EVER).add_edge(START, "fails")
    app = graph.compile(**limit.options())

    error = failure(lambda: colour.invoke(app, {"xs": []}, **limit.call()), limit.error)

    assert (error.running, error.waiting) == ((), ("fails",))


def test_a_task_that_waits_for_a_free_slot_never_begins(colour: Colour, limit: Limit, may_end: threading.Event) -> None:
    """It is named as one that waited."""
    begun: list[str] = []

    def second(state: State) -> State:
        begun.append("second")
        return {}

    app = parallel(limit.options(), first=stuck_until(may_end), second=second)
    error = failure(lambda: colour.invoke(app, {"xs": []}, {"max_concurrency": 1}, **limit.call()), limit.error)
    may_end.set()

    assert (error.running, error.waiting) == (("first",), ("second",))
    assert begun == []


def test_a_failure_is_not_hidden_by_the_limit(colour: Colour, limit: Limit, may_end: threading.Event) -> None:
    """A thread cannot be stopped, so the run of one that failed waits for the other: only until the time is up."""

    def fails(state: State) -> State:
        raise KeyError("mine")

    app = parallel(limit.options(ENOUGH_S), fails=fails, stuck=stuck_until(may_end))

    failure(lambda: colour.invoke(app, {"xs": []}, **limit.call(ENOUGH_S)), KeyError)


def test_a_question_of_a_sibling_stays_open(colour: Colour, limit: Limit, may_end: threading.Event) -> None:
    """The error is raised, and the question can be answered by the run that goes on."""

    def asks(state: State) -> State:
        return {"xs": [interrupt("?")]}

    app = parallel(limit.options(ENOUGH_S, **saving()), asks=asks, stuck=stuck_until(may_end))
    failure(lambda: colour.invoke(app, {"xs": []}, THREAD, **limit.call(ENOUGH_S)), limit.error)

    assert [question.value for question in app.get_state(THREAD).interrupts] == ["?"]


def test_a_clock_that_is_set_back_holds_nothing_back(
    colour: Colour, limit: Limit, may_end: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The wall clock is no measure of time."""
    wall_ns = time.time_ns
    is_set_back = threading.Event()
    monkeypatch.setattr(time, "time_ns", lambda: wall_ns() - is_set_back.is_set() * 3_600_000_000_000)

    def stuck(state: State) -> State:
        is_set_back.set()
        may_end.wait()
        return {}

    app = chain(limit.options(), stuck=stuck)

    failure(lambda: colour.invoke(app, {"xs": []}, **limit.call()), limit.error)


def test_a_clock_that_is_set_forward_ends_nothing_early(colour: Colour, limit: Limit, monkeypatch: pytest.MonkeyPatch) -> None:
    """An hour seems to pass inside a node that has half of one."""
    wall_ns = time.time_ns
    is_set = threading.Event()
    monkeypatch.setattr(time, "time_ns", lambda: wall_ns() + is_set.is_set() * 3_600_000_000_000)

    def sets(state: State) -> State:
        is_set.set()
        return {"xs": ["set"]}

    app = chain(limit.options(1800.0), sets=sets, next=says("next"))

    assert colour.invoke(app, {"xs": []}, **limit.call(1800.0)) == {"xs": ["set", "next"]}


# --- what is left behind -----------------------------------------------------------------------------------


def test_a_late_report_is_ignored_and_told(colour: Colour, limit: Limit, may_end: threading.Event) -> None:
    """Events say which tasks were given up and why, that the run failed, and later that a thread came back in vain."""
    app = parallel(limit.options(ENOUGH_S), quick=says("quick"), stuck=stuck_until(may_end))
    watch = Watch(ReportIgnored)

    with recording(watch):
        error = failure(lambda: colour.invoke(app, {"xs": []}, **limit.call(ENOUGH_S)), limit.error)
        before = len(watch.events)
        may_end.set()
        wait_for(watch.bell)

    ends = {event.name: (event.status, event.reason) for event in watch.of(TaskEnded) if event.name in ("quick", "stuck")}
    assert ends == {"quick": ("completed", None), "stuck": ("cancelled", limit.reason)}
    (ended,) = watch.of(RunEnded)
    assert (ended.status, ended.reason, ended.error) == ("failed", limit.reason, error)
    assert [(e.name, e.attempt, e.report) for e in watch.events[before:]] == [("stuck", 1, "TaskSucceeded")]  # type: ignore[attr-defined]
    assert_numbered(watch.events)
    assert_well_nested(watch.events)


def test_a_late_failure_is_ignored_and_told(colour: Colour, limit: Limit, may_end: threading.Event) -> None:
    """A thread that comes back to raise has no better claim."""

    def raises(state: State) -> State:
        may_end.wait()
        raise KeyError("late")

    watch = Watch(ReportIgnored)
    with recording(watch):
        failure(lambda: colour.invoke(chain(limit.options(), raises=raises), {"xs": []}, **limit.call()), limit.error)
        may_end.set()
        wait_for(watch.bell)

    assert [event.report for event in watch.of(ReportIgnored)] == ["TaskFailed"]


def test_what_a_left_behind_node_does_is_dropped(colour: Colour, limit: Limit) -> None:
    """It can stream nothing, call nothing and run no graph."""
    run_ended, is_done = threading.Event(), threading.Event()
    ran: list[str] = []
    raised: list[type[BaseException]] = []

    @task
    def work() -> None:
        ran.append("task")

    inner = chain(inner=lambda state: ran.append("inner"))

    def stuck(state: State, runtime: Runtime) -> State:
        run_ended.wait()
        runtime.stream_writer("late")
        runtime.heartbeat()
        for call in (work, lambda: inner.invoke({"xs": []})):
            try:
                call()
            except BaseException as error:
                raised.append(type(error))
        is_done.set()
        return {}

    app = chain(limit.options(), stuck=stuck)
    watch = Watch(CustomEmitted)
    with recording(watch):
        failure(lambda: colour.each(app, {"xs": []}, print, stream_mode="custom", **limit.call()), limit.error)
        run_ended.set()
        wait_for(is_done)

    assert (ran, raised) == ([], [RunClosed, RunClosed])
    assert watch.of(CustomEmitted) == []


def test_a_call_that_blocks_is_given_up_with_its_caller(colour: Colour, limit: Limit, may_end: threading.Event) -> None:
    """A called task is a node of the step like any other."""

    @task
    def blocks() -> None:
        may_end.wait()

    async def acaller(state: State) -> State:
        await blocks()
        return {}

    def caller(state: State) -> State:
        blocks().result()
        return {}

    app = chain(limit.options(), caller=caller if colour.name == "sync" else acaller)

    error = failure(lambda: colour.invoke(app, {"xs": []}, **limit.call()), limit.error)

    assert error.running == ("caller", "blocks")


# --- bad values --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seconds", [0, -1, float("nan"), float("inf"), "5", True, timedelta(0), [1]])
def test_a_deadline_is_a_positive_time(seconds: Any) -> None:
    """Of whatever it is not, the text says what it was."""
    with pytest.raises(InvalidInputError, match="deadline_s must be positive"):
        RunControl(deadline_s=seconds)


def test_a_control_without_a_deadline_has_none() -> None:
    """As before."""
    assert RunControl().deadline_s is None
    assert RunControl(deadline_s=timedelta(minutes=1)).deadline_s == 60.0
