"""The Hub: numbers events, hands them to whoever wants them, and survives what observers do."""

from __future__ import annotations

import contextvars
import logging
from collections.abc import Awaitable
from typing import Any

import pytest
from recorded import run_ended, run_started, task_started

from tracegraph.callbacks.base import FatalObserverError
from tracegraph.callbacks.hub import Hub
from tracegraph.events import Event, ObserverFailed, RunEnded, RunStarted, TaskStarted, every_kind, kinds

LOGGER = "tracegraph.callbacks"
SPAN: contextvars.ContextVar[str] = contextvars.ContextVar("span", default="none")


class Watcher:
    """Keeps the events it wants."""

    def __init__(self, wants: int | None = None) -> None:
        self.wants = every_kind() if wants is None else wants
        self.seen: list[Event] = []

    def observe(self, event: Event) -> None:
        """Keep the event."""
        self.seen.append(event)

    def kinds(self) -> list[str]:
        """Return the names of the kinds seen."""
        return [type(event).__name__ for event in self.seen]


class Broken(Watcher):
    """Raises on every event."""

    def observe(self, event: Event) -> None:
        """Fail."""
        raise LookupError("broken")


class Scoped(Watcher):
    """Sets a ContextVar for node code."""

    def scope(self, event: Any) -> None:
        """Make the node the current span."""
        SPAN.set(event.name)


class BrokenScope(Scoped):
    """Fails when it should set one."""

    def scope(self, event: Any) -> None:
        """Fail."""
        raise LookupError("broken")


class Traced(Watcher):
    """Makes spans, for runs and for one task."""

    def traceparent(self, task_id: str | None = None) -> str | None:
        """Return the traceparent of the root's span, or of a task's if it has one."""
        return "root" if task_id is None else {"known": "task"}.get(task_id)


def test_events_are_numbered_from_one() -> None:
    """Whoever wants them or not."""
    hub = Hub()
    events = [run_started(), task_started(), run_ended()]

    for event in events:
        hub.publish(event)

    assert [event.seq for event in events] == [1, 2, 3]


def test_an_observer_gets_the_kinds_it_wants() -> None:
    """The Hub wants what any of them wants."""
    starts, ends = Watcher(RunStarted.bit), Watcher(RunEnded.bit)
    hub = Hub([starts, ends])

    hub.publish(run_started())
    hub.publish(run_ended())

    assert (starts.kinds(), ends.kinds()) == (["RunStarted"], ["RunEnded"])
    assert hub.wants == kinds(RunStarted, RunEnded)


def test_observers_come_and_go() -> None:
    """An added one sees what is published from then on, a removed one nothing more."""
    first, second = Watcher(), Watcher(RunEnded.bit)
    hub = Hub([first])
    hub.publish(run_started())
    hub.add(second)
    hub.publish(run_ended())
    hub.remove(first)
    hub.publish(run_ended())

    assert (first.kinds(), second.kinds()) == (["RunStarted", "RunEnded"], ["RunEnded", "RunEnded"])
    assert hub.wants == RunEnded.bit


def test_a_failing_observer_is_logged_once_and_counted(caplog: pytest.LogCaptureFixture) -> None:
    """It stays, the others get every event, and one of them is told by an event of its own."""
    broken, watcher = Broken(RunStarted.bit), Watcher()
    hub = Hub([broken, watcher])

    with caplog.at_level(logging.ERROR, LOGGER):
        for _ in range(3):
            hub.publish(run_started())

    assert watcher.kinds() == ["ObserverFailed", "RunStarted", "RunStarted", "RunStarted"]
    failed = watcher.seen[0]
    assert isinstance(failed, ObserverFailed)
    assert (failed.observer, failed.event, str(failed.error)) == ("Broken", "RunStarted", "broken")
    assert [record.getMessage().partition(";")[0] for record in caplog.records] == ["observer Broken failed on RunStarted"]
    assert hub.failure_counts() == {"Broken": 3}


def test_an_observer_that_fails_on_a_failure_does_not_start_a_circle(caplog: pytest.LogCaptureFixture) -> None:
    """Two broken ones: each is reported, neither for failing on the other's report."""
    hub = Hub([Broken(), Broken(ObserverFailed.bit)])

    with caplog.at_level(logging.ERROR, LOGGER):
        hub.publish(run_started())

    assert len(caplog.records) == 2
    assert hub.failure_counts() == {"Broken": 1}
    assert hub.fatal is None


