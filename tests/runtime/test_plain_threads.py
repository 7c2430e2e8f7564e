"""What a node was given works in a thread that it starts itself, without the node's context, for as long as its attempt lasts."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from colours import Colour
from recording import recording
from small_graphs import PATIENCE_S, THREAD, State, chain, saving

from tracegraph.callbacks import BaseCallbackHandler
from tracegraph.checkpoint.memory import InMemorySaver
from tracegraph.config import RunnableConfig, get_config, get_store, get_stream_writer
from tracegraph.errors import GraphDrained, TaskLimitError
from tracegraph.events import RunStarted
from tracegraph.graph import START, StateGraph
from tracegraph.runtime import RunControl, Runtime, get_runtime
from tracegraph.types import Command, RetryPolicy, StreamWriter, interrupt


def in_thread(work: Callable[[], Any]) -> Any:
    """Return what *work* does in a new thread with an empty context, or raise what it raises."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(work).result(PATIENCE_S)


def test_what_was_got_in_the_node_works_in_its_thread(colour: Colour) -> None:
    """Writer, runtime, store and config belong to the attempt, not to the thread; to ask anew takes the node's context."""
    seen: list[Any] = []

    def node(state: State, config: RunnableConfig, writer: StreamWriter, runtime: Runtime[str]) -> None:
        asked = get_stream_writer(), get_runtime(), get_config(), get_store()

        def work() -> None:
            writer("injected")
            runtime.stream_writer("of the runtime")
            asked[0]("asked for")
            runtime.heartbeat()
            info = runtime.execution_info
            assert info is not None
            seen.append((runtime.context, runtime.store, info.node_attempt, config["configurable"]["k"]))
            seen.append((asked[1] is runtime, asked[2] is config, asked[3]))
            for helper in (get_config, get_store, get_stream_writer, get_runtime):
                with pytest.raises(RuntimeError, match=r"contextvars\.copy_context"):
                    helper()

        in_thread(work)

    app = chain({"store": "store"}, node=node)
    chunks = colour.stream(app, {}, {"configurable": {"k": 1}}, context="ctx", stream_mode="custom")

    assert chunks == ["injected", "of the runtime", "asked for"]
    assert seen == [("ctx", "store", 1, 1), (True, True, "store")]


def test_a_writer_is_mute_once_its_attempt_is_over(colour: Colour) -> None:
    """Whether that failed, or the run went on to the next node, or is over too."""
    writers: list[StreamWriter] = []

    def flaky(state: State, writer: StreamWriter) -> None:
        for old in writers:
            in_thread(lambda: old(f"late {len(writers)}"))
        writers.append(writer)
        writer(f"attempt {len(writers)}")
        if len(writers) < 2:
            raise ConnectionError("down")

    def after(state: State, writer: StreamWriter) -> None:
        for old in writers:
            old("much too late")
        writer("after")

    graph = StateGraph(State)
    graph.add_node("flaky", flaky, retry_policy=RetryPolicy(initial_interval=0.001, jitter=False))
    graph.add_node("after", after)
    graph.add_edge(START, "flaky")
    graph.add_edge("flaky", "after")

    assert colour.stream(graph.compile(), {}, stream_mode="custom") == ["attempt 1", "attempt 2", "after"]
    writers[0]("nobody is there")


# --- graphs called there with the node's config -----------------------------------------------------------------


def calling(inner: Any, *, change: Callable[[Any], Any] = lambda config: config) -> Any:
    """Return a node that calls a graph in a thread of its own, with its config."""

    def call(state: State, config: RunnableConfig) -> Any:
        given = change(config)
        return {"xs": in_thread(lambda: inner.invoke({"xs": []}, given))["xs"]}

    return call


def leaf(state: State, config: RunnableConfig, runtime: Runtime[Any]) -> Any:
    """Note what a node of the inner graph sees."""
    own = config["configurable"]
    return {
        "xs": [own["thread_id"], own["checkpoint_ns"].partition("|")[0].partition(":")[0], runtime.context, config.get("tags")]
    }


def namespaces(saver: InMemorySaver) -> set[str]:
    """Return the namespaces of the thread, without ids."""
    return {saved.config["configurable"]["checkpoint_ns"].split(":")[0] for saved in saver.list(THREAD)}


@pytest.mark.parametrize("own", ["none", "the same saver", "the parent's"])
def test_a_graph_called_there_is_inside(colour: Colour, own: str) -> None:
    """It is filed below the node, whose thread goes on undisturbed, and has the node's context, tags and handlers."""
    saver = InMemorySaver()
    inner = chain({"checkpointer": {"none": None, "the same saver": saver, "the parent's": True}[own]}, leaf=leaf)
    heard: list[str] = []

    class Handler(BaseCallbackHandler):
        def on_chain_start(self, serialized: Any, inputs: Any, **kwargs: Any) -> None:
            heard.append(kwargs["name"])

    app = chain(saving(saver), call=calling(inner), after=lambda state: {"xs": ["after"]})

    with recording() as recorder:
        result = colour.invoke(app, {"xs": []}, {**THREAD, "tags": ["u"], "callbacks": [Handler()]}, context="ctx")

    assert result == {"xs": ["t", "call", "ctx", ["u"], "after"]}
    assert namespaces(saver) == {"", "call"}
    assert heard == ["LangGraph", "call", "LangGraph", "leaf", "after"]
    outer, nested = [event for event in recorder.events if isinstance(event, RunStarted)]
    assert nested.parent_run_id == outer.run_id
    assert [event.seq for event in recorder.events] == sorted(event.seq for event in recorder.events)


