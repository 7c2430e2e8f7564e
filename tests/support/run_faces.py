"""Runs as objects, sync and async behind one face, so that a test's body is one coroutine for both colours."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

from colours import Colour

from tracegraph.stream import StreamMux

T = TypeVar("T")


def play(colour: Colour, body: Coroutine[Any, Any, T]) -> T:
    """Run the body: in the async colour on an event loop, in the sync one without, where it has nothing to wait for."""
    if colour.name == "async":
        return asyncio.run(body)
    try:
        body.send(None)
    except StopIteration as stop:
        value: T = stop.value
        return value
    body.close()
    raise AssertionError("a sync run made its reader wait on an event loop")


class Face:
    """One run object."""

    def __init__(self, run: Any, colour: Colour) -> None:
        self.run = run
        self.is_async = colour.name == "async"

    def __getattr__(self, name: str) -> Any:
        return getattr(self.run, name)

    def face(self, run: Any) -> Face:
        """Return the face of a run inside."""
        return Face(run, Colour("async" if self.is_async else "sync"))

    def begin(self, iterable: Any) -> Any:
        """Subscribe."""
        return aiter(iterable) if self.is_async else iter(iterable)

    async def rest(self, iterable: Any) -> list[Any]:
        """Read to the end."""
        return [item async for item in iterable] if self.is_async else list(iterable)

    async def one(self, iterator: Any) -> Any:
        """Read one item."""
        return await anext(iterator) if self.is_async else next(iterator)

    async def output(self) -> Any:
        """Return the output."""
        return await self.run.output() if self.is_async else self.run.output

    async def interrupted(self) -> bool:
        """Say whether the run paused."""
        return bool(await self.run.interrupted() if self.is_async else self.run.interrupted)

    async def interrupts(self) -> list[Any]:
        """Return the questions."""
        return list(await self.run.interrupts() if self.is_async else self.run.interrupts)

    async def whole(self, projection: Any) -> Any:
        """Return all of a message's projection."""
        return await projection if self.is_async else projection.get()

    async def abort(self) -> None:
        """Leave the run."""
        if self.is_async:
            await self.run.abort()
        else:
            self.run.abort()


async def opened(colour: Colour, app: Any, given: Any, config: Any = None, **options: Any) -> Face:
    """Return the face of a new run."""
    if colour.name == "async":
        return Face(await app.astream_events(given, config, version="v3", **options), colour)
    return Face(app.stream_events(given, config, version="v3", **options), colour)


def with_run(colour: Colour, app: Any, given: Any, body: Callable[[Face], Awaitable[T]], config: Any = None, **options: Any) -> T:
    """Run *body* with a new run."""

    async def whole() -> T:
        return await body(await opened(colour, app, given, config, **options))

    return play(colour, whole())


class MuxFace:
    """One mux that the test feeds by hand."""

    def __init__(self, colour: Colour, *transformers: Any, **options: Any) -> None:
        self.is_async = colour.name == "async"
        self.mux = StreamMux(is_async=self.is_async, factories=transformers, **options)
        self.face = Face(None, colour)

    async def push(self, method: str, data: Any, *namespace: str, **more: Any) -> None:
        """Push an event."""
        event: Any = {
            "type": "event",
            "method": method,
            "params": {"namespace": list(namespace), "timestamp": 1, "data": data, **more},
        }
        if self.is_async:
            await self.mux.apush(event)
        else:
            self.mux.push(event)

    async def close(self) -> None:
        """End the run."""
        await self.mux.aclose() if self.is_async else self.mux.close()

    async def fail(self, error: BaseException) -> None:
        """Fail the run."""
        await self.mux.afail(error) if self.is_async else self.mux.fail(error)
