"""Parts as bytes: lines and server-sent events, one chunk for what is ready, and how a run's end shows."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from colours import Colour
from small_graphs import PATIENCE_S, State, chain, says

from tracegraph.config import get_stream_writer
from tracegraph.errors import InvalidInputError
from tracegraph.stream.wire import to_ndjson, to_sse, to_wire

OPTIONS: dict[str, Any] = {"stream_mode": ["custom", "updates"], "version": "v2"}


def fail(state: State) -> State:
    get_stream_writer()("last words")
    raise ValueError("boom")


def chunks(
    colour: Colour, encode: Any, app: Any, *, through: Any = iter, found: list[bytes] | None = None, **more: Any
) -> list[bytes]:
    """Return the chunks of a run; *through* is what stands between the stream and the encoder."""
    found = [] if found is None else found
    if colour.name == "sync":
        found.extend(encode(through(app.stream({"n": 0}, **OPTIONS)), **more))
        return found

    async def run() -> None:
        parts = app.astream({"n": 0}, **OPTIONS)
        async for chunk in encode(parts if through is iter else through(parts), **more):
            found.append(chunk)

    asyncio.run(run())
    return found


def test_ndjson_is_one_object_a_line(colour: Colour) -> None:
    """The wire form of each part, in order, in ASCII."""
    app = chain(a=says("über\nzwei\u2028drei"), b=says("y"))

    lines = b"".join(chunks(colour, to_ndjson, app)).splitlines()

    assert [json.loads(line)["data"] for line in lines] == [{"a": {"xs": ["über\nzwei\u2028drei"]}}, {"b": {"xs": ["y"]}}]
    assert all(line.isascii() for line in lines)
    assert len(b"".join(lines).decode().splitlines()) == 1


def test_sse_has_the_type_the_number_and_the_data(colour: Colour) -> None:
    """Newlines in the data are inside its JSON, so an event has three lines."""
    first, second = b"".join(chunks(colour, to_sse, chain(a=says("one\r\n\ntwo"), b=says("y")))).split(b"\n\n")[:-1]

    event, number, data = first.split(b"\n")
    assert (event, number) == (b"event: updates", b"id: 1")
    assert json.loads(data.removeprefix(b"data: "))["data"] == {"a": {"xs": ["one\r\n\ntwo"]}}
    assert second.startswith(b"event: updates\nid: 2\ndata: {")


def test_a_part_without_a_number_has_no_id() -> None:
    """So a client's last number stays what it was."""
    [chunk] = to_sse([{"type": "custom", "ns": (), "data": 1}])

    assert chunk.split(b"\n")[0:2] == [b"event: custom", b'data: {"v":1,"type":"custom","ns":[],"data":1,"meta":null}']


def test_sync_what_is_ready_is_one_chunk_and_nothing_waits() -> None:
    """The first part is read while its node still runs; the hundred that were made meanwhile come at once."""
    may_go, made, may_end = threading.Event(), threading.Event(), threading.Event()

    def burst(state: State) -> State:
        write = get_stream_writer()
        write("first")
        assert may_go.wait(PATIENCE_S)
        for number in range(100):
            write(number)
        made.set()
        assert may_end.wait(PATIENCE_S)
        return {"n": 1}

    sending = to_ndjson(chain(burst=burst).stream({"n": 0}, **OPTIONS))
    first = next(sending)
    may_go.set()
    assert made.wait(PATIENCE_S)
    second = next(sending)
    may_end.set()

    assert [json.loads(line)["data"] for line in first.splitlines()] == ["first"]
    assert [json.loads(line)["data"] for line in second.splitlines()] == list(range(100))
    assert [json.loads(chunk)["data"] for chunk in sending] == [{"burst": {"n": 1}}]


async def test_async_what_is_ready_is_one_chunk_and_nothing_waits() -> None:
    """As above, on the loop."""
    may_go, made, may_end = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def burst(state: State) -> State:
        write = get_stream_writer()
        write("first")
        await may_go.wait()
        for number in range(100):
            write(number)
        made.set()
        await may_end.wait()
        return {"n": 1}

    async with asyncio.timeout(PATIENCE_S):
        sending = to_ndjson(chain(burst=burst).astream({"n": 0}, **OPTIONS))
        first = await anext(sending)
        may_go.set()
        await made.wait()
        second = await anext(sending)
        may_end.set()
        rest = [chunk async for chunk in sending]

    assert [json.loads(line)["data"] for line in first.splitlines()] == ["first"]
    assert [json.loads(line)["data"] for line in second.splitlines()] == list(range(100))
    assert [json.loads(chunk)["data"] for chunk in rest] == [{"burst": {"n": 1}}]


