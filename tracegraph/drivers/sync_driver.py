"""The driver on threads.

The thread that called ``invoke`` drives: it runs ready tasks itself and waits on one condition, with the engine's
next deadline as its time limit; see :mod:`tracegraph.drivers.staffing`.
"""

from __future__ import annotations

import concurrent.futures
import threading
from collections.abc import Generator
from contextlib import suppress
from typing import Any

from tracegraph.current import CURRENT
from tracegraph.drivers import workers
from tracegraph.drivers.backlog import ThreadBacklog
from tracegraph.drivers.calling import attempt_flow
from tracegraph.drivers.effects import run_flow
from tracegraph.drivers.futures import blocking_future, settle_blocking
from tracegraph.drivers.here import HereNow
from tracegraph.drivers.launch import Launch
from tracegraph.drivers.private_loop import run_to_completion
from tracegraph.drivers.staffing import StaffedRun
from tracegraph.drivers.storing import store_at_once
from tracegraph.engine.actions import Finish, RunTask, SaveCheckpoint, SaveWrites, StopRun, TimeOut
from tracegraph.engine.reports import CloseRequested, Report, TaskBegan, TaskCalled, TaskCancelled
from tracegraph.engine.task import Task
from tracegraph.events import RunStatus

__all__ = ["SyncRun"]


