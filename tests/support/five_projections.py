"""A graph with something to read in five projections, and what lets a run show them."""

from __future__ import annotations

import asyncio
from typing import Any

from colours import SYNC, Colour
from small_graphs import State, chain, says

from tracegraph.config import get_stream_writer
from tracegraph.stream import CustomTransformer, DebugTransformer, StreamTransformer, UpdatesTransformer

COUNT = 12
FIVE = ("values", "updates", "custom", "debug", "events")
MORE: list[type[StreamTransformer]] = [UpdatesTransformer, CustomTransformer, DebugTransformer]


def emits(state: State) -> State:
    """Emit 0, 1, 2, ..."""
    write = get_stream_writer()
    for number in range(COUNT):
        write(number)
    return {"n": COUNT}


async def aemits(state: State) -> State:
    """Emit as much, on the event loop, and let others read in between."""
    write = get_stream_writer()
    for number in range(COUNT):
        write(number)
        await asyncio.sleep(0)
    return {"n": COUNT}


def app_of(colour: Colour, *options: Any) -> Any:
    """Return a graph with something to read in all projections."""
    return chain(*options, a=says("a"), emits=emits if colour is SYNC else aemits, b=says("b"))