def test_a_generator_between_is_read_part_by_part(colour: Colour) -> None:
    """What a filter lets through is what is sent."""

    def choose(parts: Iterator[Any]) -> Iterator[Any]:
        return (part for part in parts if part["type"] == "custom")

    async def achoose(parts: AsyncIterator[Any]) -> AsyncIterator[Any]:
        async for part in parts:
            if part["type"] == "custom":
                yield part

    def talk(state: State) -> State:
        for word in ("a", "b"):
            get_stream_writer()(word)
        return {"n": 1}

    found = chunks(colour, to_ndjson, chain(talk=talk), through=choose if colour.name == "sync" else achoose)

    assert [json.loads(chunk)["data"] for chunk in found] == ["a", "b"]


@pytest.mark.parametrize("encode", [to_ndjson, to_sse])
def test_an_error_of_the_run_is_raised_after_what_was_ready(colour: Colour, encode: Any) -> None:
    """As the stream itself raises it."""
    seen: list[bytes] = []

    with pytest.raises(ValueError, match="boom"):
        chunks(colour, encode, chain(a=says("x"), fail=fail), found=seen)

    assert b"last words" in seen[-1]


def test_an_error_is_sent_if_asked_for(colour: Colour) -> None:
    """As the last thing, after what was ready."""
    app = chain(a=says("x"), fail=fail)

    lines = b"".join(chunks(colour, to_ndjson, app, on_error="send")).splitlines()
    events = b"".join(chunks(colour, to_sse, app, on_error="send")).split(b"\n\n")

    told = {"v": 1, "type": "error", "ns": [], "data": {"type": "ValueError", "message": "boom"}, "meta": None}
    assert [json.loads(line)["type"] for line in lines] == ["updates", "custom", "error"]
    assert json.loads(lines[-1]) == told
    event, data = events[-2].split(b"\n")
    assert (event, json.loads(data.removeprefix(b"data: "))) == (b"event: error", told)


def test_parts_of_version_1_are_refused_even_where_errors_are_sent(colour: Colour) -> None:
    """That is no failure of the run, but a mistake of who wrote the service."""

    def bare(parts: Any, **more: Any) -> Any:
        return to_sse(parts, on_error="send")

    with pytest.raises(InvalidInputError, match="version='v2'"):
        if colour.name == "sync":
            list(bare(chain(a=says("x")).stream({"n": 0}, stream_mode="updates")))
        else:

            async def run() -> None:
                async for _ in bare(chain(a=says("x")).astream({"n": 0}, stream_mode="updates")):
                    pass

            asyncio.run(run())


def test_an_unknown_way_with_errors_is_refused_at_once() -> None:
    """Before anything runs."""
    with pytest.raises(InvalidInputError, match="'raise' or 'send', not 'ignore'"):
        to_ndjson([], on_error="ignore")  # type: ignore[call-overload]


def test_sync_closing_what_is_sent_stops_the_run() -> None:
    """The node after the part that was sent last never begins."""
    begun: list[str] = []
    app = chain(a=says("x"), b=lambda state: begun.append("b"))

    sending = to_sse(app.stream({"n": 0}, **OPTIONS))
    next(sending)
    sending.close()

    assert begun == []
    assert list(sending) == []


async def test_async_closing_what_is_sent_stops_the_run() -> None:
    """And a node that runs is cancelled, and has come to rest."""
    ended: list[str] = []

    async def hang(state: State) -> State:
        get_stream_writer()("hangs")
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("hang")
        return {}

    async with asyncio.timeout(PATIENCE_S):
        sending = to_sse(chain(hang=hang).astream({"n": 0}, **OPTIONS))
        assert b"hangs" in await anext(sending)
        await sending.aclose()

    assert ended == ["hang"]


def test_events_by_themselves_are_lines_too(colour: Colour) -> None:
    """What an observer or mode ``events`` of version 1 gives."""
    events = colour.stream(chain(a=says("x")), {"n": 0}, stream_mode="events")

    lines = b"".join(to_ndjson(events)).splitlines()

    assert [json.loads(line) for line in lines] == [json.loads(json.dumps(to_wire(event))) for event in events]
    assert json.loads(lines[0])["data"]["event"] == "RunStarted"
