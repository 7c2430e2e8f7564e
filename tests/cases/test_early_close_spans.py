"""A consumer who leaves early leaves no span open and no error behind (the kind of fault of case C33)."""

from __future__ import annotations

import asyncio
import gc
import logging
from typing import Any, TypedDict

import pytest
from spans import Trace

from tracegraph.graph import START, StateGraph


class State(TypedDict, total=False):
    n: int


def chain(body: Any, *, nested: bool = False) -> Any:
    """Return three nodes in a row, or one node whose subgraph has them."""
    graph = StateGraph(State)
    names = ["one", "two", "three"]
    for a, b in zip([START, *names], names, strict=False):
        graph.add_node(b, body)
        graph.add_edge(a, b)
    if not nested:
        return graph.compile()
    outer = StateGraph(State)
    outer.add_node("first", body)
    outer.add_node("inner", graph.compile())
    outer.add_edge(START, "first")
    outer.add_edge("first", "inner")
    return outer.compile()


def quick(state: State) -> dict[str, int]:
    return {"n": 1}


async def yielding(state: State) -> dict[str, int]:
    for _ in range(5):
        await asyncio.sleep(0)
    return {"n": 1}


def assert_tidy(trace: Trace, caplog: pytest.LogCaptureFixture) -> None:
    """Everything ended once, nothing is an error, there is one root, and OpenTelemetry did not complain."""
    gc.collect()
    assert trace.ended, "the run was not observed at all"
    assert trace.is_complete(), (trace.open, trace.ended_twice)
    assert trace.errors == []
    assert len(trace.roots) == 1
    assert [r.getMessage() for r in caplog.records if r.name.startswith("opentelemetry")] == []


@pytest.mark.parametrize("nested", [False, True])
@pytest.mark.parametrize("leave", ["close", "forget", "raise"])
def test_sync_consumer_leaves(trace: Trace, caplog: pytest.LogCaptureFixture, leave: str, nested: bool) -> None:
    """Closed, dropped, or left behind by an exception of the consumer's own."""
    caplog.set_level(logging.DEBUG, "opentelemetry")
    stream = chain(quick, nested=nested).stream({}, stream_mode="updates")
    next(stream)

    if leave == "close":
        stream.close()
    elif leave == "raise":
        with pytest.raises(KeyError):
            for chunk in stream:
                raise KeyError(chunk)
    del stream

    assert_tidy(trace, caplog)


@pytest.mark.parametrize("nested", [False, True])
@pytest.mark.parametrize("body", [quick, yielding], ids=["sync body", "async body"])
@pytest.mark.parametrize("leave", ["aclose", "aclose in another task", "cancelled", "forgotten"])
def test_async_consumer_leaves(trace: Trace, caplog: pytest.LogCaptureFixture, leave: str, body: Any, nested: bool) -> None:
    """Broken off and closed, closed by somebody else, cancelled while it waits, or left to the loop's end."""
    caplog.set_level(logging.DEBUG, "opentelemetry")

    async def consume() -> None:
        stream = chain(body, nested=nested).astream({}, stream_mode="updates")
        await stream.__anext__()
        if leave == "aclose":
            await stream.aclose()
        elif leave == "aclose in another task":
            await asyncio.create_task(stream.aclose())
        elif leave == "cancelled":
            waiting = asyncio.ensure_future(stream.__anext__())
            await asyncio.sleep(0)
            waiting.cancel()
            await asyncio.gather(waiting, return_exceptions=True)
            await stream.aclose()

    asyncio.run(consume())

    assert_tidy(trace, caplog)


def test_root_says_why_a_run_was_left(trace: Trace) -> None:
    """A run nobody waited for is told from one that finished."""
    stream = chain(quick).stream({}, stream_mode="updates")
    next(stream)
    stream.close()

    (root,) = [span for span in trace.ended if span.parent is None]
    assert "abandoned" in map(str, (root.attributes or {}).values())
