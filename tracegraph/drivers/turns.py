"""Runs that take turns on a thread, over processes and machines, by tickets that their saver keeps.

The queue decides who runs when; that no result is lost does not depend on it, for each save checks the head. So a ticket
need only be kept valid while its run goes on: that of a killed process runs out, and the next in line takes its turn.
"""

from __future__ import annotations

import logging
import threading
import time
from typing import Final

from tracegraph.checkpoint.base import BaseCheckpointSaver
from tracegraph.drivers.effects import CallSaver, Flow, Wait, ask

__all__ = ["LEASE_S", "Turn", "take_turn"]

logger = logging.getLogger("tracegraph.drivers")

LEASE_S: Final = 30.0
"""How long a ticket is valid after its process was last heard of."""

_FIRST_WAIT_S: Final = 0.005
_LONGEST_WAIT_S: Final = 0.05


class Turn:
    """A ticket in a thread's queue, kept valid by a thread of its own until it is given back."""

    __slots__ = ("_is_dropped", "_over", "_saver", "ticket", "waited_ns")

    def __init__(self, saver: BaseCheckpointSaver, ticket: str) -> None:
        self._saver = saver
        self.ticket = ticket
        self.waited_ns = 0
        self._over = threading.Event()
        self._is_dropped = False
        threading.Thread(target=self._keep, name="tracegraph-turn", daemon=True).start()

    def _keep(self) -> None:
        while not self._over.wait(LEASE_S / 3):
            try:
                self._saver.keep_turn(self.ticket, lease_s=LEASE_S)
            except Exception:  # the next time may be better; if not, others go on, and the head check holds
                logger.exception("the turn of a run could not be prolonged; others may begin before it ends")
        if self._is_dropped:
            try:
                self._saver.leave_queue(self.ticket)
            except Exception:
                logger.exception("the turn of a run could not be given back; it runs out in %s s", LEASE_S)

    def leave(self) -> Flow[None]:
        """Give the ticket back."""
        self._over.set()
        try:
            yield from ask(CallSaver(self._saver, "leave_queue", (self.ticket,)))
        except Exception:
            logger.exception("the turn of a run could not be given back; it runs out in %s s", LEASE_S)

    def drop(self) -> None:
        """Give the ticket back without waiting for it."""
        self._is_dropped = True
        self._over.set()


def take_turn(saver: BaseCheckpointSaver, thread_id: str) -> Flow[Turn]:
    """Queue up for a thread and wait until nobody is before.

    Raises:
        NotImplementedError: the saver keeps no queues.
    """
    began_ns = time.monotonic_ns()
    turn = Turn(saver, (yield from ask(CallSaver(saver, "join_queue", (thread_id,), {"lease_s": LEASE_S}))))
    wait_s = _FIRST_WAIT_S
    try:
        while not (yield from ask(CallSaver(saver, "has_turn", (turn.ticket,)))):
            yield from ask(Wait(wait_s))
            wait_s = min(wait_s * 1.5, _LONGEST_WAIT_S)
    except BaseException:
        turn.drop()
        raise
    turn.waited_ns = time.monotonic_ns() - began_ns
    return turn
