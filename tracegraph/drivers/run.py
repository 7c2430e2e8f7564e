"""One run, whatever its colour: the lock around the engine, reports in, events out, actions on to the driver.

Whoever has a report (the driving loop, a worker thread, node code that calls a task) brings it here, takes the lock,
lets the engine decide, publishes the events, lets the lock go and carries out the actions (design 6.1).
"""

from __future__ import annotations

import contextvars
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any
from uuid import UUID

from tracegraph.drivers.announcing import (
    publish_end,
    publish_resumed,
    publish_starved_joins,
    start_telemetry,
    started_event,
)
from tracegraph.drivers.calling import failure_report
from tracegraph.drivers.checks import is_checking
from tracegraph.drivers.effects import Flow
from tracegraph.drivers.here import HereNow
from tracegraph.drivers.launch import Launch
from tracegraph.drivers.loading import load_begin
from tracegraph.drivers.outcome import result_of
from tracegraph.drivers.settings import settings_of
from tracegraph.drivers.travel import refuse_dead_end
from tracegraph.drivers.turns import Turn, take_turn
from tracegraph.drivers.unread import NO_READER, Unread
from tracegraph.drivers.waiting import seconds_to_wait
from tracegraph.engine.actions import (
    Action,
    CancelTask,
    Decision,
    Finish,
    ResolveCall,
    RunTask,
    SaveCheckpoint,
    SaveWrites,
    StopRun,
    TimeOut,
    WakeAt,
)
from tracegraph.engine.engine import Engine
from tracegraph.engine.failures import add_note, join_failures
from tracegraph.engine.reports import CloseRequested, Report, TaskCalled, TaskFailed
from tracegraph.engine.settings import Begin, Deadline
from tracegraph.engine.task import Task
from tracegraph.engine.views import isolated, read
from tracegraph.errors import EngineBug, GraphInterrupt, RunClosed
from tracegraph.events import Resumed, RunStarted, RunStatus, TurnTaken
from tracegraph.types import RetryPolicy

__all__ = ["Run"]


