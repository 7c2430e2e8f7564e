"""Saves that are stored in the background, in order: by a worker thread, or by a task of the run's event loop.

A backlog does not know its run but while something of it is being stored: else the two would be a cycle, and a run that
nobody needs would wait for the garbage collector.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections import deque
from functools import partial
from typing import TYPE_CHECKING

from tracegraph.drivers import workers
from tracegraph.drivers.effects import arun_flow, run_flow
from tracegraph.drivers.storing import GROUP_SIZE, Saves, store
from tracegraph.engine.actions import SaveCheckpoint, SaveWrites

if TYPE_CHECKING:
    from tracegraph.drivers.async_driver import AsyncRun
    from tracegraph.drivers.sync_driver import SyncRun

__all__ = ["LoopBacklog", "ThreadBacklog"]

logger = logging.getLogger("tracegraph.drivers")

Queue = deque[SaveCheckpoint | SaveWrites]


def _group(queue: Queue) -> Saves:
    return [queue.popleft() for _ in range(min(len(queue), GROUP_SIZE))]


class ThreadBacklog:
    """The saves of a run on threads; *bell* rings when all are stored."""

    __slots__ = ("_bell", "_is_saving", "_queue", "_storing")

    def __init__(self, bell: threading.Condition) -> None:
        self._bell = bell
        self._queue: Queue = deque()
        self._is_saving = False
        self._storing = 0
        """Threads that store something at once, in a run that takes turns."""

    def add(self, run: SyncRun, saves: Saves) -> None:
        """Store these after those before them, in a worker."""
        with self._bell:
            self._queue.extend(saves)
            if self._is_saving:
                return
            self._is_saving = True
        try:
            workers.submit(partial(self._store_all, run))
        except RuntimeError:  # no more threads
            self._store_all(run)

    def store_here(self, run: SyncRun, saves: Saves, *, will_pop: bool) -> None:
        """Store these now, in this thread; then, if nothing else is left to do, let the next run have its turn."""
        if not run.launch.takes_turns:
            run_flow(store(run, saves, will_pop=will_pop))
            return
        with self._bell:
            self._storing += 1
        try:
            run_flow(store(run, saves, will_pop=will_pop))
        finally:
            with self._bell:
                self._storing -= 1
            run.give_turn_back()

    def is_busy(self) -> bool:
        """Say whether something is being stored, or will be."""
        with self._bell:
            return self._is_saving or self._storing > 0

    def wait(self) -> None:
        """Wait for what is being stored in the background."""
        with self._bell:
            while self._is_saving:
                self._bell.wait()

    def _store_all(self, run: SyncRun) -> None:
        while self._store_group(run):
            pass
        run.give_turn_back()

    def _store_group(self, run: SyncRun) -> bool:
        """Store some of it; say whether there was any."""
        with self._bell:
            if not self._queue:
                self._is_saving = False
                self._bell.notify_all()
                return False
            group = _group(self._queue)
        run_flow(store(run, group, will_pop=False))
        return True


class LoopBacklog:
    """The saves of a run on an event loop; only that loop's thread touches it."""

    __slots__ = ("queue", "saving")

    def __init__(self) -> None:
        self.queue: Queue = deque()
        self.saving: asyncio.Task[None] | None = None
        """What stores them, if anything is left to store."""

    def add(self, run: AsyncRun, saves: Saves) -> None:
        """Store these after those before them."""
        self.queue.extend(saves)
        if self.saving is None:
            self._begin(run)

    def note_lost(self, run: AsyncRun, count: int) -> None:
        """Log that saves cannot be stored any more."""
        logger.error("the event loop of run %s was closed before %d of its saves were stored", run.run_id, count)

    def _begin(self, run: AsyncRun) -> None:
        self.saving = run.loop.create_task(self._store_all(run), context=run.base.copy())
        self.saving.add_done_callback(partial(self._ended, run))

    async def _store_all(self, run: AsyncRun) -> None:
        while self.queue:
            await arun_flow(store(run, _group(self.queue), will_pop=False))

    def _ended(self, run: AsyncRun, saving: asyncio.Task[None]) -> None:
        """Begin again if something is left: whoever cancels all tasks of a loop may cancel this one before its first step."""
        self.saving = None
        if not saving.cancelled() and (error := saving.exception()) is not None:
            run.request_close("failed", type(error).__name__, error)
            if run.finish is not None and run.finish.error is None:
                run.finish.status, run.finish.error = "failed", error
        if self.queue:
            self._begin(run)
        else:
            run.give_turn_back()
