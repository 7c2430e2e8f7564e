"""Show a run in a browser: an endpoint of server-sent events, and a page that reads it with EventSource.

On this machine only, until you say otherwise; ``pip install 'tracegraph[examples]'`` brings the server::

    python examples/sse_server.py
    curl -N 'http://127.0.0.1:8000/run?text=Owls+hunt+at+night.'

A client that hangs up stops its run: Starlette cancels the response, which closes the stream.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from pathlib import Path

import uvicorn
from briefing import graph
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import FileResponse, Response, StreamingResponse
from starlette.routing import Route

from tracegraph.stream.wire import to_sse
from tracegraph.telemetry import setup

PAGE = Path(__file__).with_name("sse_page.html")


async def events(text: str) -> AsyncGenerator[bytes, None]:
    """Yield a run as server-sent events, and one more which says that it is over."""
    parts = graph.astream({"text": text}, stream_mode=["messages", "tasks"], subgraphs=True, version="v2")
    async with aclosing(to_sse(parts, on_error="send")) as chunks:
        async for chunk in chunks:
            yield chunk
    yield b"event: end\ndata: {}\n\n"


async def run(request: Request) -> Response:
    """Start a run. An EventSource that lost its connection asks again by itself: that is no reason to run again."""
    if "last-event-id" in request.headers:
        return Response(status_code=204)  # tells it to give up
    text = request.query_params.get("text", "")
    return StreamingResponse(events(text), media_type="text/event-stream", headers={"Cache-Control": "no-store"})


async def page(request: Request) -> Response:  # noqa: ARG001  # what Starlette calls it with
    """Return the page."""
    return FileResponse(PAGE)


app = Starlette(routes=[Route("/", page), Route("/run", run)])


if __name__ == "__main__":
    with setup():
        uvicorn.run(app, host="127.0.0.1", port=8000)
