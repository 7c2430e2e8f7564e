"""Cancelling in odd moments: nodes that swallow it, take it for something else, or are cancelled by a sibling's failure."""

from __future__ import annotations

import asyncio
import signal
import threading
from typing import Any

import pytest
from colours import Colour
from event_log import Recorder, assert_well_nested
from left_behind import Surroundings, recorded
from recording import recording
from small_graphs import PATIENCE_S, THREAD, SlowSaver, State, bounded, chain, parallel, saving, says
from spans import Trace

from tracegraph.drivers.sync_driver import SyncRun
from tracegraph.errors import failures_of
from tracegraph.events import RunEnded, TaskEnded, TaskStarted
from tracegraph.graph import START, StateGraph
from tracegraph.types import RetryPolicy

AT_ONCE = RetryPolicy(initial_interval=0, jitter=False, retry_on=Exception)


class Node:
    """An async node that waits to be cancelled, and makes something else of it."""

    def __init__(self, *, turns_into: Exception | None = None) -> None:
        self.ran = 0
        self.is_broken = True
        self.has_begun = asyncio.Event()
        self._turns_into = turns_into

    async def __call__(self, state: State) -> State:
        self.ran += 1
        self.has_begun.set()
        if self.is_broken:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                if self._turns_into is not None:
                    raise self._turns_into from None
        return {"xs": ["node"]}


async def cancelled(app: Any, node: Node, config: Any = THREAD) -> None:
    """Run until the node has begun, cancel the run, and see to it that the caller learns of it."""
    running = asyncio.create_task(app.ainvoke({"xs": []}, config))
    await node.has_begun.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert running.cancelled()


@pytest.mark.parametrize("beside", [{}, {"other": says("other")}], ids=["alone", "beside another"])
@pytest.mark.parametrize("turns_into", [None, ConnectionError("lost")], ids=["swallowed", "an error"])
async def test_a_run_is_cancelled_whatever_its_node_makes_of_it(turns_into: Any, beside: Any) -> None:
    """No further superstep begins, nothing is retried, and the node runs again when the run is resumed."""
    node = Node(turns_into=turns_into)
    graph: StateGraph[Any, Any, Any, Any] = StateGraph(State)
    graph.add_node("node", node, retry_policy=AT_ONCE)
    graph.add_node("after", says("after"))
    graph.add_edge(START, "node")
    graph.add_edge("node", "after")
    for name, body in beside.items():
        graph.add_node(name, body)
        graph.add_edge(START, name)
    app = graph.compile(**saving())

    await cancelled(app, node)

    assert node.ran == 1
    assert "node" in (await app.aget_state(THREAD)).next
    node.is_broken = False
    assert (await app.ainvoke(None, THREAD))["xs"] == ["node", *beside, "after"]


async def test_a_cancelled_run_inside_ends_the_outer_one() -> None:
    """The node that swallows it is in a graph that is called by a node: no node of either graph follows."""
    node, ran = Node(), []

    def after(state: State) -> None:
        ran.append("after")

    inside = chain(node=node, after=after)

    async def call(state: State) -> Any:
        try:
            return await inside.ainvoke({"xs": []})
        finally:
            ran.append("called")

    await cancelled(chain(saving(), call=call, after=after), node)

    assert ran == ["called"]


async def test_a_time_limit_of_the_nodes_own_is_its_own_business() -> None:
    """It cancels the task that the run is in, and takes that back: the run is not cancelled."""

    async def impatient(state: State) -> State:
        try:
            async with asyncio.timeout(0):
                await asyncio.Event().wait()
        except TimeoutError:
            return {"xs": ["gave up"]}
        return {}

    assert await chain(a=impatient, b=says("b")).ainvoke({"xs": []}) == {"xs": ["gave up", "b"]}


async def test_what_a_sibling_returns_instead_of_being_cancelled_is_kept() -> None:
    """It finished, late as it was; a retry it would have had is not given to it any more."""
    kept, retried = Node(), Node(turns_into=ConnectionError("lost"))

    async def bad(state: State) -> State:
        await asyncio.gather(kept.has_begun.wait(), retried.has_begun.wait())
        if kept.is_broken:
            raise ValueError("boom")
        return {"xs": ["bad"]}

    graph: StateGraph[Any, Any, Any, Any] = StateGraph(State)
    for name, body in (("bad", bad), ("kept", kept), ("retried", retried)):
        graph.add_node(name, body, retry_policy=AT_ONCE if body is retried else None)
        graph.add_edge(START, name)
    app = graph.compile(**saving())

    with pytest.raises(ValueError, match="boom") as caught:
        await app.ainvoke({"xs": []}, THREAD)

    assert [str(error) for error in failures_of(caught.value)] == ["boom", "lost"]
    assert set((await app.aget_state(THREAD)).next) == {"bad", "retried"}
    kept.is_broken = retried.is_broken = False
    assert (await app.ainvoke(None, THREAD))["xs"] == ["bad", "node", "node"]
    assert (kept.ran, retried.ran) == (1, 2)


