"""Calls from where a lock is held, or by whom one would wait for: handlers, nodes, the garbage collector."""

from __future__ import annotations

import gc
import threading
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import pytest
from colours import Colour
from small_graphs import State, bounded, chain, parallel, says, wait_for

from tracegraph.callbacks import BaseCallbackHandler
from tracegraph.checkpoint.memory import InMemorySaver
from tracegraph.config import get_stream_writer
from tracegraph.drivers import workers
from tracegraph.runtime import RunControl


@pytest.fixture
def no_collector() -> Iterator[None]:
    """Nothing is collected unless a test asks for it."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def test_a_handler_may_ask_for_a_drain_while_a_task_reports(colour: Colour) -> None:
    """The handler holds what the report needs, and the drain must not need what the report holds."""
    control = RunControl()
    in_handler, a_returns = threading.Event(), threading.Event()

    class Draining(BaseCallbackHandler):
        def on_chain_start(self, serialized: Any, inputs: Any, **kwargs: Any) -> None:
            if kwargs["name"] == "b":
                in_handler.set()
                wait_for(a_returns)
                threading.Event().wait(0.05)  # nothing shows that a's report stands before the lock: time for it to get there
                control.request_drain("budget")

    def a(state: State) -> State:
        wait_for(in_handler)
        a_returns.set()
        return {"xs": ["a"]}

    app = parallel(a=a, b=says("b"))

    given = {"callbacks": [Draining()]}
    assert bounded(lambda: colour.invoke(app, {"xs": []}, given, control=control)) == {"xs": ["a", "b"]}


def test_a_node_may_close_the_stream_that_it_is_part_of() -> None:
    """Its thread must not wait for itself; the reader closes it once more and finds nothing left."""
    is_read, closed = threading.Event(), threading.Event()
    parts: Any = None

    def node(state: State) -> State:
        get_stream_writer()("x")
        wait_for(is_read)
        parts.close()
        closed.set()
        return {}

    parts = chain(node=node, after=says("after")).stream({"xs": []}, stream_mode="custom")
    first = next(parts)
    is_read.set()
    wait_for(closed)
    bounded(parts.close)

    assert first == "x"
    assert list(parts) == []


def test_a_reader_collected_inside_the_saver_saves_its_run(no_collector: None) -> None:
    """The collector may run while this very thread is inside the saver, and the run that ends has something to save."""
    dropped: list[Any] = []

    class Collecting(dict[Any, Any]):
        def setdefault(self, *args: Any) -> Any:
            if dropped:
                dropped.clear()
                gc.collect()
            return super().setdefault(*args)

    def shelves(*args: Any) -> Any:
        return defaultdict(Collecting) if args else {}

    app = chain({"checkpointer": InMemorySaver(factory=shelves)}, a=says("a"), b=says("b"))

    def run() -> Any:
        parts = app.stream({"xs": []}, {"configurable": {"thread_id": "dropped"}}, stream_mode="updates", durability="exit")
        next(parts)
        cycle: list[Any] = [parts]
        cycle.append(cycle)
        dropped.append(cycle)
        del parts, cycle
        return app.invoke({"xs": []}, {"configurable": {"thread_id": "other"}})

    assert bounded(run) == {"xs": ["a", "b"]}
    assert app.get_state({"configurable": {"thread_id": "dropped"}}).values == {"xs": ["a"]}


@pytest.mark.parametrize("mode", [None, "values", "custom"])
def test_a_sync_run_gets_by_without_threads(monkeypatch: pytest.MonkeyPatch, mode: str | None) -> None:
    """Where the system gives no more of them, the caller's own thread runs every node."""

    def refuse(job: Any) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(workers, "submit", refuse)
    seen: list[str] = []

    def note(state: State) -> State:
        seen.append(threading.current_thread().name)
        return {"xs": ["x"]}

    app = parallel(a=note, b=note)

    def run() -> Any:
        if mode is None:
            return app.invoke({"xs": []})
        return list(app.stream({"xs": []}, stream_mode=mode))

    found = bounded(run)

    assert found == {None: {"xs": ["x", "x"]}, "values": [{"xs": []}, {"xs": ["x", "x"]}], "custom": []}[mode]
    assert len(seen) == 2
    assert len(set(seen)) == 1
