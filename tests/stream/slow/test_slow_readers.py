"""A reader that is slower than its run loses the oldest parts, holds the run back or fails it, as it chose; else nothing."""

from __future__ import annotations

import asyncio
import itertools
import threading
from collections import deque
from typing import Any

import pytest
from colours import ASYNC, SYNC, Colour
from hypothesis import given
from hypothesis import strategies as st
from pulling import Emitter, pulled
from small_graphs import PATIENCE_S, State, bounded, chain, parallel, says, wait_for

from tracegraph.callbacks import BaseCallbackHandler
from tracegraph.config import get_config, get_stream_writer
from tracegraph.errors import NodeTimeoutError, RunDeadlineError
from tracegraph.graph import END, START, StateGraph
from tracegraph.runtime import RunControl

COLOURS = st.sampled_from([SYNC, ASYNC])
SPEEDS = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), max_size=6)
"""How many parts are emitted, then how many of those that are there are read, and so on."""


# --- drop_oldest -------------------------------------------------------------------------------------------


def test_a_reader_that_falls_behind_loses_the_oldest_parts(colour: Colour) -> None:
    """What it lost is counted, and is the gap in the numbers of its parts."""
    emitter = Emitter()
    with pulled(colour, chain(node=emitter.node), stream_mode=["custom"], version="v2", buffer=(3, "drop_oldest")) as stream:
        emitter.order(1)
        first = stream.next()
        emitter.emit(9)
        assert (stream.reader.unread, stream.reader.dropped) == (3, 6)
        emitter.end()
        rest = stream.rest()

    assert [part["data"] for part in (first, *rest)] == [0, 7, 8, 9]
    assert [part.meta.seq for part in (first, *rest)] == [1, 8, 9, 10]


@given(colour=COLOURS, limit=st.integers(1, 5), speeds=SPEEDS)
def test_whatever_the_speeds_only_the_oldest_unread_parts_are_lost(
    colour: Colour, limit: int, speeds: list[tuple[int, int]]
) -> None:
    """What is read is what a queue of that length would hold; dropped and read make up all that was emitted."""
    emitter = Emitter()
    model: deque[int] = deque([0], maxlen=limit)
    read: list[int] = []
    expected: list[int] = []
    with pulled(colour, chain(node=emitter.node), stream_mode="custom", buffer=(limit, "drop_oldest")) as stream:
        emitter.order(1)
        read.append(stream.next())
        expected.append(model.popleft())
        for emitted, wanted in speeds:
            before = emitter.emitted
            emitter.emit(emitted)
            model.extend(range(before, before + emitted))
            assert stream.reader.unread == len(model) <= limit
            for _ in range(min(wanted, len(model))):
                read.append(stream.next())
                expected.append(model.popleft())
        emitter.end()
        read += stream.rest()
        dropped = stream.reader.dropped

    assert read == [*expected, *model]
    assert dropped + len(read) == emitter.emitted


# --- the default and block ---------------------------------------------------------------------------------


@given(colour=COLOURS, limit=st.none() | st.integers(1, 5), speeds=SPEEDS)
def test_by_default_and_with_block_nothing_is_lost(colour: Colour, limit: int | None, speeds: list[tuple[int, int]]) -> None:
    """With block there is one part more than allowed at most: the one that its maker waits with."""
    emitter = Emitter()
    buffer = None if limit is None else (limit, "block")
    with pulled(colour, chain(node=emitter.node), stream_mode="custom", buffer=buffer) as stream:
        emitter.order(1 + sum(emitted for emitted, _ in speeds))
        emitter.end()
        read = [stream.next()]
        for _, wanted in speeds:
            for _ in range(min(wanted, stream.reader.unread)):
                read.append(stream.next())
            assert limit is None or stream.reader.unread <= limit + 1
        read += stream.rest()
        assert (stream.reader.dropped, stream.reader.overshoot <= 1) == (0, True)

    assert read == list(range(emitter.emitted))


def test_a_thread_that_emits_waits_for_its_reader(colour: Colour) -> None:
    """So many parts as are allowed it may run ahead, and no further."""
    about_to = [threading.Event() for _ in range(12)]
    ahead: list[int] = []
    read: list[int] = []

    def node(state: State) -> State:
        write = get_stream_writer()
        for number, event in enumerate(about_to):
            event.set()
            write(number)
            ahead.append(number + 1 - len(read))
        return {}

    with pulled(colour, chain(node=node), stream_mode="custom", buffer=(3, "block")) as stream:
        for number in range(len(about_to)):
            stream_part = stream.next()
            read.append(stream_part)
            wait_for(about_to[min(number + 4, len(about_to) - 1)])  # those that have room are there without being read
        read += stream.rest()

    assert read == list(range(len(about_to)))
    # What was just taken may not be in the list yet.
    assert max(ahead) <= 4


