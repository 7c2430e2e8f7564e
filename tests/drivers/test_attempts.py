"""Attempts that end in an unusual way: odd retry rules, odd returns, commands and drains from inside."""

from __future__ import annotations

import asyncio
import concurrent.futures
import operator
import threading
from typing import Annotated, Any, TypedDict

import pytest
from colours import Colour
from small_graphs import PATIENCE_S, wait_for

from tracegraph.callbacks import BaseCallbackHandler
from tracegraph.checkpoint.memory import InMemorySaver
from tracegraph.errors import GraphDrained, InvalidUpdateError, NodeError, NodeTimeoutError, ParentCommand
from tracegraph.func import task
from tracegraph.graph import END, START, StateGraph
from tracegraph.runtime import RunControl
from tracegraph.types import Command, RetryPolicy, Send, interrupt

THREAD = {"configurable": {"thread_id": "t"}}
SOON = RetryPolicy(initial_interval=0.001, jitter=False)


class State(TypedDict, total=False):
    log: Annotated[list[Any], operator.add]
    n: int


def one(body: Any, *, name: str = "node", saver: Any = None, **options: Any) -> Any:
    """Return a graph of one node."""
    graph: StateGraph[Any, Any, Any, Any] = StateGraph(State)
    graph.add_node(name, body, **options)
    graph.add_edge(START, name)
    return graph.compile(checkpointer=saver)


def broken(state: State) -> None:
    """Fail."""
    raise ValueError("boom")


# --- retries ----------------------------------------------------------------------------------------------------


def test_a_retry_rule_that_is_none_fails_the_node(colour: Colour) -> None:
    """What it could not decide on is kept as the context."""
    app = one(broken, retry_policy=RetryPolicy(retry_on=3))  # type: ignore[arg-type]  # the point

    with pytest.raises(TypeError, match="retry_on must be") as failure:
        colour.invoke(app, {"n": 1})

    assert str(failure.value.__context__) == "boom"


def test_a_retry_rule_that_fails_fails_the_node(colour: Colour) -> None:
    """It is user code; its own error counts."""

    def rule(error: BaseException) -> bool:
        raise LookupError("rule")

    with pytest.raises(LookupError, match="rule"):
        colour.invoke(one(broken, retry_policy=RetryPolicy(retry_on=rule)), {"n": 1})


def test_a_pause_is_never_retried(colour: Colour) -> None:
    """Whatever the rule says: it is no failure."""
    ran: list[int] = []

    def ask(state: State) -> Any:
        ran.append(1)
        return {"log": [interrupt("?")]}

    app = one(ask, saver=InMemorySaver(), retry_policy=SOON._replace(retry_on=Exception))

    paused = colour.invoke(app, {"n": 1}, THREAD)

    assert len(ran) == len(paused["__interrupt__"]) == 1


def test_an_answer_serves_every_attempt(colour: Colour) -> None:
    """A retry starts the node over, and its questions count from the first again."""
    tries: list[Any] = []

    def ask(state: State) -> Any:
        answer = interrupt("?")
        tries.append(answer)
        if len(tries) < 2:
            raise ConnectionError
        return {"log": [answer]}

    app = one(ask, saver=InMemorySaver(), retry_policy=SOON)
    colour.invoke(app, {"log": []}, THREAD)

    assert colour.invoke(app, Command(resume="yes"), THREAD) == {"log": ["yes"]}
    assert tries == ["yes", "yes"]


def test_a_called_task_is_retried_by_itself(colour: Colour) -> None:
    """Its caller just waits."""
    tries: list[int] = []

    @task(retry_policy=SOON)
    def flaky() -> int:
        tries.append(1)
        if len(tries) < 2:
            raise ConnectionError
        return 5

    def call(state: State) -> Any:
        return {"n": flaky().result()}

    async def acall(state: State) -> Any:
        return {"n": await flaky()}

    assert colour.invoke(one(call if colour.name == "sync" else acall), {"n": 0}) == {"n": 5, "log": []}
    assert len(tries) == 2


def test_a_caller_gets_the_error_of_what_it_called(colour: Colour) -> None:
    """It may handle it; a task that failed for good is called anew by a retry."""

    @task
    def fails() -> int:
        raise ValueError("called")

    def call(state: State) -> Any:
        try:
            fails().result()
        except ValueError as error:
            return {"log": [str(error)]}
        return {}

    async def acall(state: State) -> Any:
        try:
            await fails()
        except ValueError as error:
            return {"log": [str(error)]}
        return {}

    assert colour.invoke(one(call if colour.name == "sync" else acall), {"log": []}) == {"log": ["called"]}


