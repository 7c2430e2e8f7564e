"""Limits of supersteps and runs: the engine keeps the times, gives everything up at once, and stays where it was."""

from __future__ import annotations

import pytest
from by_hand import AT_NS, engine_for, events_of, only, started, succeed, tasks_of
from small_graphs import chain, parallel, says

from tracegraph.engine.actions import CancelTask, Decision, Finish, RunTask, StopRun, WakeAt
from tracegraph.engine.engine import Engine
from tracegraph.engine.reports import CloseRequested, TaskBegan, TaskCalled, TaskFailed, TaskSucceeded, Woke
from tracegraph.engine.settings import Begin, Deadline, nanoseconds
from tracegraph.engine.task import Task
from tracegraph.errors import RunDeadlineError, StepTimeoutError
from tracegraph.events import ReportIgnored, SuperstepEnded, TaskEnded
from tracegraph.types import RetryPolicy

S = 1_000_000_000
LATE = RetryPolicy(initial_interval=60.0, jitter=False)


def begun(engine: Engine, decision: Decision, at_ns: int = AT_NS) -> list[Task]:
    """Let the tasks of a decision begin."""
    tasks = tasks_of(decision)
    for task in tasks:
        engine.receive(TaskBegan(task, task.attempt), at_ns)
    return tasks


def stopped(engine: Engine, decision: Decision, at_ns: int) -> Decision:
    """Carry out a StopRun as drivers do."""
    order = only(StopRun, decision.actions)
    return engine.receive(CloseRequested("failed", order.reason, order.error), at_ns)


def woken_at(decision: Decision) -> list[int]:
    """Return when a decision asks to be woken."""
    return [action.at_ns for action in decision.actions if isinstance(action, WakeAt)]


def test_the_time_of_a_superstep_begins_with_its_first_task() -> None:
    """What a reader holds back before that costs it nothing; a second task does not begin it again."""
    engine = engine_for(parallel(a=says(), b=says()), step_timeout=2.0)
    a, b = tasks_of(started(engine, {"xs": []}))

    assert engine.receive(Woke(), AT_NS + 100 * S).actions == []
    assert woken_at(engine.receive(TaskBegan(a, 1), AT_NS + 100 * S)) == [AT_NS + 102 * S]
    assert woken_at(engine.receive(TaskBegan(b, 1), AT_NS + 101 * S)) == []
    assert woken_at(engine.receive(Woke(), AT_NS + 101 * S)) == [AT_NS + 102 * S]


def test_each_superstep_has_all_of_its_time() -> None:
    """The next one begins with its own first task."""
    engine = engine_for(chain(a=says(), b=says()), step_timeout=2.0)
    (a,) = begun(engine, started(engine, {"xs": []}))
    (b,) = tasks_of(succeed(engine, a, {"xs": []}, AT_NS + S))

    assert engine.receive(Woke(), AT_NS + 2 * S).actions == []
    assert woken_at(engine.receive(TaskBegan(b, 1), AT_NS + 3 * S)) == [AT_NS + 5 * S]


def test_at_the_limit_of_a_step_all_running_tasks_are_given_up_at_once() -> None:
    """None of their reports counts any more, not even before the run is closed; what has finished stays finished."""
    engine = engine_for(parallel(a=says(), b=says(), c=says()), step_timeout=2.0)
    a, b, c = begun(engine, started(engine, {"xs": []}))
    succeed(engine, a, {"xs": ["a"]})

    decision = engine.receive(Woke(), AT_NS + 3 * S)

    order = only(StopRun, decision.actions)
    assert order.tasks == (b, c)
    assert isinstance(order.error, StepTimeoutError)
    assert (order.error.step, order.error.limit, order.error.elapsed) == (1, 2.0, 3.0)
    assert (order.error.running, order.error.waiting, order.reason) == (("b", "c"), (), "step_timeout")
    late = engine.receive(TaskSucceeded(b, 1), AT_NS + 3 * S)
    assert [event.report for event in events_of(ReportIgnored, late)] == ["TaskSucceeded"]
    assert late.actions == []
    assert engine.receive(Woke(), AT_NS + 4 * S).actions == []

    closed = stopped(engine, decision, AT_NS + 3 * S)
    assert (only(Finish, closed.actions).status, only(Finish, closed.actions).error) == ("failed", order.error)
    assert [(event.name, event.status, event.reason) for event in events_of(TaskEnded, closed)] == [
        ("b", "cancelled", "step_timeout"),
        ("c", "cancelled", "step_timeout"),
    ]
    assert [event.status for event in events_of(SuperstepEnded, closed)] == ["stopped"]
    assert not any(isinstance(action, CancelTask) for action in closed.actions)
    assert engine.store.values["xs"] == []
    assert [e.report for e in events_of(ReportIgnored, engine.receive(TaskFailed(c, 1, ValueError()), AT_NS))] == ["TaskFailed"]


def test_a_given_up_task_calls_nothing() -> None:
    """The run is about to be closed."""
    engine = engine_for(chain(a=says()), step_timeout=2.0)
    (a,) = begun(engine, started(engine, {"xs": []}))
    engine.receive(Woke(), AT_NS + 2 * S)
    call = TaskCalled(a, 1, 0, a.node, (lambda: None, (), {}))

    engine.receive(call, AT_NS + 2 * S)

    assert call.child is not None
    assert call.child.status == "cancelled"


