"""Readers of one run's projections, at different speeds: none loses for another's sake, none is waited for in vain."""

from __future__ import annotations

import _thread
import asyncio
import functools
import threading
import time
from collections import deque
from typing import Any

import pytest
from colours import ASYNC, SYNC, Colour
from five_projections import COUNT, FIVE, MORE, aemits, app_of, emits
from hypothesis import given
from hypothesis import strategies as st
from run_faces import Face, with_run
from small_graphs import PATIENCE_S, bounded, chain, wait_for

from tracegraph.stream import CustomTransformer

BUFFERS: list[Any] = [None, (1, "block"), (4, "block"), (1000, "drop_oldest"), (1000, "fail")]
"""Those with which nothing is lost."""


def projection(run: Any, name: str) -> Any:
    """Return a projection, or the main log."""
    return run.mux.events if name == "events" else getattr(run, name)


def shape(items: list[Any]) -> list[str]:
    """Return what can be compared between two runs of one graph."""
    return [
        item["method"] if "method" in item else item["type"] if "payload" in item else repr(item) for item in map(as_dict, items)
    ]


def as_dict(item: Any) -> dict[str, Any]:
    """Return an item that keys may be looked for in."""
    return item if isinstance(item, dict) else {"item": item}


def alone(colour: Colour, name: str) -> list[str]:
    """Return what the only reader of a projection reads."""

    async def body(run: Face) -> list[Any]:
        return await run.rest(projection(run, name))

    return shape(with_run(colour, app_of(colour), {"xs": []}, body, transformers=MORE))


def read_at_once(colour: Colour, app: Any, begin: Any, **options: Any) -> list[list[Any]]:
    """Read with several readers at once, the first one quickest; *begin* makes them of the run."""
    return bounded(lambda: _in_threads(app, begin, options) if colour is SYNC else asyncio.run(_in_tasks(app, begin, options)))


def _in_threads(app: Any, begin: Any, options: Any) -> list[list[Any]]:
    run = app.stream_events({"xs": []}, transformers=MORE, **options)
    found: list[list[Any]] = []

    def read(reader: Any, items: list[Any], slowness: int) -> None:
        for item in reader:
            items.append(item)
            for _ in range(slowness):
                time.sleep(0)  # lets another thread go on

    threads = []
    for index, reader in enumerate(begin(run)):
        found.append([])
        threads.append(threading.Thread(target=read, args=(reader, found[-1], 3 * index), daemon=True))
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_S)
        assert not thread.is_alive(), "it hangs"
    return found


async def _in_tasks(app: Any, begin: Any, options: Any) -> list[list[Any]]:
    run = await app.astream_events({"xs": []}, version="v3", transformers=MORE, **options)

    async def read(reader: Any, slowness: int) -> list[Any]:
        found = []
        async for item in reader:
            found.append(item)
            for _ in range(slowness):
                await asyncio.sleep(0)
        return found

    return list(await asyncio.gather(*(read(reader, 3 * index) for index, reader in enumerate(begin(run)))))


@pytest.mark.parametrize("buffer", BUFFERS)
def test_five_projections_are_read_whole_at_five_speeds(colour: Colour, buffer: Any) -> None:
    """Each as if it were read alone."""

    def begin(run: Any) -> list[Any]:
        return [(aiter if colour is ASYNC else iter)(projection(run, name)) for name in FIVE]

    found = read_at_once(colour, app_of(colour), begin, buffer=buffer)

    assert [shape(items) for items in found] == [alone(colour, name) for name in FIVE]


@pytest.mark.parametrize("buffer", BUFFERS)
def test_five_branches_are_read_whole_at_five_speeds(colour: Colour, buffer: Any) -> None:
    """Each has a buffer of its own."""

    def begin(run: Any) -> Any:
        return run.custom.atee(5) if colour is ASYNC else run.custom.tee(5)

    assert read_at_once(colour, app_of(colour), begin, buffer=buffer) == [list(range(COUNT))] * 5