def test_a_fatal_failure_is_kept_for_the_run() -> None:
    """The first one; it is neither logged nor counted, for the run will raise it."""

    class Fatal(Watcher):
        def observe(self, event: Event) -> None:
            raise FatalObserverError(LookupError(type(event).__name__))

    hub = Hub([Fatal()])

    hub.publish(run_started())
    hub.publish(run_ended())

    assert str(hub.fatal) == "RunStarted"
    assert hub.failure_counts() == {}


def test_scopes_set_variables_where_the_node_runs() -> None:
    """In the Context that enters, and in no other; others' failures do not matter."""
    hub = Hub([BrokenScope(), Scoped(), Watcher()])
    context = contextvars.copy_context()
    event = task_started("a")

    context.run(hub.enter, event)

    assert (context.run(SPAN.get), SPAN.get()) == ("a", "none")
    assert hub.has_scopes
    assert not Hub([Watcher()]).has_scopes
    assert hub.failure_counts() == {"BrokenScope": 1}
    assert (event.seq, event.at_ns > 0) == (1, True)


def test_a_failing_scope_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    """With the kind of event it was for."""
    hub = Hub([BrokenScope()])

    with caplog.at_level(logging.ERROR, LOGGER):
        contextvars.copy_context().run(hub.enter, task_started("a"))

    (record,) = caplog.records
    assert record.getMessage().startswith("observer BrokenScope failed on TaskStarted")


def test_what_async_observers_have_to_do_is_collected() -> None:
    """In the order of the events; taken once."""
    made: list[Awaitable[None]] = []

    class Later(Watcher):
        def observe(self, event: Event) -> Any:
            async def work() -> None:
                self.seen.append(event)

            made.append(work())
            return made[-1]

    hub = Hub([Later(RunStarted.bit | TaskStarted.bit)])
    for event in (run_started(), task_started(), run_ended()):
        hub.publish(event)

    taken = hub.take_awaitables()

    assert taken == made
    assert len(taken) == 2
    assert hub.take_awaitables() == []
    for left in made:
        left.close()  # type: ignore[attr-defined]  # a coroutine


def test_a_failed_awaitable_is_logged_unless_it_is_fatal(caplog: pytest.LogCaptureFixture) -> None:
    """A fatal one is for the run."""
    hub = Hub()

    with caplog.at_level(logging.ERROR, LOGGER):
        hub.awaitable_failed(LookupError("logged"))
        hub.awaitable_failed(FatalObserverError(LookupError("first")))
        hub.awaitable_failed(FatalObserverError(LookupError("second")))

    assert [record.getMessage() for record in caplog.records] == ["an async observer failed; the run goes on"]
    assert str(hub.fatal) == "first"


@pytest.mark.parametrize(
    ("observers", "task_id", "found"),
    [([], "known", ()), ([Watcher()], "known", ()), ([Traced()], "known", ("task", "root")), ([Traced()], "other", ("root",))],
)
def test_traceparents_come_from_who_makes_spans(observers: list[Any], task_id: str, found: tuple[str, ...]) -> None:
    """The task's first, then the root's; what has no span has none."""
    assert Hub(observers).trace_of(task_id) == found


def test_answers_are_the_runs_own() -> None:
    """A copy of what was given."""
    given = {"id": 1}

    hub = Hub(answers=given)
    given["id"] = 2

    assert hub.answers == {"id": 1}


def test_what_no_program_handles_fails_the_run(caplog: pytest.LogCaptureFixture) -> None:
    """From an observer, a scope or an awaitable: the first of its kind is the run's, and is no observer's failure."""

    class Stopped(Scoped):
        def observe(self, event: Event) -> None:
            raise KeyboardInterrupt

        def scope(self, event: Any) -> None:
            raise SystemExit

    observing, scoped, awaited = Hub([Stopped(RunStarted.bit)]), Hub([Stopped(0)]), Hub()

    observing.publish(run_started())
    contextvars.copy_context().run(scoped.enter, task_started("a"))
    awaited.awaitable_failed(KeyboardInterrupt())

    assert [type(hub.fatal) for hub in (observing, scoped, awaited)] == [KeyboardInterrupt, SystemExit, KeyboardInterrupt]
    assert observing.failure_counts() == scoped.failure_counts() == {}
    assert caplog.records == []
