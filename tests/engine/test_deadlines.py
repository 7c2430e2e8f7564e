"""Time limits and retries of tasks: deadlines are the engine's, clocks are not."""

from __future__ import annotations

from typing import Any

import pytest
from by_hand import AT_NS, engine_for, only, started, succeed, tasks_of
from channel_graphs import channel_graph

from tracegraph.constants import TASKS
from tracegraph.engine.actions import TimeOut, WakeAt
from tracegraph.engine.engine import Engine
from tracegraph.engine.reports import TaskBegan, TaskFailed, Woke
from tracegraph.engine.task import Task
from tracegraph.pregel import NodeBuilder
from tracegraph.types import RetryPolicy, Send, TimeoutPolicy

S = 1_000_000_000


def sending(*limits: Any) -> Any:
    """Return a graph that sends one packet with each of these limits."""
    packets = [Send("takes", number, timeout=limit) for number, limit in enumerate(limits)]
    return channel_graph(
        {
            "sends": NodeBuilder().subscribe_only("a").do(lambda x: x).write_to(**{TASKS: lambda x: packets}),
            "takes": NodeBuilder().subscribe_only("c").do(lambda x: x).write_to(total=1),
        }
    )


def sent(*limits: Any) -> tuple[Engine, list[Task]]:
    """Return an engine with a task for each limit, none of which has begun."""
    engine = engine_for(sending(*limits))
    (sends,) = tasks_of(started(engine, 1))
    return engine, tasks_of(succeed(engine, sends, 1))


def test_the_time_of_a_task_begins_when_it_does() -> None:
    """Not when it was ordered: it may have waited for a thread."""
    engine, (task,) = sent(1)

    decision = engine.receive(TaskBegan(task, 1), AT_NS + 7 * S)

    assert decision.actions == [WakeAt(AT_NS + 8 * S)]


def test_each_task_has_a_deadline_of_its_own() -> None:
    """Only the one whose time is up is given up; the other asks to be woken again."""
    engine, (one, three) = sent(1, 3)
    for task in (one, three):
        engine.receive(TaskBegan(task, 1), AT_NS)

    woken = engine.receive(Woke(), AT_NS + 2 * S)

    assert only(TimeOut, woken.actions).task is one
    assert only(WakeAt, woken.actions).at_ns == AT_NS + 3 * S
    assert three.deadline_ns == AT_NS + 3 * S


def test_a_task_is_given_up_once() -> None:
    """The driver has the order; further wake-ups add nothing."""
    engine, (task,) = sent(1)
    engine.receive(TaskBegan(task, 1), AT_NS)
    engine.receive(Woke(), AT_NS + 2 * S)

    assert engine.receive(Woke(), AT_NS + 3 * S).actions == []


def test_a_late_attempt_that_begins_sets_no_deadline() -> None:
    """Its time is not this attempt's."""
    engine, (task,) = sent(1)

    assert engine.receive(TaskBegan(task, 2), AT_NS).actions == []
    assert task.deadline_ns is None


def test_the_time_of_a_failed_attempt_is_not_that_of_the_next() -> None:
    """It has been handed out, and has a thread to wait for, when the first one's time would have been up."""
    engine, (task,) = sent(1)
    engine.receive(TaskBegan(task, 1), AT_NS)
    policy = RetryPolicy(initial_interval=0.1, jitter=False)
    engine.receive(TaskFailed(task, 1, KeyError(), policy), AT_NS)
    assert tasks_of(engine.receive(Woke(), AT_NS + S // 2)) == [task]

    assert engine.receive(Woke(), AT_NS + S).actions == []


def test_a_task_without_a_limit_may_say_it_began() -> None:
    """A driver need not look at the policy first."""
    engine, (task,) = sent(None)

    assert engine.receive(TaskBegan(task, 1), AT_NS).actions == []
    assert task.deadline_ns is None


def test_an_idle_limit_counts_from_the_last_progress() -> None:
    """The driver says when that was each time it wakes the engine, and not before."""
    engine, (task,) = sent(TimeoutPolicy(idle_timeout=2))
    assert engine.receive(TaskBegan(task, 1), AT_NS).actions == [WakeAt(AT_NS + 2 * S)]

    assert engine.receive(Woke({task: AT_NS + S}), AT_NS + 2 * S).actions == [WakeAt(AT_NS + 3 * S)]

    error = only(TimeOut, engine.receive(Woke({task: AT_NS + S}), AT_NS + 3 * S).actions).error
    assert (error.kind, error.timeout, error.elapsed, error.step) == ("idle", 2, 2, task.step)


@pytest.mark.parametrize(("run_s", "idle_s", "kind", "elapsed_s"), [(3, 2, "run", 3), (4, 1.5, "idle", 1.5)])
def test_of_two_limits_the_first_to_be_reached_counts(run_s: float, idle_s: float, kind: str, elapsed_s: float) -> None:
    """Progress pushes the idle limit back, and never the other."""
    engine, (task,) = sent(TimeoutPolicy(run_timeout=run_s, idle_timeout=idle_s))
    engine.receive(TaskBegan(task, 1), AT_NS)
    half_past_one = {task: AT_NS + 3 * S // 2}
    assert not any(isinstance(a, TimeOut) for a in engine.receive(Woke(half_past_one), AT_NS + 2 * S).actions)

    error = only(TimeOut, engine.receive(Woke(half_past_one), AT_NS + 3 * S).actions).error

    assert (error.kind, error.elapsed) == (kind, elapsed_s)
