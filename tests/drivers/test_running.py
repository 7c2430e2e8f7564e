"""How tasks run: in parallel, retried, called, nested, written to the stream while they run."""

from __future__ import annotations

import asyncio
import operator
import threading
from typing import Annotated, Any, TypedDict

import pytest
from colours import Colour

from tracegraph.checkpoint.memory import InMemorySaver
from tracegraph.config import get_stream_writer
from tracegraph.errors import ConcurrentRunError, GraphDrained, GraphRecursionError, InvalidInputError, NodeTimeoutError
from tracegraph.func import task
from tracegraph.graph import END, START, StateGraph
from tracegraph.runtime import RunControl
from tracegraph.types import Command, RetryPolicy, Send

SOON = RetryPolicy(initial_interval=0.001, jitter=False)


class State(TypedDict, total=False):
    n: int
    log: Annotated[list[Any], operator.add]


def graph_of(**nodes: Any) -> StateGraph[Any, Any, Any, Any]:
    """Return a builder that starts all *nodes* at once."""
    graph: StateGraph[Any, Any, Any, Any] = StateGraph(State)
    for name, body in nodes.items():
        graph.add_node(name, body)
        graph.add_edge(START, name)
    return graph


def as_colour(colour: Colour, body: Any) -> Any:
    """Return *body* as a node of the run's own colour."""
    if colour.name == "sync":
        return body

    async def abody(state: Any) -> Any:
        return body(state)

    return abody


def test_tasks_of_a_superstep_run_at_the_same_time(colour: Colour) -> None:
    """Each waits until all have begun, which only works if each has a thread of its own, however many there are."""
    barrier = threading.Barrier(40)

    def meet(state: State) -> State:
        barrier.wait(20)
        return {"log": [1]}

    graph: StateGraph[Any, Any, Any, Any] = StateGraph(State)
    graph.add_node("meet", meet)
    graph.add_conditional_edges(START, lambda state: [Send("meet", {})] * 40)

    assert colour.invoke(graph.compile(), {}) == {"log": [1] * 40}


def test_max_concurrency_limits_running_nodes(colour: Colour) -> None:
    """Never more than so many bodies at work."""
    lock = threading.Lock()
    now: list[int] = [0, 0]

    def body(state: State) -> State:
        with lock:
            now[0] += 1
            now[1] = max(now)
        threading.Event().wait(0.002)
        with lock:
            now[0] -= 1
        return {"log": [1]}

    graph: StateGraph[Any, Any, Any, Any] = StateGraph(State)
    graph.add_node("body", body)
    graph.add_conditional_edges(START, lambda state: [Send("body", {})] * 12)

    colour.invoke(graph.compile(), {}, {"max_concurrency": 3})

    assert now[1] <= 3


def test_a_retried_node_recovers(colour: Colour) -> None:
    """It is run again, and what the failed attempts wrote is not kept."""
    tries: list[int] = []

    def flaky(state: State) -> Any:
        tries.append(1)
        if len(tries) < 3:
            raise ConnectionError
        return {"n": len(tries)}

    graph: StateGraph[Any, Any, Any, Any] = StateGraph(State)
    graph.add_node("flaky", as_colour(colour, flaky), retry_policy=SOON)
    graph.add_edge(START, "flaky")

    assert colour.invoke(graph.compile(), {"n": 0}) == {"n": 3, "log": []}


def test_a_retry_fires_while_the_driving_thread_is_busy() -> None:
    """The thread that called invoke runs one task, and the retry of another does not wait for that."""
    tries: list[int] = []
    recovered = threading.Event()

    def flaky(state: State) -> State:
        tries.append(1)
        if len(tries) < 2:
            raise ConnectionError
        recovered.set()
        return {"log": ["flaky"]}

    def busy(state: State) -> State:
        assert recovered.wait(10)
        return {"log": ["busy"]}

    graph: StateGraph[Any, Any, Any, Any] = StateGraph(State)
    for name, body in (("busy", busy), ("busy2", busy), ("flaky", flaky)):
        graph.add_node(name, body, retry_policy=SOON)
        graph.add_edge(START, name)

    assert graph.compile().invoke({})["log"] == ["busy", "busy", "flaky"]


