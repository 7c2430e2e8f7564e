"""Futures of called tasks: cancelled by their caller, swallowed, asked for after the run's end, changed by who got them."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest
from colours import Colour
from small_graphs import THREAD, Listening, State, bounded, chain, saving, values_of, wait_for

from tracegraph.config import get_stream_writer
from tracegraph.errors import RunClosed
from tracegraph.func import task
from tracegraph.types import Command, Durability, interrupt


def test_cancelling_a_future_leaves_its_task_alone(colour: Colour) -> None:
    """The task is the run's: it runs to its end, and so does the run."""
    cancelled = threading.Event()
    ran: list[str] = []

    @task
    def slow() -> int:
        wait_for(cancelled)
        ran.append("slow")
        return 1

    def a(state: State) -> State:
        slow().cancel()
        cancelled.set()
        return {"xs": ["a"]}

    assert bounded(lambda: colour.invoke(chain(a=a), {"xs": []})) == {"xs": ["a"]}
    assert ran == ["slow"]


def test_cancelling_an_asyncio_future_leaves_its_task_alone() -> None:
    """As with one that blocks."""
    ran: list[str] = []

    async def run() -> Any:
        cancelled = asyncio.Event()

        @task
        async def slow() -> int:
            await cancelled.wait()
            ran.append("slow")
            return 1

        async def a(state: State) -> State:
            slow().cancel()
            cancelled.set()
            return {"xs": ["a"]}

        return await chain(a=a).ainvoke({"xs": []})

    assert bounded(lambda: asyncio.run(run())) == {"xs": ["a"]}
    assert ran == ["slow"]


@task
def ask() -> Any:
    """Ask what only the caller of the graph can answer."""
    return interrupt("q")


def test_a_pause_of_a_called_task_counts_even_if_its_caller_swallows_it(colour: Colour) -> None:
    """The run is interrupted all the same, and says so; the answer goes to the task."""

    def a(state: State) -> State:
        try:
            return {"xs": [ask().result()]}
        except Exception:
            return {"xs": ["swallowed"]}

    app = chain(saving(), a=a)

    found = bounded(lambda: colour.invoke(app, {"xs": []}, THREAD))
    assert values_of(found["__interrupt__"]) == ["q"]
    assert bounded(lambda: colour.invoke(app, Command(resume="A"), THREAD)) == {"xs": ["A"]}


def test_a_called_task_beside_one_that_asks_runs_once(colour: Colour) -> None:
    """Its caller has paused when it ends; its result is stored for the resumed run."""
    paused = threading.Event()
    ran: list[str] = []

    @task
    def side() -> int:
        wait_for(paused)
        ran.append("side")
        return 1

    def a(state: State) -> State:
        of_side, of_ask = side(), ask()
        try:
            return {"xs": [of_ask.result(), of_side.result()]}
        finally:
            paused.set()

    app = chain(saving(), a=a)

    bounded(lambda: colour.invoke(app, {"xs": []}, THREAD))
    assert bounded(lambda: colour.invoke(app, Command(resume="A"), THREAD)) == {"xs": ["A", 1]}
    assert ran == ["side"]


@pytest.mark.parametrize("is_called", [False, True], ids=["node", "called task"])
def test_an_answer_outlives_the_process_that_was_killed_over_it(is_called: bool) -> None:
    """Who resumes after that without an answer is not asked again."""
    is_killed = True

    def body() -> Any:
        answer = interrupt("q")
        if is_killed:
            raise KeyboardInterrupt
        return answer

    called = task(body)

    def a(state: State) -> State:
        return {"xs": [called().result() if is_called else body()]}

    app = chain(saving(), a=a)
    bounded(lambda: app.invoke({"xs": []}, THREAD))
    with pytest.raises(KeyboardInterrupt):
        bounded(lambda: app.invoke(Command(resume="A"), THREAD))
    is_killed = False

    assert bounded(lambda: app.invoke(None, THREAD)) == {"xs": ["A"]}


@pytest.mark.parametrize("durability", ["sync", "exit"])
def test_a_caller_may_change_the_result_it_got(colour: Colour, durability: Durability) -> None:
    """What is stored for the resumed run is what the task returned."""

    @task
    def words() -> list[str]:
        return ["task"]

    def a(state: State) -> State:
        found = words().result()
        found.append("caller")
        interrupt("q")
        return {"xs": found}

    app = chain(saving(), a=a)

    bounded(lambda: colour.invoke(app, {"xs": []}, THREAD, durability=durability))
    found = bounded(lambda: colour.invoke(app, Command(resume=1), THREAD, durability=durability))
    assert found == {"xs": ["task", "caller"]}


@task
def late() -> int:
    """Never run: it is called too late."""
    raise AssertionError("a task of a run that has ended")


def test_a_task_called_while_its_run_is_closed_is_refused() -> None:
    """By name and for that reason, in the thread that closing waits for."""
    outcomes: list[BaseException] = []
    listening = Listening("a")

    def a(state: State) -> State:
        get_stream_writer()("x")
        wait_for(listening.bell)
        try:
            late()
        except BaseException as error:
            outcomes.append(error)
        return {}

    parts = chain(a=a).stream({"xs": []}, {"callbacks": [listening]}, stream_mode="custom")
    next(parts)
    bounded(parts.close)

    (error,) = outcomes
    assert isinstance(error, RunClosed)
    assert "'late'" in str(error)


def test_a_task_called_after_the_event_loop_is_gone_is_refused() -> None:
    """A sync node of a cancelled async run goes on in its thread; it learns that its run has ended."""
    began, loop_is_gone, over = threading.Event(), threading.Event(), threading.Event()
    outcomes: list[BaseException] = []

    def a(state: State) -> State:
        began.set()
        wait_for(loop_is_gone)
        try:
            late()
        except BaseException as error:
            outcomes.append(error)
        over.set()
        return {}

    async def cancel_it() -> None:
        running = asyncio.create_task(chain(a=a).ainvoke({"xs": []}))
        await asyncio.to_thread(wait_for, began)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running

    bounded(lambda: asyncio.run(cancel_it()))
    loop_is_gone.set()
    wait_for(over)

    assert [type(error) for error in outcomes] == [RunClosed]
