"""A graph's facts, its copies, and the graphs inside it."""

from __future__ import annotations

import asyncio
import operator
from typing import Annotated, Any, TypedDict

from channel_graphs import channel_graph, doubling
from colours import Colour

from tracegraph.checkpoint.memory import InMemorySaver
from tracegraph.config import RunnableConfig
from tracegraph.graph import START, StateGraph
from tracegraph.pregel import NodeBuilder
from tracegraph.types import RetryPolicy


class State(TypedDict, total=False):
    log: Annotated[list[Any], operator.add]


def one(body: Any, node: str = "a", **options: Any) -> Any:
    """Return a graph of one node."""
    graph: StateGraph[Any, Any, Any, Any] = StateGraph(State)
    graph.add_node(node, body)
    graph.add_edge(START, node)
    return graph.compile(**options)


def nested() -> Any:
    """Return a graph ``outer`` > ``middle`` > ``inner`` > ``leaf``, beside a plain node."""
    inner = one(lambda state: None, "leaf", name="INNER")
    middle = one(inner, "inner", name="MIDDLE")
    graph: StateGraph[Any, Any, Any, Any] = StateGraph(State)
    graph.add_node("plain", lambda state: None)
    graph.add_node("middle", middle)
    graph.add_node("other", one(lambda state: None, "leaf", name="OTHER"))
    for name in ("plain", "middle", "other"):
        graph.add_edge(START, name)
    return graph.compile()


def subgraphs(colour: Colour, app: Any, **options: Any) -> dict[str, str]:
    """Return the names of the graphs inside, by path."""

    async def read() -> dict[str, str]:
        return {path: graph.get_name() async for path, graph in app.aget_subgraphs(**options)}

    if colour.name == "async":
        return asyncio.run(read())
    return {path: graph.get_name() for path, graph in app.get_subgraphs(**options)}


def test_subgraphs_are_listed_by_node(colour: Colour) -> None:
    """One level, or all of them; a namespace picks one path."""
    app = nested()

    assert subgraphs(colour, app) == {"middle": "MIDDLE", "other": "OTHER"}
    assert subgraphs(colour, app, recurse=True) == {"middle": "MIDDLE", "middle|inner": "INNER", "other": "OTHER"}
    assert subgraphs(colour, app, namespace="middle") == {"middle": "MIDDLE"}
    assert subgraphs(colour, app, namespace="middle|inner") == {"middle|inner": "INNER"}
    assert subgraphs(colour, app, namespace="middle|nothing") == {}
    assert subgraphs(colour, app, namespace="plain") == {}


def test_a_copy_with_a_config_does_not_change_the_original(colour: Colour) -> None:
    """A call's config is merged over the copy's: tags add up, configurable keys are overridden."""
    seen: list[Any] = []

    def look(state: State, config: RunnableConfig) -> None:
        found = config["configurable"]
        seen.append((config.get("tags"), found.get("user"), found.get("level")))

    app = one(look)
    bound = app.with_config({"tags": ["bound"], "configurable": {"user": "me"}}, run_name="bound run")

    colour.invoke(bound, {"log": []}, {"tags": ["call"], "configurable": {"level": 2}})
    colour.invoke(app, {"log": []})

    assert seen == [(["bound", "call"], "me", 2), (None, None, None)]


def test_a_copy_has_what_was_changed(colour: Colour) -> None:
    """Channels too: its tables are made anew."""
    app = channel_graph({"double": doubling()}, output_channels="b")

    renamed = app.copy({"name": "other", "output_channels": ("b", "total")})

    assert (renamed.get_name(), app.get_name()) == ("other", "LangGraph")
    assert colour.invoke(renamed, 2) == {"b": 4, "total": 0}
    assert colour.invoke(app.copy(), 2) == 4


def test_streamed_channels_read_as_given() -> None:
    """As a list, or the way they were named."""
    single = channel_graph({"double": doubling()}, stream_channels="b")
    several = channel_graph({"double": doubling()}, stream_channels=["b", "c"])

    assert (single.stream_channels_list, single.stream_channels_asis) == (["b"], "b")
    assert (several.stream_channels_list, several.stream_channels_asis) == (["b", "c"], ("b", "c"))


def test_a_drawing_is_the_same_in_both_colours() -> None:
    """Nothing waits, and nothing of the user's is called."""
    app = nested()

    async def draw() -> Any:
        return await app.aget_graph(xray=1)

    assert asyncio.run(draw()).draw_mermaid() == app.get_graph(xray=1).draw_mermaid()


def test_one_channel_object_may_stand_for_several_names() -> None:
    """Each name gets a channel of its own, whose errors name it."""
    from tracegraph.channels import EphemeralValue, LastValue
    from tracegraph.pregel import Pregel

    shared = LastValue(int)
    app = Pregel(
        nodes={"double": NodeBuilder().subscribe_only("a").do(lambda x: x * 2).write_to("b", "c")},
        channels={"a": EphemeralValue(int), "b": shared, "c": shared},
        input_channels="a",
        output_channels=["b", "c"],
    )

    assert (app.channels["b"].key, app.channels["c"].key) == ("b", "c")
    assert app.invoke(1) == {"b": 2, "c": 2}


def test_a_graphs_retry_policy_is_for_nodes_without_one(colour: Colour) -> None:
    """One policy or several, in order."""
    tries: list[int] = []

    def flaky(x: int) -> int:
        tries.append(x)
        if len(tries) % 2:
            raise ConnectionError
        return x

    node = NodeBuilder().subscribe_only("a").do(flaky).write_to("b")
    soon = RetryPolicy(initial_interval=0.001, jitter=False)

    assert colour.invoke(channel_graph({"node": node}, retry_policy=soon), 1) == 1
    assert colour.invoke(channel_graph({"node": node}, retry_policy=[soon]), 1) == 1
    assert len(tries) == 4


def test_an_inner_graph_that_is_bound_to_a_thread_of_its_own_runs_there(colour: Colour) -> None:
    """It is a run of its own: the outer thread knows nothing of it."""
    saver = InMemorySaver()
    inner = one(lambda state: {"log": ["inner"]}, checkpointer=saver).with_config({"configurable": {"thread_id": "own"}})

    def call(state: State) -> Any:
        inner.invoke({"log": []})
        return {"log": ["outer"]}

    app = one(call, checkpointer=InMemorySaver())

    assert colour.invoke(app, {"log": []}, {"configurable": {"thread_id": "t"}}) == {"log": ["outer"]}
    assert inner.get_state({"configurable": {"thread_id": "own"}}).values == {"log": ["inner"]}
