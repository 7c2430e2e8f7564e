"""A run ends when its readers leave it, however they do: nodes stop, spans end, and nobody waits for what never comes."""

from __future__ import annotations

import asyncio
import gc
import threading
from typing import Any

import anyio
import pytest
from colours import Colour
from run_faces import Face, opened, play, with_run
from small_graphs import PATIENCE_S, State, bounded, chain, parallel, says, wait_for
from spans import Trace
from spoken import Speaker, words

from tracegraph.config import RunnableConfig
from tracegraph.stream import StreamTransformer


class Node:
    """An async node that runs until it is stopped, inside a graph that a node awaits."""

    def __init__(self) -> None:
        self.running = asyncio.Event()
        self.stopped: list[str] = []

    async def forever(self, state: State) -> State:
        self.running.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.stopped.append("cancelled")
            raise
        return {}

    def app(self) -> Any:
        """Return the graph."""
        inner = chain(quick=says("quick"), forever=self.forever)

        async def outer(state: State) -> State:
            await inner.ainvoke({"xs": []})
            return {}

        return chain(first=says("first"), outer=outer)


async def until_running(node: Node, reading: asyncio.Task[Any]) -> None:
    """Wait until the node runs; raise what the reader raised instead, if it did."""
    waiting = asyncio.create_task(node.running.wait())
    await asyncio.wait({waiting, reading}, timeout=PATIENCE_S, return_when=asyncio.FIRST_COMPLETED)
    assert node.running.is_set(), reading


async def collect(items: Any) -> list[Any]:
    """Read to the end."""
    return [item async for item in items]


def assert_tidy(trace: Trace) -> None:
    """Every span ended once, without an error."""
    assert trace.ended, "the run was not observed at all"
    assert trace.is_complete(), (trace.open, trace.ended_twice)
    assert trace.errors == []


def test_a_run_that_was_never_read_can_be_left(colour: Colour) -> None:
    """Nothing runs, and its projections are at their end."""
    ran: list[int] = []

    def node(state: State) -> State:
        ran.append(1)
        return {}

    async def body(run: Face) -> Any:
        await run.abort()
        await run.abort()
        return await run.rest(run.values), await run.output(), await run.interrupted(), await run.interrupts()

    assert with_run(colour, chain(node=node), {"xs": []}, body) == ([], None, False, [])
    assert ran == []


def test_after_an_abort_there_is_what_was_seen(colour: Colour, trace: Trace) -> None:
    """Readings end without an error, and no other node runs."""
    ran: list[str] = []

    def later(state: State) -> State:
        ran.append("later")
        return {}

    async def body(run: Face) -> Any:
        values, log = run.begin(run.values), run.begin(run.run)
        await run.one(values)
        assert (await run.one(values))["xs"] == ["a"]
        await run.abort()
        return len(await run.rest(log)), await run.rest(values), await run.output(), await run.interrupted()

    app = chain(a=says("a"), b=says("b"), later=later)

    assert with_run(colour, app, {"xs": []}, body) == (2, [], {"xs": ["a"]}, False)
    assert ran == []
    assert_tidy(trace)


def test_a_with_block_ends_the_run(colour: Colour, trace: Trace) -> None:
    """Left by an exception, too, which passes."""

    async def body() -> list[Any]:
        run = await opened(colour, chain(a=says("a"), b=says("b")), {"xs": []})
        with pytest.raises(LookupError, match="mine"):
            if run.is_async:
                async with run.run:
                    await run.one(run.begin(run.values))
                    raise LookupError("mine")
            with run.run:
                await run.one(run.begin(run.values))
                raise LookupError("mine")
        return await run.rest(run.run)

    assert play(colour, body()) == []
    assert_tidy(trace)


def test_a_run_that_is_dropped_stops(colour: Colour, trace: Trace) -> None:
    """At once, although its parts refer to each other."""
    ended: list[bool] = []

    async def body() -> None:
        run = await opened(colour, chain(a=says("a"), b=says("b")), {"xs": []})
        items = run.begin(run.values)
        await run.one(items)
        gc.disable()
        try:
            run.run = None
            del run
            assert not trace.is_complete()
            del items
            ended.append(trace.is_complete())
        finally:
            gc.enable()

    play(colour, body())

    assert ended == [True]
    assert_tidy(trace)


def test_a_projection_outlives_the_run_object_that_it_was_taken_from(colour: Colour) -> None:
    """A loop over the values of a run that has no name reads them all."""

    async def body() -> list[Any]:
        run = await opened(colour, chain(a=says("a"), b=says("b")), {"xs": []})
        values = run.values
        run.run = None
        del run
        return await Face(None, colour).rest(values)

    assert [value["xs"] for value in play(colour, body())] == [[], ["a"], ["a", "b"]]