class SyncRun(StaffedRun):
    """A run on threads."""

    __slots__ = (
        "_backlog",
        "_lost",
        "_waits_at_close",
        "_waits_for_bodies",
    )

    def __init__(self, launch: Launch) -> None:
        super().__init__(launch)
        self._lost = 0
        """Attempts that were given up while their threads are busy with them: nobody waits for those."""
        self._backlog = ThreadBacklog(self._bell)
        self._waits_at_close = True
        self._waits_for_bodies = True

    # --- the driving thread --------------------------------------------------------------------------------

    def drive(self) -> Finish:
        """Run to the end and return how it ended, or raise what ended it."""
        for _ in self.stream():
            pass
        return self.result()

    def stream(self) -> Generator[None, None, None]:
        """Run to the end; stop at every point where there may be parts to read."""
        self.open()
        try:
            self._start()
            if self.parts:
                yield
            while self.finish is None:
                self._turn()
                if self.parts:
                    yield
                if self.hub.is_stopping and self.finish is None:
                    self.request_close("abandoned", "the enclosing run was closed")
            self._conclude()
        except GeneratorExit:
            self.close("abandoned", "consumer_closed")
            raise
        except BaseException as error:
            # Ctrl-C must not wait for a node that hangs; that thread is a daemon, and its report will be ignored.
            self._waits_for_bodies = isinstance(error, Exception)
            self.close("failed" if isinstance(error, Exception) else "cancelled", type(error).__name__, error)
            raise
        if self.parts:
            yield

    def _start(self) -> None:
        begin, links = run_flow(self.opening())
        self.carry_out(self.begin(begin, links), will_pop=True)
        self._run_handlers()

    # --- tasks ---------------------------------------------------------------------------------------------

    def _run_task(self, action: RunTask, will_pop: bool) -> None:
        task = action.task
        if self.hub.is_stopping or self.finish is not None:
            self.request_close("abandoned", "the enclosing run was closed")
            return
        here = HereNow(self, task)
        self.attempts[task] = here
        is_timed = task.timeout is not None or self.is_limited
        if is_timed and not self._begin_timed(here, will_pop):
            return
        report = self.base.copy().run(self._attempt, here, action)
        if is_timed:
            self._end_timed(here)
        else:
            self.attempts.pop(task, None)
        if report is not None:
            self.report(report, will_pop=will_pop)
        if self.hub.has_awaitables or self.hub.fatal is not None:
            self._run_handlers()

    def _begin_timed(self, here: HereNow, will_pop: bool) -> bool:
        """Let the time of an attempt count from now; say whether it may run, for the run's time may be up already."""
        here.watch_progress()
        self.report(TaskBegan(here.task, here.attempt), will_pop=will_pop)
        with self.lock:
            may_run = here.task.is_running and not here.is_given_up
        if not may_run:
            self._end_timed(here)
        return may_run

    def _end_timed(self, here: HereNow) -> None:
        with self.lock:
            # If it was given up, another attempt may be running under the same task.
            is_lost = self.attempts.get(here.task) is not here
            if not is_lost:
                del self.attempts[here.task]
        if is_lost:
            with self._bell:
                self._lost -= 1

    def _lose(self, task: Task, attempt: int) -> HereNow | None:
        """Take an attempt, which is to be given up, off those under way; None if it has ended just now."""
        with self.lock:
            here = self.attempts.get(task)
            if here is None or here.attempt != attempt:
                return None
            del self.attempts[task]
        with self._bell:
            self._lost += 1
            self._bell.notify_all()
        return here

    def _announce_start(self, action: RunTask) -> bool:
        """Publish that an attempt starts, unless another thread has closed the run and thereby announced the task's end."""
        with self.lock:
            if action.task.is_finished:
                return False
            for event in action.started:
                self.hub.enter(event)
        return True

    def _attempt(self, here: HereNow, action: RunTask) -> Report | None:
        """Run one attempt; called inside the task's own Context, which is thrown away afterwards."""
        CURRENT.set(here)
        if action.started and not self._announce_start(action):
            return None
        flow = attempt_flow(here)
        try:
            call = next(flow)
            while True:
                try:
                    returned = call.in_sync_run()
                except BaseException as error:
                    call = flow.throw(error)
                else:
                    call = flow.send(returned)
        except StopIteration as stop:
            report: Report = stop.value
            return report

    def call(self, report: TaskCalled) -> Any:
        """Start a called task; see :meth:`Run.call`."""
        if report.node.body.is_async:
            raise RuntimeError(
                f"task {report.node.name!r} is async, so a sync run cannot call it: start the run with ainvoke() or astream()"
            )
        return super().call(report)

    def cancel_task(self, task: Task) -> None:
        """Drop a task that has not begun; a thread that runs cannot be stopped, its report will tell."""
        if self._drop(task):
            self.report(TaskCancelled(task, task.attempt))

    def _drop(self, task: Task) -> bool:
        """Take a task that has not begun off its queue; say whether there was one."""
        for action in [*self._ready, *self._planned]:
            if action.task is task:
                try:
                    (self._ready if action in self._ready else self._planned).remove(action)
                except ValueError:  # it began just now
                    return False
                return True
        return False

    def time_out(self, action: TimeOut) -> None:
        """Go on without a thread that cannot be stopped; its late report will be ignored."""
        if (here := self._lose(action.task, action.attempt)) is not None:
            self.fail_attempt(here, action.error)

    def stop(self, action: StopRun) -> None:
        """Go on without the threads that run, as at the time limit of a node, and end the run."""
        for task in action.tasks:
            self._drop(task)
            if (here := self._lose(task, task.attempt)) is not None:
                here.give_up("cancelled", action.reason)
        self.report(CloseRequested("failed", action.reason, action.error))

    # --- saves, deadlines, futures -------------------------------------------------------------------------

    def save(self, saves: list[SaveCheckpoint | SaveWrites], will_pop: bool) -> None:
        """Store at once what is waited for or costs no I/O; the rest in order in a worker."""
        assert self.saver is not None
        if not self.saver.does_io and not self.launch.takes_turns:
            store_at_once(self, saves, will_pop=will_pop)
            return
        if not self.saver.does_io or any(action.is_awaited for action in saves):
            self._backlog.store_here(self, saves, will_pop=will_pop)
        else:
            self._backlog.add(self, saves)

    def is_saving(self) -> bool:
        """Say whether something is being stored, or will be."""
        return self._backlog.is_busy()

    def new_future(self) -> concurrent.futures.Future[Any]:
        """Return a future that blocks in ``result()``; cancelling it does nothing, for the task is the run's."""
        return blocking_future()

    def set_future(self, future: Any, result: Any, error: BaseException | None, *, is_cancelled: bool = False) -> None:
        """Settle a future."""
        settle_blocking(future, result, error, is_cancelled=is_cancelled)

    def _run_handlers(self) -> None:
        """Run what async handlers have to do to completion, on a loop of their own."""
        run_to_completion(self.hub)
        self.close_if_fatal()

    def _leave_handlers_to_a_worker(self) -> None:
        """See to it that async handlers hear of the end though this thread does not wait; a nested run's root will."""
        if self.launch.is_root and self.hub.has_awaitables:
            with suppress(RuntimeError):  # the system gives no more threads, or the process ends
                workers.submit(self._run_handlers)

    # --- the end -------------------------------------------------------------------------------------------

    def _conclude(self) -> None:
        """Wait for background saves, then announce the end."""
        self.wait_for_saves()
        run_flow(self.leaving())
        self.end()
        self._run_handlers()
        self.note_fatal()

    def wait_for_saves(self) -> None:
        """Wait for what is being saved in the background."""
        self._backlog.wait()

    def runs_inside(self) -> list[SyncRun]:
        """Return the runs that code of this run has started and not ended: a thread that hangs will not see to their saves."""
        children = [run for here in tuple(self.attempts.values()) for run in here.child_runs if isinstance(run, SyncRun)]
        return [*children, *(run for child in children for run in child.runs_inside())]

    def close(self, status: RunStatus, reason: str, error: BaseException | None = None) -> None:
        """End the run now. Spans are ended before this waits for the bodies that still run."""
        try:
            inside = self.runs_inside()
            self.request_close(status, reason, error)
            if self._waits_at_close:
                self._conclude()
                for run in inside:
                    run.wait_for_saves()
        finally:  # whatever is pressed meanwhile
            self.finish = self.finish or Finish(status, error=error, reason=reason)
            self.end()
        if not self._waits_at_close:
            self._leave_handlers_to_a_worker()
            return
        if not self._waits_for_bodies or threading.get_ident() in self._workers:
            return  # a node may close the stream it belongs to
        self._wait_for_bodies()

    def _wait_for_bodies(self) -> None:
        """Wait for the threads that still run nodes: until a time limit of the run, which would leave them behind, at most."""
        limits = self.engine.limits
        with self._bell:
            self._deadline_ns = None if limits is None else limits.due_ns
            while self._busy > self._lost and self._seconds_left() != 0:
                self._bell.wait(self._seconds_left())

    def abandon(self) -> None:
        """End the run because its reader was garbage collected, which must not wait for anything."""
        self._waits_at_close = False
        if not self.is_ended and hasattr(self, "engine"):
            self.close("abandoned", "consumer_dropped")
