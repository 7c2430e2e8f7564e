"""Idle limits: an attempt may take its time as long as it gives signs of progress."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest
from colours import Colour
from small_graphs import State, bounded, chain, says, wait_for

from tracegraph.callbacks import dispatch_custom_event
from tracegraph.config import get_config
from tracegraph.current import here
from tracegraph.errors import NodeError, NodeTimeoutError
from tracegraph.func import task
from tracegraph.graph import START, StateGraph
from tracegraph.runtime import Runtime, get_runtime
from tracegraph.types import RetryPolicy, TimeoutPolicy

LIMIT_S = 0.05
IDLE = TimeoutPolicy(idle_timeout=LIMIT_S)
LONG = TimeoutPolicy(idle_timeout=3600.0)
AT_ONCE = RetryPolicy(initial_interval=0.001, jitter=False)
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


async def hangs(state: State) -> State:
    """Give no sign of progress."""
    await asyncio.Event().wait()
    return {}


def test_a_node_without_progress_is_given_up() -> None:
    """The error names the node, the limit and the step."""
    with pytest.raises(NodeTimeoutError) as raised:
        run(limited(hangs, retry_policy=ONCE))

    error = raised.value
    assert (error.node, error.kind, error.timeout, error.idle_timeout, error.run_timeout) == ("a", "idle", LIMIT_S, LIMIT_S, None)
    assert (error.step, error.elapsed >= LIMIT_S) == (1, True)
    assert f"'a' exceeded its idle timeout of {LIMIT_S} s in step 1" in str(error)


def test_progress_pushes_the_limit_back_again_and_again() -> None:
    """The node takes several times its idle limit; as soon as it falls silent, its time runs."""
    chunks: list[int] = []

    async def body(state: State, runtime: Runtime) -> State:
        for number in range(8):
            await asyncio.sleep(0.1)
            runtime.stream_writer(number)
            chunks.append(number)
        await asyncio.Event().wait()
        return {}

    with pytest.raises(NodeTimeoutError) as raised:
        run(limited(body, TimeoutPolicy(idle_timeout=0.5), retry_policy=ONCE))

    assert chunks == list(range(8))
    assert raised.value.elapsed < 0.1 * len(chunks) + 0.5


def test_the_first_limit_that_is_reached_counts() -> None:
    """Progress does not push the limit of the whole attempt back."""

    async def busy(state: State, runtime: Runtime) -> State:
        while True:
            await asyncio.sleep(0.001)
            runtime.heartbeat()

    policy = TimeoutPolicy(run_timeout=LIMIT_S, idle_timeout=3600.0)
    with pytest.raises(NodeTimeoutError) as raised:
        run(limited(busy, policy, retry_policy=ONCE))
    assert (raised.value.kind, raised.value.timeout) == ("run", LIMIT_S)

    with pytest.raises(NodeTimeoutError) as raised:
        run(limited(hangs, TimeoutPolicy(run_timeout=3600.0, idle_timeout=LIMIT_S), retry_policy=ONCE))
    assert (raised.value.kind, raised.value.timeout) == ("idle", LIMIT_S)


def test_each_attempt_has_its_own_time_and_the_default_policy_retries() -> None:
    """Then the error handler gets the error."""
    attempts: list[int] = []
    handled: list[NodeError] = []

    async def body(state: State) -> State:
        attempts.append(get_runtime().execution_info.node_attempt)  # type: ignore[union-attr]  # in a node there is one
        return await hangs(state)

    def handler(state: State, error: NodeError) -> State:
        handled.append(error)
        return {"xs": ["handled"]}

    assert run(limited(body, retry_policy=AT_ONCE, error_handler=handler)) == {"xs": ["handled"]}
    assert attempts == [1, 2, 3]
    assert handled[0].node == "a"
    assert isinstance(handled[0].error, NodeTimeoutError)


# --- what counts as progress -------------------------------------------------------------------------------


@task
async def child() -> None:
    """Do nothing."""


def callbacks() -> Any:
    """Return what models and tools report through."""
    return get_config()["callbacks"]


def in_a_thread(function: Callable[[], Any]) -> None:
    """Call a function in a plain thread, which knows nothing of the run."""
    thread = threading.Thread(target=function)
    thread.start()
    thread.join()


async def calls_a_task() -> None:
    await child()


async def streams() -> None:
    get_runtime().stream_writer("x")


async def streams_in_a_thread() -> None:
    write = get_runtime().stream_writer
    in_a_thread(lambda: write("x"))


async def beats() -> None:
    get_runtime().heartbeat()


async def beats_in_a_thread() -> None:
    in_a_thread(get_runtime().heartbeat)


async def emits_an_event() -> None:
    dispatch_custom_event("event", {})


async def starts_a_model_call() -> None:
    callbacks().on_chat_model_start({}, [[]])


async def starts_a_tool() -> None:
    callbacks().on_tool_start({"name": "tool"}, "in")


async def starts_a_retriever() -> None:
    callbacks().on_retriever_start({}, "query")


async def runs_a_graph() -> None:
    await chain(inner=says("inner")).ainvoke({"xs": []})


AUTO = [
    calls_a_task, streams, streams_in_a_thread, emits_an_event, starts_a_model_call, starts_a_tool, starts_a_retriever,
    runs_a_graph,
]  # fmt: skip
BEATS = [beats, beats_in_a_thread]


def is_progress(signal: Any, refresh_on: Any, *, inside: Callable[[Any], Any] | None = None) -> bool:
    """Say whether *signal*, sent by a node or by what it runs *inside*, pushes the idle limit of that node back."""
    found: list[bool] = []

    async def body(state: State) -> State:
        outer: Any = here("a test")
        before = outer.run.progress()[outer.task]
        await (signal if inside is None else inside(signal))()
        found.append(outer.run.progress()[outer.task] > before)
        return {}

    run(limited(body, TimeoutPolicy(idle_timeout=3600.0, refresh_on=refresh_on)))
    return found == [True]


@pytest.mark.parametrize("signal", [*AUTO, *BEATS])
def test_signs_of_progress(signal: Any) -> None:
    """Nobody need listen to them."""
    assert is_progress(signal, "auto")


@pytest.mark.parametrize("signal", [*AUTO, *BEATS])
def test_only_heartbeats_count_where_that_is_asked_for(signal: Any) -> None:
    """Then a node that only talks is not alive."""
    assert is_progress(signal, "heartbeat") is (signal in BEATS)


def in_called_task(signal: Any) -> Any:
    """Return code that calls a task which sends the signal."""

    @task
    async def sends() -> None:
        await signal()

    async def calls() -> None:
        await sends()

    return calls


def in_graph(signal: Any) -> Any:
    """Return code that runs a graph whose node sends the signal."""

    async def sends(state: State) -> State:
        await signal()
        return {}

    async def runs() -> None:
        await chain(sends=sends).ainvoke({"xs": []})

    return runs


@pytest.mark.parametrize("inside", [in_called_task, in_graph])
@pytest.mark.parametrize("signal", BEATS)
def test_heartbeats_of_what_a_node_runs_are_its_own(signal: Any, inside: Any) -> None:
    """They reach every task around them."""
    assert is_progress(signal, "heartbeat", inside=inside)


def test_tokens_of_a_model_that_nobody_listens_to_are_progress() -> None:
    """A long answer is not silence; nor are the ends of calls, nor other runnables."""
    kept: list[Any] = []

    async def starts() -> None:
        manager = callbacks()
        kept[:] = [
            manager.on_llm_start({}, ["?"])[0],
            manager.on_tool_start({"name": "tool"}, "in"),
            manager.on_chain_start({}, {}),
        ]

    async def goes_on() -> None:
        await starts()
        outer: Any = here("a test")
        model, tool, other = kept
        for report in (
            lambda: model.on_llm_new_token("x"),
            lambda: model.on_llm_end(None),
            lambda: tool.on_tool_end("out"),
            lambda: other.on_chain_end({}),
        ):
            before = outer.progress_ns
            report()
            assert outer.progress_ns > before

    assert is_progress(goes_on, "auto")


def test_what_a_graph_inside_does_is_progress() -> None:
    """Each of its supersteps is, though its nodes say nothing."""
    seen: list[int] = []

    def looks(state: State) -> State:
        inner: Any = here("a test")
        seen.append(inner.run.parent.progress_ns)
        return {}

    graph = chain(one=looks, two=looks, three=looks)

    async def body(state: State) -> State:
        await graph.ainvoke({"xs": []})
        return {}

    run(limited(body, LONG))
    assert sorted(set(seen)) == seen


# --- heartbeats --------------------------------------------------------------------------------------------


def test_a_heartbeat_without_an_idle_limit_does_nothing(colour: Colour) -> None:
    """Node code need not know whether it has one."""
    kept: list[Runtime] = []

    def body(state: State, runtime: Runtime) -> State:
        runtime.heartbeat()
        kept.append(runtime)
        return {"xs": ["done"]}

    assert colour.invoke(chain(a=body), {"xs": []}) == {"xs": ["done"]}
    kept[0].heartbeat()
    Runtime().heartbeat()


def test_an_attempt_that_is_over_keeps_nothing_alive() -> None:
    """Its thread goes on to beat while the next attempt hangs, which is given up all the same."""
    is_over = threading.Event()
    beating = threading.Event()

    def beat(runtime: Runtime) -> None:
        while not is_over.wait(0.001):
            runtime.heartbeat()
            beating.set()

    async def body(state: State, runtime: Runtime) -> State:
        if not beating.is_set():
            threading.Thread(target=beat, args=(runtime,), daemon=True).start()
            wait_for(beating)
            raise ConnectionError("once")
        return await hangs(state)

    try:
        with pytest.raises(NodeTimeoutError, match="idle"):
            run(limited(body, retry_policy=RetryPolicy(initial_interval=0.001, jitter=False, max_attempts=2)))
    finally:
        is_over.set()


def test_a_task_inside_that_is_over_keeps_nothing_around_it_alive() -> None:
    """Nor does a late heartbeat of a graph's node reach the node that ran the graph."""
    kept: list[Runtime] = []

    def keeps(state: State, runtime: Runtime) -> State:
        runtime.heartbeat()
        kept.append(runtime)
        return {}

    async def body(state: State) -> State:
        await chain(keeps=keeps).ainvoke({"xs": []})
        outer: Any = here("a test")
        before = outer.progress_ns
        kept[0].heartbeat()
        kept[0].stream_writer("late")
        return {"xs": [outer.progress_ns == before]}

    assert run(limited(body, LONG)) == {"xs": [True]}