class Run(ABC):
    """What both drivers share. A driver adds how tasks run, how saves are stored, and how it waits."""

    __slots__ = (
        "__weakref__",
        "attempts",
        "base",
        "deadline",
        "engine",
        "finish",
        "first_attempts",
        "futures",
        "handlers",
        "hub",
        "is_checked",
        "is_ended",
        "is_limited",
        "is_told",
        "launch",
        "lock",
        "metadata",
        "ns",
        "parent",
        "parts",
        "run_id",
        "runtime",
        "save_error",
        "saver",
        "spec",
        "thread_id",
        "turn",
        "undo_drain",
    )

    def __init__(self, launch: Launch) -> None:
        self.launch = launch
        self.spec = launch.spec
        self.hub = launch.hub
        self.parent = launch.parent
        self.run_id = launch.run_id
        self.ns = launch.ns
        self.thread_id = launch.thread_id
        self.saver = launch.saver
        self.runtime = launch.runtime
        self.handlers = launch.handlers
        self.metadata = launch.spec.metadata
        self.lock = threading.RLock()
        self.finish: Finish | None = None
        self.is_checked: bool = is_checking() if launch.parent is None else launch.parent.run.is_checked
        self.is_ended = False
        self.is_told = False
        self.is_limited = launch.step_timeout is not None or launch.deadline_s is not None
        """It has a time limit that holds for every node, so none may run in the thread or task that drives."""
        self.deadline: Deadline | None = None
        self.save_error: BaseException | None = None
        """What a save failed with. Nothing is stored after it: a later checkpoint would pretend that this one is there."""
        self.first_attempts: dict[str, float] = {}
        self.futures: dict[Task, list[Any]] = {}
        self.parts: Unread[Any] = NO_READER
        """What stream modes made, not read yet."""
        self.attempts: dict[Task, HereNow] = {}
        """Attempts under way."""
        self.base: contextvars.Context
        self.engine: Engine
        self.undo_drain: Callable[[], None] | None = None
        self.turn: Turn | None = None
        """Its turn on the thread, where runs take turns."""

    # --- facts others ask for ------------------------------------------------------------------------------

    @property
    def has_saver(self) -> bool:
        """Whether the run is checkpointed."""
        return self.saver is not None

    @property
    def default_retry(self) -> tuple[RetryPolicy, ...]:
        """The graph's retry policies, for nodes that have none."""
        return self.launch.default_retry

    def checkpoint_map(self) -> dict[str, str]:
        """Return the checkpoints that this run and the enclosing ones are at, by namespace."""
        found = dict(self.launch.parents)
        if self.engine.saving.checkpoint_id is not None:
            found[self.ns] = self.engine.saving.checkpoint_id
        return found

    def first_attempt_time(self, task: Task) -> float:
        """Return when the task's first attempt began, in seconds since the epoch."""
        return self.first_attempts.setdefault(task.id, time.time())

    def read_output(self, keys: str | Sequence[str]) -> Any:
        """Return the values of other channels than the graph's own output."""
        return read(self.engine.store.values, keys)

    # --- opening -------------------------------------------------------------------------------------------

    def open(self) -> None:
        """Announce the run and fix the Context its nodes run in: the caller's, with the run's span as the current one."""
        launch = self.launch
        if self.hub.is_stopping:
            raise RunClosed("the enclosing run was closed")
        if self.parent is not None:
            if self.parent.is_cut_off:
                raise RunClosed("the task that started this run is given up, or its run has ended")
            self.parent.note_progress()
        now_ns = self.hub.now_ns()
        if launch.deadline_s is not None:
            self.deadline = Deadline(now_ns, launch.deadline_s)
        started = started_event(self, now_ns)
        factory = launch.observer_factory
        observers, attach = ((), None) if factory is None else start_telemetry(factory, started)
        try:
            self.hub.add(*observers)
            self._announce(started, attach)
        except BaseException as error:  # Ctrl-C, in this thread; a channel of the user's own that cannot start
            status: RunStatus = "failed" if isinstance(error, Exception) else "cancelled"
            self.finish = Finish(status, error=error, reason=type(error).__name__)
            self.hub.add(*observers)  # their spans have begun
            if not started.seq:
                self.hub.publish(started)
            publish_end(self)
            raise

    def _announce(self, started: RunStarted, attach: Callable[[], None] | None) -> None:
        launch = self.launch
        self.hub.add(*launch.own_observers)
        self.base = contextvars.copy_context()
        if attach is not None:
            self.base.run(attach)
        self.engine = Engine(launch.topology, settings_of(launch, deadline=self.deadline, is_checked=self.is_checked))
        if self.hub.wants & RunStarted.bit:
            self.hub.publish(started)
        if self.saver is not None:
            self.saver.trace = self.hub.trace_of(None)
        if self.parent is not None:
            # Only now: whoever gives the enclosing attempt up, in another thread, closes what it finds here.
            self.parent.child_runs.append(self)
            if self.parent.is_cut_off:  # too early to find this run
                self.request_close("cancelled", "the enclosing task was given up")
                self.end()

    def opening(self) -> Flow[tuple[Begin, tuple[str, ...]]]:
        """Wait for the run's turn, then load what it goes on from; see :func:`load_begin`."""
        if self.launch.takes_turns:
            assert self.saver is not None
            self.turn = yield from take_turn(self.saver.saver, self.saver.thread_id, partial(seconds_to_wait, self))
            if self.hub.wants & TurnTaken.bit:
                self.hub.publish(TurnTaken(self.run_id, self.ns, -1, self.hub.now_ns(), self.turn.waited_ns))
        return (yield from load_begin(self.launch))

    def leaving(self) -> Flow[None]:
        """Let the next run on the thread have its turn, once everything is saved."""
        turn, self.turn = self.turn, None
        if turn is not None:
            yield from turn.leave()

    def begin(self, begin: Begin, links: tuple[str, ...] = ()) -> list[Action]:
        """Start the engine and return its first actions.

        Raises:
            Exception: whatever is wrong with the input; nothing has been stored then. RunClosed: it was closed meanwhile.
        """
        resumes = begin.saved is not None and (begin.is_resume or begin.command is not None or begin.input is None)
        with self.lock:
            if self.finish is not None:  # its end is announced: nothing of it may be stored or told of any more
                raise RunClosed(self.finish.reason)
            if resumes and self.hub.wants & Resumed.bit:
                publish_resumed(self, begin, links)
            control = self.launch.runtime.control
            if control is not None:
                # No report, for it may be asked for anywhere: in a handler, which runs under locks, or a signal handler.
                self.undo_drain = control.on_drain(self.engine.drain)
            decision = Decision()
            try:
                self.engine.start(begin, self.hub.now_ns(), decision)
                refuse_dead_end(self.launch, self.engine)
                self._publish(decision)
            except BaseException:  # Ctrl-C, in this thread: what is decided by now has happened
                self._publish(decision)
                raise
        return decision.actions

    # --- reports -------------------------------------------------------------------------------------------

    def report(self, report: Report, *, will_pop: bool = False) -> None:
        """Bring a report in and carry out what follows. ``will_pop``: the caller takes the next ready task itself."""
        with self.lock:
            decision = self.decide(report)
        if decision.actions:
            self.carry_out(decision.actions, will_pop)

    def decide(self, report: Report) -> Decision:
        """Let the engine decide and publish its events; the caller holds the lock."""
        decision = Decision()
        try:
            self.engine.receive(report, self.hub.now_ns(), decision)
            if decision.events or self.hub.fatal is not None:
                self._publish(decision)
        except EngineBug as bug:
            self._publish(decision)
            decision.actions[:] = [Finish("failed", error=bug, reason="EngineBug")]
        except BaseException:  # as in begin()
            self._publish(decision)
            raise
        if self.parent is not None:
            self.parent.note_progress()
        return decision

    def _publish(self, decision: Decision) -> None:
        hub = self.hub
        for event in decision.events:
            if not event.seq:
                hub.publish(event)
        if hub.fatal is not None and self.engine.phase != "closed":
            closing = self.engine.receive(CloseRequested(*self._fatal_end(), hub.fatal), hub.now_ns())
            decision.actions.extend(closing.actions)
            for event in closing.events:
                hub.publish(event)

    def carry_out(self, actions: Sequence[Action], will_pop: bool = False) -> None:
        """Carry out the engine's actions in order."""
        saves: list[SaveCheckpoint | SaveWrites] = []
        for action in actions:
            if isinstance(action, (SaveCheckpoint, SaveWrites)):
                saves.append(action)
                continue
            if saves:
                self.save(saves, will_pop)
                saves = []
            match action:
                case RunTask():
                    self.make_ready(action)
                case WakeAt():
                    self.wake_at(action.at_ns)
                case CancelTask():
                    self.cancel_task(action.task)
                case TimeOut():
                    self.time_out(action)
                case StopRun():
                    self.stop(action)
                case ResolveCall():
                    self.resolve(action.task)
                case Finish():
                    self._take_finish(action)
                    self.ring()
        if saves:
            self.save(saves, will_pop)
        self.staff(will_pop)

    def _take_finish(self, action: Finish) -> None:
        # A save may fail before or after the end it was to make durable is carried out: the failure stands.
        if self.finish is None or self.finish.error is None:
            self.finish = action
        elif action.error is not None and action.error is not self.finish.error:
            note = f"besides, {type(action.error).__name__}: {action.error}"
            if note not in getattr(self.finish.error, "__notes__", ()):
                add_note(self.finish.error, note)

    def call(self, report: TaskCalled) -> Any:
        """Start a called task; return its future, made for the calling thread."""
        future = self.new_future()
        with self.lock:
            decision = self.decide(report)
            if report.child is None:
                raise RunClosed(f"task {report.node.name!r} was called by code of a run that has ended")
            # By task, not by id: a late call of an abandoned attempt has the id of the same call in the next one.
            # Several, if the next attempt makes the call while the outcome is on its way to this one.
            self.futures.setdefault(report.child, []).append(future)
        self.carry_out(decision.actions)
        return future

    def resolve(self, task: Task) -> None:
        """Give a called task's outcome to whoever waits for it."""
        with self.lock:
            futures = self.futures.pop(task, ())
        for future in futures:
            match task.status:
                case "completed" | "cached":
                    self.set_future(future, isolated(task.result), None)
                case "failed":
                    self.set_future(future, None, task.error)
                case "interrupted":
                    self.set_future(future, None, GraphInterrupt(task.interrupts))
                case _:
                    self.set_future(future, None, None, is_cancelled=True)

    def progress(self) -> dict[Task, int]:
        """Return when attempts with an idle limit last gave a sign of progress."""
        return {task: here.progress_ns for task, here in tuple(self.attempts.items()) if here.progress_ns is not None}

    def part_added(self) -> None:
        """Wake the driving loop for what was put among the parts to read."""
        self.ring()

    # --- ending --------------------------------------------------------------------------------------------

    def fail_attempt(self, here: HereNow, error: BaseException) -> None:
        """Give up an attempt and report it failed."""
        report = failure_report(here, error)
        if isinstance(report, TaskFailed):
            report.is_given_up = True
        # What the attempt had started ends now, before the attempt does; its code must not get a word in between.
        with self.lock:
            here.give_up("cancelled", "timeout")
            decision = self.decide(report)
        self.carry_out(decision.actions)

    def request_close(self, status: RunStatus, reason: str, error: BaseException | None = None) -> None:
        """Stop the run: no run of this tree hands out another task, and open tasks are announced as ended."""
        if self.launch.is_root:
            self.hub.is_stopping = True
        for here in tuple(self.attempts.values()):
            here.give_up(status, reason)
        with self.lock:
            if self.finish is None and self.engine.phase == "new":  # it begins under this lock, or not at all now
                self.finish = Finish(status, error=error, reason=reason)
        if self.finish is None:
            self.report(CloseRequested(status, reason, error))
        if self.finish is None:
            self.finish = Finish(status, error=error, reason=reason)

    def fail_for_reader(self, error: BaseException) -> None:
        """Stop the run because a reader had no room, also if it came to its end with just those parts."""
        reason = type(error).__name__
        self.request_close("failed", reason, error)
        self._take_finish(Finish("failed", error=error, reason=reason))

    def end(self) -> None:
        """Announce the end, exactly once, and leave the hub."""
        is_mine = False
        try:
            with self.lock:
                is_mine, self.is_ended = not self.is_ended, True
            if not is_mine:
                return
            self._end()
        except BaseException:  # Ctrl-C, in this thread
            if is_mine and not self.is_told:
                publish_end(self)
            raise

    def _end(self) -> None:
        finish = self.finish
        assert finish is not None
        if self.undo_drain is not None:
            self.undo_drain()
        if self.parent is not None:
            self.parent.child_runs.remove(self)
        self.note_fatal()
        if finish.error is not None and finish.errors:
            join_failures(finish.error, finish.errors[1:], self._root_run_id())
        publish_starved_joins(self)
        publish_end(self)
        for observer in self.launch.own_observers:
            self.hub.remove(observer)
        self.give_turn_back()
        self.note_fatal()

    def _root_run_id(self) -> UUID:
        run = self
        while run.parent is not None:
            run = run.parent.run
        return run.run_id

    def give_turn_back(self) -> None:
        """Give the turn back without waiting for it, if the run has ended and no save of its is under way."""
        if self.turn is not None and self.is_ended and not self.is_saving():
            self.turn.drop()

    def close_if_fatal(self) -> None:
        """Stop the run if an async handler with ``raise_error`` has failed."""
        if self.hub.fatal is not None and self.finish is None and self.engine.phase != "new":
            self.request_close(*self._fatal_end(), self.hub.fatal)

    def _fatal_end(self) -> tuple[RunStatus, str]:
        """Return how and why a run ends by what an observer raised; Ctrl-C may come while one is at work."""
        fatal = self.hub.fatal
        return ("failed", "an observer failed") if isinstance(fatal, Exception) else ("cancelled", type(fatal).__name__)

    def note_fatal(self) -> None:
        """Let a handler that failed on the end itself fail the run."""
        assert self.finish is not None
        if self.hub.fatal is not None and self.finish.error is None:
            self.finish.status, self.finish.error = self._fatal_end()[0], self.hub.fatal

    def result(self) -> Finish:
        """Return how the run ended if that is a result, else raise what ended it."""
        return result_of(self)

    # --- what a driver adds --------------------------------------------------------------------------------

    @abstractmethod
    def make_ready(self, action: RunTask) -> None:
        """Put a task where it will be run."""

    @abstractmethod
    def staff(self, will_pop: bool) -> None:
        """See to it that somebody runs what is ready."""

    @abstractmethod
    def save(self, saves: list[SaveCheckpoint | SaveWrites], will_pop: bool) -> None:
        """Store something, now or in order in the background."""

    @abstractmethod
    def is_saving(self) -> bool:
        """Say whether something is being stored, or will be."""

    @abstractmethod
    def wake_at(self, at_ns: int) -> None:
        """Report ``Woke`` at that time."""

    @abstractmethod
    def cancel_task(self, task: Task) -> None:
        """Stop a task if it can be stopped."""

    @abstractmethod
    def time_out(self, action: TimeOut) -> None:
        """Abandon an attempt: stop its body if possible, and report it failed."""

    @abstractmethod
    def stop(self, action: StopRun) -> None:
        """Abandon the attempts under way: stop their bodies if possible. Then report that the run is to be closed."""

    @abstractmethod
    def ring(self) -> None:
        """Wake the driving loop."""

    @abstractmethod
    def new_future(self) -> Any:
        """Return a future for the calling thread."""

    @abstractmethod
    def set_future(self, future: Any, result: Any, error: BaseException | None, *, is_cancelled: bool = False) -> None:
        """Settle a future, from any thread."""
