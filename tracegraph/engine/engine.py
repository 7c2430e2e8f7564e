"""The engine: takes a report, returns a decision. No clock, thread, event loop, logger or randomness.

It is a passive monitor: whoever has a report holds the run's lock, calls :meth:`Engine.receive`, and carries out
the actions. A superstep is *planned*, its tasks *settle* one by one (each succeeds, fails for good, is interrupted
or cancelled), and when all have settled and the saves that durability waits for are done, it *ends*: its writes
are applied, or the run stops.
"""

from __future__ import annotations

from collections import deque
from typing import Any, Final, Literal

from tracegraph.constants import ASKED, ERROR, ERROR_SOURCE_NODE, INTERRUPT, NO_WRITES, RESUME, RETURN, TRACE
from tracegraph.engine.actions import Decision, Finish, ResolveCall, RunTask, WakeAt
from tracegraph.engine.announce import Announcer
from tracegraph.engine.apply import ChannelStore
from tracegraph.engine.begin import begin_run
from tracegraph.engine.calls import adopt_call
from tracegraph.engine.ending import catch_up, finish, first_failures
from tracegraph.engine.handlers import hand_to_handler
from tracegraph.engine.invariants import check_engine
from tracegraph.engine.limits import Limits, check_limits, note_began
from tracegraph.engine.pending import PendingWrites
from tracegraph.engine.plan import plan_step
from tracegraph.engine.reports import (
    AnswerTaken,
    CloseRequested,
    Report,
    SaveEnded,
    TaskAborted,
    TaskBegan,
    TaskCalled,
    TaskCancelled,
    TaskFailed,
    TaskHandedOver,
    TaskInterrupted,
    TaskSucceeded,
    Woke,
)
from tracegraph.engine.saving import Saving
from tracegraph.engine.settings import Begin, RunSettings
from tracegraph.engine.state_size import StateSize
from tracegraph.engine.stepping import end_superstep, start_superstep
from tracegraph.engine.stopping import drop_calls, settle_cancelled, stop_calls, stop_others
from tracegraph.engine.task import Superstep, Task
from tracegraph.engine.timeouts import arm_timeout, check_timeout
from tracegraph.engine.topology import Topology
from tracegraph.errors import EngineBug, InvalidAnswerError, TaskLimitError
from tracegraph.events import RunStatus, TaskStatus
from tracegraph.types import Interrupt

__all__ = ["Engine"]

SAVE_FAILED: Final = "a checkpoint could not be saved"

Phase = Literal["new", "between", "running", "closed"]