def test_what_waits_is_named_and_never_begins() -> None:
    """For a free slot, or for its next attempt."""
    graph = parallel(a=says(), b=says(), c=says(), d=says())
    graph.nodes["a"].retry_policies = (LATE,)
    engine = engine_for(graph, step_timeout=2.0, max_concurrency=2)
    a, b = begun(engine, started(engine, {"xs": []}))
    (c,) = begun(engine, engine.receive(TaskFailed(a, 1, KeyError(), LATE), AT_NS))

    decision = engine.receive(Woke(), AT_NS + 2 * S)

    order = only(StopRun, decision.actions)
    assert isinstance(order.error, StepTimeoutError)
    assert (order.tasks, order.error.running, order.error.waiting) == ((b, c), ("b", "c"), ("a", "d"))
    assert tasks_of(stopped(engine, decision, AT_NS + 70 * S)) == []
    assert tasks_of(engine.receive(Woke(), AT_NS + 70 * S)) == []


def test_if_nothing_runs_the_run_ends_at_once() -> None:
    """There is nothing that a driver would have to stop first."""
    graph = chain(a=says())
    graph.nodes["a"].retry_policies = (LATE,)
    engine = engine_for(graph, step_timeout=2.0)
    (a,) = begun(engine, started(engine, {"xs": []}))
    assert woken_at(engine.receive(TaskFailed(a, 1, KeyError(), LATE), AT_NS)) == [AT_NS + 60 * S]

    end = only(Finish, engine.receive(Woke(), AT_NS + 2 * S).actions)

    assert isinstance(end.error, StepTimeoutError)
    assert (end.reason, end.error.waiting) == ("step_timeout", ("a",))


def test_a_failure_before_the_limit_is_the_error() -> None:
    """The limit only says when the run stopped to wait for the others."""
    engine = engine_for(parallel(a=says(), b=says()), step_timeout=2.0)
    a, b = begun(engine, started(engine, {"xs": []}))
    error = KeyError("mine")
    engine.receive(TaskFailed(a, 1, error), AT_NS)

    order = only(StopRun, engine.receive(Woke(), AT_NS + 2 * S).actions)

    assert (order.tasks, order.error, order.reason) == ((b,), error, "KeyError")
    assert "exceeded its timeout of 2.0 s" in error.__notes__[0]


def deadline(limit_s: float) -> Deadline:
    """Return a deadline that counts from the time at which these tests begin."""
    return Deadline(AT_NS, limit_s)


def test_a_deadline_counts_from_the_start_of_the_run() -> None:
    """Whatever runs when it comes, in whichever step."""
    engine = engine_for(chain(a=says(), b=says()), deadline=deadline(5.0))
    first = started(engine, {"xs": []})
    (a,) = begun(engine, first)
    (b,) = begun(engine, succeed(engine, a, {"xs": ["a"]}, AT_NS + 4 * S))
    assert woken_at(engine.receive(Woke(), AT_NS + 4 * S)) == [AT_NS + 5 * S]

    order = only(StopRun, engine.receive(Woke(), AT_NS + 6 * S).actions)

    assert isinstance(order.error, RunDeadlineError)
    assert (order.tasks, order.reason) == ((b,), "run_deadline")
    assert (order.error.step, order.error.limit, order.error.elapsed, order.error.running) == (2, 5.0, 6.0, ("b",))


def test_a_deadline_is_asked_for_when_the_run_starts() -> None:
    """The first decision says when to wake."""
    engine = engine_for(chain(a=says()), deadline=deadline(5.0))

    assert woken_at(engine.start(Begin(input={"xs": []}), AT_NS))[0] == AT_NS + 5 * S


def test_no_superstep_starts_after_the_deadline() -> None:
    """A driver may be late to wake the engine; what was done before counts."""
    engine = engine_for(chain(a=says(), b=says()), deadline=deadline(5.0))
    (a,) = begun(engine, started(engine, {"xs": []}))

    decision = succeed(engine, a, {"xs": ["a"]}, AT_NS + 6 * S)

    assert not any(isinstance(action, RunTask) for action in decision.actions)
    assert isinstance(only(Finish, decision.actions).error, RunDeadlineError)
    assert engine.store.values["xs"] == ["a"]


def test_a_run_that_is_done_when_its_deadline_comes_is_done() -> None:
    """Nothing is left for which there would be no time."""
    engine = engine_for(chain(a=says()), deadline=deadline(5.0))
    (a,) = begun(engine, started(engine, {"xs": []}))

    assert only(Finish, succeed(engine, a, {"xs": ["a"]}, AT_NS + 6 * S).actions).status == "completed"


def test_the_deadline_goes_before_the_limit_of_the_step() -> None:
    """Both are reached: no next step would be of use."""
    engine = engine_for(chain(a=says()), deadline=deadline(5.0), step_timeout=2.0)
    begun(engine, started(engine, {"xs": []}))

    assert isinstance(only(StopRun, engine.receive(Woke(), AT_NS + 6 * S).actions).error, RunDeadlineError)


@pytest.mark.parametrize("seconds", [1e10, 1e300])
def test_limits_of_centuries_can_be_counted(seconds: float) -> None:
    """No overflow."""
    assert nanoseconds(seconds) == 10**19
