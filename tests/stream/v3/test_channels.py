"""A channel keeps what its one consumer has still to read, and nothing else."""

from __future__ import annotations

import asyncio
import gc
import weakref
from typing import Any

import pytest
from colours import Colour
from run_faces import Face, play

from tracegraph.stream import StreamChannel, StreamMux, StreamTransformer


def bound(colour: Colour) -> StreamChannel[Any]:
    """Return a channel of a mux that nobody pumps."""
    channel: StreamChannel[Any] = StreamChannel()

    class Holding(StreamTransformer):
        def init(self) -> dict[str, Any]:
            return {"held": channel}

    StreamMux([Holding()], is_async=colour.name == "async")
    return channel


def test_what_comes_before_the_consumer_is_not_kept(colour: Colour) -> None:
    """It subscribes when iteration begins, not when the first item is asked for."""
    channel, face = bound(colour), Face(None, colour)

    async def body() -> list[Any]:
        channel.push("lost")
        items = face.begin(channel)
        channel.push("kept")
        channel.close()
        return await face.rest(items)

    assert play(colour, body()) == ["kept"]


def test_a_second_consumer_is_refused(colour: Colour) -> None:
    """The first keeps all to itself, even after it has gone."""
    channel, face = bound(colour), Face(None, colour)

    async def body() -> None:
        face.begin(channel)
        with pytest.raises(RuntimeError, match=r"tee\(n\)"):
            face.begin(channel)

    play(colour, body())


def test_tee_gives_independent_readers(colour: Colour) -> None:
    """Each reads all, at its own pace."""
    channel, face = bound(colour), Face(None, colour)

    async def body() -> list[list[Any]]:
        readers = channel.atee(3) if face.is_async else channel.tee(3)
        channel.push(1)
        channel.push(2)
        assert await face.one(readers[2]) == 1
        channel.close()
        return [await face.rest(reader) for reader in readers]

    assert play(colour, body()) == [[1, 2], [1, 2], [2]]


@pytest.mark.parametrize("tee", ["tee", "atee"])
def test_tee_needs_a_reader(tee: str) -> None:
    """Zero of them would make the channel unreadable."""
    with pytest.raises(ValueError, match="at least one"):
        getattr(StreamChannel(), tee)(0)


@pytest.mark.parametrize("maxlen", [0, -1])
def test_a_bound_must_be_positive(maxlen: int) -> None:
    """Others are accepted and ignored."""
    with pytest.raises(ValueError, match=f"not {maxlen}"):
        StreamChannel(maxlen=maxlen)
    assert StreamChannel(maxlen=5).maxlen == 5


def test_an_error_comes_after_what_was_read_before_it_and_once(colour: Colour) -> None:
    """The reader that asks again finds the end."""
    channel, face = bound(colour), Face(None, colour)

    async def body() -> list[Any]:
        items = face.begin(channel)
        channel.push(1)
        channel.fail(LookupError("mine"))
        assert await face.one(items) == 1
        with pytest.raises(LookupError, match="mine"):
            await face.one(items)
        return await face.rest(items)

    assert play(colour, body()) == []


def test_a_reader_that_comes_after_the_failure_is_told_too(colour: Colour) -> None:
    """So is everyone in a tee."""
    channel, face = bound(colour), Face(None, colour)

    async def body() -> int:
        channel.fail(LookupError("mine"))
        readers = channel.atee(2) if face.is_async else channel.tee(2)
        told = 0
        for reader in readers:
            with pytest.raises(LookupError):
                await face.one(reader)
            told += 1
        return told

    assert play(colour, body()) == 2


def test_a_push_that_a_consumer_would_miss_is_an_error(colour: Colour) -> None:
    """One that nobody would miss is not."""
    read, unread, face = bound(colour), bound(colour), Face(None, colour)

    async def body() -> None:
        face.begin(read)
        read.close()
        unread.close()
        unread.push(1)
        with pytest.raises(RuntimeError, match="closed"):
            read.push(1)

    play(colour, body())


def test_the_other_protocol_is_a_type_error_that_names_the_right_one(colour: Colour) -> None:
    """As is any before the channel belongs to a run."""
    channel = bound(colour)
    wrong = iter if colour.name == "async" else aiter
    with pytest.raises(TypeError, match="async for" if colour.name == "async" else "'for'"):
        wrong(channel)
    for either in (iter, aiter):
        with pytest.raises(TypeError, match="belongs to no run"):
            either(StreamChannel())


def test_what_nobody_can_read_any_more_is_not_kept(colour: Colour) -> None:
    """A consumer that left takes its buffer along."""

    class Item:
        pass

    channel, face = bound(colour), Face(None, colour)

    async def body() -> Any:
        items = face.begin(channel)
        del items
        item = Item()
        channel.push(item)
        return weakref.ref(item)

    found = play(colour, body())
    gc.collect()

    assert found() is None


async def test_a_reader_that_waits_is_woken_by_whoever_pushes() -> None:
    """Where nobody pumps, another task may."""
    channel = bound(Colour("async"))
    items = aiter(channel)
    waiting = asyncio.create_task(anext(items))
    await asyncio.sleep(0)

    channel.push("now")

    assert await asyncio.wait_for(waiting, 5) == "now"