# --- what a node hands back -------------------------------------------------------------------------------------


def test_a_sync_run_cannot_await_a_future() -> None:
    """Its result is on a loop that a sync run does not have."""

    async def main() -> None:
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        with pytest.raises(TypeError, match="'node' returned Future, which only an async run can await"):
            one(lambda state: future).invoke({"n": 1})
        future.cancel()

    asyncio.run(main())


def test_an_async_run_awaits_what_a_sync_node_returns() -> None:
    """A function that makes a coroutine is as good as an async one."""

    async def later(state: State) -> Any:
        await asyncio.sleep(0)
        return {"n": state["n"] + 1}

    assert asyncio.run(one(lambda state: later(state)).ainvoke({"n": 1})) == {"n": 2, "log": []}


def test_a_command_may_pass_graphs_on_its_way(colour: Colour) -> None:
    """Raised with the name of an outer node, it goes to that node's graph, whatever lies between."""

    def leave(state: State) -> None:
        raise ParentCommand(Command(graph="outer", update={"log": ["up"]}, goto="after"))

    graph: StateGraph[Any, Any, Any, Any] = StateGraph(State)
    graph.add_node("outer", one(one(leave, name="leave"), name="middle"))
    graph.add_node("after", lambda state: {"log": ["after"]})
    graph.add_edge(START, "outer")

    assert colour.invoke(graph.compile(), {"log": []})["log"] == ["up", "after"]


def test_a_failing_path_function_fails_its_node(colour: Colour) -> None:
    """A handler hears of the branch's error and of the node's."""
    heard: list[str] = []

    class Listening(BaseCallbackHandler):
        def __init__(self) -> None:
            self.names: dict[Any, str] = {}

        def on_chain_start(self, serialized: Any, inputs: Any, **kwargs: Any) -> None:
            self.names[kwargs["run_id"]] = kwargs["name"]

        def on_chain_error(self, error: BaseException, **kwargs: Any) -> None:
            heard.append(self.names[kwargs["run_id"]])

    def route(state: State) -> str:
        raise LookupError("no way")

    graph: StateGraph[Any, Any, Any, Any] = StateGraph(State)
    graph.add_node("node", lambda state: None)
    graph.add_edge(START, "node")
    graph.add_conditional_edges("node", route, [END])

    with pytest.raises(LookupError, match="no way"):
        colour.invoke(graph.compile(), {"n": 1}, {"callbacks": [Listening()]})
    assert heard == ["route", "node", "LangGraph"]


def test_a_drain_inside_a_child_stops_the_outer_run_too(colour: Colour) -> None:
    """Between two supersteps of the child; both go on from there later."""
    control = RunControl()
    ran: list[str] = []

    def first(state: State) -> None:
        ran.append("first")
        control.request_drain("deploy")

    inner: StateGraph[Any, Any, Any, Any] = StateGraph(State)
    inner.add_sequence([("first", first), ("second", lambda state: ran.append("second"))])
    inner.add_edge(START, "first")
    app = one(inner.compile(), name="child", saver=InMemorySaver())

    with pytest.raises(GraphDrained, match="deploy"):
        colour.invoke(app, {"log": []}, THREAD, control=control)
    stopped_after = list(ran)
    colour.invoke(app, None, THREAD)

    assert stopped_after == ["first"]
    assert ran == ["first", "second"]


def test_a_drain_asked_for_before_the_run_stops_it_at_once(colour: Colour) -> None:
    """Nothing runs but what the input needs."""
    control = RunControl()
    control.request_drain("closed")
    ran: list[str] = []

    with pytest.raises(GraphDrained, match="closed"):
        colour.invoke(one(lambda state: ran.append("node")), {"n": 1}, control=control)

    assert ran == []


# --- error handlers and time limits of sent tasks ---------------------------------------------------------------


def sending(body: Any, *packets: Send, **options: Any) -> Any:
    """Return a graph whose start sends *packets* to its one node."""
    graph: StateGraph[Any, Any, Any, Any] = StateGraph(State)
    graph.add_node("node", body, **options)
    graph.add_conditional_edges(START, lambda state: list(packets))
    return graph.compile(checkpointer=InMemorySaver())


