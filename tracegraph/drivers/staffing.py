"""Who runs the ready tasks of a run on threads, and who watches its clock.

The driving thread runs them itself. A worker stands by while more is ready, and steps in as soon as a millisecond passes
in which nobody began a task; each that steps in hires the next. So a wide step of quick nodes costs no thread hops,
and one of blocking nodes still has a thread for each.
"""

from __future__ import annotations

import functools
import sys
import threading
import time
from abc import abstractmethod
from collections import deque
from typing import Final

from tracegraph.drivers import workers
from tracegraph.drivers.launch import Launch
from tracegraph.drivers.room import wait_for_room
from tracegraph.drivers.run import Run
from tracegraph.engine.actions import RunTask
from tracegraph.engine.reports import Woke

__all__ = ["PATIENCE_S", "StaffedRun"]

PATIENCE_S: Final = 0.001
"""How long nobody may begin a ready task before a worker does; some thread hops' worth."""

_HANDOVER_S: Final = 0.00005
"""Long enough for a thread that is woken to begin."""


class StaffedRun(Run):
    """A run whose tasks wait for a thread; a driver adds how one is run."""

    __slots__ = (
        "_bell",
        "_busy",
        "_deadline_ns",
        "_handed_over_at",
        "_is_help_coming",
        "_is_reader_idle",
        "_is_short_of_threads",
        "_is_waiting",
        "_planned",
        "_ready",
        "_watching",
        "_workers",
    )

    def __init__(self, launch: Launch) -> None:
        super().__init__(launch)
        self._bell = threading.Condition()
        self._planned: deque[RunTask] = deque()
        """Tasks of a superstep that has not begun: only the driving thread begins one, so a reader holds the run back."""
        self._ready: deque[RunTask] = deque()
        """Tasks that whoever is free may run."""
        self._is_waiting = False
        """The driving thread waits for the bell, so it can take a task."""
        self._is_reader_idle = False
        """Nobody has told the driving thread of a part since it last looked for some."""
        self._handed_over_at = 0.0
        self._is_help_coming = False
        """A worker stands by; it steps in if nobody else begins what is ready."""
        self._busy = 0
        self._deadline_ns: int | None = None
        self._watching = 0
        """Workers that wait for the deadline."""
        self._is_short_of_threads = False
        self._workers: set[int] = set()
        """Idents of the threads that help, which must not wait for themselves."""

    @abstractmethod
    def _run_task(self, action: RunTask, will_pop: bool) -> None:
        """Run one attempt in this thread and report it."""

    # --- the driving thread --------------------------------------------------------------------------------

    def _turn(self) -> None:
        """Begin a superstep, run one ready task here, or wait until something happens."""
        if self._planned:
            self._begin_superstep()
        elif self._may_run_here():
            try:
                action = self._ready.popleft()
            except IndexError:  # a worker was quicker
                return
            self._run_here(action)
        else:
            self._wait()

    def _begin_superstep(self) -> None:
        if self.parent is not None and self.hub.gates:
            wait_for_room(self)
        is_lone = len(self._planned) == 1 and not self.launch.readers.is_live and not self.is_limited
        if is_lone and self._planned[0].task.timeout is None:
            self._run_here(self._planned.popleft())
            return
        count = len(self._planned)
        self._ready.extend(self._planned)
        self._planned.clear()
        if self.launch.is_streaming:
            # A reader wants each result as it comes, so this thread stays free to read. One worker for each task,
            # hired in order, for that is the order in which quick tasks then finish.
            for _ in range(count):
                self._hire(is_patient=False)
        else:
            self._hire(is_patient=not self._has_limits())

    def _run_here(self, action: RunTask) -> None:
        """Run a task in the driving thread, while a worker watches the clock if something is due: a retry, perhaps."""
        if self._deadline_ns is not None and self._is_unwatched():
            self._hire(is_patient=False)
        if not self.hub.gates:
            self._run_task(action, will_pop=True)
            return
        self.parts.inline_thread = threading.get_ident()
        try:
            self._run_task(action, will_pop=True)
        finally:
            self.parts.inline_thread = 0

    def _is_unwatched(self) -> bool:
        """Say whether something is due some time, and nobody waits for that."""
        if self._deadline_ns is None or self.is_limited:  # the driving thread of a limited run has nothing else to do
            return False
        with self._bell:
            return not self._is_waiting and not self._watching

    def _has_limits(self) -> bool:
        # A copy, made in one go: workers take tasks meanwhile.
        return self.is_limited or any(action.task.timeout is not None for action in self._ready.copy())

    def _may_run_here(self) -> bool:
        if not self._ready:
            return False
        if self._is_short_of_threads:
            return True
        if self.launch.readers.is_live or self._has_limits():
            return False
        return not self.launch.is_streaming or self.engine.running == 1

    def _wait(self) -> None:
        with self._bell:
            self._is_reader_idle = True  # before the look at the parts: whoever adds one looks at this afterwards
            if self.finish is not None or self.parts or self._planned or self._may_run_here():
                return
            self._is_waiting = True
            try:
                self._bell.wait(self._seconds_left())
            finally:
                self._is_waiting = False
        self._wake_if_due(will_pop=True)

    def _seconds_left(self) -> float | None:
        if self._deadline_ns is None:
            return None
        return min(max(0.0, (self._deadline_ns - self.hub.now_ns()) / 1e9), threading.TIMEOUT_MAX)

    def _wake_if_due(self, *, will_pop: bool) -> None:
        with self._bell:
            if self._deadline_ns is None or self._deadline_ns > self.hub.now_ns():
                return
            self._deadline_ns = None
        self.report(Woke(self.progress()), will_pop=will_pop)

    # --- workers -------------------------------------------------------------------------------------------

    def make_ready(self, action: RunTask) -> None:
        """Put a task where the driving thread, or whoever is free, finds it."""
        (self._ready if action.task.is_follow_up else self._planned).append(action)

    def staff(self, will_pop: bool) -> None:
        """Wake the driving thread for a new superstep; see to it that called and retried tasks run even if it is busy."""
        if self._planned and not will_pop:
            self.ring()
        if self._ready:
            is_free = will_pop and self._may_run_here()
            if not is_free or len(self._ready) > 1:
                self._hire(is_patient=False)

    def _hire(self, *, is_patient: bool) -> None:
        """Hire a worker; of patient ones, who only stand by, one is enough."""
        with self._bell:
            if is_patient and self._is_help_coming:
                return
            self._is_help_coming = self._is_help_coming or is_patient
            self._busy += 1
        try:
            workers.submit(functools.partial(self._help, is_patient))
        except RuntimeError:  # the system gives no more threads: this one runs the tasks by itself
            with self._bell:
                self._busy -= 1
                self._is_help_coming = False
                self._is_short_of_threads = True
                self._bell.notify_all()

    def _stand_by(self) -> None:
        """Wait while tasks are being begun without this worker's help."""
        waiting = len(self._ready)
        while waiting:
            with self._bell:
                self._bell.wait(PATIENCE_S)
            left = len(self._ready)
            if left >= waiting:
                return
            waiting = left

    def _help(self, is_patient: bool) -> None:
        """Run ready tasks until there are none; a worker's job."""
        self._workers.add(threading.get_ident())
        if is_patient:
            self._stand_by()
            with self._bell:
                self._is_help_coming = False
        try:
            while True:
                try:
                    action = self._ready.popleft()
                except IndexError:
                    break
                if self._ready or self._is_unwatched():
                    self._hire(is_patient=False)
                self._run_task(action, will_pop=False)
            self._watch_the_clock()
        except BaseException as error:  # the engine or an observer broke in this thread; the driving one must not hang
            self.request_close("failed", type(error).__name__, error)
        finally:
            self._workers.discard(threading.get_ident())
            with self._bell:
                self._busy -= 1
                self._bell.notify_all()

    def _watch_the_clock(self) -> None:
        """Stand in for the driving thread, if that is busy with a task, until the next deadline."""
        while True:
            with self._bell:
                is_needed = self._deadline_ns is not None and self.finish is None
                if not is_needed or self._is_waiting or self._ready or self._planned:
                    return
                self._watching += 1
                try:
                    self._bell.wait(self._seconds_left())
                finally:
                    self._watching -= 1
            self._wake_if_due(will_pop=False)

    # --- the bell and the clock ----------------------------------------------------------------------------

    def wake_at(self, at_ns: int) -> None:
        """Shorten the wait of whoever watches the clock."""
        with self._bell:
            if self._deadline_ns is None or at_ns < self._deadline_ns:
                self._deadline_ns = at_ns
            self._bell.notify_all()

    def ring(self) -> None:
        """Wake the driving thread."""
        with self._bell:
            self._bell.notify_all()

    def part_added(self) -> None:
        """Wake the driving thread for a part, once: a model's tokens are many, and the bell's lock is not free."""
        if self._is_reader_idle:
            self._is_reader_idle = False
            is_elsewhere = self._is_waiting
            self.ring()
            if is_elsewhere:
                self._hand_over()

    def _hand_over(self) -> None:
        """Let the reader have the interpreter: it would wait a switch interval for it while this thread is busy.

        Once in such an interval only, else threads would take turns for each of many parts.
        """
        now = time.monotonic()
        if now - self._handed_over_at > sys.getswitchinterval():
            self._handed_over_at = now
            time.sleep(_HANDOVER_S)
