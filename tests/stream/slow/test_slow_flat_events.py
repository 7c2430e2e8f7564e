"""A slow reader of flat events has the same choice as one of parts."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from pulling import Emitter
from small_graphs import bounded, chain, wait_for

from tracegraph.errors import SlowReaderError


def chunks(events: list[Any]) -> list[Any]:
    """Return what the graph itself streamed."""
    return [event["data"]["chunk"] for event in events if event["event"] == "on_chain_stream"]


def read_late(emitted: int, **options: Any) -> tuple[list[Any], Any]:
    """Read one chunk, let *emitted* more be made, then read the rest."""
    emitter = Emitter()
    app = chain(node=emitter.node)

    async def run() -> list[Any]:
        emitter.order(1)
        found: list[Any] = []
        async for event in reader:
            found.append(event)
            if len(chunks(found)) == 1 and emitter.emitted == 1:
                made = emitter.order(emitted)
                if options.get("buffer", (0, ""))[1] != "block":
                    await asyncio.to_thread(wait_for, made)
                emitter.end()
        return found

    reader = app.astream_events({"xs": []}, stream_mode="custom", include_names=["LangGraph"], **options)
    return bounded(lambda: asyncio.run(run())), reader


def test_by_default_all_events_are_kept() -> None:
    """Until they are read."""
    events, reader = read_late(50)

    assert chunks(events)[:51] == list(range(51))
    assert reader.dropped == 0


def test_the_oldest_events_are_dropped() -> None:
    """And counted."""
    events, reader = read_late(50, buffer=(5, "drop_oldest"))

    assert reader.dropped == 45
    assert [chunk for chunk in chunks(events) if isinstance(chunk, int)] == [0, 46, 47, 48, 49, 50]


def test_the_run_waits() -> None:
    """And nothing is lost."""
    events, reader = read_late(50, buffer=(5, "block"))

    assert chunks(events)[:51] == list(range(51))
    assert (reader.dropped, reader.overshoot <= 2) == (0, True)


def test_the_run_fails() -> None:
    """With the error of the reader."""
    with pytest.raises(SlowReaderError, match="'custom'"):
        read_late(50, buffer=(5, "fail"))
