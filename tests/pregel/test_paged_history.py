"""History is loaded a page at a time, from any saver, and may be left at any point."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from colours import Colour
from foreign_saver import Foreign
from nested import THREAD, Recorder, around, at, history, state

from tracegraph.checkpoint.base.id import uuid6

MANY = 10_000


def grow(saver: Foreign, count: int) -> None:
    """Give the thread so many more checkpoints, each with another parent and no other content."""
    head = saver.inner.get_tuple(THREAD)
    assert head is not None
    for step in range(count):
        head.checkpoint["id"] = str(uuid6(clock_seq=step))
        config = saver.inner.put(
            {"configurable": {**at("")["configurable"], "checkpoint_id": None}},
            head.checkpoint,
            {"source": "loop", "step": step},
            {},
        )
        assert config


def long_thread(count: int = 300, **options: Any) -> tuple[Any, Foreign]:
    """Return a graph and the saver of a thread with that many checkpoints."""
    made, saver = Recorder(), Foreign(**options)
    app = around(saver, a=made.says("a"))
    app.invoke({"log": []}, THREAD)
    grow(saver, count - 3)
    saver.asked.clear()
    return app, saver


def first(colour: Colour, app: Any, count: int) -> list[Any]:
    """Return the newest snapshots, leaving the listing there."""
    found: list[Any] = []
    if colour.name == "sync":
        listing = app.get_state_history(THREAD)
        found.extend(next(listing) for _ in range(count))
        listing.close()
        return found

    async def read() -> None:
        listing = app.aget_state_history(THREAD)
        for _ in range(count):
            found.append(await anext(listing))
        await listing.aclose()

    asyncio.run(read())
    return found


def test_the_newest_of_a_long_thread_costs_as_much_as_of_a_short_one(colour: Colour) -> None:
    """Of ten thousand checkpoints a handful is read."""
    app, saver = long_thread(MANY)

    (newest,) = first(colour, app, 1)

    assert newest.metadata["step"] == MANY - 4
    assert saver.read <= 8
    assert saver.open == 0


@pytest.mark.parametrize("count", [1, 4, 5, 100])
def test_a_listing_may_be_left_at_any_point(colour: Colour, count: int) -> None:
    """Nothing is open while its reader is busy, so closing it leaves nothing behind."""
    app, saver = long_thread()

    found = first(colour, app, count)

    assert [each.metadata["step"] for each in found] == [296 - n for n in range(count)]
    assert saver.open == 0
    assert saver.read <= 4 * count


def test_a_listing_that_is_only_dropped_leaves_nothing_open(colour: Colour) -> None:
    """A reader that breaks out of its loop need not close anything."""
    app, saver = long_thread()

    async def read() -> None:
        async for _ in app.aget_state_history(THREAD):
            break

    if colour.name == "sync":
        for _ in app.get_state_history(THREAD):
            break
    else:
        asyncio.run(read())

    assert saver.open == 0


@pytest.mark.parametrize("heeds", [True, False], ids=["heeding", "ignoring before and limit"])
def test_all_pages_together_are_the_thread(colour: Colour, heeds: bool) -> None:
    """Each checkpoint once, newest first, whatever the saver makes of ``before`` and ``limit``."""
    app, saver = long_thread(heeds=heeds)

    found = [each.config["configurable"]["checkpoint_id"] for each in history(colour, app)]

    assert found == sorted(saver.inner.storage["t"][""], reverse=True)
    assert [each.config["configurable"]["checkpoint_id"] for each in history(colour, app, limit=9)] == found[:9]


def test_pages_are_few(colour: Colour) -> None:
    """A whole thread takes a question to the saver per 256 checkpoints, not one each."""
    app, saver = long_thread(1_000)

    history(colour, app)

    assert len(saver.asked) < 15


def test_filter_before_and_limit_hold_over_pages(colour: Colour) -> None:
    """They mean the whole listing."""
    app, _ = long_thread()
    bound = history(colour, app)[20].config

    assert [h.metadata["step"] for h in history(colour, app, before=bound, limit=30)] == [275 - n for n in range(30)]
    assert len(history(colour, app, filter={"source": "input"})) == 1
    assert len(history(colour, app, filter={"source": "loop"}, limit=50)) == 50
    assert history(colour, app, limit=0) == []


def test_checkpoints_made_meanwhile_do_not_shift_the_pages(colour: Colour) -> None:
    """A run that goes on while its history is read is not part of it."""
    app, saver = long_thread()
    before = sorted(saver.inner.storage["t"][""], reverse=True)
    found = []
    if colour.name == "sync":
        for each in app.get_state_history(THREAD):
            found.append(each.config["configurable"]["checkpoint_id"])
            if len(found) % 50 == 1:
                grow(saver, 1)
    else:

        async def read() -> None:
            async for each in app.aget_state_history(THREAD):
                found.append(each.config["configurable"]["checkpoint_id"])
                if len(found) % 50 == 1:
                    grow(saver, 1)

        asyncio.run(read())

    assert found == before


def test_the_state_of_a_long_thread_costs_as_much_as_of_a_short_one(colour: Colour) -> None:
    """One question to the saver, whose answer does not grow with the number of past steps."""
    short, short_saver = long_thread(4)
    long, long_saver = long_thread(3_000)
    found = state(colour, long)

    assert found.metadata["step"] == 2_996
    assert state(colour, short).values == found.values
    assert long_saver.asked == short_saver.asked == ["get_tuple"]


def test_a_real_thread_is_read_from_the_saver_alike(colour: Colour) -> None:
    """Live runs, not copies: the checkpoint of the newest step is of the same size after 100 steps as after 10."""
    saver = Foreign()
    made = Recorder()
    app = around(saver, a=lambda state: {"log": []}, b=made.says("b"))
    sizes = []
    for _ in range(2):
        for _ in range(10 if not sizes else 90):
            colour.invoke(app, {"log": []}, THREAD)
        checkpoint: Any = saver.inner.get_tuple(THREAD)
        sizes.append(len(repr({**checkpoint.checkpoint, "channel_values": None})) + len(checkpoint.pending_writes))

    assert abs(sizes[1] - sizes[0]) <= 8  # counters gain a digit
