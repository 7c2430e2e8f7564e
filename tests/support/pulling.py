"""A stream that a test reads part by part, in either colour; node code that emits what it is told to."""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from colours import Colour
from small_graphs import PATIENCE_S, State, wait_for

from tracegraph.config import get_stream_writer


class Pulled:
    """Reads one part at a time; in between, only threads go on."""

    def __init__(self, colour: Colour, app: Any, config: Any = None, **options: Any) -> None:
        self._runner = asyncio.Runner() if colour.name == "async" else None
        stream = app.stream if self._runner is None else app.astream
        self.reader = stream({"xs": []}, config, **options)

    def next(self) -> Any:
        """Return the next part."""
        return next(self.reader) if self._runner is None else self._runner.run(self._anext())

    async def _anext(self) -> Any:
        return await anext(self.reader)

    def rest(self) -> list[Any]:
        """Return all that is left."""
        return list(self.reader) if self._runner is None else self._runner.run(self._all())

    async def _all(self) -> list[Any]:
        return [part async for part in self.reader]

    def close(self) -> None:
        """Leave."""
        if self._runner is None:
            self.reader.close()
        else:
            self._runner.run(self.reader.aclose())
            self._runner.close()


@contextmanager
def pulled(colour: Colour, app: Any, config: Any = None, **options: Any) -> Iterator[Pulled]:
    """Yield a stream that is closed afterwards."""
    pulling = Pulled(colour, app, config, **options)
    try:
        yield pulling
    finally:
        pulling.close()


class Emitter:
    """A node, run in a thread, that emits 0, 1, 2, ... as many at a time as it is told to."""

    def __init__(self) -> None:
        self.emitted = 0
        self._orders: queue.Queue[tuple[int, threading.Event] | None] = queue.Queue()

    def node(self, state: State) -> State:
        """Emit by order."""
        write = get_stream_writer()
        while (order := self._orders.get(timeout=PATIENCE_S)) is not None:
            count, is_done = order
            for _ in range(count):
                self.emitted += 1
                write(self.emitted - 1)
            is_done.set()
        return {"n": self.emitted}

    def order(self, count: int) -> threading.Event:
        """Let it emit so many more."""
        is_done = threading.Event()
        self._orders.put((count, is_done))
        return is_done

    def emit(self, count: int) -> None:
        """Let it emit so many more, and wait until it has."""
        wait_for(self.order(count))

    def end(self) -> None:
        """Let it end."""
        self._orders.put(None)