class Engine:
    """One run of one graph. Create it, call :meth:`start` once, then :meth:`receive` for every report.

    The attributes are the run's state; the functions of this room (``begin``, ``stepping``, ``ending``, ...) work on them.
    """

    __slots__ = (
        "announce",
        "drain_reason",
        "failures",
        "finished_calls",
        "handed_over",
        "history",
        "is_cut_short",
        "is_interrupted",
        "is_resuming",
        "is_touched",
        "limits",
        "open_tasks",
        "pending",
        "phase",
        "producers",
        "queue",
        "running",
        "saving",
        "settings",
        "step",
        "stop",
        "store",
        "tasks",
        "topology",
    )  # fmt: skip

    def __init__(self, topology: Topology, settings: RunSettings) -> None:
        self.topology = topology
        self.settings = settings
        limit = settings.size_limit
        size = None if limit is None else StateSize(limit, topology.channels)
        self.store = ChannelStore(topology, settings.next_version, is_saved=settings.durability is not None, size=size)
        self.announce = Announcer(settings)
        self.history: deque[Report] | None = deque(maxlen=20) if settings.is_checked else None
        """The last reports, for the text of an :class:`EngineBug`."""
        self.phase: Phase = "new"
        self.step = -1
        self.stop = 0
        self.tasks: list[Task] = []
        """Tasks of the current superstep, in planned order; children of calls hang on their callers."""
        self.queue: deque[Task] = deque()
        """Tasks that may run as soon as max_concurrency allows."""
        self.running = 0
        """Tasks at work; one that waits for its children does not count."""
        self.open_tasks = 0
        """Tasks, called ones included, that have not settled yet."""
        self.failures: list[Task] = []
        self.finished_calls: dict[str, Task] = {}
        """Calls of this superstep that have their result, by id: whoever makes one again gets it."""
        self.handed_over: BaseException | None = None
        self.is_cut_short = False
        """A task was cancelled, so this superstep cannot be applied."""
        self.is_interrupted = False
        """A task of this superstep waits for an answer."""
        self.is_resuming = False
        """In the first superstep of a resumed run: child runs go on from their own checkpoints."""
        self.is_touched = False
        """Whether the run has output: an output channel changed, or the run goes on from a checkpoint."""
        self.drain_reason: str | None = None
        self.limits = Limits.of(settings)
        self.producers: tuple[str, ...] = ()
        """For each pending Send, the task that sent it."""
        self.saving: Saving
        self.pending: PendingWrites

    # --- the two entrances ---------------------------------------------------------------------------------

    def start(self, begin: Begin, at_ns: int, decision: Decision | None = None) -> Decision:
        """Load the state, take the input, and plan the first superstep; see :meth:`receive` for *decision*.

        Raises:
            EmptyInputError: nothing to run. InvalidUpdateError, UnknownTargetError: the input cannot be applied.
        """
        if self.phase != "new":
            raise EngineBug("a run can be started only once")
        decision = Decision() if decision is None else decision
        self.saving = Saving(self.settings, begin)
        self.pending = PendingWrites(begin)
        begin_run(self, decision, begin, at_ns)
        self.phase = "between"
        if self.limits is not None:
            self.limits.ask_to_wake(decision)
        try:
            self.advance(decision, at_ns)
        except BaseException:
            catch_up(self, decision)
            raise
        return decision

    def receive(self, report: Report, at_ns: int, decision: Decision | None = None) -> Decision:
        """Take a report in, at wall-clock time *at_ns*, and return what follows from it.

        It is put into *decision*, if that is given: Ctrl-C may come in the middle, and what is decided by then has happened.
        """
        decision = Decision() if decision is None else decision
        if self.phase == "closed":
            self._late(decision, report, at_ns)
        else:
            try:
                self._take(decision, report, at_ns)
            except Exception as error:  # noqa: BLE001  # a saver's version function, a stored Send to a node that is gone
                finish(self, decision, "failed", at_ns, error=error, reason=type(error).__name__)
            except BaseException:
                self.history = None  # what is half done need not hold together; it is closed next
                catch_up(self, decision)
                raise
        if self.history is not None:
            self.history.append(report)
            check_engine(self)
        return decision

    def drain(self, reason: str) -> None:
        """Stop before the next superstep. No report, and no lock needed: it may be asked for anywhere, at any time."""
        self.drain_reason = self.drain_reason or reason

    def _take(self, decision: Decision, report: Report, at_ns: int) -> None:
        match report:
            case TaskSucceeded():
                self._succeeded(decision, report, at_ns)
            case TaskFailed():
                self._failed(decision, report, at_ns)
            case TaskInterrupted():
                self._interrupted(decision, report, at_ns)
            case TaskHandedOver():
                self._handed_over(decision, report, at_ns)
            case TaskCancelled():
                self._cancelled(decision, report, at_ns)
            case TaskBegan():
                if self._is_current(report.task, report.attempt):
                    report.task.has_begun = True
                    note_began(self, decision, at_ns)
                    arm_timeout(decision, report.task, at_ns)
            case AnswerTaken():
                self._answer_taken(decision, report)
            case TaskCalled():
                adopt_call(self, decision, report, at_ns)
            case SaveEnded():
                self._save_ended(decision, report, at_ns)
            case Woke():
                self._woke(decision, report, at_ns)
            case TaskAborted():
                self._aborted(decision, report, at_ns)
            case CloseRequested():  # pragma: no branch  # the last of a closed union
                self._close_requested(decision, report, at_ns)

    def _save_ended(self, decision: Decision, report: SaveEnded, at_ns: int) -> None:
        self.saving.ended(decision, report, at_ns)
        if report.error is not None:
            status, reason = _end_by(report.error)
            finish(self, decision, status, at_ns, error=report.error, reason=reason)
        else:
            self.advance(decision, at_ns)

    def _close_requested(self, decision: Decision, report: CloseRequested, at_ns: int) -> None:
        failures = tuple(first_failures(self))
        errors = failures if failures and failures[0] is report.error else ()
        finish(self, decision, report.status, at_ns, error=report.error, errors=errors, reason=report.reason)

    # --- reports about tasks -------------------------------------------------------------------------------

    def _is_current(self, task: Task, attempt: int) -> bool:
        return task.is_running and task.attempt == attempt

    def _arrived(
        self, decision: Decision, report: TaskSucceeded | TaskFailed | TaskInterrupted | TaskHandedOver, at_ns: int
    ) -> bool:
        task = report.task
        if not self._is_current(task, report.attempt):
            self.announce.ignored(decision, task, report.attempt, type(report).__name__, at_ns)
            return False
        self.leave(task)
        return True

    def leave(self, task: Task) -> None:
        """Take a task's attempt off the count of running ones; one with unfinished children is off it already."""
        task.is_running = False
        if task.children is None or all(child.is_finished for child in task.children):
            self.running -= 1

    def _succeeded(self, decision: Decision, report: TaskSucceeded, at_ns: int) -> None:
        task = report.task
        if not self._arrived(decision, report, at_ns):
            return
        task.result = report.result
        if task.children and (asked := tuple(question for child in task.children for question in child.interrupts)):
            # A called task asked, and its caller went on without the answer: the pause counts all the same.
            self._pause(decision, task, asked, (), at_ns)
            return
        if self.saving.is_on:
            writes = task.writes if task.call is None else [(RETURN, report.result)]
            self.saving.save_writes(decision, task.id, task.path_str, writes or [(NO_WRITES, None)])
        self.settle(decision, task, "completed", at_ns)
        self.advance(decision, at_ns)

    def _failed(self, decision: Decision, report: TaskFailed, at_ns: int) -> None:
        task, error = report.task, report.error
        if not self._arrived(decision, report, at_ns):
            return
        task.is_stopped = report.is_stopped and not report.is_given_up
        if report.is_given_up:  # nobody waits any longer, not for its calls either
            drop_calls(self, decision, task, at_ns)
        else:
            stop_calls(self, decision, task, at_ns)
        delay_s = None
        if (
            report.policy is not None
            and task.attempt < report.policy.max_attempts
            and not task.is_orphan
            and not self.failures
            and self.handed_over is None
        ):
            delay_s = report.policy.delay_s(task.attempt, report.jitter)
        self.announce.attempt_ended(decision, task, error, delay_s, at_ns)
        task.writes = []
        if delay_s is not None:
            task.attempt += 1
            task.deadline_ns = None
            task.is_follow_up = True
            task.retry_at_ns = at_ns + int(delay_s * 1e9)
            decision.actions.append(WakeAt(task.retry_at_ns))
            self.hand_out(decision)  # its place is free meanwhile
            return
        self.fail(decision, task, error, at_ns, report.trace)
        self.advance(decision, at_ns)

    def fail(self, decision: Decision, task: Task, error: BaseException, at_ns: int, trace: tuple[str, ...] = ()) -> None:
        """Settle a task as failed for good; its handler takes over, its caller learns of it, or the run stops."""
        task.error = error
        if task.handles is not None and error.__cause__ is None and error is not task.handles.error:
            error.__cause__ = task.handles.error  # of the two it is the one to be raised, and must not hide the other
        writes: list[tuple[str, Any]] = [(ERROR, error), *self._beside(task, trace)]
        is_refusal = isinstance(error, InvalidAnswerError)
        # Both are the caller's to mend, so no handler makes up for them, and a resumed run does the task again.
        is_for_caller = is_refusal or isinstance(error, TaskLimitError)
        if task.node.error_handler is not None and not is_for_caller:
            writes.insert(1, (ERROR_SOURCE_NODE, task.node.name))
        self.saving.save_writes(decision, task.id, task.path_str, writes)
        self.settle(decision, task, "failed", at_ns)
        if task.caller is not None or (not is_for_caller and hand_to_handler(self, decision, task, error, at_ns)):
            return
        self.failures.append(task)
        if not is_refusal:
            stop_others(self, decision, at_ns)

    def _answer_taken(self, decision: Decision, report: AnswerTaken) -> None:
        task = report.task
        if self._is_current(task, report.attempt) and task.is_answer_held:
            task.is_answer_held = False
            self.saving.save_writes(decision, task.id, task.path_str, [(RESUME, list(task.answers))])

    def _interrupted(self, decision: Decision, report: TaskInterrupted, at_ns: int) -> None:
        task = report.task
        if not self._arrived(decision, report, at_ns):
            return
        self._pause(decision, task, report.interrupts, report.trace, at_ns)

    def _pause(
        self, decision: Decision, task: Task, interrupts: tuple[Interrupt, ...], trace: tuple[str, ...], at_ns: int
    ) -> None:
        """Settle a task as waiting for answers. Tasks it called go on: what they finish is not done again on resume."""
        task.interrupts = interrupts
        self.is_interrupted = self.is_interrupted or task.caller is None
        task.writes = []
        asked, here = self.settings.asked, (at_ns, task.node.name, self.settings.workflow_name)
        asked_at = {question.id: asked.setdefault(question.id, here) for question in interrupts}
        writes = [(INTERRUPT, interrupts), (ASKED, asked_at), *self._beside(task, trace)]
        self.saving.save_writes(decision, task.id, task.path_str, writes)
        self.settle(decision, task, "interrupted", at_ns)
        self.advance(decision, at_ns)

    def _handed_over(self, decision: Decision, report: TaskHandedOver, at_ns: int) -> None:
        if self._arrived(decision, report, at_ns):
            drop_calls(self, decision, report.task, at_ns)
            report.task.writes = []
            self.handed_over = self.handed_over or report.error
            self.settle(decision, report.task, "handed_over", at_ns)
            stop_others(self, decision, at_ns)
            self.advance(decision, at_ns)

    def _aborted(self, decision: Decision, report: TaskAborted, at_ns: int) -> None:
        if self._is_current(report.task, report.attempt):
            self.leave(report.task)
            report.task.error = report.error
            finish(self, decision, "cancelled", at_ns, error=report.error, reason=type(report.error).__name__)

    def _cancelled(self, decision: Decision, report: TaskCancelled, at_ns: int) -> None:
        task = report.task
        if not self._is_current(task, report.attempt):
            return
        self.leave(task)
        self.is_cut_short = self.is_cut_short or task.caller is None
        settle_cancelled(self, decision, task, at_ns)
        self.advance(decision, at_ns)

    def settle(self, decision: Decision, task: Task, status: TaskStatus, at_ns: int, reason: str | None = None) -> None:
        """Close a task: it is announced, its caller's future is resolved."""
        task.status = status
        if self.announce.wants_tasks:
            self.announce.task_ended(decision, task, status, at_ns, reason)
        task.is_finished = True  # once that is said: Ctrl-C may come in between
        self.open_tasks -= 1
        if (caller := task.caller) is not None:
            if status == "completed":
                self.finished_calls[task.id] = task
            decision.actions.append(ResolveCall(task))
            if caller.is_running and all(child.is_finished for child in caller.children or ()):
                self.running += 1
            while caller is not None:
                if caller.retry_at_ns is not None and not caller.has_open_calls():
                    decision.actions.append(WakeAt(caller.retry_at_ns))
                caller = caller.caller

    def _beside(self, task: Task, trace: tuple[str, ...]) -> list[tuple[str, Any]]:
        """Return what is stored beside a pause or failure: the answers so far, and what a resume links to."""
        answers = task.answers[:-1] if task.is_answer_held else task.answers
        return [*([(RESUME, list(answers))] if answers else []), *([(TRACE, trace)] if trace else [])]

    def everyone(self) -> list[Task]:
        """Return the superstep's tasks with the ones they called."""
        found = list(self.tasks)
        for task in found:
            if task.children:
                found.extend(task.children)
        return found

    # --- moving on -----------------------------------------------------------------------------------------

    def advance(self, decision: Decision, at_ns: int) -> None:
        """Hand out what may run; end the superstep and start the next one as far as nothing has to be waited for."""
        if self.queue:
            self.hand_out(decision)
        while not self.open_tasks and self.phase != "closed":
            if self.phase == "running":
                if not self.saving.will_be_stored_with(decision):
                    break
                end_superstep(self, decision, at_ns)
            else:
                if self.saving.awaited:
                    break
                start_superstep(self, decision, at_ns)
            if self.queue:
                self.hand_out(decision)

    def hand_out(self, decision: Decision) -> None:
        """Order the running of queued tasks, at most ``max_concurrency`` at a time."""
        limit = self.settings.max_concurrency
        while self.queue and (limit is None or self.running < limit):
            task = self.queue.popleft()
            task.is_running = True
            self.running += 1
            decision.actions.append(RunTask(task, self.announce.task_started(task) if self.announce.wants_starts else ()))
        for task in self.queue:
            task.is_follow_up = True

    def plan(self) -> list[Task]:
        """Return the tasks that follow from the channels as they are."""
        store, settings = self.store, self.settings
        checkpoint = self.saving.checkpoint_bytes
        return plan_step(
            store, Superstep(checkpoint, settings.ns, self.step, self.stop, self.topology, store.values, store.states)
        )

    def _woke(self, decision: Decision, report: Woke, at_ns: int) -> None:
        if check_limits(self, decision, at_ns):
            return
        for task in self.everyone():
            if task.deadline_ns is not None and task.is_running:
                check_timeout(decision, task, at_ns, report.progress.get(task, 0))
            if task.retry_at_ns is not None:
                self._retry(decision, task, at_ns)
        self.hand_out(decision)

    def _retry(self, decision: Decision, task: Task, at_ns: int) -> None:
        """Queue a failed task again if its delay is over, and so is all that its last attempt called."""
        assert task.retry_at_ns is not None
        if task.retry_at_ns > at_ns:
            decision.actions.append(WakeAt(task.retry_at_ns))
        elif not task.has_open_calls():
            task.retry_at_ns = None
            task.has_begun = False
            task.children = None
            self.queue.append(task)

    def _late(self, decision: Decision, report: Report, at_ns: int) -> None:
        """Take a report that came after the end: only saves still count, and one that failed fails the run after all."""
        is_left_behind = self.limits is not None and self.limits.is_reached
        if is_left_behind and isinstance(report, TaskSucceeded | TaskFailed | TaskInterrupted | TaskHandedOver):
            self.announce.ignored(decision, report.task, report.attempt, type(report).__name__, at_ns)
        if isinstance(report, SaveEnded):
            self.saving.ended(decision, report, at_ns)
            if report.error is not None:
                status, reason = _end_by(report.error)
                decision.actions.append(Finish(status, error=report.error, reason=reason))


def _end_by(error: BaseException) -> tuple[RunStatus, str]:
    """Return how a run ends by what a save raised: Ctrl-C in the middle of one is no failure of the saver."""
    if isinstance(error, (KeyboardInterrupt, SystemExit)):
        return "cancelled", type(error).__name__
    return "failed", SAVE_FAILED
