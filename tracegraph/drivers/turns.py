"""Runs that take turns on a thread, over processes and machines, by tickets that their saver keeps.

The queue decides who runs when; that no result is lost does not depend on it, for each save checks the head. So a ticket
need only be kept valid while its run goes on: that of a killed process runs out, and the next in line takes its turn.
"""

from __future__ import annotations

import asyncio
import time
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from math import inf
from typing import Final

from tracegraph.checkpoint.base import BaseCheckpointSaver
from tracegraph.drivers.effects import CallSaver, Effect, Flow, Wait, ask
from tracegraph.drivers.keepers import Keeper, LoopKeeper, ThreadKeeper

__all__ = ["Turn", "give_back", "take_turn"]

_FIRST_WAIT_S: Final = 0.005
_LONGEST_WAIT_S: Final = 0.05


class Turn:
    """A place in a thread's queue; it is given back when nobody has this object any more, at the latest."""

    __slots__ = ("__weakref__", "keeper", "waited_ns")

    def __init__(self, keeper: Keeper) -> None:
        self.keeper = keeper
        self.waited_ns = 0
        # The keeper does not know the turn, so a run that is forgotten does not hold up the others for ever.
        weakref.finalize(self, keeper.drop).atexit = False

    def leave(self) -> Flow[None]:
        """Give the ticket back."""
        yield from ask(_Leave(self.keeper))

    def drop(self) -> None:
        """Give the ticket back without waiting for it; called anywhere, any number of times."""
        self.keeper.drop()


@dataclass(slots=True)
class _Join(Effect[Turn]):
    """Queue up for a thread."""

    saver: BaseCheckpointSaver
    thread_id: str

    def carry_out(self) -> Turn:
        """Do it, blocking."""
        keeper = ThreadKeeper(self.saver, self.thread_id)
        keeper.join()
        return Turn(keeper)

    async def acarry_out(self) -> Turn:
        """Do it, awaiting."""
        keeper = LoopKeeper(self.saver, self.thread_id)
        await keeper.join()
        return Turn(keeper)


@dataclass(slots=True)
class _Leave(Effect[None]):
    """Give a ticket back, in the colour in which it was taken."""

    keeper: Keeper

    def carry_out(self) -> None:
        """Do it, blocking."""
        assert isinstance(self.keeper, ThreadKeeper)
        self.keeper.leave()

    async def acarry_out(self) -> None:
        """Do it, awaiting."""
        assert isinstance(self.keeper, LoopKeeper)
        await self.keeper.leave()


def give_back(turn: Turn, error: BaseException) -> Flow[None]:
    """Give a turn back because of an error; wait for that, unless it is one after which nobody may wait."""
    if isinstance(error, Exception | asyncio.CancelledError):
        yield from turn.leave()
    else:
        turn.drop()


def take_turn(saver: BaseCheckpointSaver, thread_id: str, seconds_left: Callable[[], float] = lambda: inf) -> Flow[Turn]:
    """Queue up for a thread and wait until nobody is before; *seconds_left* says how long, or raises what ends the wait.

    Raises:
        NotImplementedError: the saver keeps no queues.
    """
    began_ns = time.monotonic_ns()
    turn = yield from ask(_Join(saver, thread_id))
    wait_s = _FIRST_WAIT_S
    try:
        while (place := (yield from ask(CallSaver(saver, "place_in_queue", (turn.keeper.ticket,))))) != "first":
            if place == "gone":  # this process was not heard of for too long, and others have passed
                turn.drop()
                turn = yield from ask(_Join(saver, thread_id))
            yield from ask(Wait(min(wait_s, seconds_left())))
            wait_s = min(wait_s * 1.5, _LONGEST_WAIT_S)
    except BaseException as error:
        yield from give_back(turn, error)
        raise
    turn.keeper.has_turn = True
    turn.waited_ns = time.monotonic_ns() - began_ns
    return turn
