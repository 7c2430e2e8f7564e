"""Who keeps the ticket of a run that takes turns.

A keeper joins the queue with a ticket of its own, prolongs it and gives it back. Whoever runs only waits for the keeper,
so a wait may be interrupted anywhere and the ticket is given back all the same.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import uuid
from abc import ABC, abstractmethod
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Final

from tracegraph.checkpoint.base import BaseCheckpointSaver

__all__ = ["LEASE_S", "Keeper", "LoopKeeper", "ThreadKeeper"]

logger = logging.getLogger("tracegraph.drivers")

LEASE_S: Final = 30.0
"""How long a ticket is valid after its process was last heard of."""

# The next time may be better; if not, others go on, and the head check holds.
_NOT_PROLONGED: Final = "the turn of a run could not be prolonged; others may begin before it ends"
_NOT_GIVEN_BACK: Final = "the turn of a run could not be given back; it runs out in %s s"


class Keeper(ABC):
    """Whoever keeps a ticket valid."""

    def __init__(self, saver: BaseCheckpointSaver, thread_id: str) -> None:
        self.saver = saver
        self.thread_id = thread_id
        # Ours, not the saver's: it can be given back even if the answer to joining never came.
        self.ticket = uuid.uuid4().hex
        self.has_turn = False

    @abstractmethod
    def drop(self) -> None:
        """Give the ticket back in the background."""

    def _note_lost(self) -> None:
        if self.has_turn:  # one that waits for its turn finds out by itself, and joins again
            logger.warning("the turn of a run on thread %r ran out; others may begin before it ends", self.thread_id)

    def _leave_now(self) -> None:
        try:
            self.saver.leave_queue(self.ticket)
        except Exception:
            logger.exception(_NOT_GIVEN_BACK, LEASE_S)


class ThreadKeeper(Keeper):
    """Keeps a ticket in a thread of its own."""

    def __init__(self, saver: BaseCheckpointSaver, thread_id: str) -> None:
        super().__init__(saver, thread_id)
        # Unlike an Event, it may be told something by the garbage collector wherever that comes by.
        self._ends: SimpleQueue[bool] = SimpleQueue()
        """Its end, and whether the ticket must be given back."""
        self._thread = threading.Thread(target=self._keep, name="tracegraph-turn", daemon=True)

    def join(self) -> None:
        """Queue up."""
        self._thread.start()
        try:
            self.saver.join_queue(self.thread_id, self.ticket, lease_s=LEASE_S)
        except NotImplementedError:
            self._ends.put(False)
            raise
        except BaseException:
            self.drop()
            raise

    def leave(self) -> None:
        """Give the ticket back and wait for that."""
        self.drop()
        self._thread.join()

    def drop(self) -> None:
        """See :class:`Keeper`."""
        self._ends.put(True)

    def _keep(self) -> None:
        if self._is_to_be_left():
            self._leave_now()

    def _is_to_be_left(self) -> bool:
        is_lost = False
        while True:
            try:
                return self._ends.get(timeout=None if is_lost else LEASE_S / 3)
            except Empty:
                pass
            try:
                is_lost = not self.saver.keep_turn(self.ticket, lease_s=LEASE_S)
            except Exception:
                logger.exception(_NOT_PROLONGED)
            if is_lost:
                self._note_lost()


class LoopKeeper(Keeper):
    """Keeps a ticket on the run's event loop. While that is blocked the ticket is not prolonged, and may run out."""

    def __init__(self, saver: BaseCheckpointSaver, thread_id: str) -> None:
        super().__init__(saver, thread_id)
        self._loop = asyncio.get_running_loop()
        self._is_over = False
        self._is_dropped = False
        self._timer: asyncio.TimerHandle | None = None
        self._under_way: asyncio.Task[None] | None = None
        """Joining or prolonging, which giving back must not overtake."""
        self._leaving: asyncio.Task[None] | None = None

    async def join(self) -> None:
        """Queue up."""
        joining = self._under_way = self._loop.create_task(self._join())
        joining.add_done_callback(_mark_as_seen)
        try:
            await asyncio.shield(joining)
        except NotImplementedError:
            self._is_over = True
            raise
        except (Exception, asyncio.CancelledError):
            await self.leave()
            raise
        except BaseException:
            self.drop()
            raise
        self._set_timer()

    async def leave(self) -> None:
        """Give the ticket back and wait for that; whoever is cancelled meanwhile still waits, unless cancelled again."""
        self._end()
        cancelled: asyncio.CancelledError | None = None
        while self._leaving is not None:
            try:
                await asyncio.wait([self._leaving])
            except asyncio.CancelledError as error:
                if cancelled is not None:
                    raise
                cancelled = error
        if cancelled is not None:
            raise cancelled

    def drop(self) -> None:
        """See :class:`Keeper`."""
        if self._is_over or self._is_dropped:
            return
        self._is_dropped = True
        if not self._loop.is_running():  # and perhaps it never will again
            with suppress(RuntimeError):  # the interpreter is about to exit, or has no more threads: the ticket runs out
                threading.Thread(target=self._leave_now, name="tracegraph-turn", daemon=True).start()
        if _is_running_on(self._loop):
            self._end()
        else:
            with suppress(RuntimeError):  # the loop is closed
                self._loop.call_soon_threadsafe(self._end)

    def _end(self) -> None:
        if self._is_over:
            return
        self._is_over = True
        if self._timer is not None:
            self._timer.cancel()
        self._leave()

    def _leave(self) -> None:
        self._leaving = self._loop.create_task(self._await_leave())
        self._leaving.add_done_callback(self._left)

    def _left(self, leaving: asyncio.Task[None]) -> None:
        self._leaving = None
        if leaving.cancelled():  # with all other tasks of the loop
            self._leave()

    def _set_timer(self) -> None:
        if not self._is_over:
            self._timer = self._loop.call_later(LEASE_S / 3, self._prolong)

    def _prolong(self) -> None:
        self._under_way = self._loop.create_task(self._await_prolonging())

    async def _join(self) -> None:
        await self.saver.ajoin_queue(self.thread_id, self.ticket, lease_s=LEASE_S)

    async def _await_prolonging(self) -> None:
        is_kept = True
        try:
            is_kept = await self.saver.akeep_turn(self.ticket, lease_s=LEASE_S)
        except Exception:
            logger.exception(_NOT_PROLONGED)
        finally:
            if is_kept:
                self._set_timer()
        if not is_kept:
            self._note_lost()

    async def _await_leave(self) -> None:
        if self._under_way is not None and not self._under_way.done():
            await asyncio.wait([self._under_way])
        try:
            await self.saver.aleave_queue(self.ticket)
        except Exception:
            logger.exception(_NOT_GIVEN_BACK, LEASE_S)


def _mark_as_seen(task: asyncio.Task[None]) -> None:
    if not task.cancelled():
        task.exception()


def _is_running_on(loop: asyncio.AbstractEventLoop) -> bool:
    try:
        return asyncio.get_running_loop() is loop
    except RuntimeError:
        return False