def test_what_is_changed_in_the_config_counts(colour: Colour) -> None:
    """More tags, another thread: an inner call keeps what it sets for itself."""
    saver = InMemorySaver()
    inner = chain(saving(saver), leaf=leaf)

    def change(config: Any) -> Any:
        return {**config, "tags": ["own"], "configurable": {"thread_id": "other"}}

    app = chain(saving(saver), call=calling(inner, change=change))

    assert colour.invoke(app, {"xs": []}, {**THREAD, "tags": ["u"]}) == {"xs": ["other", "leaf", None, ["own"]]}
    assert namespaces(saver) == {""}


def test_a_config_bound_to_the_graph_leads_there_too(colour: Colour) -> None:
    """As if it had been given to the call."""
    saver = InMemorySaver()
    inner = chain(saving(saver), leaf=leaf)

    def call(state: State, config: RunnableConfig) -> Any:
        bound = inner.with_config(config)
        return in_thread(lambda: bound.invoke({"xs": []}))

    assert colour.invoke(chain(saving(saver), call=call), {"xs": []}, THREAD)["xs"][:2] == ["t", "call"]
    assert namespaces(saver) == {"", "call"}


def test_an_async_graph_is_inside_too(colour: Colour) -> None:
    """On an event loop of its own."""
    saver = InMemorySaver()

    async def awaits(state: State, config: RunnableConfig, runtime: Runtime[Any]) -> Any:
        await asyncio.sleep(0)
        return leaf(state, config, runtime)

    inner = chain(leaf=awaits)

    def call(state: State, config: RunnableConfig) -> Any:
        return in_thread(lambda: asyncio.run(inner.ainvoke({"xs": []}, config)))

    assert colour.invoke(chain(saving(saver), call=call), {"xs": []}, THREAD) == {"xs": ["t", "call", None, None]}
    assert namespaces(saver) == {"", "call"}


def test_a_question_asked_there_pauses_the_run(colour: Colour) -> None:
    """And the answer gets there."""

    def asks(state: State) -> Any:
        return {"xs": [interrupt("well?")]}

    app = chain(saving(), call=calling(chain(asks=asks)))

    paused = colour.invoke(app, {"xs": []}, THREAD)

    assert [question.value for question in paused["__interrupt__"]] == ["well?"]
    assert colour.invoke(app, Command(resume="yes"), THREAD) == {"xs": ["yes"]}


def test_the_runs_control_reaches_there(colour: Colour) -> None:
    """A drain asked for outside stops it, and its tasks count."""
    control = RunControl(max_tasks=4)

    def drains(state: State) -> None:
        control.request_drain("deploy")

    app = chain(call=calling(chain(drains=drains, never=drains)))
    with pytest.raises(GraphDrained):
        colour.invoke(app, {"xs": []}, control=control)
    assert control.tasks_begun == 2

    with pytest.raises(TaskLimitError):
        colour.invoke(chain(call=calling(chain(a=noop, b=noop))), {"xs": []}, control=RunControl(max_tasks=2))


def noop(state: State) -> None:
    """Do nothing."""


def test_graphs_called_in_several_threads_at_once_have_places_of_their_own(colour: Colour) -> None:
    """None is taken for another, though all began before the first one ended."""
    saver, count = InMemorySaver(), 8
    all_there = threading.Barrier(count)

    def meets(state: State) -> Any:
        all_there.wait(PATIENCE_S)
        return {"xs": [state["n"]]}

    inner = chain(meets=meets)

    def call(state: State, config: RunnableConfig) -> Any:
        with ThreadPoolExecutor(count) as pool:
            results = pool.map(lambda n: inner.invoke({"xs": [], "n": n}, config), range(count))
            return {"xs": [result["xs"][0] for result in results]}

    assert colour.invoke(chain(saving(saver), call=call), {"xs": []}, THREAD) == {"xs": [*range(count)]}
    inside = {saved.config["configurable"]["checkpoint_ns"] for saved in saver.list(THREAD)} - {""}
    assert len(inside) == count


def test_the_config_of_an_attempt_that_is_over_leads_nowhere(colour: Colour) -> None:
    """A graph that is called with it later is a run by itself."""
    kept: list[RunnableConfig] = []

    def keep(state: State, config: RunnableConfig) -> None:
        kept.append(config)

    inner = chain(leaf=leaf)
    with recording() as recorder:
        colour.invoke(chain(keep=keep), {"xs": []}, THREAD)
        assert colour.invoke(inner, {"xs": []}, kept[0]) == {"xs": ["t", "leaf", None, None]}

    assert [event.parent_run_id for event in recorder.events if isinstance(event, RunStarted)] == [None, None]