def test_a_reader_that_leaves_lets_a_waiting_thread_go_on(colour: Colour) -> None:
    """The node comes to its end, what it still emits is nobody's, and the run is stopped."""
    full, ended = threading.Event(), threading.Event()

    def node(state: State) -> State:
        write = get_stream_writer()
        for number in range(100):
            if number == 3:
                full.set()
            write(number)
        ended.set()
        return {}

    def leave() -> None:
        with pulled(colour, chain(node=node), stream_mode="custom", buffer=(1, "block")) as stream:
            assert stream.next() == 0
            stream.next()
            wait_for(full)
        wait_for(ended)

    bounded(leave)


def test_a_reader_that_is_dropped_lets_a_waiting_thread_go_on(colour: Colour) -> None:
    """Garbage collection leaves as well as close() does."""
    full, ended = threading.Event(), threading.Event()

    def node(state: State) -> State:
        write = get_stream_writer()
        write("first")
        full.set()
        for number in range(100):
            write(number)
        ended.set()
        return {}

    app = chain(node=node)
    if colour is SYNC:
        parts: Any = app.stream({"xs": []}, stream_mode="custom", buffer=(1, "block"))
        next(parts)
        wait_for(full)
        del parts
        wait_for(ended)
        return

    async def run() -> None:
        reader = app.astream({"xs": []}, stream_mode="custom", buffer=(1, "block"))
        await anext(reader)
        await asyncio.to_thread(wait_for, full)
        del reader
        await asyncio.to_thread(wait_for, ended)

    asyncio.run(run())


def test_a_cancelled_reader_lets_a_waiting_thread_go_on() -> None:
    """The scope ends although a node was waiting for room."""
    full, ended = threading.Event(), threading.Event()

    def node(state: State) -> State:
        write = get_stream_writer()
        for number in range(100):
            if number == 2:
                full.set()
            write(number)
        ended.set()
        return {}

    async def run() -> None:
        async def read() -> None:
            async for _ in chain(node=node).astream({"xs": []}, stream_mode="custom", buffer=(1, "block")):
                await asyncio.Event().wait()

        reading = asyncio.create_task(read())
        await asyncio.to_thread(wait_for, full)
        reading.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reading
        await asyncio.to_thread(wait_for, ended)

    bounded(lambda: asyncio.run(run()))


def test_a_deadline_ends_a_run_that_waits_for_its_reader(colour: Colour) -> None:
    """Waiting for room is time of the run's like any other."""
    stopped = threading.Event()

    def node(state: State) -> State:
        write = get_stream_writer()
        for number in itertools.count():
            if stopped.is_set():
                return {}
            write(number)
        return {}

    def read() -> None:
        app = chain(node=node)
        control = RunControl(deadline_s=0.05)
        with (
            pulled(colour, app, stream_mode="custom", buffer=(2, "block"), control=control) as stream,
            pytest.raises(RunDeadlineError),
        ):
            try:
                stream.rest()
            finally:
                stopped.set()

    bounded(read)


def test_a_timeout_ends_an_attempt_that_waits_for_its_reader() -> None:
    """The attempt is given up while its thread waits, which goes on then."""
    ended = threading.Event()

    async def node(state: State) -> State:
        write = get_stream_writer()

        def emit() -> None:
            for number in range(100):
                write(number)
            ended.set()

        await asyncio.to_thread(emit)
        return {}

    graph: StateGraph[Any, Any, Any, Any] = StateGraph(State)
    graph.add_node("node", node, timeout=0.05)
    graph.add_edge(START, "node")

    async def run() -> None:
        with pytest.raises(NodeTimeoutError):
            async for _ in graph.compile().astream({"xs": []}, stream_mode="custom", buffer=(1, "block")):
                await asyncio.to_thread(ended.wait, 10)  # only the time limit ends this

    bounded(lambda: asyncio.run(run()))


def test_a_coroutine_that_emits_goes_on_after_its_next_await_when_there_is_room() -> None:
    """On the event loop it cannot wait at once: what it emits until then is counted as overshoot."""
    unread: list[int] = []
    read: list[int] = []

    async def node(state: State) -> State:
        write = get_stream_writer()
        for burst in range(4):
            for number in range(5):
                write(5 * burst + number)
            await asyncio.sleep(0)
            unread.append(reader.unread)
        return {}

    async def run() -> None:
        async for part in reader:
            read.append(part)
            await asyncio.sleep(0)
            await asyncio.sleep(0)

    reader = chain(node=node).astream({"xs": []}, stream_mode="custom", buffer=(2, "block"))
    asyncio.run(run())

    assert read == list(range(20))
    assert max(unread) <= 2
    assert (reader.overshoot, reader.dropped) == (2 + 5 - 2, 0)


