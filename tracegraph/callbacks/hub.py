"""The Hub: one per root run. It numbers the events of the run and all runs inside it, and hands them to observers."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Awaitable, Iterable, Mapping
from typing import Any, Protocol, cast
from uuid import UUID

from tracegraph.callbacks.base import FatalObserverError
from tracegraph.events import CALL_KINDS, AttemptStarted, Event, ObserverFailed, TaskStarted
from tracegraph.events.waits import AskedAt

__all__ = ["Hub", "Observer", "ScopedObserver"]

logger = logging.getLogger("tracegraph.callbacks")


class Observer(Protocol):
    """Whatever consumes lifecycle events. It must not change them, and should be quick: it runs in the publishing thread."""

    @property
    def wants(self) -> int:
        """The kinds it gets, a mask made by :func:`tracegraph.events.kinds`."""

    def observe(self, event: Event) -> Awaitable[None] | None:
        """Take one event; an awaitable is awaited before the run goes on."""


class ScopedObserver(Protocol):
    """An observer that sets ContextVars for node code, such as the current span."""

    def scope(self, event: TaskStarted | AttemptStarted) -> None:
        """Set ContextVars; called inside the task's own Context, which is discarded afterwards, so nothing is reset."""


class Hub:
    """Numbering, fan-out, and what all runs of one root share: answers, the stop flag, the first fatal observer error.

    Observers are called one at a time, in the publishing thread, so the events of a child run always lie between
    the start and the end of the task whose code started it. Lock order: a run's lock first, then the Hub's.
    """

    __slots__ = (
        "_ahead_ns",
        "_awaitables",
        "_failed",
        "_lock",
        "_observers",
        "_scopes",
        "_seq",
        "_table",
        "answers",
        "asked",
        "fatal",
        "gates",
        "handler_lock",
        "hears_foreign_calls",
        "is_stopping",
        "is_watched",
        "reads_tokens",
        "wants",
    )

    def __init__(self, observers: Iterable[Observer] = (), answers: Mapping[str, Any] | None = None) -> None:
        self._lock = threading.RLock()
        self.handler_lock = threading.Lock()
        """Held by the thread that runs what async handlers have to do: in order, one at a time."""
        self._seq = 0
        self._failed: dict[int, int] = {}
        self._awaitables: list[Awaitable[None]] = []
        self.answers: dict[str, Any] = dict(answers or {})
        """Answers of this invocation, by interrupt id."""
        self.asked: dict[str, AskedAt] = {}
        """When and where questions were first asked, by interrupt id: those the runs go on from, and those they ask."""
        self.fatal: BaseException | None = None
        """What an observer with ``raise_error`` raised; the run fails with it."""
        self.is_stopping = False
        """Closing: no run of the tree hands out another task."""
        self.is_watched = False
        """An attempt of the tree has an idle limit, so what its code does must be noted as progress."""
        self._ahead_ns = time.time_ns() - time.monotonic_ns()
        self.wants = 0
        self.gates: tuple[Any, ...] = ()
        """What readers have not read who stop the run, or hold it back, when that is too much."""
        self.hears_foreign_calls = False
        """Somebody beside the handlers wants to know of calls that go through LangChain's managers."""
        self.reads_tokens = False
        """Somebody shows what models say while they say it."""
        self._observers: tuple[Observer, ...] = ()
        self._scopes: tuple[ScopedObserver, ...] = ()
        self._table: dict[type, tuple[Observer, ...]] = {}
        self._set(tuple(observers))

    def now_ns(self) -> int:
        """Return the time in nanoseconds: the wall clock's when the root run began, plus what has passed since.

        So a wall clock that is set meanwhile neither fires a deadline nor holds one back, and no span ends before it starts.
        """
        return time.monotonic_ns() + self._ahead_ns

    def _set(self, observers: tuple[Observer, ...]) -> None:
        self._observers = observers
        self._scopes = tuple(cast("ScopedObserver", observer) for observer in observers if hasattr(observer, "scope"))
        self._table = {}
        self.hears_foreign_calls = any(o.wants & CALL_KINDS and not hasattr(o, "calls_handlers") for o in observers)
        self.reads_tokens = any(getattr(observer, "reads_tokens", False) for observer in observers)
        self.gates = tuple(gate for o in observers if (gate := getattr(o, "gate", None)) is not None)
        self.wants = 0
        for observer in observers:
            self.wants |= observer.wants

    def add(self, *observers: Observer) -> None:
        """Let *observers* see the events published from now on, once each however often they are added."""
        if not observers:
            return
        with self._lock:
            all_of_them = {id(observer): observer for observer in self._observers}
            for observer in observers:
                all_of_them.pop(id(observer), None)
                all_of_them[id(observer)] = observer
            self._set(tuple(all_of_them.values()))

    def remove(self, observer: Observer) -> None:
        """Take *observer* off."""
        with self._lock:
            self._set(tuple(o for o in self._observers if o is not observer))

    def publish(self, event: Event) -> None:
        """Number an event and hand it to everyone who wants its kind. Never raises for an observer's fault.

        What no program handles (KeyboardInterrupt, SystemExit, a stray CancelledError) fails the run instead.
        """
        with self._lock:
            observers = self._table.get(type(event))
            if observers is None:
                observers = self._table[type(event)] = tuple(o for o in self._observers if o.wants & event.bit)
            # Last, for what has no number yet was told to nobody: Ctrl-C may come at any call.
            self._seq += 1
            event.seq = self._seq
            for observer in observers:
                try:
                    pending = observer.observe(event)
                except BaseException as error:
                    self._observer_failed(observer, event, error)
                else:
                    if pending is not None:
                        self._awaitables.append(pending)

    @property
    def seq(self) -> int:
        """The number of the event that is being published, or was last."""
        return self._seq

    def is_held_here(self) -> bool:
        """Say whether this thread is publishing: code that an observer calls must not wait for other threads."""
        try:
            threading.Condition(self._lock).notify(0)
        except RuntimeError:  # what a condition says to whoever does not hold its lock
            return False
        return True

    def enter(self, event: TaskStarted | AttemptStarted) -> None:
        """Publish the start of a task or attempt and set the observers' ContextVars; called in the task's Context."""
        event.at_ns = self.now_ns()
        self.publish(event)
        for observer in self._scopes:
            try:
                observer.scope(event)
            except BaseException as error:
                with self._lock:
                    self._observer_failed(observer, event, error)  # type: ignore[arg-type]  # every scoped observer observes

    def trace_of(self, task_id: str | None) -> tuple[str, ...]:
        """Return W3C traceparents of a running task's span (None: of none) and of the root's, where an observer makes spans."""
        for observer in self._observers:
            traceparent = getattr(observer, "traceparent", None)
            if traceparent is not None:
                with self._lock:
                    of_task = None if task_id is None else traceparent(task_id)
                    return tuple(found for found in (of_task, traceparent()) if found is not None)
        return ()

    def span_of(self, run_id: UUID, task_id: str | None = None, call_id: UUID | None = None) -> str | None:
        """Return the W3C traceparent of a call's span, else its task's, else the run's; None where no observer makes spans."""
        for observer in self._observers:
            span_of = getattr(observer, "span_of", None)
            if span_of is not None:
                with self._lock:
                    found: str | None = span_of(run_id, task_id, call_id)
                    return found
        return None

    @property
    def has_scopes(self) -> bool:
        """Whether any observer sets ContextVars for node code."""
        return bool(self._scopes)

    @property
    def has_awaitables(self) -> bool:
        """Whether async handlers have something left to do."""
        return bool(self._awaitables)

    def take_awaitables(self) -> list[Awaitable[None]]:
        """Return what async handlers still have to do, in order, and forget it."""
        if not self._awaitables:
            return []
        with self._lock:
            taken, self._awaitables = self._awaitables, []
        return taken

    def awaitable_failed(self, error: BaseException) -> None:
        """Take note that an awaitable of an observer failed."""
        if isinstance(error, FatalObserverError):
            self.fatal = self.fatal or error.original
        elif not isinstance(error, Exception):
            self.fatal = self.fatal or error
        else:
            logger.error("an async observer failed; the run goes on", exc_info=error)

    def _observer_failed(self, observer: Observer, event: Event, error: BaseException) -> None:
        if not isinstance(error, Exception) or isinstance(error, FatalObserverError):
            self.fatal = self.fatal or getattr(error, "original", error)
            return
        count = self._failed.get(id(observer), 0) + 1
        self._failed[id(observer)] = count
        if count > 1:
            return
        name, kind = type(observer).__name__, type(event).__name__
        logger.error(
            "observer %s failed on %s; it stays, further failures in this run are only counted", name, kind, exc_info=error
        )
        if not isinstance(event, ObserverFailed):
            self.publish(ObserverFailed(event.run_id, event.ns, event.step, event.at_ns, name, error, kind))

    def failure_counts(self) -> dict[str, int]:
        """Return how often each observer raised, by class name."""
        return {type(o).__name__: self._failed[id(o)] for o in self._observers if id(o) in self._failed}
