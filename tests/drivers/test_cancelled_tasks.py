"""A task that is cancelled, or that cancels itself: its superstep is not applied, and nothing is run for it."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest
from small_graphs import THREAD, Listening, State, bounded, chain, parallel, saving, says, wait_for

from tracegraph.errors import NodeCancelledError, RunClosed
from tracegraph.graph import START, StateGraph


class Caller:
    """A node that calls a child graph; its first attempt stands still in between."""

    def __init__(self) -> None:
        self.child_ran: list[str] = []
        self.outcomes: list[Any] = []
        self.began, self.may_go_on, self.over = threading.Event(), threading.Event(), threading.Event()
        self.child = chain(charge=self._charge)

    def _charge(self, state: State) -> State:
        self.child_ran.append("charge")
        return {"xs": ["charged"]}

    def __call__(self, state: State) -> Any:
        try:
            if not self.began.is_set():
                self.began.set()
                wait_for(self.may_go_on)
            result = self.child.invoke({"xs": []})
        except BaseException as error:
            self.outcomes.append(type(error))
            raise
        finally:
            self.over.set()
        self.outcomes.append(result)
        return result


def test_a_child_run_of_a_cancelled_run_does_not_begin() -> None:
    """Its caller's thread goes on after the cancellation and is refused; the resumed run calls it once."""
    call = Caller()
    app = chain(saving(), call=call)

    async def cancel_it() -> None:
        running = asyncio.create_task(app.ainvoke({"xs": []}, THREAD))
        await asyncio.to_thread(wait_for, call.began)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        call.may_go_on.set()
        await asyncio.to_thread(wait_for, call.over)

    bounded(lambda: asyncio.run(cancel_it()))

    assert (call.outcomes, call.child_ran) == ([RunClosed], [])
    assert app.get_state(THREAD).next == ("call",)
    assert asyncio.run(app.ainvoke(None, THREAD)) == {"xs": ["charged"]}
    assert call.child_ran == ["charge"]


def test_a_child_run_of_a_closed_stream_does_not_begin() -> None:
    """Closing waits for the caller's thread, which is refused; the superstep is not applied, and runs again."""
    call = Caller()
    app = parallel(saving(), call=call, quick=says("quick"))
    parts = app.stream({"xs": []}, {**THREAD, "callbacks": [listening := Listening("call")]}, stream_mode="updates")

    def let_it_go_on() -> None:
        wait_for(listening.bell)
        call.may_go_on.set()

    next(parts)
    opener = threading.Thread(target=let_it_go_on)
    opener.start()
    bounded(parts.close)
    opener.join()

    assert (call.outcomes, call.child_ran) == ([RunClosed], [])
    assert app.get_state(THREAD).next == ("call",)
    assert sorted(bounded(lambda: app.invoke(None, THREAD))["xs"]) == ["charged", "quick"]


@pytest.mark.parametrize("is_alone", [True, False], ids=["inline", "beside another"])
def test_a_node_that_cancels_its_own_task_failed(is_alone: bool) -> None:
    """Its superstep is not applied as if the node had had nothing to say: the run fails, and can be resumed."""
    is_broken = True

    async def odd(state: State) -> State:
        task = asyncio.current_task()
        assert task is not None
        if is_broken:
            task.cancel()
        await asyncio.sleep(0)
        return {"xs": ["odd"]}

    graph: StateGraph[Any, Any, Any, Any] = StateGraph(State)
    graph.add_sequence([("odd", odd), ("after", says("after"))])
    graph.add_edge(START, "odd")
    if not is_alone:
        graph.add_node("other", says("other"))
        graph.add_edge(START, "other")
    app = graph.compile(**saving())

    # Whoever shares the caller's own task cannot be told from the caller: then it is a cancellation of the run.
    with pytest.raises(asyncio.CancelledError if is_alone else NodeCancelledError):
        bounded(lambda: asyncio.run(app.ainvoke({"xs": []}, THREAD)))
    assert "odd" in app.get_state(THREAD).next

    is_broken = False
    assert asyncio.run(app.ainvoke(None, THREAD))["xs"] == ["odd", *([] if is_alone else ["other"]), "after"]


def test_a_run_inside_a_cancelled_task_tells_a_nodes_own_cancellation() -> None:
    """Cleaning up after a cancellation may run a graph; that its task was cancelled before is not the graph's business."""

    async def odd(state: State) -> State:
        raise asyncio.CancelledError

    app = chain(odd=odd)

    async def clean_up(begun: asyncio.Event) -> None:
        try:
            begun.set()
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            with pytest.raises(NodeCancelledError, match="'odd'"):
                await app.ainvoke({"xs": []})
            raise

    async def run() -> None:
        begun = asyncio.Event()
        cleaning = asyncio.create_task(clean_up(begun))
        await begun.wait()
        cleaning.cancel()
        with pytest.raises(asyncio.CancelledError):
            await cleaning

    bounded(lambda: asyncio.run(run()))
