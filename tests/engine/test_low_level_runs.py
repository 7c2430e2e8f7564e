"""Runs of low-level graphs fed by hand: what their nodes can write that a StateGraph's cannot."""

from __future__ import annotations

import operator
from typing import Any

import pytest
from by_hand import AT_NS, engine_for, events_of, only, started, succeed, tasks_of
from channel_graphs import channel_graph, doubling

from tracegraph.channels import BinaryOperatorAggregate, EphemeralValue, LastValue
from tracegraph.constants import TASKS
from tracegraph.engine.actions import Finish, RunTask
from tracegraph.engine.node import Node
from tracegraph.engine.reports import TaskInterrupted, TaskSucceeded
from tracegraph.engine.settings import Begin
from tracegraph.errors import EmptyInputError, InvalidUpdateError, UnknownTargetError
from tracegraph.events import UnknownKeyIgnored, every_kind
from tracegraph.pregel import NodeBuilder, Pregel
from tracegraph.pregel.node_builder import ChannelWriter
from tracegraph.types import Interrupt, Send


def sending(packet: Any) -> Pregel:
    """Return a graph whose first node sends *packet* to whatever it names, past every check of a StateGraph."""
    return channel_graph(
        {
            "sends": NodeBuilder().subscribe_only("a").do(lambda x: x).write_to(**{TASKS: lambda x: [packet]}),
            "takes": NodeBuilder().subscribe_only("c").do(lambda x: x).write_to("b"),
        }
    )


def test_a_send_of_a_low_level_node_runs_its_target() -> None:
    """The packet's argument is the task's input as it is, its time limit the task's own."""
    engine = engine_for(sending(Send("takes", 5, timeout=2)))
    (sends,) = tasks_of(started(engine, 1))

    (takes,) = tasks_of(decision := succeed(engine, sends, 1))

    assert (takes.name, takes.input, takes.timeout and takes.timeout.run_timeout) == ("takes", 5, 2)
    assert only(RunTask, decision.actions).task is takes


def test_a_send_to_an_unknown_node_fails_the_planning() -> None:
    """Names of nodes are checked where they are used: a low-level write checks nothing."""
    engine = engine_for(sending(Send("nowhere", 1)))
    (sends,) = tasks_of(started(engine, 1))

    finish = only(Finish, succeed(engine, sends, 1).actions)

    assert finish.status == "failed"
    assert isinstance(finish.error, UnknownTargetError)
    assert finish.error.target == "nowhere"


def test_only_sends_can_be_sent() -> None:
    """Any other value in the channel of pending Sends is an error that says what it is."""
    engine = engine_for(sending("takes"))
    (sends,) = tasks_of(started(engine, 1))

    finish = only(Finish, succeed(engine, sends, 1).actions)

    assert isinstance(finish.error, InvalidUpdateError)
    assert "a str of length 5 was sent as a task" in str(finish.error)


def test_a_write_to_an_unknown_channel_fails_the_run() -> None:
    """Nothing of the superstep is applied; the error names writer and channel."""
    engine = engine_for(channel_graph({"double": doubling()}))
    (double,) = tasks_of(started(engine, 2))
    double.writes = [("b", 4), ("nowhere", 1)]

    finish = only(Finish, engine.receive(TaskSucceeded(double, 1), AT_NS).actions)

    assert finish.status == "failed"
    assert isinstance(finish.error, UnknownTargetError)
    assert (finish.error.node, finish.error.target, finish.error.step) == ("double", "nowhere", 0)
    assert "b" not in engine.store.values


def test_several_input_channels_take_a_dict() -> None:
    """Each key goes to its channel; a key that is none is announced and left out."""
    engine = engine_for(channel_graph({"double": doubling()}, input_channels=["a", "c"]))

    decision = started(engine, {"a": 1, "c": 2, "d": 3})

    assert engine.store.values["c"] == 2
    assert [(event.node, event.key) for event in events_of(UnknownKeyIgnored, decision)] == [("__input__", "d")]


def test_ignored_keys_are_not_announced_to_nobody() -> None:
    """The event is built for listeners only."""
    engine = engine_for(channel_graph({"double": doubling()}, input_channels=["a", "c"]), wants=0)

    assert started(engine, {"a": 1, "d": 3}).events == []


def test_a_strict_graph_refuses_unknown_input_keys() -> None:
    """The error lists the input channels."""
    engine = engine_for(channel_graph({"double": doubling()}, input_channels=["a", "c"]), is_strict=True)

    with pytest.raises(UnknownTargetError, match="channel 'd', which does not exist; known: 'a', 'c'"):
        started(engine, {"a": 1, "d": 3})


