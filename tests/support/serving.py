"""A real web server on the test's own event loop."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

import uvicorn
from small_graphs import PATIENCE_S

__all__ = ["serving"]


@contextlib.asynccontextmanager
async def serving(app: Any) -> AsyncIterator[str]:
    """Serve *app* on this event loop and yield its address."""
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="error", lifespan="off", ws="none"))
    server.capture_signals = contextlib.nullcontext  # type: ignore[method-assign]  # the event loop's runner has its own
    socket = server.config.bind_socket()
    running = asyncio.create_task(server.serve(sockets=[socket]))
    try:
        yield f"http://127.0.0.1:{socket.getsockname()[1]}"
    finally:
        server.should_exit = True
        await asyncio.wait_for(running, PATIENCE_S)
        socket.close()
