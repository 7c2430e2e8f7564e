"""A run behind a real web server ends when the client that reads it goes away."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
from serving import serving
from small_graphs import PATIENCE_S, State, chain, says
from spans import Trace
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import StreamingResponse
from starlette.routing import Route


class Service:
    """A graph behind a route, and what became of its runs."""

    def __init__(self) -> None:
        self.running, self.stopped, self.left = asyncio.Event(), asyncio.Event(), asyncio.Event()
        inner = chain(quick=says("quick"), forever=self._forever)

        async def outer(state: State) -> State:
            await inner.ainvoke({"xs": []})
            return {}

        self.endless = chain(first=says("first"), outer=outer)
        self.short = chain(first=says("first"), second=says("second"))
        self.app = Starlette(routes=[Route("/{name}", self._answer)])

    async def _forever(self, state: State) -> State:
        self.running.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.stopped.set()
            raise
        return {}

    async def _answer(self, request: Request) -> StreamingResponse:
        graph = getattr(self, request.path_params["name"])
        return StreamingResponse(self._events(graph), media_type="text/event-stream")

    async def _events(self, graph: Any) -> AsyncIterator[str]:
        try:
            async with await graph.astream_events({"xs": []}, version="v3") as run:
                async for event in run:
                    yield f"data: {json.dumps(event)}\n\n"
        finally:
            self.left.set()


async def read(url: str, count: int, until: asyncio.Event | None = None) -> list[Any]:
    """Read so many events, all of them if there are fewer, wait for what must have happened *until* then, and hang up."""
    found: list[Any] = []
    async with httpx.AsyncClient() as client, client.stream("GET", url) as response:
        async for line in response.aiter_lines():
            if line:
                found.append(json.loads(line.removeprefix("data: ")))
            if len(found) == count:
                await (asyncio.sleep(0) if until is None else until.wait())
                break
    return found


async def test_a_client_that_stays_gets_every_event(trace: Trace) -> None:
    """As they are in the main log."""
    service = Service()
    async with serving(service.app) as address:
        events = await asyncio.wait_for(read(f"{address}/short", 100), PATIENCE_S)

    assert [event["params"]["data"]["xs"] for event in events] == [[], ["first"], ["first", "second"]]
    assert [event["seq"] for event in events] == [1, 2, 3]
    assert trace.is_complete()


async def test_a_client_that_hangs_up_ends_the_run(trace: Trace) -> None:
    """The node of the graph that another node awaits is cancelled, and every span ends, while the server goes on."""
    service = Service()
    async with serving(service.app) as address:
        events = await asyncio.wait_for(read(f"{address}/endless", 4, service.running), PATIENCE_S)
        await asyncio.wait_for(service.left.wait(), PATIENCE_S)
        assert trace.ended
        assert trace.is_complete()

        await asyncio.wait_for(service.stopped.wait(), PATIENCE_S)
        assert await asyncio.wait_for(read(f"{address}/short", 1), PATIENCE_S)

    assert [event["method"] for event in events] == ["values", "values", "values", "lifecycle"]
    assert [event["seq"] for event in events] == [1, 2, 3, 4]


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Talk to the server itself, whatever the machine's settings are."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