@given(
    limit=st.integers(1, 4),
    what=st.sampled_from([None, "drop_oldest", "block"]),
    turns=st.lists(st.integers(0, 2), max_size=40),
    colour=st.sampled_from([SYNC, ASYNC]),
)
def test_branches_read_in_any_order_lose_what_a_short_queue_would(
    limit: int, what: Any, turns: list[int], colour: Colour
) -> None:
    """Only with drop_oldest; one task that reads them all by turns is never waited for by itself."""
    queues: list[deque[int]] = [deque(maxlen=limit if what == "drop_oldest" else None) for _ in range(3)]
    come = 0
    expected: list[list[int]] = [[], [], []]

    def expect(index: int) -> bool:
        nonlocal come
        if not queues[index] and come < COUNT:
            for each in queues:
                each.append(come)
            come += 1
        if queues[index]:
            expected[index].append(queues[index].popleft())
            return True
        return False

    async def body(run: Face) -> tuple[list[list[int]], list[int], int]:
        branches = run.custom.atee(3) if run.is_async else run.custom.tee(3)
        found: list[list[int]] = [[], [], []]
        for index in turns:
            if expect(index):
                found[index].append(await run.one(branches[index]))
        for index in range(3):
            while expect(index):
                pass
            found[index] += await run.rest(branches[index])
        return found, [branch.dropped for branch in branches], run.custom.dropped

    app = chain(emits=emits if colour is SYNC else aemits)
    buffer = None if what is None else (limit, what)
    found, dropped, together = with_run(colour, app, {"xs": []}, body, transformers=[CustomTransformer], buffer=buffer)

    assert found == expected
    assert [len(items) + lost for items, lost in zip(found, dropped, strict=True)] == [COUNT] * 3
    assert together == sum(dropped)


def test_the_gap_in_the_main_log_is_what_was_dropped(colour: Colour) -> None:
    """Its events have numbers, so their reader sees where it lost some; the run's span has the sum."""

    async def body(run: Face) -> tuple[list[int], int]:
        events, values = run.begin(run.mux.events), run.begin(run.values)
        await run.rest(values)
        return [event["seq"] for event in await run.rest(events)], events.dropped

    seqs, dropped = with_run(colour, app_of(colour), {"xs": []}, body, buffer=(2, "drop_oldest"))

    assert dropped == seqs[0] - 1
    assert seqs == [dropped + 1, dropped + 2]


# --- block -------------------------------------------------------------------------------------------------


def test_a_reader_in_a_task_of_its_own_is_waited_for() -> None:
    """No reader ever has more than it may have."""
    most: list[int] = []

    async def run() -> list[int]:
        run = await app_of(ASYNC).astream_events({"xs": []}, version="v3", transformers=MORE, buffer=(2, "block"))
        custom = aiter(run.custom)

        async def slowly() -> list[int]:
            found = []
            async for item in custom:
                most.append(run.custom.unread)
                found.append(item)
                for _ in range(20):
                    await asyncio.sleep(0)
                most.append(run.custom.unread)
            return found

        async def quickly() -> None:
            async for _ in run:
                pass

        return (await asyncio.gather(slowly(), quickly()))[0]

    assert asyncio.run(run()) == list(range(COUNT))
    assert max(most) <= 2


def test_a_reader_in_a_thread_of_its_own_is_waited_for() -> None:
    """The thread that moves the run on stands still until the other has read, or has left."""
    read: list[int] = []
    most: list[int] = []
    run = app_of(SYNC).stream_events({"xs": []}, transformers=MORE, buffer=(2, "block"))
    custom, events = iter(run.custom), iter(run.mux.events)
    begun = threading.Event()

    def slowly() -> None:
        for item in custom:
            begun.set()
            read.append(item)
            most.append(run.custom.unread)

    def quickly() -> None:
        for event in events:
            if event["method"] == "custom":
                wait_for(begun)
            most.append(run.custom.unread)

    threads = [threading.Thread(target=each, daemon=True) for each in (slowly, quickly)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_S)
        assert not thread.is_alive()

    assert read == list(range(COUNT))
    assert max(most) <= 2


