"""Nodes of low-level graphs: what they subscribe to, read, do and write."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import pytest
from channel_graphs import channel_graph, doubling
from colours import Colour

from tracegraph.config import RunnableConfig
from tracegraph.errors import GraphDefinitionError, NodeTimeoutError, UnknownTargetError
from tracegraph.pregel import NodeBuilder, Pregel
from tracegraph.types import CachePolicy, RetryPolicy, TimeoutPolicy

SOON = RetryPolicy(initial_interval=0.001, jitter=False)


async def aplus_one(x: int) -> int:
    """Add one, asynchronously."""
    await asyncio.sleep(0)
    return x + 1


def test_one_channel_gives_its_bare_value(colour: Colour) -> None:
    """``subscribe_only`` is for nodes with one input."""
    assert colour.invoke(channel_graph({"double": doubling()}), 4) == 8


def test_several_channels_give_a_dict(colour: Colour) -> None:
    """Subscribed channels run the node and are read; those it only reads do not run it."""
    seen: list[Any] = []
    node = NodeBuilder().subscribe_to("a", "c").read_from("total", "c").do(seen.append)

    colour.invoke(channel_graph({"node": node}, input_channels=["a", "c", "total"]), {"c": 2, "total": 3})

    assert seen == [{"c": 2, "total": 3}]


def test_a_channel_may_run_a_node_without_being_read(colour: Colour) -> None:
    """Its value is left out of the input."""
    seen: list[Any] = []
    node = NodeBuilder().subscribe_to("a", read=False).read_from("total").do(seen.append)

    colour.invoke(channel_graph({"node": node}), 1)

    assert seen == [{"total": 0}]


def test_a_channel_that_is_only_read_runs_nothing(colour: Colour) -> None:
    """The other node's write to it is seen when something else runs the reader."""
    seen: list[Any] = []
    nodes = {"double": doubling(), "reader": NodeBuilder().subscribe_to("a").read_from("b").do(seen.append)}

    colour.invoke(channel_graph(nodes), 1)

    assert seen == [{"a": 1}]


def test_steps_run_in_a_row(colour: Colour) -> None:
    """Each gets what the one before returned."""
    node = NodeBuilder().subscribe_only("a").do(lambda x: x * 2).do(lambda x: x + 1).do(str).write_to("b")

    assert colour.invoke(channel_graph({"node": node}), 4) == "9"


def test_sync_and_async_steps_mix_in_an_async_run() -> None:
    """One async step makes the node async."""
    node = NodeBuilder().subscribe_only("a").do(lambda x: x * 2).do(aplus_one).do(lambda x: x * 10).write_to("b")
    app = channel_graph({"node": node})

    assert asyncio.run(app.ainvoke(4)) == 90
    with pytest.raises(TypeError, match="ainvoke"):
        app.invoke(4)


def test_the_first_step_may_take_what_the_run_supplies(colour: Colour) -> None:
    """Here the config; the steps after it get the value alone."""

    def tagged(x: int, config: RunnableConfig) -> list[Any]:
        return [x, *config["tags"]]

    node = NodeBuilder().subscribe_only("a").do(tagged).do(len).write_to("b")

    assert colour.invoke(channel_graph({"node": node}), 4, {"tags": ["one", "two"]}) == 3


def test_an_async_first_step_may_take_it_too() -> None:
    """The keyword goes to the first step only."""

    async def tagged(x: int, config: RunnableConfig) -> list[Any]:
        return [x, *config["tags"]]

    node = NodeBuilder().subscribe_only("a").do(tagged).do(len).write_to("b")

    assert asyncio.run(channel_graph({"node": node}).ainvoke(4, {"tags": ["one"]})) == 2


def test_later_steps_may_not_take_it() -> None:
    """They are no nodes of their own; the error says what to do instead."""

    def tagged(x: int, config: RunnableConfig) -> int:
        return x

    node = NodeBuilder().subscribe_only("a").do(lambda x: x).do(tagged)

    with pytest.raises(GraphDefinitionError, match="only the first step"):
        node.build("node")


def test_a_node_without_steps_passes_its_input_on(colour: Colour) -> None:
    """Subscribing and writing is enough."""
    assert colour.invoke(channel_graph({"copy": NodeBuilder().subscribe_only("a").write_to("b")}), 4) == 4


def test_writes_pass_on_fix_or_compute(colour: Colour) -> None:
    """A bare channel gets the result, a keyword a constant or what its function makes of the result."""
    node = NodeBuilder().subscribe_only("a").do(lambda x: x * 2).write_to("b", c=1, total=lambda x: x + 100)
    app = channel_graph({"node": node}, output_channels=["b", "c", "total"])

    assert colour.invoke(app, 4) == {"b": 8, "c": 1, "total": 108}