def test_several_input_channels_take_nothing_but_a_dict() -> None:
    """A bare value does not say which channel it is for."""
    engine = engine_for(channel_graph({"double": doubling()}, input_channels=["a", "c"]))

    with pytest.raises(InvalidUpdateError, match="must be a dict"):
        started(engine, 1)


@pytest.mark.parametrize("given", [None, {}, {"d": 1}])
def test_an_input_without_a_channel_is_empty(given: Any) -> None:
    """No key, or none that counts: there is nothing to run."""
    engine = engine_for(channel_graph({"double": doubling()}, input_channels=["a", "c"]))

    with pytest.raises(EmptyInputError, match="nothing for"):
        started(engine, given)


def test_a_node_whose_one_channel_is_empty_does_not_run() -> None:
    """It is triggered by one channel and reads another, which has no value: there is nothing to run it on."""
    reader = Node(name="reader", triggers=("a",), reads="c", writer=ChannelWriter([("b", 1)]))
    engine = engine_for(channel_graph({"reader": reader}))

    assert only(Finish, started(engine, 1).actions).status == "completed"


def test_a_node_runs_again_for_the_trigger_that_changed() -> None:
    """Of several triggers those it has seen do not count, whichever comes first."""
    graph = Pregel(
        nodes={
            "loop": NodeBuilder().subscribe_to("x", "y").do(lambda x: x).write_to(y=lambda found: found.get("y", 0) + 1),
        },
        channels={"x": LastValue(int), "y": LastValue(int)},
        input_channels="x",
        output_channels=["y"],
    )
    engine = engine_for(graph)
    (first,) = tasks_of(started(engine, 1))

    (second,) = tasks_of(succeed(engine, first, first.input))

    assert (second.name, second.input) == ("loop", {"x": 1, "y": 1})


def test_shown_siblings_of_a_pause_change_no_channel() -> None:
    """Reducers and plain channels alike: the output has their writes, the store has not."""
    graph = channel_graph(
        {
            "ask": NodeBuilder().subscribe_only("a").do(lambda x: x),
            "write": NodeBuilder().subscribe_only("a").do(lambda x: x).write_to("b", total=5),
        },
        output_channels=["b", "total"],
    )
    engine = engine_for(graph)
    ask, write = tasks_of(started(engine, 1))
    succeed(engine, write, 7)
    before = engine.store.values

    finish = only(Finish, engine.receive(TaskInterrupted(ask, 1, (Interrupt("?", "id"),)), AT_NS).actions)

    assert finish.output == {"b": 7, "total": 5}
    assert engine.store.values is before


def test_a_reducer_that_fails_names_every_writer() -> None:
    """A reducer knows neither channel nor nodes, so the error is told."""

    def refuse(left: int, right: int) -> int:
        raise ValueError("cannot add")

    writes_total = NodeBuilder().subscribe_only("a").do(lambda x: x).write_to("total")
    graph = Pregel(
        nodes={"one": writes_total, "two": writes_total},
        channels={"a": EphemeralValue(int), "total": BinaryOperatorAggregate(int, refuse)},
        input_channels="a",
        output_channels="total",
    )
    engine = engine_for(graph)
    one, two = tasks_of(started(engine, 1))
    succeed(engine, two, 2)

    finish = only(Finish, succeed(engine, one, 1).actions)

    assert isinstance(finish.error, ValueError)
    assert "channel 'total' took the writes of 'one', 'two'" in finish.error.__notes__[0]


def test_a_run_without_listeners_is_decided_alike() -> None:
    """Events are by-products: without any, the actions are the same."""
    finishes = []
    for wants in (0, every_kind()):
        engine = engine_for(channel_graph({"double": doubling()}), wants=wants)
        (double,) = tasks_of(started(engine, 2))
        finishes.append(only(Finish, succeed(engine, double, 4).actions))

    assert finishes[0] == finishes[1]
    assert finishes[0].output == 4


def test_an_engine_goes_on_from_nothing_but_its_begin() -> None:
    """An input of None without a checkpoint has nothing to go on from."""
    engine = engine_for(channel_graph({"double": doubling()}))

    with pytest.raises(EmptyInputError):
        engine.start(Begin(), AT_NS)


def test_sums_start_from_the_type() -> None:
    """A reduced channel is readable before anybody wrote it."""
    graph = Pregel(
        nodes={"add": NodeBuilder().subscribe_to("a").read_from("total").do(lambda x: x["total"]).write_to("b")},
        channels={"a": EphemeralValue(int), "b": LastValue(int), "total": BinaryOperatorAggregate(int, operator.add)},
        input_channels="a",
        output_channels="b",
    )

    (add,) = tasks_of(started(engine_for(graph), 1))

    assert add.input == {"a": 1, "total": 0}