def test_of_two_projections_one_reader_may_read_only_one(colour: Colour) -> None:
    """A reader that never began to read, and one that is the same task, are not waited for, and lose nothing."""

    async def body(run: Face) -> tuple[int, int, list[Any]]:
        custom, values = run.begin(run.custom), run.begin(run.values)
        await run.one(custom)
        unread_by_anyone = run.begin(run.updates)
        count = len(await run.rest(values))
        assert unread_by_anyone is not None
        return count, run.updates.unread, await run.rest(custom)

    found = bounded(lambda: with_run(colour, app_of(colour), {"xs": []}, body, transformers=MORE, buffer=(1, "block")))

    assert found == (4, 2, list(range(1, COUNT)))


def test_a_reader_that_waits_for_the_output_is_not_waited_for() -> None:
    """It has begun to read, but now it waits for whoever would wait for it."""

    async def run() -> tuple[Any, int]:
        run = await app_of(ASYNC).astream_events({"xs": []}, version="v3", transformers=MORE, buffer=(1, "block"))
        custom, events = aiter(run.custom), aiter(run)

        async def one_then_output() -> Any:
            await anext(custom)
            return await run.output()

        async def all_events() -> int:
            return len([event async for event in events])

        output, count = await asyncio.gather(one_then_output(), all_events())
        return output["xs"], count

    assert bounded(lambda: asyncio.run(run())) == (["a", "b"], len(alone(ASYNC, "events")))


@pytest.mark.parametrize("way", ["break", "aclose", "return", "cancel", "drop"])
def test_a_reader_that_leaves_is_waited_for_no_more(way: str) -> None:
    """It stops only itself: the other reads on to the end."""

    async def run() -> list[Any]:
        run = await app_of(ASYNC).astream_events({"xs": []}, version="v3", transformers=MORE, buffer=(1, "block"))
        events = aiter(run)
        left = asyncio.Event()

        async def leaves() -> None:
            custom = aiter(run.custom)
            async for _ in custom:
                await until_unread(run.custom, 1)
                for _ in range(20):
                    await asyncio.sleep(0)
                left.set()
                if way == "aclose":
                    await custom.aclose()
                    await asyncio.Event().wait()
                elif way == "cancel":
                    await asyncio.Event().wait()
                elif way == "drop":
                    del custom
                    break
                else:
                    break

        leaving = asyncio.create_task(leaves())
        reading = asyncio.create_task(_all(events))
        await left.wait()
        if way == "cancel":
            leaving.cancel()
        found = await reading
        leaving.cancel()
        return found

    found = bounded(lambda: asyncio.run(run()))

    assert [event["params"]["data"] for event in found if event["method"] == "custom"] == list(range(COUNT))


async def until_unread(channel: Any, count: int) -> None:
    """Let the others go on until so much is unread."""
    for _ in range(1000):
        if channel.unread >= count:
            return
        await asyncio.sleep(0)
    raise AssertionError("it never got that far")


async def _all(items: Any) -> list[Any]:
    return [item async for item in items]


def test_a_thread_that_has_ended_is_waited_for_no_more() -> None:
    """Although what it had begun to read is still there."""
    run = app_of(SYNC).stream_events({"xs": []}, transformers=MORE, buffer=(1, "block"))
    custom, events = iter(run.custom), iter(run.mux.events)
    thread = threading.Thread(target=lambda: next(custom), daemon=True)
    thread.start()
    thread.join(PATIENCE_S)

    assert bounded(lambda: [event["params"]["data"] for event in events if event["method"] == "custom"]) == list(range(COUNT))


