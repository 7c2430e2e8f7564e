"""Reports that come late, and tasks dropped in every state they can be in."""

from __future__ import annotations

from typing import Any

import pytest
from by_hand import AT_NS, engine_for, events_of, only, started, succeed, tasks_of
from channel_graphs import channel_graph

from tracegraph.drivers.body import Body
from tracegraph.engine.actions import CancelTask, Decision, Finish, ResolveCall, SaveWrites, WakeAt
from tracegraph.engine.engine import Engine
from tracegraph.engine.node import Node
from tracegraph.engine.reports import (
    AnswerTaken,
    CloseRequested,
    Report,
    TaskAborted,
    TaskCalled,
    TaskCancelled,
    TaskFailed,
    TaskHandedOver,
    TaskInterrupted,
    TaskSucceeded,
    Woke,
)
from tracegraph.engine.task import Task
from tracegraph.errors import ParentCommand
from tracegraph.events import ReportIgnored, TaskEnded
from tracegraph.pregel import NodeBuilder
from tracegraph.types import Command, Interrupt, RetryPolicy

POLICY = RetryPolicy(initial_interval=5.0, max_attempts=2, jitter=False)
LATER_NS = AT_NS + 6_000_000_000


def at_once(*names: str, policy: RetryPolicy | None = None) -> Any:
    """Return a graph that starts the named nodes at once."""
    nodes = {}
    for name in names:
        nodes[name] = NodeBuilder().subscribe_only("a").do(lambda x: x)
        if policy is not None:
            nodes[name].add_retry_policies(policy)
    return channel_graph(nodes)


def call(engine: Engine, caller: Task, index: int) -> Decision:
    """Report that a task called a function."""
    node = Node(
        name="called",
        triggers=("__pregel_push",),
        reads=(),
        body=Body.of(len),
        writer=caller.node.writer,
        retry_policies=(POLICY,),
    )
    return engine.receive(TaskCalled(caller, caller.attempt, index, node, (len, (), {})), AT_NS)


def in_second_attempt(**settings: Any) -> tuple[Engine, Task]:
    """Return an engine and its only task, whose first attempt has failed and whose second one runs."""
    engine = engine_for(at_once("x", policy=POLICY), **settings)
    (x,) = tasks_of(started(engine, 1))
    engine.receive(TaskFailed(x, 1, ValueError("first"), POLICY), AT_NS)
    engine.receive(Woke(), LATER_NS)
    return engine, x


LATE = [
    lambda task: TaskFailed(task, 1, ValueError("late"), POLICY),
    lambda task: TaskInterrupted(task, 1, (Interrupt("?", "id"),)),
    lambda task: TaskHandedOver(task, 1, ParentCommand(Command(graph=Command.PARENT))),
    lambda task: TaskAborted(task, 1, KeyboardInterrupt()),
    lambda task: TaskCancelled(task, 1),
]


@pytest.mark.parametrize("late", LATE)
def test_a_late_report_changes_nothing(late: Any) -> None:
    """Whatever an attempt that is over has to say: the one that runs goes on, and ends as it would have."""
    engine, x = in_second_attempt()

    decision = engine.receive(late(x), LATER_NS)

    assert decision.actions == []
    assert (x.attempt, x.is_running, x.interrupts) == (2, True, ())
    assert only(Finish, succeed(engine, x).actions).status == "completed"


@pytest.mark.parametrize("late", LATE[:3])
def test_a_late_report_is_announced_to_whoever_wants_to_know(late: Any) -> None:
    """It says which attempt said what; without a listener nothing is built."""
    engine, x = in_second_attempt()
    quiet_engine, quiet_x = in_second_attempt(wants=0)

    (ignored,) = events_of(ReportIgnored, engine.receive(late(x), LATER_NS))

    assert (ignored.task_id, ignored.attempt, ignored.report) == (x.id, 1, type(late(x)).__name__)
    assert quiet_engine.receive(late(quiet_x), LATER_NS).events == []


def test_children_of_a_failed_caller_are_stopped_whatever_they_do() -> None:
    """Two run, one waits for its retry, one for a slot: none is ever run again, and the superstep ends when the two have."""
    engine = engine_for(at_once("caller"), max_concurrency=2)
    (caller,) = tasks_of(started(engine, 1))
    (retried,) = tasks_of(call(engine, caller, 0))
    (running,) = tasks_of(call(engine, caller, 1))
    engine.receive(TaskFailed(retried, 1, ValueError("will be retried"), POLICY), AT_NS)
    (running_too,) = tasks_of(call(engine, caller, 2))
    waiting = call(engine, caller, 3)

    decision = engine.receive(TaskFailed(caller, 1, ValueError("boom")), AT_NS)

    assert tasks_of(waiting) == []
    assert [action.task for action in decision.actions if isinstance(action, CancelTask)] == [running, running_too]
    assert len([action for action in decision.actions if isinstance(action, ResolveCall)]) == 2
    assert [(event.name, event.status, event.reason) for event in events_of(TaskEnded, decision)] == [
        *[("called", "cancelled", "caller_ended")] * 2,
        ("caller", "failed", None),
    ]
    cancelled = engine.receive(TaskCancelled(running, 1), AT_NS)
    assert [(event.status, event.reason) for event in events_of(TaskEnded, cancelled)] == [("cancelled", "caller_ended")]
    ended = engine.receive(TaskSucceeded(running_too, 1, "done all the same"), AT_NS)
    assert [event.status for event in events_of(TaskEnded, ended)] == ["completed"]
    assert only(Finish, ended.actions).status == "failed"


