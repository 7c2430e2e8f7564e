"""A child run ends with the task whose code called it, however that task ends."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any, TypedDict

import pytest
from event_log import Recorder, assert_numbered, assert_well_nested
from recording import recording
from spans import Trace

from tracegraph.events import RunEnded
from tracegraph.graph import START, StateGraph


class State(TypedDict, total=False):
    n: int


class Stage:
    """Two inner nodes in a row, the first of which waits until the outer run is over, called by the node ``caller``."""

    def __init__(self) -> None:
        self.has_begun = threading.Event()
        self.may_go_on = threading.Event()
        self.is_over = threading.Event()
        self.ran: list[str] = []
        inner = StateGraph(State)
        inner.add_node("waits", self._waits)
        inner.add_node("next", self._next)
        inner.add_edge(START, "waits")
        inner.add_edge("waits", "next")
        self._inner = inner.compile()

    def _waits(self, state: State) -> dict[str, Any]:
        self.has_begun.set()
        assert self.may_go_on.wait(10)
        self.ran.append("waits")
        return {}

    def _next(self, state: State) -> dict[str, Any]:
        self.ran.append("next")
        return {}

    def caller(self, state: State) -> Any:
        try:
            return self._inner.invoke({"n": 1})
        finally:
            self.is_over.set()

    async def inner_began(self) -> None:
        assert await asyncio.to_thread(self.has_begun.wait, 10)

    def graph(self, *, sibling: Callable[[State], Any] | None = None) -> Any:
        graph = StateGraph(State)
        graph.add_node("caller", self.caller)
        graph.add_edge(START, "caller")
        if sibling is not None:
            graph.add_node("sibling", sibling)
            graph.add_edge(START, "sibling")
        return graph.compile()

    def finish(self) -> None:
        """Let the thread that nobody can stop go on, and wait for it."""
        self.may_go_on.set()
        assert self.is_over.wait(10)


def assert_stopped(stage: Stage, log: Recorder, trace: Trace) -> None:
    """The child took no further step, and nothing is told of it after the root run ended."""
    assert stage.ran == ["waits"]
    assert_numbered(log.events)
    assert_well_nested(log.events)
    assert isinstance(log.events[-1], RunEnded)
    assert trace.is_complete(), trace.open


def test_child_run_in_a_thread_stops_when_a_sibling_of_its_task_fails(trace: Trace) -> None:
    """The thread cannot be stopped, its run can: it ends before its task does, and hands out no other task."""
    stage = Stage()

    async def sibling(state: State) -> Any:
        await stage.inner_began()
        raise ValueError("no")

    with recording() as log:
        with pytest.raises(ValueError, match="no"):
            asyncio.run(stage.graph(sibling=sibling).ainvoke({"n": 1}))
        stage.finish()

    assert_stopped(stage, log, trace)


@pytest.mark.parametrize("leave", ["cancel", "aclose"])
def test_child_run_in_a_thread_stops_when_the_consumer_leaves(trace: Trace, leave: str) -> None:
    """Cancelled from outside, or closed while it waits for the next part."""
    stage = Stage()

    async def consume() -> None:
        stream = stage.graph().astream({"n": 1}, stream_mode="updates")
        waiting = asyncio.ensure_future(stream.__anext__())
        await stage.inner_began()
        if leave == "cancel":
            waiting.cancel()
            await asyncio.gather(waiting, return_exceptions=True)
        else:
            closing = asyncio.ensure_future(stream.aclose())
            await asyncio.sleep(0)
            waiting.cancel()
            await asyncio.gather(waiting, closing, return_exceptions=True)

    with recording() as log:
        asyncio.run(asyncio.wait_for(consume(), 10))
        stage.finish()

    assert_stopped(stage, log, trace)