@pytest.mark.parametrize("what", ["handle", "answer"])
def test_what_is_still_read_keeps_the_run_going(colour: Colour, trace: Trace, what: str) -> None:
    """A handle or an answer is read to its end after the run was dropped; then nobody is left."""
    ran: list[str] = []

    def later(state: State) -> State:
        ran.append("later")
        return {}

    async def body() -> Any:
        run = await opened(colour, app, {"xs": []})
        found = await run.one(run.begin(run.subgraphs if what == "handle" else run.messages))
        run.run = None
        assert not trace.is_complete()
        if what == "handle":
            whole = (await run.face(found).output())["xs"]
        else:
            whole = await run.whole(found.text)
        ended = trace.is_complete()
        del found
        return whole, ended

    speaker = Speaker(words("a", "b"))
    if colour.name == "async":

        async def speaks(state: State, config: RunnableConfig) -> Any:
            return {"xs": [(await speaker.aspeak(config)).text]}
    else:

        def speaks(state: State, config: RunnableConfig) -> Any:
            return {"xs": [speaker.speak(config).text]}

    inside = chain(a=says("a"), b=says("b"))
    app = chain(first=inside if what == "handle" else speaks, second=says("c"), later=later)

    gc.disable()
    try:
        assert play(colour, body()) == (["a", "b"] if what == "handle" else "ab", True)
    finally:
        gc.enable()
    assert ran == []
    assert_tidy(trace)


async def test_a_transformer_may_leave_the_run(trace: Trace) -> None:
    """It does not wait for the pull that it is part of."""

    class Leaving(StreamTransformer):
        run: Any = None

        async def aprocess(self, event: Any) -> bool:
            if event["params"]["data"] == {"xs": ["a"]}:
                await Leaving.run.abort()
            return True

    async with asyncio.timeout(PATIENCE_S):
        run = Leaving.run = await chain(a=says("a"), b=says("b")).astream_events({"xs": []}, version="v3", transformers=[Leaving])
        values = await collect(run.values)
        await run.abort()

    assert values == [{"xs": []}, {"xs": ["a"]}]
    assert_tidy(trace)


def test_an_abort_from_another_thread_ends_a_reader_that_waits(trace: Trace) -> None:
    """It waits for the node, which nothing can stop, and then both are through."""
    running, go = threading.Event(), threading.Event()
    ran: list[str] = []

    def slow(state: State) -> State:
        running.set()
        wait_for(go)
        return {"xs": ["slow"]}

    def later(state: State) -> State:
        ran.append("later")
        return {}

    run = chain(slow=slow, later=later).stream_events({"xs": []}, version="v3")
    values = iter(run.values)
    read: list[Any] = []
    reader = threading.Thread(target=lambda: read.extend(values))
    reader.start()
    wait_for(running)
    leaving = threading.Thread(target=run.abort)
    leaving.start()
    go.set()
    bounded(leaving.join)
    bounded(reader.join)

    assert read == [{"xs": []}]
    assert ran == []
    assert trace.is_complete()


async def test_an_abort_cancels_the_nodes_and_ends_every_reader(trace: Trace) -> None:
    """Readers that wait in other tasks, at that."""
    node = Node()
    run = await node.app().astream_events({"xs": []}, version="v3")
    readers = [asyncio.create_task(collect(items)) for items in (run.values, run, run.lifecycle)]
    await until_running(node, readers[0])

    await run.abort()
    values, log, lifecycle = await asyncio.wait_for(asyncio.gather(*readers), PATIENCE_S)

    assert node.stopped == ["cancelled"]
    assert [value["xs"] for value in values] == [[], ["first"]]
    assert [event["seq"] for event in log] == list(range(1, len(log) + 1))
    assert [payload["event"] for payload in lifecycle] == ["started", "completed"]
    assert await run.output() == {"xs": ["first"]}
    assert_tidy(trace)


async def test_a_reader_that_is_cancelled_stops_the_run(trace: Trace) -> None:
    """The others end; the node has been cancelled by the time the reader is through."""
    node = Node()
    run = await node.app().astream_events({"xs": []}, version="v3")
    log = asyncio.create_task(collect(run))
    await asyncio.sleep(0)
    reader = asyncio.create_task(collect(run.values))
    await until_running(node, log)

    log.cancel()
    with pytest.raises(asyncio.CancelledError):
        await log

    assert node.stopped == ["cancelled"]
    assert (await asyncio.wait_for(reader, PATIENCE_S))[-1] == {"xs": ["first"]}
    await run.abort()
    assert trace.is_complete()


async def test_a_waiting_reader_that_is_cancelled_leaves_the_run_alone() -> None:
    """It was not the one who pulled."""
    go, running = asyncio.Event(), asyncio.Event()

    async def slow(state: State) -> State:
        running.set()
        await go.wait()
        return {"xs": ["slow"]}

    run = await chain(slow=slow).astream_events({"xs": []}, version="v3")
    puller = asyncio.create_task(collect(run.values))
    await asyncio.wait_for(running.wait(), PATIENCE_S)
    waiter = asyncio.create_task(collect(run))
    await asyncio.sleep(0)
    waiter.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiter
    go.set()

    assert [value["xs"] for value in await puller] == [[], ["slow"]]