def test_an_async_node_out_of_time_is_retried_then_fails() -> None:
    """Each attempt has its own limit; the last one's error says node and limit."""
    tries: list[int] = []

    async def slow(state: State) -> State:
        tries.append(1)
        await asyncio.Event().wait()
        return {}

    graph: StateGraph[Any, Any, Any, Any] = StateGraph(State)
    graph.add_node("slow", slow, timeout=0.01, retry_policy=SOON._replace(max_attempts=2))
    graph.add_edge(START, "slow")

    with pytest.raises(NodeTimeoutError, match=r"'slow' exceeded its run timeout of 0\.01 s"):
        asyncio.run(graph.compile().ainvoke({}))
    assert len(tries) == 2


@task
def double(x: int) -> int:
    """Called as a task."""
    return x * 2


@task
async def adouble(x: int) -> int:
    """Called as a task, async."""
    await asyncio.sleep(0)
    return x * 2


@pytest.mark.parametrize("limit", [None, 1])
def test_called_tasks_return_futures(colour: Colour, limit: int | None) -> None:
    """Blocking ones in sync code, awaitable ones on a loop; a limit of 1 does not hang the caller."""

    def caller(state: State) -> State:
        return {"log": [future.result() for future in [double(i) for i in range(4)]]}

    async def acaller(state: State) -> State:
        futures = [double(0), double(1), adouble(2), adouble(3)]
        return {"log": [await future for future in futures]}

    app = graph_of(caller=caller if colour.name == "sync" else acaller).compile()
    config = {} if limit is None else {"max_concurrency": limit}

    assert colour.invoke(app, {}, config) == {"log": [0, 2, 4, 6]}


def test_a_sync_node_of_an_async_run_calls_tasks_from_its_thread() -> None:
    """Its futures block, for there is no loop in that thread."""

    def caller(state: State) -> State:
        return {"log": [double(3).result(10), adouble(4).result(10)]}

    assert asyncio.run(graph_of(caller=caller).compile().ainvoke({})) == {"log": [6, 8]}


def test_finished_calls_are_not_made_again_on_resume(colour: Colour) -> None:
    """A failed node starts over; the call that had returned hands its result back."""
    calls: list[str] = []
    is_broken = True

    @task
    def paid(x: str) -> str:
        calls.append(x)
        return x

    def caller(state: State) -> State:
        first = paid("once").result()
        if is_broken:
            raise ValueError("later")
        return {"log": [first]}

    async def acaller(state: State) -> State:
        first = await paid("once")
        if is_broken:
            raise ValueError("later")
        return {"log": [first]}

    app = graph_of(caller=caller if colour.name == "sync" else acaller).compile(checkpointer=InMemorySaver())
    thread = {"configurable": {"thread_id": "t"}}
    with pytest.raises(ValueError, match="later"):
        colour.invoke(app, {"log": []}, thread)
    is_broken = False

    assert colour.invoke(app, None, thread) == {"log": ["once"]}
    assert calls == ["once"]


def test_a_task_outside_a_run_is_an_error() -> None:
    """There is no run it could be a task of."""
    with pytest.raises(RuntimeError, match="outside a run"):
        double(1)


def test_custom_chunks_arrive_while_the_node_runs(colour: Colour) -> None:
    """The reader gets the first chunk before the node can go on, and all of them before its update."""
    read = threading.Event()

    def writes(state: State) -> State:
        writer = get_stream_writer()
        writer("one")
        assert read.wait(10)
        writer("two")
        return {"n": 1}

    seen: list[Any] = []

    def consume(part: Any) -> None:
        seen.append(part)
        read.set()

    colour.each(graph_of(writes=writes).compile(), {}, consume, stream_mode=["custom", "updates"])

    assert seen == [("custom", "one"), ("custom", "two"), ("updates", {"writes": {"n": 1}})]