def test_a_coroutine_held_back_can_be_cancelled_and_can_fail() -> None:
    """What it awaited comes out right: results, errors, and the cancellation of its run."""
    seen: list[Any] = []

    async def node(state: State) -> State:
        write = get_stream_writer()
        write(0)
        write(1)
        seen.append(await asyncio.sleep(0, "result"))
        write(2)
        failing: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        failing.set_exception(LookupError("mine"))
        try:
            await failing
        except LookupError as error:
            seen.append(str(error))
        write(3)
        write(4)
        try:
            await asyncio.sleep(0)
            seen.append("went on")
        finally:
            seen.append("ended")
        return {}

    async def run() -> None:
        async with chain(node=node).astream({"xs": []}, stream_mode="custom", buffer=(1, "block")) as reader:
            for number in range(3):
                assert await anext(reader) == number
            for _ in range(1000):
                await asyncio.sleep(0)
            assert reader.unread == 2

    asyncio.run(run())

    assert seen == ["result", "mine", "ended"]


def test_a_time_limit_inside_a_coroutine_held_back_is_not_held_back() -> None:
    """What a node awaits ends as it should, also if the reader never reads."""
    seen = asyncio.Event()

    async def node(state: State) -> State:
        write = get_stream_writer()
        try:
            async with asyncio.timeout(0):
                for number in range(3):
                    write(number)
                await asyncio.Event().wait()
        except TimeoutError:
            seen.set()
        return {}

    async def run() -> None:
        async with chain(node=node).astream({"xs": []}, stream_mode="custom", buffer=(1, "block")) as reader:
            assert await anext(reader) == 0
            await wait_for_event(seen)
            assert reader.unread == 2

    asyncio.run(run())


async def wait_for_event(event: asyncio.Event) -> None:
    """Fail if it does not come, rather than hang."""
    await asyncio.wait_for(event.wait(), PATIENCE_S)


def test_a_run_inside_begins_no_superstep_without_room(colour: Colour) -> None:
    """Its parts get to the outer stream, whose reader it waits for."""
    read: list[Any] = []
    ahead: list[int] = []

    def step(state: State) -> State:
        ahead.append(state["n"] - len(read))
        return {"n": state["n"] + 1}

    async def astep(state: State) -> State:
        return step(state)

    inner: StateGraph[Any, Any, Any, Any] = StateGraph(State)
    inner.add_node("step", astep if colour is ASYNC else step)
    inner.add_edge(START, "step")
    inner.add_conditional_edges("step", lambda state: "step" if state["n"] < 20 else END)
    app = chain(inner=inner.compile())

    options: Any = {"stream_mode": "updates", "subgraphs": True, "buffer": (2, "block")}

    async def slowly() -> None:
        async for part in app.astream({"n": 0}, **options):
            read.append(part)
            for _ in range(50):
                await asyncio.sleep(0)

    bounded(lambda: asyncio.run(slowly()) if colour is ASYNC else colour.each(app, {"n": 0}, read.append, **options))

    assert [part["step"]["n"] for _, part in read if "step" in part] == list(range(1, 21))
    assert max(ahead) <= 2 + 1  # the limit, and the one just taken


def test_a_handler_that_emits_is_not_waited_for() -> None:
    """It runs inside the announcement of an event, which all other announcements wait for, the reader's loop among them."""
    began = threading.Event()
    writers: list[Any] = []

    class Emits(BaseCallbackHandler):
        run_inline = True

        def on_custom_event(self, name: str, data: Any, **kwargs: Any) -> None:
            began.set()
            for number in range(5):
                writers[0](number)

    def in_a_thread(state: State) -> State:
        writers.append(get_stream_writer())
        get_config()["callbacks"].on_custom_event("now", None)
        return {}

    async def run() -> list[Any]:
        published = asyncio.Event()

        async def on_the_loop(state: State) -> State:
            write = get_stream_writer()
            write("first")
            await asyncio.to_thread(wait_for, began)
            write("last")
            published.set()
            return {}

        app = parallel(one=on_the_loop, two=in_a_thread)
        reader = app.astream({"xs": []}, {"callbacks": [Emits()]}, stream_mode="custom", buffer=(2, "block"))
        found = [await anext(reader)]
        await published.wait()
        return [*found, *[part async for part in reader]]

    assert sorted(map(str, bounded(lambda: asyncio.run(run())))) == ["0", "1", "2", "3", "4", "first", "last"]


def test_a_node_beside_that_is_not_shown_does_not_wait(colour: Colour) -> None:
    """Only who emits what the reader has no room for is held back; two nodes that wait for each other stay able to."""
    inner_is_full, other_emitted = threading.Event(), threading.Event()
    inner = parallel(a=says("x"), b=says("y"), c=says("z"))

    def reads_a_stream(state: State) -> State:
        with inner.stream({"xs": []}, stream_mode="tasks", buffer=(1, "block")) as parts:
            first = next(parts)
            assert parts.unread == 2  # all tasks of a superstep are told of before one runs
            inner_is_full.set()
            wait_for(other_emitted)
            return {"xs": [first, *parts]}

    def emits(state: State) -> State:
        wait_for(inner_is_full)
        write = get_stream_writer()
        for number in range(3):
            write(number)
        other_emitted.set()
        return {}

    read = bounded(lambda: colour.stream(parallel(one=reads_a_stream, two=emits), {"xs": []}, stream_mode="custom"))

    assert read == [0, 1, 2]