async def test_a_cancelled_scope_ends_the_run_although_nothing_can_be_awaited_there(trace: Trace) -> None:
    """As when a web framework cancels a handler whose client has gone: every await in it is cancelled again."""
    node = Node()
    run = await node.app().astream_events({"xs": []}, version="v3")
    with anyio.CancelScope() as scope:

        async def leave() -> None:
            await node.running.wait()
            scope.cancel()

        leaving = asyncio.create_task(leave())
        try:
            async for _ in run.values:
                pass
        finally:
            await run.abort()
    await leaving

    assert scope.cancelled_caught
    await run.abort()
    assert node.stopped == ["cancelled"]
    assert_no_nodes_left()
    assert trace.is_complete()


async def test_an_abort_in_a_cancelled_scope_stops_the_run_before_it_waits(trace: Trace) -> None:
    """Nothing needed stands after its first await."""
    node = Node()
    run = await node.app().astream_events({"xs": []}, version="v3")
    reader = asyncio.create_task(collect(run.values))
    await until_running(node, reader)
    with anyio.CancelScope() as scope:
        scope.cancel()
        await run.abort()

    assert scope.cancelled_caught
    assert [value["xs"] for value in await asyncio.wait_for(reader, PATIENCE_S)] == [[], ["first"]]
    await run.abort()
    assert node.stopped == ["cancelled"]
    assert_tidy(trace)


def assert_no_nodes_left() -> None:
    """Nothing of a run is still in the event loop."""
    left = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
    assert left == []


async def test_what_transformers_have_scheduled_is_cancelled() -> None:
    """The run was left, so nobody waits for it."""
    work: list[asyncio.Task[Any]] = []
    notes: list[str] = []

    class Lane(StreamTransformer):
        requires_async = True

        def process(self, event: Any) -> bool:
            work.append(self.schedule(asyncio.Event().wait()))
            return True

        def finalize(self) -> None:
            notes.append("finalized")

    run = await chain(a=says("a")).astream_events({"xs": []}, version="v3", transformers=[Lane])
    async with asyncio.timeout(PATIENCE_S):
        await anext(aiter(run.values))
        await run.abort()
        await asyncio.wait(work)

    assert [task.cancelled() for task in work] == [True]
    assert notes == ["finalized"]


@pytest.mark.parametrize("how", ["cancel", "abort"])
async def test_what_is_awaited_at_the_end_can_be_left(how: str) -> None:
    """The graph is through, and only work beside the stream is not: it is cancelled, and every reader ends."""
    work: list[asyncio.Task[Any]] = []
    ends: list[str] = []

    class Lane(StreamTransformer):
        requires_async = True

        def process(self, event: Any) -> bool:
            if not work:
                work.append(self.schedule(asyncio.Event().wait(), on_error="raise"))
            return True

        def finalize(self) -> None:
            ends.append("finalized")

    seen = asyncio.Event()

    async def read(items: Any) -> list[Any]:
        found = []
        async for item in items:
            found.append(item)
            if len(found) == 2:
                seen.set()
        return found

    async with asyncio.timeout(PATIENCE_S):
        run = await chain(a=says("a")).astream_events({"xs": []}, version="v3", transformers=[Lane])
        readers = [asyncio.create_task(read(run.values)), asyncio.create_task(read(run))]
        await seen.wait()
        while not run._pump.is_over:  # noqa: ASYNC110  # until it waits for the work, which tells nobody
            await asyncio.sleep(0)
        puller = run._pump._puller
        if how == "cancel":
            puller.cancel()
        else:
            await run.abort()
        await asyncio.wait([*readers, *work])
        await run.abort()

    assert work[0].cancelled()
    assert ends == ["finalized"]
    assert puller.cancelled() is (how == "cancel")
    assert all(len(reader.result()) == 2 for reader in readers if not reader.cancelled())


def test_an_error_ends_what_runs_beside_it(colour: Colour, trace: Trace) -> None:
    """The sibling is stopped, the error is raised, every span ends."""

    async def fails(state: State) -> State:
        raise LookupError("mine")

    def fails_in_a_thread(state: State) -> State:
        raise LookupError("mine")

    async def body(run: Face) -> None:
        with pytest.raises(LookupError, match="mine"):
            await run.rest(run.lifecycle)

    failing = fails if colour.name == "async" else fails_in_a_thread
    app = chain(sub=parallel(fails=failing, says=says("x")))
    with_run(colour, app, {"xs": []}, body)

    assert trace.is_complete()
