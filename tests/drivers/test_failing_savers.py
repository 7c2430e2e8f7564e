"""Savers that fail: nothing is stored after that, the run raises, and it never hangs."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest
from colours import Colour
from small_graphs import THREAD, SlowSaver, State, bounded, chain, saving, says, wait_for

from tracegraph.constants import ERROR
from tracegraph.types import Durability


class Refusing(SlowSaver):
    """Fails on one checkpoint, after the run has gone on to its last node."""

    def __init__(self, which: int) -> None:
        super().__init__()
        self.which = which
        self.count = 0
        self.last_node_ran = threading.Event()

    def put(self, *args: Any, **kwargs: Any) -> Any:
        self.count += 1
        if self.count == self.which:
            wait_for(self.last_node_ran)
            raise OSError("disk")
        return super().put(*args, **kwargs)

    async def aput(self, *args: Any, **kwargs: Any) -> Any:
        return await asyncio.to_thread(self.put, *args, **kwargs)


def test_nothing_is_saved_after_a_background_save_failed(colour: Colour) -> None:
    """Not even what waited in line: a later checkpoint would say that the lost one is there."""
    saver = Refusing(which=3)

    def first(state: State) -> State:
        return {"xs": ["a"], "n": 7}

    def last(state: State) -> State:
        saver.last_node_ran.set()
        return {"xs": ["c"]}

    app = chain(saving(saver), a=first, b=says("b"), c=last)

    with pytest.raises(OSError, match="disk"):
        bounded(lambda: colour.invoke(app, {"xs": []}, THREAD, durability="async"))

    assert saver.count == 3
    assert bounded(lambda: colour.invoke(app, None, THREAD)) == {"xs": ["a", "b", "c"], "n": 7}


@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
@pytest.mark.parametrize("error", [OSError, SystemExit, asyncio.CancelledError])
def test_whatever_a_save_raises_ends_the_run(colour: Colour, error: type[BaseException], durability: Durability) -> None:
    """Nobody waits for ever for the save that failed; its error comes out."""

    class Broken(SlowSaver):
        def put(self, *args: Any, **kwargs: Any) -> Any:
            raise error("pool closed")

    app = chain(saving(Broken()), a=says("a"))

    with pytest.raises(error, match="pool closed"):
        bounded(lambda: colour.invoke(app, {"xs": []}, THREAD, durability=durability))


def test_a_failed_save_does_not_hide_why_the_node_failed(colour: Colour) -> None:
    """The node's error comes out, with a note about the save's."""

    class Broken(SlowSaver):
        def put_writes(self, config: Any, writes: Any, *args: Any, **kwargs: Any) -> None:
            if any(channel == ERROR for channel, _ in writes):
                raise OSError("disk")
            super().put_writes(config, writes, *args, **kwargs)

    def bad(state: State) -> State:
        raise ValueError("node")

    with pytest.raises(ValueError, match="node") as caught:
        bounded(lambda: colour.invoke(chain(saving(Broken()), a=bad), {"xs": []}, THREAD))

    assert "besides, OSError: disk" in caught.value.__notes__