async def test_a_run_waits_for_cleaning_up_and_can_be_pressed() -> None:
    """A node that takes its time to end is waited for; a second cancellation does not wait."""
    has_begun, is_cleaning, may_end = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def node(state: State) -> State:
        has_begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            is_cleaning.set()
            await may_end.wait()
        return {}

    async def run(*, is_pressed: bool) -> None:
        for event in (has_begun, is_cleaning, may_end):
            event.clear()
        running = asyncio.create_task(parallel(node=node, other=says("other")).ainvoke({"xs": []}))
        await has_begun.wait()
        running.cancel()
        await is_cleaning.wait()
        assert not running.done()
        (running.cancel if is_pressed else may_end.set)()
        with pytest.raises(asyncio.CancelledError):
            await running
        may_end.set()

    await run(is_pressed=False)
    await run(is_pressed=True)


def test_a_second_ctrl_c_does_not_wait_for_a_save(surroundings: Surroundings, trace: Trace) -> None:
    """The first waits for what is being saved, which may be for ever; with the second all spans have ended as well."""
    is_saving, may_save = threading.Event(), threading.Event()

    class Stuck(SlowSaver):
        def put(self, config: Any, checkpoint: Any, metadata: Any, new_versions: Any) -> Any:
            if metadata["step"] == 1:
                is_saving.set()
                assert may_save.wait(PATIENCE_S)
            return super().put(config, checkpoint, metadata, new_versions)

    def node(state: State) -> State:
        assert is_saving.wait(PATIENCE_S)
        raise KeyboardInterrupt("the first")

    def press(run: Any) -> None:
        # Not a signal, which might come a moment before the wait, or after it.
        raise KeyboardInterrupt("the second")

    app = chain(saving(Stuck()), a=says("a"), node=node)
    with recorded(surroundings) as log, pytest.MonkeyPatch.context() as patch:
        patch.setattr(SyncRun, "wait_for_saves", press)
        with pytest.raises(KeyboardInterrupt, match="the second"):
            app.invoke({"xs": []}, THREAD)

    assert [event.status for event in log.events if isinstance(event, RunEnded)] == ["cancelled"]
    assert trace.is_complete()
    may_save.set()
    surroundings.assert_threads_ended()
    assert_well_nested(event for event in log.events if "Checkpoint" not in type(event).__name__)
    assert bounded(lambda: app.get_state(THREAD)).values == {"xs": ["a"]}


@pytest.mark.parametrize("kind", [TaskStarted, TaskEnded, RunEnded])
def test_ctrl_c_while_an_observer_is_at_work_cancels_the_run(kind: type[Any], colour: Colour) -> None:
    """A signal may come anywhere in the main thread; the run is told of as cancelled, as when it comes in a node."""

    class Pressed(Recorder):
        def observe(self, event: Any) -> None:
            super().observe(event)
            if isinstance(event, kind) and event.ns == "":
                raise KeyboardInterrupt

    with recording(Pressed()) as log, pytest.raises(KeyboardInterrupt):
        colour.invoke(chain(a=says("a")), {"n": 0})

    ends = [event for event in log.events if isinstance(event, RunEnded)]
    assert [event.status for event in ends] == ["completed" if kind is RunEnded else "cancelled"]


@pytest.mark.parametrize("durability", ["sync", "exit"])
def test_ctrl_c_during_a_save_is_no_failure(surroundings: Surroundings, trace: Trace, durability: Any) -> None:
    """It comes out as it is, only the save has failed, and the thread goes on from the last one that was made."""
    presses = 1

    class Pressed(SlowSaver):
        def put(self, config: Any, checkpoint: Any, metadata: Any, new_versions: Any) -> Any:
            nonlocal presses
            if metadata["step"] == (1 if durability == "sync" else 2) and presses:
                presses -= 1
                signal.raise_signal(signal.SIGINT)
            return super().put(config, checkpoint, metadata, new_versions)

    app = chain(saving(Pressed()), a=says("a"), b=says("b"))
    with recorded(surroundings) as log, pytest.raises(KeyboardInterrupt):
        app.invoke({"xs": []}, THREAD, durability=durability)

    (end,) = [event for event in log.events if isinstance(event, RunEnded)]
    assert (end.status, end.reason) == ("cancelled", "KeyboardInterrupt")
    assert trace.errors == ["checkpoint put"]
    assert trace.is_complete()
    given = None if durability == "sync" else {"xs": []}  # at its exit, the run had saved nothing
    assert app.invoke(given, THREAD) == {"xs": ["a", "b"]}