def test_each_failed_send_has_a_handler_of_its_own(colour: Colour) -> None:
    """It gets what was sent, and its writes come in the order of the Sends."""

    def fail(state: State) -> None:
        raise ValueError(f"no {state['n']}")

    def rescue(state: State, error: NodeError) -> Any:
        return {"log": [f"{state['n']}: {error.error}"]}

    app = sending(fail, Send("node", {"n": 1}), Send("node", {"n": 2}), error_handler=rescue)

    assert colour.invoke(app, {"log": []}, THREAD) == {"log": ["1: no 1", "2: no 2"]}


def test_a_handler_may_ask_and_is_resumed(colour: Colour) -> None:
    """The failed node does not run again; the handler gets the answer."""
    ran: list[str] = []

    def fail(state: State) -> None:
        ran.append("node")
        raise ValueError("boom")

    def rescue(state: State, error: NodeError) -> Any:
        return {"log": [error.node, interrupt("and now?")]}

    app = one(fail, saver=InMemorySaver(), error_handler=rescue)
    colour.invoke(app, {"log": []}, THREAD)

    assert colour.invoke(app, Command(resume="go on"), THREAD) == {"log": ["node", "go on"]}
    assert ran == ["node"]


def test_a_failed_handler_runs_again_on_resume(colour: Colour) -> None:
    """It had not finished; the node had failed for good."""
    ran: list[str] = []
    is_broken = True

    def rescue(state: State, error: NodeError) -> Any:
        ran.append("rescue")
        if is_broken:
            raise KeyError("worse")
        return {"log": ["saved"]}

    app = one(broken, saver=InMemorySaver(), error_handler=rescue)
    with pytest.raises(KeyError, match="worse"):
        colour.invoke(app, {"log": []}, THREAD)
    is_broken = False

    assert colour.invoke(app, None, THREAD) == {"log": ["saved"]}
    assert ran == ["rescue", "rescue"]


def test_a_send_may_limit_the_time_of_its_task(colour: Colour) -> None:
    """A sync node cannot be stopped: the run goes on without its thread, whose late result is ignored."""
    may_end = threading.Event()

    def hang(state: State) -> Any:
        may_end.wait(10)
        return {"log": ["late"]}

    app = sending(hang, Send("node", {"n": 1}, timeout=0.01))

    with pytest.raises(NodeTimeoutError, match=r"run timeout of 0\.01 s"):
        colour.invoke(app, {"log": []}, THREAD)
    may_end.set()

    assert app.get_state(THREAD).values == {"log": []}


def test_a_pause_beside_writes_that_clash_is_shown_without_them(colour: Colour) -> None:
    """Their conflict is found when the superstep is applied, which a pause puts off."""
    graph: StateGraph[Any, Any, Any, Any] = StateGraph(State)
    for name, body in (
        ("ask", lambda state: {"log": [interrupt("?")]}),
        ("x", lambda state: {"n": 1}),
        ("y", lambda state: {"n": 2}),
    ):
        graph.add_node(name, body)
        graph.add_edge(START, name)
    app = graph.compile(checkpointer=InMemorySaver())

    paused = colour.invoke(app, {"n": 0}, THREAD)

    assert (paused["n"], [question.value for question in paused["__interrupt__"]]) == (0, ["?"])
    with pytest.raises(InvalidUpdateError, match="channel 'n' takes one write per step"):
        colour.invoke(app, Command(resume="yes"), THREAD)


def test_a_caller_of_a_dropped_task_learns_of_it() -> None:
    """Its future raises: a thread that waits would wait for ever. The call that runs cannot be stopped, and is waited for."""
    told: list[str] = []
    may_end = threading.Event()

    @task
    def hold() -> None:
        wait_for(may_end)
        told.append("ended")

    def call(state: State) -> None:
        _running, queued = hold(), hold()

        def wait() -> None:
            with pytest.raises(concurrent.futures.CancelledError):
                queued.result(PATIENCE_S)
            told.append("cancelled")
            may_end.set()

        threading.Thread(target=wait).start()
        raise ValueError("boom")

    with pytest.raises(ValueError, match="boom"):
        one(call).invoke({"n": 1}, {"max_concurrency": 1})

    assert told == ["cancelled", "ended"]