def test_a_bound_writer_works_in_plain_threads(colour: Colour) -> None:
    """Each thread's chunks keep their order; a writer kept for later is mute once its node is over."""
    kept: list[Any] = []

    def writes(state: State, writer: Any) -> State:
        kept.append(writer)
        threads = [threading.Thread(target=lambda k=k: [writer((k, i)) for i in range(50)]) for k in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return {"n": 1}

    seen = colour.stream(graph_of(writes=writes).compile(), {}, stream_mode="custom")
    kept[0]("late")

    assert len(seen) == 200
    assert all([i for k, i in seen if k == thread] == list(range(50)) for thread in range(4))


@pytest.mark.parametrize("subgraphs", [True, False])
def test_a_childs_chunks_need_subgraphs(colour: Colour, subgraphs: bool) -> None:
    """A nested graph writes to the outer stream only if that asked for nested graphs."""
    child = graph_of(inner=lambda state, writer: writer("from inside")).compile()
    app = graph_of(child=child).compile()

    seen = colour.stream(app, {"n": 1}, stream_mode="custom", subgraphs=subgraphs)

    assert [chunk for _, chunk in seen] == ["from inside"] if subgraphs else seen == []


def test_a_command_for_the_parent_is_applied_there(colour: Colour) -> None:
    """The child's run ends; its parent gets the update and goes where the command says."""
    child = graph_of(leave=lambda state: Command(graph=Command.PARENT, update={"log": ["handed"]}, goto="after")).compile()
    graph = graph_of(child=child)
    graph.add_node("after", lambda state: {"log": ["after"]})

    assert colour.invoke(graph.compile(), {"log": []})["log"] == ["handed", "after"]


def test_recursion_limit_names_what_would_run_next(colour: Colour) -> None:
    """A graph of k supersteps needs a limit of k + 1; what was done is kept."""
    graph = graph_of(step=lambda state: {"n": state["n"] + 1})
    graph.add_conditional_edges("step", lambda state: "step" if state["n"] < 3 else END)
    app = graph.compile(checkpointer=InMemorySaver())

    with pytest.raises(GraphRecursionError, match="next would be nothing") as failure:
        colour.invoke(app, {"n": 0}, {"recursion_limit": 3, "configurable": {"thread_id": "t"}})

    assert failure.value.limit == 3
    assert app.get_state({"configurable": {"thread_id": "t"}}).values["n"] == 3
    assert colour.invoke(app, {"n": 0}, {"recursion_limit": 4, "configurable": {"thread_id": "u"}})["n"] == 3


def test_drain_stops_between_supersteps(colour: Colour) -> None:
    """The step that runs finishes and is saved; the thread goes on later."""
    control = RunControl()

    def first(state: State) -> State:
        control.request_drain("deploy")
        return {"log": ["first"]}

    graph: StateGraph[Any, Any, Any, Any] = StateGraph(State)
    graph.add_sequence([("first", first), ("second", lambda state: {"log": ["second"]})])
    graph.add_edge(START, "first")
    app = graph.compile(checkpointer=InMemorySaver())
    thread = {"configurable": {"thread_id": "t"}}

    with pytest.raises(GraphDrained, match="deploy"):
        colour.invoke(app, {"log": []}, thread, control=control)

    assert app.get_state(thread).next == ("second",)
    assert colour.invoke(app, None, thread)["log"] == ["first", "second"]


def test_two_writers_of_one_thread_are_told_apart(colour: Colour) -> None:
    """A run that finds its thread moved on by another one fails by name; what the other saved is untouched."""
    app_box: list[Any] = []
    thread = {"configurable": {"thread_id": "t"}}

    def meddles(state: State) -> State:
        if state.get("n") == 0:
            threading_run = threading.Thread(target=lambda: app_box[0].invoke({"n": 1}, thread))
            threading_run.start()
            threading_run.join(10)
        return {"log": [state.get("n")]}

    app_box.append(graph_of(meddles=meddles).compile(checkpointer=InMemorySaver()))

    with pytest.raises(ConcurrentRunError, match="another run wrote it"):
        colour.invoke(app_box[0], {"n": 0}, thread)

    assert app_box[0].get_state(thread).values == {"n": 1, "log": [1]}


def test_one_compiled_graph_serves_many_threads_and_loops() -> None:
    """It holds no run state: each run sees only its own."""
    graph = graph_of(step=lambda state: {"n": state["n"] + 1, "log": [state["n"]]})
    graph.add_conditional_edges("step", lambda state: "step" if state["n"] % 10 else END)
    app = graph.compile()
    results: dict[int, Any] = {}

    def run(k: int) -> None:
        start = k * 10 + 1
        results[k] = app.invoke({"n": start}) if k % 2 else asyncio.run(app.ainvoke({"n": start}))

    threads = [threading.Thread(target=run, args=(k,)) for k in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)

    assert results == {k: {"n": k * 10 + 10, "log": list(range(k * 10 + 1, k * 10 + 10))} for k in range(8)}


def test_batch_keeps_the_order_of_inputs(colour: Colour) -> None:
    """One output per input; failures are raised, or returned in their place."""

    def half(state: State) -> State:
        if state["n"] % 2:
            raise ValueError(state["n"])
        return {"n": state["n"] // 2}

    app = graph_of(half=half).compile()
    inputs = [{"n": 4}, {"n": 3}, {"n": 2}]

    def run(**options: Any) -> Any:
        return app.batch(inputs, **options) if colour.name == "sync" else asyncio.run(app.abatch(inputs, **options))

    first, second, third = run(return_exceptions=True)
    with pytest.raises(ValueError, match="3"):
        run()

    assert (first["n"], str(second), third["n"]) == (2, "3", 1)


def test_an_async_node_in_a_sync_run_names_ainvoke() -> None:
    """So does one that turns out to be async only when called."""

    async def node(state: State) -> State:
        return {}

    for body in (node, lambda state: node(state)):
        with pytest.raises(TypeError, match="ainvoke"):
            graph_of(node=body).compile().invoke({})


def test_contradicting_arguments_are_named(colour: Colour) -> None:
    """Unknown modes, durability without a saver, a saver without a thread."""
    app = graph_of(a=lambda state: None).compile()
    saved = graph_of(a=lambda state: None).compile(checkpointer=InMemorySaver())

    with pytest.raises(InvalidInputError, match="stream mode 'valeus' does not exist"):
        colour.stream(app, {}, stream_mode="valeus")
    with pytest.raises(InvalidInputError, match="needs a checkpointer"):
        colour.invoke(app, {}, durability="sync")
    with pytest.raises(InvalidInputError, match="thread_id"):
        colour.invoke(saved, {})
    with pytest.raises(InvalidInputError, match="'sometimes'"):
        colour.invoke(saved, {}, {"configurable": {"thread_id": "t"}}, durability="sometimes")


@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
def test_every_durability_ends_with_the_same_state(colour: Colour, durability: Any) -> None:
    """They differ in when it is stored, not in what."""
    graph: StateGraph[Any, Any, Any, Any] = StateGraph(State)
    graph.add_sequence([("a", lambda state: {"log": ["a"]}), ("b", lambda state: {"log": ["b"]})])
    graph.add_edge(START, "a")
    app = graph.compile(checkpointer=InMemorySaver())
    thread = {"configurable": {"thread_id": "t"}}

    colour.invoke(app, {"log": []}, thread, durability=durability)

    assert app.get_state(thread).values == {"log": ["a", "b"]}
    assert len(list(app.get_state_history(thread))) == (1 if durability == "exit" else 4)
