"""Each fault the engine checks itself for, made by hand: it comes out loud."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import pytest
from by_hand import AT_NS, engine_for, started, succeed, tasks_of
from channel_graphs import channel_graph

from tracegraph.channels import BinaryOperatorAggregate, EphemeralValue, LastValue, NamedBarrierValue, Topic
from tracegraph.engine.engine import Engine
from tracegraph.engine.invariants import check_engine
from tracegraph.engine.reports import Woke
from tracegraph.engine.settings import Begin
from tracegraph.engine.task import Task
from tracegraph.errors import EngineBug
from tracegraph.pregel import NodeBuilder, Pregel


def running(**settings: Any) -> tuple[Engine, Task, Task]:
    """Return an engine with two running tasks."""
    graph = Pregel(
        nodes={name: NodeBuilder().subscribe_only("a").do(lambda x: x) for name in ("x", "y")},
        channels={
            "a": EphemeralValue(int),
            "b": LastValue(int),
            "total": BinaryOperatorAggregate(int, operator.add),
            "join": NamedBarrierValue(str, {"x", "y"}),
        },
        input_channels="a",
        output_channels="b",
    )
    engine = engine_for(graph, **settings)
    x, y = tasks_of(started(engine, 1))
    return engine, x, y


def too_few_open(engine: Engine, task: Task) -> None:
    engine.open_tasks = 1


def too_few_at_work(engine: Engine, task: Task) -> None:
    engine.running = 1


def finished_and_running(engine: Engine, task: Task) -> None:
    task.is_finished = True


def queued_and_running(engine: Engine, task: Task) -> None:
    engine.queue.append(task)


def more_than_allowed(engine: Engine, task: Task) -> None:
    engine.settings.max_concurrency = 1


def unknown_channel(engine: Engine, task: Task) -> None:
    engine.store.values = {**engine.store.values, "ghost": 1}


def readable_without_a_state(engine: Engine, task: Task) -> None:
    engine.store.values = {**engine.store.values, "join": None}


def version_from_the_future(engine: Engine, task: Task) -> None:
    engine.store.versions["b"] = 99


@pytest.mark.parametrize(
    ("break_it", "message"),
    [
        (too_few_open, "2 tasks are open, but 1 are counted"),
        (too_few_at_work, "2 tasks are at work, but 1 are counted"),
        (finished_and_running, "<Task 'x' step 0 .* is finished and runs"),
        (queued_and_running, "<Task 'x' step 0 .* is queued and runs"),
        (more_than_allowed, "2 tasks run, but only 1 may"),
        (unknown_channel, "channel 'ghost' holds a value but does not exist"),
        (readable_without_a_state, "channel 'join' is readable in one place and not in the other"),
        (version_from_the_future, "channel 'b' has version 99, later than the newest"),
    ],
)
def test_a_fault_is_named(break_it: Callable[[Engine, Task], None], message: str) -> None:
    """With the superstep it was found in."""
    engine, x, _ = running()
    check_engine(engine)
    break_it(engine, x)

    with pytest.raises(EngineBug, match=f"in step 0: .*{message}"):
        check_engine(engine)


def test_all_faults_are_named_at_once() -> None:
    """The first one may be a consequence of the second."""
    engine, x, _ = running()
    too_few_open(engine, x)
    unknown_channel(engine, x)

    with pytest.raises(EngineBug, match="ghost.*; 2 tasks are open"):
        check_engine(engine)


def test_an_unchecked_engine_does_not_look() -> None:
    """The checks cost time, so they are asked for."""
    engine, x, _ = running(is_checked=False)
    too_few_at_work(engine, x)

    succeed(engine, x)

    assert engine.history is None


def test_a_run_that_changed_nothing_has_no_version_to_check() -> None:
    """An input may be one that its channel takes as no change: there is nothing to do, and nothing wrong."""
    collect = NodeBuilder().subscribe_only("items").do(len).write_to("b")
    graph = channel_graph(
        {"collect": collect}, channels={"items": Topic(int, accumulate=True), "b": LastValue(int)}, input_channels="items"
    )
    engine = engine_for(graph)

    engine.start(Begin(input=[]), AT_NS)
    engine.receive(Woke(), AT_NS)

    assert engine.phase == "closed"
    assert engine.store.versions == {}