def test_none_writes_nothing(colour: Colour) -> None:
    """Neither passed on nor computed; a constant is written all the same."""
    node = NodeBuilder().subscribe_only("a").do(lambda x: None).write_to("b", total=lambda x: x, c=7)
    app = channel_graph({"node": node}, output_channels=["b", "c", "total"])

    assert colour.invoke(app, 4) == {"c": 7, "total": 0}


def test_a_write_to_an_unknown_channel_names_the_node(colour: Colour) -> None:
    """The error lists the channels there are."""
    app = channel_graph({"node": NodeBuilder().subscribe_only("a").do(lambda x: x).write_to("nowhere")})

    with pytest.raises(UnknownTargetError, match="node 'node' sent to channel 'nowhere'.*known: .*'a', 'b'"):
        colour.invoke(app, 4)


def test_tags_and_metadata_reach_the_node_s_config(colour: Colour) -> None:
    """They are added to those of the run."""
    seen: list[Any] = []

    def look(x: int, config: RunnableConfig) -> None:
        seen.append((config["tags"], config["metadata"]["owner"]))

    node = NodeBuilder().subscribe_only("a").do(look).meta("fast", owner="me")

    colour.invoke(channel_graph({"node": node}), 1, {"tags": ["run"]})

    assert seen == [(["run", "fast"], "me")]


def test_retry_policies_apply(colour: Colour) -> None:
    """The first that covers the error decides."""
    tries: list[int] = []

    def flaky(x: int) -> int:
        tries.append(x)
        if len(tries) < 2:
            raise ConnectionError
        return x

    never = RetryPolicy(max_attempts=1, retry_on=KeyError)
    node = NodeBuilder().subscribe_only("a").do(flaky).write_to("b").add_retry_policies(never, SOON)

    assert colour.invoke(channel_graph({"node": node}), 4) == 4
    assert len(tries) == 2


@pytest.mark.parametrize("limit", [0.01, timedelta(milliseconds=10), TimeoutPolicy(run_timeout=0.01)])
def test_a_time_limit_stops_an_async_node(limit: Any) -> None:
    """In seconds, as a timedelta, or as a policy."""

    async def hang(x: int) -> None:
        await asyncio.Event().wait()

    node = NodeBuilder().subscribe_only("a").do(hang).set_timeout(limit)

    with pytest.raises(NodeTimeoutError, match=r"run timeout of 0\.01 s"):
        asyncio.run(channel_graph({"node": node}).ainvoke(4))


def test_no_time_limit_is_no_policy() -> None:
    """None takes an earlier one away."""
    node = NodeBuilder().subscribe_only("a").set_timeout(1).set_timeout(None)

    assert node.build("node").timeout is None


def test_a_cache_policy_is_kept() -> None:
    """It is the node's, for the day there is a cache."""
    policy = CachePolicy(ttl=1)

    assert NodeBuilder().subscribe_only("a").add_cache_policy(policy).build("node").cache_policy is policy


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda node: node.subscribe_to("a").subscribe_only("b"), "use subscribe_to"),
        (lambda node: node.subscribe_only("a").subscribe_only("b"), "use subscribe_to"),
        (lambda node: node.subscribe_only("a").subscribe_to("b"), "cannot follow subscribe_only"),
        (lambda node: node.subscribe_only("a").read_from("b"), "cannot follow subscribe_only"),
    ],
)
def test_contradicting_subscriptions_are_refused(build: Any, message: str) -> None:
    """A bare value and a dict exclude each other."""
    with pytest.raises(GraphDefinitionError, match=message):
        build(NodeBuilder())


def test_a_node_that_subscribes_to_nothing_is_refused() -> None:
    """Nothing would ever run it; the graph says which one it is."""
    with pytest.raises(GraphDefinitionError, match="node 'idle' subscribes to no channel"):
        channel_graph({"idle": NodeBuilder().do(len), "double": doubling()})


def test_a_low_level_graph_streams_values_by_default(colour: Colour) -> None:
    """One part per superstep; a single name is shown bare, None while it is empty."""
    nodes = {"double": doubling(), "again": NodeBuilder().subscribe_only("b").do(lambda x: x + 1).write_to("c")}
    app = channel_graph(nodes, stream_channels="c")

    assert colour.stream(app, 4) == [None, 9]


def test_graphs_without_channels_say_so() -> None:
    """Everything that is wrong is in one error."""
    with pytest.raises(GraphDefinitionError, match="input channel 'a' does not exist; there are none") as failure:
        Pregel(nodes={"double": doubling()}, channels=None, input_channels="a", output_channels="b")

    assert len(set(failure.value.problems)) == 3
