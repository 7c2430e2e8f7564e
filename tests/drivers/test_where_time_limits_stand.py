"""Where the time limit of an attempt may be given, and what becomes of an attempt that is out of time."""

from __future__ import annotations

import asyncio
import threading
from typing import Any
from uuid import UUID

import pytest
from colours import Colour
from recording import recording
from small_graphs import State, bounded, chain, says, wait_for

from tracegraph.callbacks import BaseCallbackHandler
from tracegraph.config import get_config
from tracegraph.errors import GraphDefinitionError, NodeTimeoutError
from tracegraph.events import CustomEmitted
from tracegraph.func import task
from tracegraph.graph import START, StateGraph
from tracegraph.runtime import get_runtime
from tracegraph.types import RetryPolicy, Send, TimeoutPolicy

LIMIT_S = 0.05
IDLE = TimeoutPolicy(idle_timeout=LIMIT_S)
ONCE = RetryPolicy(max_attempts=1)


def limited(body: Any, timeout: Any = IDLE, **options: Any) -> Any:
    """Return a graph whose one node has a time limit."""
    graph: StateGraph[Any, Any, Any, Any] = StateGraph(State)
    graph.add_node("a", body, timeout=timeout, **options)
    graph.add_edge(START, "a")
    return graph.compile()


def run(app: Any) -> Any:
    """Run an async graph, which must not hang."""
    return bounded(lambda: asyncio.run(app.ainvoke({"xs": []})))


def callbacks() -> Any:
    """Return what models and tools report through."""
    return get_config()["callbacks"]


# --- where limits may stand --------------------------------------------------------------------------------


def test_a_send_may_have_an_idle_limit(colour: Colour) -> None:
    """Of whatever node: it goes before the node's own."""
    may_end = threading.Event()

    def stuck(state: State) -> State:
        may_end.wait()
        return {}

    graph: StateGraph[Any, Any, Any, Any] = StateGraph(State)
    graph.add_node("w", stuck, retry_policy=ONCE)
    graph.add_conditional_edges(START, lambda state: [Send("w", {}, timeout=IDLE)], ["w"])
    try:
        with pytest.raises(NodeTimeoutError, match="idle"):
            bounded(lambda: colour.invoke(graph.compile(), {"xs": []}))
    finally:
        may_end.set()


def test_a_late_attempt_does_not_hide_the_next_one_from_its_limit() -> None:
    """The first comes back while the second hangs: the second is given up all the same."""
    has_second_begun, may_end, is_first_back = threading.Event(), threading.Event(), threading.Event()
    attempts: list[int] = []

    def body(state: State) -> State:
        attempts.append(len(attempts) + 1)
        if attempts == [1]:
            wait_for(has_second_begun)
            is_first_back.set()
            return {}
        has_second_begun.set()
        wait_for(is_first_back)
        may_end.wait()
        return {}

    graph: StateGraph[Any, Any, Any, Any] = StateGraph(State)
    graph.add_node("w", body, retry_policy=RetryPolicy(initial_interval=0.001, jitter=False, max_attempts=2))
    graph.add_conditional_edges(START, lambda state: [Send("w", {}, timeout=0.3)], ["w"])
    try:
        with pytest.raises(NodeTimeoutError):
            bounded(lambda: graph.compile().invoke({"xs": []}))
    finally:
        may_end.set()


@pytest.mark.parametrize(("timeout", "kind"), [(LIMIT_S, "run"), (IDLE, "idle")])
def test_called_tasks_may_have_limits(timeout: Any, kind: str) -> None:
    """Their caller gets the error."""

    @task(timeout=timeout, retry_policy=ONCE)
    async def slow() -> None:
        await asyncio.Event().wait()

    async def caller(state: State) -> State:
        try:
            await slow()
        except NodeTimeoutError as error:
            return {"xs": [error.node, error.kind]}
        return {}

    assert run(chain(caller=caller)) == {"xs": ["slow", kind]}


@pytest.mark.parametrize("timeout", [1, IDLE])
def test_a_sync_task_or_node_has_none(timeout: Any) -> None:
    """Nothing can stop a thread; it is said where it is declared, and is a ValueError."""
    with pytest.raises(ValueError, match="'work' has a timeout but is not async") as raised:

        @task(timeout=timeout)
        def work() -> None:
            """Do nothing."""

    assert isinstance(raised.value, GraphDefinitionError)
    with pytest.raises(ValueError, match="'a' has a timeout but is not async") as raised:
        limited(says("a"), timeout)
    assert isinstance(raised.value, GraphDefinitionError)


@pytest.mark.parametrize("name", ["run_timeout", "idle_timeout"])
@pytest.mark.parametrize("seconds", [0, -1, float("nan"), float("inf"), "1", True])
def test_limits_are_positive_times(name: str, seconds: Any) -> None:
    """Of whatever they are not, the text says what was given."""
    with pytest.raises(ValueError, match=f"{name} must be positive"):
        TimeoutPolicy(**{name: seconds})


def test_an_unknown_way_to_refresh_is_refused() -> None:
    """There are two."""
    with pytest.raises(ValueError, match="'auto' or 'heartbeat', not 'never'"):
        TimeoutPolicy(idle_timeout=1, refresh_on="never")  # type: ignore[arg-type]  # that is the point


def test_a_call_of_an_attempt_that_is_given_up_streams_nothing(colour: Colour) -> None:
    """Its thread goes on, for nobody."""
    has_begun, is_over, is_done = threading.Event(), threading.Event(), threading.Event()

    @task
    def talks() -> None:
        has_begun.set()
        wait_for(is_over)
        get_runtime().stream_writer("late")
        is_done.set()

    def caller(state: State) -> State:
        talks().result()
        return {}

    graph: StateGraph[Any, Any, Any, Any] = StateGraph(State)
    graph.add_node("w", caller, retry_policy=ONCE)
    graph.add_conditional_edges(START, lambda state: [Send("w", {}, timeout=0.4)], ["w"])
    app = graph.compile()
    with recording() as recorder:
        with pytest.raises(NodeTimeoutError):
            bounded(lambda: colour.stream(app, {"xs": []}, stream_mode="custom"))
        wait_for(has_begun)
        is_over.set()
        wait_for(is_done)

    assert [event for event in recorder.events if isinstance(event, CustomEmitted)] == []


def test_calls_in_an_attempt_that_is_given_up_are_not_told_of() -> None:
    """A model that goes on to answer after its node's time was up answers nobody."""
    told: list[str] = []

    async def run_it() -> None:
        is_over, is_done = asyncio.Event(), asyncio.Event()

        async def body(state: State) -> State:
            model = callbacks().on_llm_start({}, ["?"])[0]
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                await is_over.wait()
                model.on_llm_new_token("late")
                is_done.set()
            return {}

        class Listener(BaseCallbackHandler):
            def on_llm_new_token(self, token: str, **kwargs: Any) -> None:
                told.append(token)

            def on_llm_start(self, serialized: Any, prompts: Any, *, run_id: UUID, **kwargs: Any) -> None:
                told.append("start")

        with pytest.raises(NodeTimeoutError):
            await limited(body, retry_policy=ONCE).ainvoke({"xs": []}, {"callbacks": [Listener()]})
        is_over.set()
        await is_done.wait()

    bounded(lambda: asyncio.run(run_it()))
    assert told == ["start"]
