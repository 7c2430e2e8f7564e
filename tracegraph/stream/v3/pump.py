"""Pumps: pull one part of the graph's stream, take it through the mux, bring the end to every reader.

Nothing runs beside the readers: whoever has nothing left to read pulls. What a part becomes and how a run ends is the
mux's decision; the two pumps differ in how they wait.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import weakref
from collections.abc import AsyncIterator, Iterator
from typing import Any, Final

from tracegraph.drivers import workers
from tracegraph.errors import RunClosed
from tracegraph.stream.v3.mux import StreamMux
from tracegraph.stream.v3.protocol import event_of
from tracegraph.stream.v3.pulling import Bell
from tracegraph.stream.v3.readership import Reader

__all__ = ["AsyncGraphPump", "GraphPump", "log_end_of_left"]

logger = logging.getLogger("tracegraph.stream")

_LOOK_AGAIN_S: Final = 0.2

_LEFT: set[asyncio.Task[None]] = set()
"""Those that read runs nobody reads: an event loop itself keeps its tasks weakly."""


def log_end_of_left(error: BaseException | None) -> None:
    """Tell of the error of a run that went on after its readers had left: nobody else will."""
    if error is not None:
        logger.error("a run that its readers had left failed", exc_info=error)


def _go_on(pump: AsyncGraphPump) -> None:
    task = asyncio.get_running_loop().create_task(pump.read_to_the_end())
    _LEFT.add(task)
    task.add_done_callback(_LEFT.discard)


class _Hold:
    """Keeps a run going as long as somebody keeps this: run objects, cursors and open answers share one."""

    __slots__ = ("__weakref__", "_pump")

    def __init__(self, pump: _BasePump) -> None:
        self._pump = pump

    def __del__(self) -> None:
        if self._pump.has_begun:
            self._pump.leave()


class _BasePump:
    """What both pumps know."""

    def __init__(self, mux: StreamMux) -> None:
        self.mux = mux
        self.readership = mux.readership
        self.is_over = False
        self.has_begun = False
        self._is_leaving = False
        self._parts: Any = None
        # Weakly: the pump is part of the circle of mux and channels, which must not keep the run going by itself.
        self._held: weakref.ref[_Hold] | None = None

    def hold(self) -> _Hold:
        """Return what keeps the run going."""
        held = None if self._held is None else self._held()
        if held is None:
            held = _Hold(self)
            self._held = weakref.ref(held)
        return held

    def leave(self) -> None:
        """No reader is left: let go of the graph's stream, which stops it, or read it to its end."""
        if self.readership.when_left == "finish" and not self.is_over and self._read_on():
            return
        self.is_over = True
        self._parts = None

    def _read_on(self) -> bool:
        """Have the rest of the run read by nobody, for its own sake; False if there is no way."""
        raise NotImplementedError

    def _must_wait(self, me: Reader) -> bool:
        return not self.is_over and not self._is_leaving and self.readership.must_wait(me)

    def _note_slow_reader(self, error: Exception) -> None:
        """Let the run end with the error of a reader that had no room, and not as one that was left."""
        if error is self.readership.error and (fail := getattr(self._parts, "fail", None)) is not None:
            fail(error)


class GraphPump(_BasePump):
    """Pulls a sync run. Readers in several threads take turns."""

    def __init__(self, parts: Iterator[Any] | None, mux: StreamMux) -> None:
        super().__init__(mux)
        self._parts = parts
        # Re-entrant: a transformer may read a projection of the run that it is part of.
        self._lock = threading.RLock()
        self._pulled = 0
        """How many parts were asked for."""
        self._is_running = False
        """The run goes on in the thread that has the lock: code that is found to have it, too, is a node's."""

    def _read_on(self) -> bool:
        try:
            workers.submit(self._read_to_the_end)
        except RuntimeError:  # the system gives no more threads, or the process ends
            return False
        return True

    def _read_to_the_end(self) -> None:
        while self._pull():
            pass
        log_end_of_left(self.mux.error)

    def __call__(self) -> bool:
        """Take one part through the mux, once all who are waited for have room; False if the run is over."""
        if not self.readership.is_blocking:
            return self._pull()
        me, before = self.readership.enter(), self._pulled
        try:
            if self.readership.must_wait(me):
                # No bell rings when a thread ends, perhaps one that has begun to read.
                self.readership.room.wait(lambda: self._pulled == before and self._must_wait(me), look_again_s=_LOOK_AGAIN_S)
            with self._lock:
                # If another one has pulled, there may be something to read: nobody waits who has.
                return self._pulled != before or self._pull()
        finally:
            self.readership.leave(me)

    def _pull(self) -> bool:
        with self._lock:
            if self.is_over or self._parts is None:
                return False
            if self._is_running:
                raise RuntimeError("a node cannot read the run that it is part of: that waits for the node")
            self.has_begun = True
            self._pulled += 1
            try:
                part = self._next(self._parts)
                self.mux.push(event_of(part, self.mux.scope))
                if self.readership.error is not None:
                    raise self.readership.error
            except StopIteration:
                self._conclude()
            except Exception as error:  # noqa: BLE001  whatever ends the run is what its readers are told
                self._fail(error)
            except BaseException as error:
                self._stop()
                if not (self._is_leaving and isinstance(error, RunClosed)):
                    raise
            self.readership.room.ring()
            return True

    def _next(self, parts: Iterator[Any]) -> Any:
        self._is_running = True
        try:
            return next(parts)
        finally:
            self._is_running = False

    def _conclude(self) -> None:
        self.is_over = True
        try:
            self.mux.close()
        except Exception as error:  # noqa: BLE001  a transformer's error is the run's
            self.mux.fail(error)

    def _fail(self, error: Exception) -> None:
        self.is_over = True
        self._note_slow_reader(error)
        self._close_parts()
        self.mux.fail(error)

    def _close_parts(self) -> None:
        if (close := getattr(self._parts, "close", None)) is not None:
            close()

    def _stop(self) -> None:
        self.is_over = True
        try:
            self._close_parts()
        finally:
            self.mux.close()

    def abort(self) -> None:
        """Stop the run and wait for the nodes that are running."""
        self._is_leaving = True
        self.readership.room.ring()
        if (stop := getattr(self._parts, "stop", None)) is not None:
            stop()  # another thread may be pulling: it must come back before the stream can be closed
        with self._lock:
            if not self.is_over and not self._is_running:  # a node stops its own run: it ends as soon as the node returns
                self._stop()


