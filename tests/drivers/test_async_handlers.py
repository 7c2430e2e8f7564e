"""Async handlers: awaited in order and one at a time, in both colours, and heard at the very end."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest
from colours import Colour
from small_graphs import PATIENCE_S, State, bounded, parallel, says

from tracegraph.callbacks import AsyncCallbackHandler, BaseCallbackHandler

NAMES = "abcdef"


def test_what_handlers_do_never_overlaps(colour: Colour) -> None:
    """Six nodes end at once in six threads; their handler is told of one after the other, in the order of the events."""
    barrier = threading.Barrier(len(NAMES))
    told: list[Any] = []
    begun: list[Any] = []
    ended: list[Any] = []

    class Told(BaseCallbackHandler):
        def on_chain_end(self, outputs: Any, **kwargs: Any) -> None:
            told.append(kwargs["run_id"])

    class Awaited(AsyncCallbackHandler):
        async def on_chain_end(self, outputs: Any, **kwargs: Any) -> None:
            assert begun == ended, "the one before has not finished"
            begun.append(kwargs["run_id"])
            for _ in range(5):
                await asyncio.sleep(0)
            ended.append(kwargs["run_id"])

    def node(state: State) -> State:
        barrier.wait(PATIENCE_S)
        return {"xs": [1]}

    handlers = {"callbacks": [Told(), Awaited()]}
    bounded(lambda: colour.invoke(parallel(**dict.fromkeys(NAMES, node)), {"xs": []}, handlers))

    assert len(told) == len(NAMES) + 1
    assert begun == told
    assert ended == told


@pytest.mark.parametrize("is_async", [False, True], ids=["sync handler", "async handler"])
def test_a_handler_that_raises_a_stray_cancellation_does_not_hang_the_run(colour: Colour, is_async: bool) -> None:
    """It is no failure of a handler's to be logged, nor a cancellation of the task that calls it: it ends the run."""

    class Sync(BaseCallbackHandler):
        def on_chain_end(self, outputs: Any, **kwargs: Any) -> None:
            raise asyncio.CancelledError("stray")

    class Async(AsyncCallbackHandler):
        async def on_chain_end(self, outputs: Any, **kwargs: Any) -> None:
            raise asyncio.CancelledError("stray")

    handlers = {"callbacks": [Async() if is_async else Sync()]}

    with pytest.raises(asyncio.CancelledError):
        bounded(lambda: colour.invoke(parallel(a=says("a"), b=says("b")), {"xs": []}, handlers))


def test_an_async_handler_may_veto_the_result(colour: Colour) -> None:
    """With ``raise_error`` what it raises about the end itself is raised instead of a return."""

    class Veto(AsyncCallbackHandler):
        raise_error = True

        async def on_chain_end(self, outputs: Any, **kwargs: Any) -> None:
            if kwargs["parent_run_id"] is None:
                raise ValueError("veto")

    with pytest.raises(ValueError, match="veto"):
        bounded(lambda: colour.invoke(parallel(a=says("a")), {"xs": []}, {"callbacks": [Veto()]}))
