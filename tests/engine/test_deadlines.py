"""Time limits and retries of tasks: deadlines are the engine's, clocks are not."""

from __future__ import annotations

from typing import Any

from by_hand import AT_NS, engine_for, only, started, succeed, tasks_of
from channel_graphs import channel_graph

from tracegraph.constants import TASKS
from tracegraph.engine.actions import RunTask, TimeOut, WakeAt
from tracegraph.engine.reports import Woke
from tracegraph.pregel import NodeBuilder
from tracegraph.types import Send, TimeoutPolicy

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


def sent(*limits: Any) -> Any:
    """Return an engine with a running task for each limit, and the decision that let them run."""
    engine = engine_for(sending(*limits))
    (sends,) = tasks_of(started(engine, 1))
    return engine, succeed(engine, sends, 1)


def test_each_task_has_a_deadline_of_its_own() -> None:
    """Only the one whose time is up is given up; the other asks to be woken again."""
    engine, decision = sent(1, 3)
    one, three = tasks_of(decision)

    woken = engine.receive(Woke(), AT_NS + 2 * S)

    assert [action.at_ns for action in decision.actions if isinstance(action, WakeAt)] == [AT_NS + S, AT_NS + 3 * S]
    assert only(TimeOut, woken.actions).task is one
    assert only(WakeAt, woken.actions).at_ns == AT_NS + 3 * S
    assert three.deadline_ns == AT_NS + 3 * S


def test_a_task_is_given_up_once() -> None:
    """The driver has the order; further wake-ups add nothing."""
    engine, _ = sent(1)
    engine.receive(Woke(), AT_NS + 2 * S)

    assert engine.receive(Woke(), AT_NS + 3 * S).actions == []


def test_a_policy_without_a_run_limit_sets_no_deadline() -> None:
    """There is nothing for the engine to count down."""
    _, decision = sent(TimeoutPolicy(idle_timeout=1))

    assert [type(action) for action in decision.actions] == [RunTask]