class AsyncGraphPump(_BasePump):
    """Pulls an async run: one reader at a time, in its own task, while others wait for that part."""

    def __init__(self, parts: AsyncIterator[Any] | None, mux: StreamMux) -> None:
        super().__init__(mux)
        self._parts = parts
        self._puller: asyncio.Task[Any] | None = None
        self._bell = Bell()
        self._has_rung = False
        self._closing: asyncio.Task[None] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    def _read_on(self) -> bool:
        if self._loop is None or not self._loop.is_running():
            return False
        self._loop.call_soon_threadsafe(_go_on, self)
        return True

    async def read_to_the_end(self) -> None:
        """Read what is left of a run that nobody reads."""
        while await self._turn():
            pass
        log_end_of_left(self.mux.error)

    async def __call__(self) -> bool:
        """Take one part through the mux, or wait until another reader has; False if the run is over."""
        if not self.readership.is_blocking:
            return await self._turn()
        me = self.readership.enter()
        try:
            return await self._turn(me)
        finally:
            self.readership.leave(me)

    async def _turn(self, me: Reader | None = None) -> bool:
        if self._puller is not None:
            await self._bell.wait()
            return True
        if self.is_over or self._parts is None:
            if self._closing is not None and self._closing is not asyncio.current_task():
                await asyncio.shield(self._closing)  # the end has something to say, too
            return False
        self._puller = asyncio.current_task()
        try:
            if not self.has_begun or self._has_rung:
                self.has_begun, self._has_rung = True, False
                self._loop = asyncio.get_running_loop()
                # Readers that start together, or were woken together by the last part, all look at what there is (and
                # subscribe to what they find) before the next part comes: whoever is woken first must not run ahead.
                await asyncio.sleep(0)
            if me is not None and self.readership.must_wait(me):
                await self.readership.room.wait_on_loop(lambda: self._must_wait(me))
            if self._closing is None:
                await self._pull(self._parts)
        except BaseException as error:
            if self._closing is None or not isinstance(error, RunClosed):
                # The reader was cancelled, so nothing may stand after an await: the run is stopped in this instant.
                self.stop_now()
                raise
        finally:
            self._puller = None
            self._has_rung = self._bell.has_waiters
            self._bell.ring()
        return True

    async def _pull(self, parts: AsyncIterator[Any]) -> None:
        try:
            part = await anext(parts)
            await self.mux.apush(event_of(part, self.mux.scope))
            if self.readership.error is not None:
                raise self.readership.error
        except StopAsyncIteration:
            await self._conclude()
        except Exception as error:  # noqa: BLE001  whatever ends the run is what its readers are told
            await self._fail(error)

    async def _conclude(self) -> None:
        if self.is_over:
            return
        self.is_over = True
        try:
            await self.mux.aclose()
        except Exception as error:  # noqa: BLE001  a transformer's error is the run's
            await self.mux.afail(error)

    async def _fail(self, error: Exception) -> None:
        if self.is_over:
            return
        self.is_over = True
        self._note_slow_reader(error)
        if (close := getattr(self._parts, "aclose", None)) is not None:
            await close()
        await self.mux.afail(error)

    def stop_now(self) -> None:
        """Stop the run in one synchronous step; what takes time goes on in a task that ``abort()`` waits for."""
        if self.mux.is_over or self._closing is not None:
            return
        self.is_over = True
        self.readership.room.ring()
        if (stop := getattr(self._parts, "stop", None)) is not None:
            stop()
        self.mux.cancel_scheduled()
        self._closing = asyncio.get_running_loop().create_task(self._close())

    async def _close(self) -> None:
        while self._puller is not None:
            await self._bell.wait()
        try:
            if (close := getattr(self._parts, "aclose", None)) is not None:
                await close()
        finally:
            await self.mux.aclose()

    async def abort(self) -> None:
        """Stop the run and wait for its nodes, which are cancelled; in a cancelled scope the waiting goes on without us."""
        self.stop_now()
        # A transformer that leaves the run it is given an event of is the one who pulls: it cannot wait for itself.
        if self._closing is not None and self._puller is not asyncio.current_task():
            await asyncio.shield(self._closing)
