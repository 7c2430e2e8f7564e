"""A span that node code opens is a child of the node's span, wherever it is opened (the kind of fault of case C34)."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from typing import Any, TypedDict

import pytest
from colours import Colour
from spans import Trace

from tracegraph.graph import START, StateGraph


class State(TypedDict, total=False):
    n: int


def two_nodes(body: Any) -> Any:
    """Return a graph with two nodes that run at once."""
    graph = StateGraph(State)
    for name in ("alpha", "beta"):
        graph.add_node(name, body)
        graph.add_edge(START, name)
    return graph.compile()


def work(trace: Trace) -> None:
    with trace.tracer.start_as_current_span("mine"):
        pass


def assert_parents(trace: Trace, *, each: int = 1) -> None:
    """Each node has *each* spans of the user's right below it, and all is one trace."""
    parents = [trace.ancestors(span)[0] for span in trace.named("mine")]
    assert [sum(name in parent for parent in parents) for name in ("alpha", "beta")] == [each, each]
    assert len(trace.trace_ids) == 1
    assert trace.is_complete()


def test_span_in_a_sync_body(trace: Trace, colour: Colour) -> None:
    """On the caller's thread or on a worker."""

    def body(state: State) -> dict[str, int]:
        work(trace)
        return {}

    colour.invoke(two_nodes(body), {"n": 1})

    assert_parents(trace)


def test_span_in_an_async_body_and_what_it_starts(trace: Trace) -> None:
    """In the coroutine before and after it waits, in a task of its own, and in a thread."""

    async def child() -> None:
        work(trace)

    async def body(state: State) -> dict[str, int]:
        work(trace)
        await asyncio.sleep(0)
        work(trace)
        await asyncio.create_task(child())
        await asyncio.to_thread(work, trace)
        return {}

    asyncio.run(two_nodes(body).ainvoke({"n": 1}))

    assert_parents(trace, each=4)


def test_span_in_a_thread_that_copies_the_context(trace: Trace, colour: Colour) -> None:
    """Code that starts threads itself carries the context over itself."""

    def body(state: State) -> dict[str, int]:
        thread = threading.Thread(target=contextvars.copy_context().run, args=(work, trace))
        thread.start()
        thread.join()
        return {}

    colour.invoke(two_nodes(body), {"n": 1})

    assert_parents(trace)


def test_span_in_a_path_function_is_below_its_node(trace: Trace, colour: Colour) -> None:
    """Routing is part of the node's task."""

    def path(state: State) -> list[str]:
        work(trace)
        return []

    graph = StateGraph(State)
    graph.add_node("alpha", lambda state: {})
    graph.add_edge(START, "alpha")
    graph.add_conditional_edges("alpha", path)

    colour.invoke(graph.compile(), {"n": 1})

    (mine,) = trace.named("mine")
    assert any("alpha" in name for name in trace.ancestors(mine))


@pytest.mark.parametrize("as_node", [True, False], ids=["as a node", "called by a node"])
def test_span_in_a_subgraph_is_below_both_nodes(trace: Trace, colour: Colour, as_node: bool) -> None:
    """The inner node's span is the parent, the outer node's an ancestor."""

    def body(state: State) -> dict[str, int]:
        work(trace)
        return {"n": 2}

    inner = StateGraph(State)
    inner.add_node("deep", body)
    inner.add_edge(START, "deep")
    app = inner.compile()
    graph = StateGraph(State)
    graph.add_node("shell", app if as_node else lambda state: app.invoke({"n": 1}))
    graph.add_edge(START, "shell")

    colour.invoke(graph.compile(), {"n": 1})

    (mine,) = trace.named("mine")
    above = trace.ancestors(mine)
    assert "deep" in above[0]
    assert any("shell" in name for name in above)
    assert len(trace.roots) == 1


def test_callers_span_is_the_runs_parent_and_stays_current(trace: Trace, colour: Colour) -> None:
    """Nothing of the run is left in the caller's context."""

    def body(state: State) -> dict[str, int]:
        work(trace)
        return {}

    with trace.tracer.start_as_current_span("caller"):
        colour.invoke(two_nodes(body), {"n": 1})
        with trace.tracer.start_as_current_span("after"):
            pass

    (after,) = trace.named("after")
    assert trace.ancestors(after) == ["caller"]
    assert trace.roots == ["caller"]
    assert_parents(trace)
