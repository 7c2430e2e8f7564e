"""What a mux decides, written once: a generator that hands out the coroutines of async transformers to be awaited."""

from __future__ import annotations

from collections.abc import Awaitable, Generator
from typing import Any, TypeAlias, TypeVar

__all__ = ["MuxFlow", "arun_mux_flow", "run_mux_flow"]

T = TypeVar("T")
MuxFlow: TypeAlias = Generator[Awaitable[Any], Any, T]


def run_mux_flow(flow: MuxFlow[T]) -> T:
    """Run a flow that has nothing to await: registration has seen to it that a sync run has no async transformer."""
    try:
        next(flow)
    except StopIteration as stop:
        value: T = stop.value
        return value
    flow.close()
    raise RuntimeError("an async transformer was given an event of a sync run; this is a bug")


async def arun_mux_flow(flow: MuxFlow[T]) -> T:
    """Run a flow on the event loop."""
    try:
        waiting = next(flow)
        while True:
            try:
                result = await waiting
            except BaseException as error:  # noqa: BLE001  passed on to where it is decided
                waiting = flow.throw(error)
            else:
                waiting = flow.send(result)
    except StopIteration as stop:
        value: T = stop.value
        return value
