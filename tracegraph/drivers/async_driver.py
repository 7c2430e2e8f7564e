"""The driver on asyncio.

The task that called ``ainvoke`` drives: a lone node is awaited inline, inside its own Context; several run as asyncio
tasks. Sync node bodies go to worker threads. Reports may come from any thread; whatever touches the loop is passed to it.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import logging
import time
import weakref
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Sequence
from typing import Any

from tracegraph.current import CURRENT
from tracegraph.drivers.backlog import LoopBacklog
from tracegraph.drivers.calling import Call, attempt_flow, failure_report
from tracegraph.drivers.checks import warn_if_slow
from tracegraph.drivers.effects import arun_flow
from tracegraph.drivers.futures import blocking_future, settle_blocking, settle_on_loop
from tracegraph.drivers.here import HereNow
from tracegraph.drivers.in_context import InContext
from tracegraph.drivers.launch import PATIENT, Launch
from tracegraph.drivers.private_loop import finish_all
from tracegraph.drivers.room import Held, await_room
from tracegraph.drivers.run import Run
from tracegraph.drivers.storing import store_at_once
from tracegraph.drivers.threads import call_in_worker
from tracegraph.engine.actions import Action, Finish, RunTask, SaveCheckpoint, SaveWrites, StopRun, TimeOut
from tracegraph.engine.reports import CloseRequested, Report, TaskBegan, TaskCancelled, Woke
from tracegraph.engine.task import Task
from tracegraph.events import RunStatus

__all__ = ["AsyncRun"]

logger = logging.getLogger("tracegraph.drivers")


class AsyncRun(Run):
    """A run on an event loop."""

    __slots__ = (
        "_backlog",
        "_cancelling_before",
        "_driver",
        "_handling",
        "_inline",
        "_ready",
        "_tasks",
        "_timer",
        "_wakeup",
        "loop",
    )

    def __init__(self, launch: Launch) -> None:
        super().__init__(launch)
        self.loop = asyncio.get_running_loop()
        driver = asyncio.current_task()
        # Weakly: a task may return the very reader whose run this is, which would then be part of a cycle.
        self._driver = None if driver is None else weakref.ref(driver)
        self._cancelling_before = 0 if driver is None else driver.cancelling()
        self._ready: deque[RunTask] = deque()
        self._wakeup: asyncio.Future[None] | None = None
        """What the driving task waits for, if it waits."""
        self._tasks: dict[Task, asyncio.Task[None]] = {}
        self._inline: asyncio.Task[Any] | None = None
        """The asyncio task that awaits a lone node inside itself, if others may close the run meanwhile."""
        self._timer: asyncio.TimerHandle | None = None
        self._backlog = LoopBacklog()
        self._handling: asyncio.Task[None] | None = None

    # --- the driving task ----------------------------------------------------------------------------------

    async def drive(self) -> Finish:
        """Run to the end and return how it ended, or raise what ended it."""
        async for _ in self.stream():
            pass
        return self.result()

    async def stream(self) -> AsyncGenerator[None, None]:
        """Run to the end; stop at every point where there may be parts to read."""
        self.open()
        try:
            await self._start()
            if self.parts:
                yield
            while self.finish is None:
                await self._turn()
                if self.parts:
                    yield
                if self.hub.is_stopping and self.finish is None:
                    self.request_close("abandoned", "the enclosing run was closed")
            await self._conclude()
        except BaseException as error:
            self.close_now(*_reason(error), error)
            await self._settle_tasks()
            raise
        if self.parts:
            yield

    async def _start(self) -> None:
        begin, links = await arun_flow(self.opening())
        actions = self.begin(begin, links)
        await self._flush_handlers()
        self.carry_out(actions, will_pop=True)

    async def _turn(self) -> None:
        if self.parent is not None and self.hub.gates and self._ready:
            await await_room(self)
        if self._may_run_inline():
            await self._run_inline(self._ready.popleft())
        elif self._ready:
            while self._ready:
                self._spawn(self._ready.popleft())
        else:
            await self._wait()

    def _may_run_inline(self) -> bool:
        if len(self._ready) != 1 or self.engine.running != 1 or self.launch.readers.is_live:
            return False
        # A body with a time limit must be cancellable without cancelling the run.
        return self._ready[0].task.timeout is None and not self.is_limited

    async def _run_inline(self, action: RunTask) -> None:
        if self.hub.is_stopping:
            self.request_close("abandoned", "the enclosing run was closed")
            return
        here = self.attempts[action.task] = HereNow(self, action.task)
        attempt = InContext(self._attempt(here, action), self.base.copy())
        # Only a run around this one, perhaps on another loop, or another reader of its projections closes it while it waits
        # here; asking takes a quarter of a us.
        may_be_closed = self.parent is not None or self.launch.readers is not PATIENT
        inline = self._inline = asyncio.current_task() if may_be_closed else None
        try:
            report: Report = await attempt
        except asyncio.CancelledError:
            if not here.is_told_to_stop:
                raise
            report = TaskCancelled(here.task, here.attempt)
        finally:
            self._inline = None
            if here.is_told_to_stop and inline is not None:
                inline.uncancel()
        if attempt.is_disturbed and self._is_being_cancelled():
            raise asyncio.CancelledError  # the node made nothing of it, but its run is cancelled all the same
        del self.attempts[action.task]
        self.report(report, will_pop=True)
        if self._handling is not None:
            await self._flush_handlers()

    async def _wait(self) -> None:
        self._wakeup = self.loop.create_future()
        try:
            if self.finish is None and not self._ready and not self.parts:
                await self._wakeup
        finally:
            self._wakeup = None

    # --- tasks ---------------------------------------------------------------------------------------------

    def make_ready(self, action: RunTask) -> None:
        """Start a called or retried task; a new superstep is left to the driving task, which a reader may hold back."""
        if action.task.is_follow_up:
            self._on_loop(self._spawn, action)
        else:
            self._ready.append(action)

    def staff(self, will_pop: bool) -> None:
        """Wake the driving task for a new superstep."""
        if self._ready and not will_pop:
            self.ring()

    def _on_loop(self, function: Any, *args: Any) -> None:
        if _is_running_on(self.loop):
            function(*args)
        else:
            with contextlib.suppress(RuntimeError):  # the loop is closed: nobody is left to be told
                self.loop.call_soon_threadsafe(function, *args)

    def _spawn(self, action: RunTask) -> None:
        task = action.task
        if self.hub.is_stopping or self.finish is not None:
            self.request_close("abandoned", "the enclosing run was closed")
            return
        if self.is_limited and not task.is_running:
            return  # the engine has given it up meanwhile
        here = self.attempts[task] = HereNow(self, task)
        running = self.loop.create_task(self._run_task(here, action), context=self.base.copy())
        self._tasks[task] = running
        running.add_done_callback(functools.partial(self._task_done, here))

    async def _run_task(self, here: HereNow, action: RunTask) -> None:
        if here.task.timeout is not None or self.is_limited:
            here.watch_progress()
            self.report(TaskBegan(here.task, here.attempt))
            if here.is_given_up:
                return  # the run's time is up
        report = await self._attempt(here, action)
        self._forget(here, asyncio.current_task())
        self.report(report)

    def _task_done(self, here: HereNow, running: asyncio.Task[None]) -> None:
        """Report what the task could not: one cancelled before its first step never ran a line of its own."""
        self._forget(here, running)
        here.is_over = True
        if running.cancelled() and (here.is_told_to_stop or self.finish is not None):
            self.report(TaskCancelled(here.task, here.attempt))
        elif running.cancelled():
            self.report(failure_report(here, asyncio.CancelledError()))
        elif (error := running.exception()) is not None:
            self.request_close("failed", type(error).__name__, error)
        self.give_turn_back()

    def _forget(self, here: HereNow, running: asyncio.Task[None] | None) -> None:
        # A retry may be running under the same task by now: only what belongs to this attempt is forgotten.
        if self._tasks.get(here.task) is running:
            del self._tasks[here.task]
        if self.attempts.get(here.task) is here:
            del self.attempts[here.task]

    async def _attempt(self, here: HereNow, action: RunTask) -> Report:
        """Run one attempt inside the task's own Context, which is thrown away afterwards."""
        CURRENT.set(here)
        for event in action.started:
            self.hub.enter(event)
        if self.hub.has_awaitables:
            await finish_all(self.hub, self.hub.take_awaitables())
        flow = attempt_flow(here)
        try:
            call = next(flow)
            while True:
                try:
                    returned = await self._call(here, call)
                except asyncio.CancelledError as error:
                    if self._is_being_cancelled() or self.finish is not None:
                        flow.close()
                        here.is_over = True
                        raise
                    call = flow.throw(error)
                except BaseException as error:
                    call = flow.throw(error)
                else:
                    call = flow.send(returned)
        except StopIteration as stop:
            report: Report = stop.value
            return report

    def _is_being_cancelled(self) -> bool:
        """Say whether somebody cancelled this task since the run began; a node's own CancelledError is not that."""
        task = asyncio.current_task()
        is_driver = self._driver is not None and task is self._driver()
        return task is not None and task.cancelling() > (self._cancelling_before if is_driver else 0)

    async def _call(self, here: HereNow, call: Call) -> Any:
        body = call.body
        if body.afn is not None:
            made = body.afn(*call.args, **call.kwargs)
            return await (Held(_coroutine(made), here) if self.hub.gates else made)
        assert body.fn is not None
        if call.on_loop:
            began = time.perf_counter() if self.is_checked else 0.0
            returned = body.fn(*call.args, **call.kwargs)
            if self.is_checked:
                warn_if_slow(body.name, began)
        else:
            here.is_in_thread = True
            try:
                returned = await call_in_worker(here, call)
            finally:
                here.is_in_thread = False
        return await returned if hasattr(returned, "__await__") else returned

    def cancel_task(self, task: Task) -> None:
        """Cancel an asyncio task, or drop one that has not begun."""
        self._on_loop(self._cancel, task)

    def _cancel(self, task: Task) -> None:
        for action in list(self._ready):
            if action.task is task:
                self._ready.remove(action)
                self.report(TaskCancelled(task, task.attempt))
                return
        here = self.attempts.get(task)
        running = self._tasks.get(task) or self._inline_of(here)
        if running is None or here is None:
            return
        # A call in a thread goes on whatever is done here, and a call that has ended is not made again: so it is waited for.
        if task.call is not None and here.is_in_thread and not here.is_given_up and self.finish is None:
            return
        here.is_told_to_stop = True
        here.close_child_runs("cancelled", "sibling_error")
        running.cancel()

    def _inline_of(self, here: HereNow | None) -> asyncio.Task[Any] | None:
        """Return the asyncio task that awaits an attempt inside itself, unless it is told to stop, or is the one that asks."""
        is_free = here is not None and not here.is_told_to_stop and self._inline is not asyncio.current_task()
        return self._inline if is_free else None

    def time_out(self, action: TimeOut) -> None:
        """Cancel the body, do not wait for it, and report the attempt failed."""
        self._on_loop(self._time_out, action)

    def _time_out(self, action: TimeOut) -> None:
        if (here := self._lose(action.task)) is not None:
            self.fail_attempt(here, action.error)

    def _lose(self, task: Task) -> HereNow | None:
        """Cancel the body of an attempt that is given up, without waiting for it; None if it has ended just now."""
        here = self.attempts.pop(task, None)
        if here is not None:
            here.is_told_to_stop = True
            if (running := self._tasks.pop(task, None)) is not None:
                running.cancel()
        return here

    def stop(self, action: StopRun) -> None:
        """Cancel the bodies that run, do not wait for them, and end the run."""
        self._on_loop(self._stop, action)

    def _stop(self, action: StopRun) -> None:
        for task in action.tasks:
            if (here := self._lose(task)) is not None:
                here.give_up("cancelled", action.reason)
        self._ready.clear()
        self.report(CloseRequested("failed", action.reason, action.error))

    # --- handlers, saves, deadlines, futures ---------------------------------------------------------------

    def carry_out(self, actions: Sequence[Action], will_pop: bool = False) -> None:
        """Carry actions out, after what async handlers have to do about the events that came with them."""
        awaitables = self.hub.take_awaitables() if self.hub.wants else None
        if awaitables or self._handling is not None:
            self._on_loop(self._carry_out_later, awaitables or [], actions)
        else:
            super().carry_out(actions, will_pop)

    def _carry_out_later(self, awaitables: list[Awaitable[None]], actions: Sequence[Action]) -> None:
        self._handling = self.loop.create_task(self._handle(self._handling, awaitables, actions))

    async def _handle(
        self, before: asyncio.Task[None] | None, awaitables: list[Awaitable[None]], actions: Sequence[Action]
    ) -> None:
        try:
            if before is not None:
                await before
            await finish_all(self.hub, awaitables)
            self.close_if_fatal()
        finally:
            if self._handling is asyncio.current_task():
                self._handling = None
            super().carry_out(actions)
            self.give_turn_back()

    async def _flush_handlers(self) -> None:
        while self._handling is not None:
            await asyncio.shield(self._handling)
        await finish_all(self.hub, self.hub.take_awaitables())

    def save(self, saves: list[SaveCheckpoint | SaveWrites], will_pop: bool) -> None:
        """Store at once what costs no I/O; the rest in order in a task of its own."""
        assert self.saver is not None
        if self.saver.does_io:
            if self.loop.is_closed():
                self._backlog.note_lost(self, len(saves))
            self._on_loop(self._backlog.add, self, saves)
            return
        store_at_once(self, saves, will_pop=will_pop)

    def is_saving(self) -> bool:
        """Say whether something is being stored, or will be: tasks that are being cancelled may hold runs that save."""
        backlog = self._backlog
        return bool(backlog.saving is not None or self._handling is not None or backlog.queue or self._tasks)

    def wake_at(self, at_ns: int) -> None:
        """Set the loop's timer."""
        self._on_loop(self._set_timer, at_ns)

    def _set_timer(self, at_ns: int) -> None:
        when = self.loop.time() + max(0.0, (at_ns - self.hub.now_ns()) / 1e9)
        if self._timer is not None and not self._timer.cancelled() and self.loop.time() < self._timer.when() <= when:
            return
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self.loop.call_at(when, self._woke)

    def _woke(self) -> None:
        self._timer = None
        self.report(Woke(self.progress()))

    def ring(self) -> None:
        """Wake the driving task, if it waits: it looks for what there is to do after it has said so."""
        if self._wakeup is not None:
            self._on_loop(self._ring)

    def part_added(self) -> None:
        """Wake the driving task for a part, once: a model's tokens are many."""
        wakeup = self._wakeup
        if wakeup is not None and not wakeup.done():
            self._on_loop(self._ring)

    def _ring(self) -> None:
        if self._wakeup is not None and not self._wakeup.done():
            self._wakeup.set_result(None)

    def new_future(self) -> Any:
        """Return an asyncio future on the run's loop, a blocking one in other threads."""
        return self.loop.create_future() if _is_running_on(self.loop) else blocking_future()

    def set_future(self, future: Any, result: Any, error: BaseException | None, *, is_cancelled: bool = False) -> None:
        """Settle a future on its own side."""
        if isinstance(future, asyncio.Future):
            self._on_loop(settle_on_loop, future, result, asyncio.CancelledError() if is_cancelled else error)
        else:
            settle_blocking(future, result, error, is_cancelled=is_cancelled)

    # --- the end -------------------------------------------------------------------------------------------

    async def _conclude(self) -> None:
        """Wait for background saves, announce the end, let async handlers finish."""
        while (saving := self._backlog.saving) is not None:
            await self._rest([saving])
        await arun_flow(self.leaving())
        self.end()
        self._stop_timer()
        await self._flush_handlers()
        self.note_fatal()

    def close_now(self, status: RunStatus, reason: str, error: BaseException | None = None) -> None:
        """End the run in one synchronous step: nothing that must happen stands after an await (design 6.9)."""
        try:
            self.request_close(status, reason, error if status == "failed" else None)
            for running in list(self._tasks.values()):
                running.cancel()
            self._stop_timer()
        finally:
            self.end()

    def cancel_inline(self) -> None:
        """Cancel the node that a reader awaits inside its own task, unless it is that task which asks."""
        for task, here in list(self.attempts.items()):
            if task not in self._tasks and (running := self._inline_of(here)) is not None:
                here.is_told_to_stop = True
                running.cancel()

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    async def _settle_tasks(self) -> None:
        """Wait for cancelled node tasks and saves to come to rest, and give async handlers their say."""
        # Handlers first: what they still have to do comes before saves that the end has ordered.
        await self._flush_handlers()
        while waiting := [*self._tasks.values(), *([] if self._backlog.saving is None else [self._backlog.saving])]:
            await self._rest(waiting)
            await self._flush_handlers()
        await arun_flow(self.leaving())

    async def _rest(self, tasks: list[asyncio.Task[None]]) -> None:
        """Wait until one of these tasks is done, and what follows from it has been seen to."""
        if any(task.done() for task in tasks):
            await asyncio.sleep(0)  # its callbacks are on their way
        else:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)

    def abandon(self) -> None:
        """End the run because its reader was garbage collected, which must not wait for anything."""
        if not self.loop.is_running() and self.turn is not None:
            self.turn.drop()  # the loop may never run again, and its saves would then never be over
        if not self.is_ended and hasattr(self, "engine"):
            if self.loop.is_closed() and self._backlog.queue:
                self._backlog.note_lost(self, len(self._backlog.queue))
            if _is_running_on(self.loop) or self.loop.is_closed():
                self.close_now("abandoned", "consumer_dropped")
            else:
                self.loop.call_soon_threadsafe(self.close_now, "abandoned", "consumer_dropped")


async def _coroutine(awaitable: Awaitable[Any]) -> Any:
    return await awaitable


def _reason(error: BaseException) -> tuple[RunStatus, str]:
    if isinstance(error, GeneratorExit):
        return "abandoned", "consumer_closed"
    if isinstance(error, Exception):
        return "failed", type(error).__name__
    return "cancelled", type(error).__name__


def _is_running_on(loop: asyncio.AbstractEventLoop) -> bool:
    try:
        return asyncio.get_running_loop() is loop
    except RuntimeError:
        return False