def test_a_thread_that_python_did_not_begin_is_waited_for_no_more_once_it_has_ended() -> None:
    """Such a thread, of _thread or of C code, has an object that says it goes on for ever."""
    run = app_of(SYNC).stream_events({"xs": []}, transformers=MORE, buffer=(1, "block"))
    custom, events = iter(run.custom), iter(run.mux.events)
    over = threading.Lock()
    over.acquire()

    def read_one() -> None:
        try:
            next(custom)
        finally:
            over.release()

    def whole() -> list[int]:
        # In a thread that is there before the other, whose number it would get otherwise, and with that its object.
        _thread.start_new_thread(read_one, ())
        assert over.acquire(timeout=PATIENCE_S)
        return [event["params"]["data"] for event in events if event["method"] == "custom"]

    assert bounded(whole) == list(range(COUNT))


def test_a_thread_that_python_did_not_begin_is_waited_for_as_long_as_it_goes_on() -> None:
    run = app_of(SYNC).stream_events({"xs": []}, transformers=MORE, buffer=(1, "block"))
    custom, events = iter(run.custom), iter(run.mux.events)
    begun, over = threading.Event(), threading.Event()
    read: list[int] = []
    most: list[int] = []

    def read_all() -> None:
        for item in custom:
            begun.set()
            read.append(item)
        over.set()

    def others() -> None:
        for event in events:
            if event["method"] == "custom":
                wait_for(begun)
            most.append(run.custom.unread)

    _thread.start_new_thread(read_all, ())
    bounded(others)
    wait_for(over)
    assert read == list(range(COUNT))
    assert max(most) <= 1


def test_two_tasks_that_take_turns_are_followed_once_each() -> None:
    """However often they do: what is to be done at the end of a task is not piled up."""
    added: list[Any] = []

    class Counting(asyncio.Task[Any]):
        def add_done_callback(self, callback: Any, *, context: Any = None) -> None:
            added.append(callback)
            super().add_done_callback(callback, context=context)

    async def read() -> list[int]:
        run = await app_of(ASYNC).astream_events({"xs": []}, version="v3", transformers=MORE, buffer=(1, "block"))
        custom, found = aiter(run.custom), []
        mine, yours = asyncio.Lock(), asyncio.Lock()
        await yours.acquire()

        async def alternately(mine: asyncio.Lock, yours: asyncio.Lock) -> None:
            while True:
                await mine.acquire()
                item = await anext(custom, None)
                yours.release()
                if item is None:
                    return
                found.append(item)

        loop = asyncio.get_running_loop()
        pair = [Counting(alternately(mine, yours), loop=loop), Counting(alternately(yours, mine), loop=loop)]
        await asyncio.wait_for(asyncio.gather(*pair), PATIENCE_S)
        return found

    assert asyncio.run(read()) == list(range(COUNT))
    assert len([callback for callback in added if isinstance(callback, functools.partial)]) == 2


def test_a_sync_reader_can_close_its_part_alone() -> None:
    """Nothing more is kept for it; the run goes on for the others."""
    run = app_of(SYNC).stream_events({"xs": []}, transformers=MORE)
    custom, values = iter(run.custom), iter(run.values)
    assert next(custom) == 0
    custom.close()  # type: ignore[attr-defined]

    assert len(list(values)) == 4
    assert (list(custom), run.custom.unread) == ([], 0)


def test_a_run_that_waits_for_a_reader_can_be_aborted() -> None:
    """The one who waits is at its end."""

    async def run() -> int:
        run = await app_of(ASYNC).astream_events({"xs": []}, version="v3", transformers=MORE, buffer=(1, "block"))
        custom, events = aiter(run.custom), aiter(run)
        full = asyncio.Event()

        async def never_reads_on() -> None:
            await anext(custom)
            await until_unread(run.custom, 1)
            full.set()
            await asyncio.Event().wait()

        standing = asyncio.create_task(never_reads_on())
        reading = asyncio.create_task(_all(events))
        await full.wait()
        await run.abort()
        count = len(await reading)
        standing.cancel()
        return count

    assert bounded(lambda: asyncio.run(run())) > 0