def test_calls_of_an_attempt_that_is_given_up_are_dropped_whatever_they_do() -> None:
    """One has ended, one waits for its retry, two run, one waits for a slot: nobody waits for any."""
    engine = engine_for(at_once("caller"), max_concurrency=2)
    (caller,) = tasks_of(started(engine, 1))
    (ended,) = tasks_of(call(engine, caller, 0))
    engine.receive(TaskSucceeded(ended, 1, "done"), AT_NS)
    (retried,) = tasks_of(call(engine, caller, 1))
    (running,) = tasks_of(call(engine, caller, 2))
    (next_one,) = [
        *tasks_of(engine.receive(TaskFailed(retried, 1, ValueError("again"), POLICY), AT_NS)),
        *tasks_of(call(engine, caller, 3)),
    ]
    assert tasks_of(call(engine, caller, 4)) == []

    decision = engine.receive(TaskFailed(caller, 1, ValueError("out of time"), is_given_up=True), AT_NS)

    assert [action.task for action in decision.actions if isinstance(action, CancelTask)] == [running, next_one]
    assert [(event.status, event.reason) for event in events_of(TaskEnded, decision)] == [
        *[("cancelled", "caller_ended")] * 4,
        ("failed", None),
    ]
    assert only(Finish, decision.actions).status == "failed"


def test_a_pause_of_a_caller_waits_for_its_children() -> None:
    """What they finish is kept, so that nothing is done twice when the caller is resumed."""
    engine = engine_for(at_once("caller"))
    (caller,) = tasks_of(started(engine, 1))
    (child,) = tasks_of(call(engine, caller, 0))

    decision = engine.receive(TaskInterrupted(caller, 1, (Interrupt("?", "id"),)), AT_NS)

    assert decision.actions == []
    finished = engine.receive(TaskSucceeded(child, 1, "kept"), AT_NS)
    assert only(Finish, finished.actions).status == "interrupted"


def test_a_question_of_a_child_pauses_a_caller_that_goes_on_without_the_answer() -> None:
    """Swallowed or never awaited, it was asked: the run must not end as if it had been answered."""
    engine = engine_for(at_once("caller"))
    (caller,) = tasks_of(started(engine, 1))
    (child,) = tasks_of(call(engine, caller, 0))

    decision = engine.receive(TaskInterrupted(child, 1, (Interrupt("?", "id"),)), AT_NS)

    assert [type(action) for action in decision.actions] == [ResolveCall]
    assert only(Finish, succeed(engine, caller).actions).status == "interrupted"


def test_waking_up_for_nothing_asks_to_be_woken_again() -> None:
    """A retry that is not due keeps its time."""
    engine = engine_for(at_once("x", policy=POLICY))
    (x,) = tasks_of(started(engine, 1))
    due = only(WakeAt, engine.receive(TaskFailed(x, 1, ValueError("first"), POLICY), AT_NS).actions)

    assert engine.receive(Woke(), AT_NS).actions == [due]


@pytest.mark.parametrize("report", [Woke(), CloseRequested("failed", "late")])
def test_a_closed_run_takes_no_orders(report: Report) -> None:
    """It has ended once, and that is how it ended."""
    engine = engine_for(at_once("x"))
    (x,) = tasks_of(started(engine, 1))
    succeed(engine, x)

    assert engine.receive(report, AT_NS).actions == []


def test_a_decision_shows_what_it_orders() -> None:
    """Its text is what an engine's faults are found with."""
    engine = engine_for(at_once("x"), wants=0)

    text = repr(started(engine, 1))

    assert text.startswith("Decision(actions=[RunTask(task=<Task 'x' step 0")
    assert text.endswith("events=[])")


def test_a_task_cancelled_from_outside_ends_the_run() -> None:
    """Its superstep cannot be applied: the sibling's writes are not, and the end says why."""
    engine = engine_for(at_once("x", "y"))
    x, y = tasks_of(started(engine, 1))
    succeed(engine, y)

    finish = only(Finish, engine.receive(TaskCancelled(x, 1), AT_NS).actions)

    assert (finish.status, finish.reason, finish.error) == ("cancelled", "a task was cancelled", None)


def test_a_run_that_is_failing_begins_no_handler() -> None:
    """The failure it was for is stored, so a resumed run begins with it."""
    nodes = {name: NodeBuilder().subscribe_only("a").do(lambda x: x).build(name) for name in ("fatal", "handled", "rescue")}
    nodes["handled"].error_handler = "rescue"
    nodes["rescue"].triggers = ("c",)
    engine = engine_for(channel_graph(nodes))
    fatal, handled = tasks_of(started(engine, 1))
    engine.receive(TaskFailed(fatal, 1, ValueError("fatal")), AT_NS)

    decision = engine.receive(TaskFailed(handled, 1, ValueError("handled")), AT_NS)

    assert tasks_of(decision) == []
    finish = only(Finish, decision.actions)
    assert [str(error) for error in finish.errors] == ["fatal"]
    assert handled.is_handled


def test_an_answer_is_stored_once_and_only_by_the_attempt_that_runs() -> None:
    """An attempt that is over may have taken it too, but what it says comes too late."""
    engine, x = in_second_attempt(durability="sync")
    x.answers, x.is_answer_held = ("yes",), True

    assert engine.receive(AnswerTaken(x, 1), AT_NS).actions == []
    stored = only(SaveWrites, engine.receive(AnswerTaken(x, 2), AT_NS).actions)
    assert list(stored.writes) == [("__resume__", ["yes"])]
    assert engine.receive(AnswerTaken(x, 2), AT_NS).actions == []
