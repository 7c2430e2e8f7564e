"""Server-sent events from a real web server: what a client gets, and what becomes of the run when it hangs up."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import httpx
import pytest
from serving import serving
from small_graphs import PATIENCE_S, State, chain, says
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import StreamingResponse
from starlette.routing import Route

from tracegraph.stream.wire import to_sse


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Talk to the server itself, whatever the machine's settings are."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")


def app_of(graph: Any) -> Starlette:
    """Return an application that answers with a run of *graph*."""

    async def answer(request: Request) -> StreamingResponse:
        parts = graph.astream({"xs": []}, stream_mode=["updates"], version="v2")
        return StreamingResponse(to_sse(parts, on_error="send"), media_type="text/event-stream")

    return Starlette(routes=[Route("/", answer)])


async def test_a_client_gets_every_part_and_the_error() -> None:
    """Framed as a browser's EventSource reads it."""

    def fail(state: State) -> State:
        raise ValueError("boom")

    async with serving(app_of(chain(a=says("one\ntwo"), fail=fail))) as url, httpx.AsyncClient() as client:
        response = await client.get(url)

    first, last = [dict(line.split(": ", 1) for line in event.splitlines()) for event in response.text.split("\n\n") if event]
    assert response.headers["content-type"].startswith("text/event-stream")
    assert (first["event"], first["id"], json.loads(first["data"])["data"]) == ("updates", "1", {"a": {"xs": ["one\ntwo"]}})
    assert (last["event"], json.loads(last["data"])["data"]) == ("error", {"type": "ValueError", "message": "boom"})


async def test_a_client_that_hangs_up_stops_the_run() -> None:
    """The node that runs then is cancelled."""
    running, stopped = asyncio.Event(), asyncio.Event()

    async def hang(state: State) -> State:
        running.set()
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()
        return {}

    async with serving(app_of(chain(a=says("x"), hang=hang))) as url, asyncio.timeout(PATIENCE_S):
        async with httpx.AsyncClient() as client, client.stream("GET", url) as response:
            chunk = await anext(response.aiter_bytes())
            await running.wait()
        await stopped.wait()

    assert chunk.startswith(b"event: updates\nid: 1\n")
