"""What compile() makes of a builder: nodes, triggers, channels, joins, policies."""

from __future__ import annotations

import operator
from typing import Annotated, Any, TypedDict

import pytest

from tracegraph.channels import (
    EphemeralValue,
    LastValueAfterFinish,
    NamedBarrierValue,
    NamedBarrierValueAfterFinish,
    Topic,
)
from tracegraph.constants import TAG_HIDDEN
from tracegraph.errors import GraphDefinitionError
from tracegraph.graph import END, START, CompiledStateGraph, StateGraph
from tracegraph.types import CachePolicy, RetryPolicy, TimeoutPolicy, TracePolicy


class State(TypedDict):
    x: Annotated[list, operator.add]


def body(state: Any) -> None: ...
async def waits(state: Any) -> None: ...


def built(names: str, **options: Any) -> StateGraph[Any, Any, Any, Any]:
    """Return a builder of one-letter nodes that starts at the first."""
    builder: StateGraph[Any, Any, Any, Any] = StateGraph(State).add_edge(START, names[0])
    for name in names:
        builder.add_node(name, body, **options.get(name, {}))
    return builder


def triggers(app: CompiledStateGraph[Any, Any, Any, Any]) -> dict[str, tuple[str, ...]]:
    return {name: node.triggers for name, node in app.nodes.items()}


def inner_channels(app: CompiledStateGraph[Any, Any, Any, Any]) -> dict[str, type]:
    return {name: type(channel) for name, channel in app.channels.items() if name != "x"}


START_CHANNELS = {"__start__": EphemeralValue, "__pregel_tasks": Topic}


def test_the_shape_of_a_line() -> None:
    """K2: a trigger channel per node, without a guard; the start node has writers only and is hidden."""
    app = built("ab").add_edge("a", "b").add_edge("b", END).compile()

    assert triggers(app) == {"__start__": ("__start__",), "a": ("branch:to:a",), "b": ("branch:to:b",)}
    assert inner_channels(app) == {**START_CHANNELS, "branch:to:a": EphemeralValue, "branch:to:b": EphemeralValue}
    assert app.channels["branch:to:a"].guard is False
    assert {name: channel.key for name, channel in app.channels.items()} == {name: name for name in app.channels}
    start = app.nodes["__start__"]
    assert (start.reads, start.body, start.is_hidden, start.tags) == ("__start__", None, True, (TAG_HIDDEN,))
    assert app.input_channels == "__start__"


def test_the_shape_of_a_join() -> None:
    """K2: a barrier channel named after starts and end triggers the end beside its own channel."""
    app = built("abc").add_edge(["a", "b"], "c").compile()

    assert triggers(app)["c"] == ("branch:to:c", "join:a+b:c")
    assert inner_channels(app)["join:a+b:c"] is NamedBarrierValue
    assert app.joins == {"join:a+b:c": (("a", "b"), "c")}


def test_the_shape_of_a_deferred_join() -> None:
    """K2: both channels of a deferred node open only when the run would end."""
    app = built("abc", c={"defer": True}).add_edge(["a", "b"], "c").compile()

    assert inner_channels(app)["join:a+b:c"] is NamedBarrierValueAfterFinish
    assert inner_channels(app)["branch:to:c"] is LastValueAfterFinish
    assert app.nodes["c"].is_deferred
    assert app.builder.nodes["c"].defer
    assert app.builder.nodes["c"].runnable is body


def test_a_join_to_the_end_is_nothing() -> None:
    """K14: END is no node, so nobody waits."""
    app = built("ab").add_edge(["a", "b"], END).compile()

    assert (app.joins, [name for name in app.channels if name.startswith("join:")]) == ({}, [])


def test_joins_come_in_an_order_of_their_own() -> None:
    """The same in every process, although the builder keeps them in a set."""
    app = built("abcd").add_edge(["b", "a"], "d").add_edge(["a", "b"], "d").add_edge(["a", "b"], "c").compile()

    assert list(app.joins) == ["join:a+b:c", "join:a+b:d", "join:b+a:d"]


def test_nodes_come_in_the_order_in_which_they_were_added() -> None:
    """Drawings and listings show them so."""
    assert list(built("cab").compile().nodes) == ["__start__", "c", "a", "b"]


def test_what_compile_is_told_is_on_the_graph() -> None:
    """Names, stops and stores; a name nobody gave is marked."""
    app = built("ab").compile(name="shop", interrupt_before=["a"], interrupt_after="*")
    plain = built("a").compile()

    assert (app.name, app.is_named, plain.name, plain.is_named) == ("shop", True, "LangGraph", False)
    assert (app.interrupt_before, app.interrupt_after) == ({"a"}, "*")
    assert (plain.interrupt_before, plain.interrupt_after) == (set(), set())
    assert app.stream_mode == "updates"


def test_an_option_of_a_later_release_is_refused() -> None:
    """Accepted and ignored, it would look as if it worked."""
    with pytest.raises(GraphDefinitionError, match="not supported yet"):
        built("a").compile(cache=object())


def test_a_node_s_options_are_on_the_node() -> None:
    """Metadata is copied, for the caller's dict may change."""
    metadata = {"team": "red"}
    options = {
        "metadata": metadata,
        "retry_policy": [RetryPolicy(max_attempts=2), RetryPolicy(max_attempts=3)],
        "cache_policy": CachePolicy(ttl=1),
        "timeout": 4,
        "trace_policy": TracePolicy(),
    }
    builder = StateGraph(State).add_node("n", waits, **options).add_edge(START, "n")  # type: ignore[arg-type]
    metadata["team"] = "blue"

    node = builder.compile().nodes["n"]

    assert node.metadata == {"team": "red"}
    assert [policy.max_attempts for policy in node.retry_policies] == [2, 3]
    assert (node.cache_policy, node.timeout, node.trace_policy) == (
        CachePolicy(ttl=1),
        TimeoutPolicy(run_timeout=4),
        TracePolicy(),
    )
    assert node.body.name == "n"


def test_defaults_hold_for_nodes_without_their_own() -> None:
    """Retries and timeouts for handlers too, cache and error handler for regular nodes only."""
    mine, theirs = RetryPolicy(max_attempts=2), RetryPolicy(max_attempts=9)
    builder = StateGraph(State).add_edge(START, "a")
    builder.add_node("a", waits, retry_policy=mine, cache_policy=CachePolicy(ttl=1), error_handler=waits, timeout=1)
    builder.add_node("b", waits).add_node("c", waits, retry_policy=[])
    builder.set_node_defaults(retry_policy=theirs, timeout=2).set_node_defaults(
        cache_policy=CachePolicy(ttl=2), error_handler=waits
    )

    nodes = builder.compile().nodes

    assert {name: node.retry_policies for name, node in nodes.items()} == {
        "__start__": (),
        "__error_handler__a": (theirs,),
        "a": (mine,),
        "b": (theirs,),
        "c": (),
        "__default_error_handler__": (theirs,),
    }
    assert {name: node.error_handler for name, node in nodes.items()} == {
        "__start__": None,
        "__error_handler__a": None,
        "a": "__error_handler__a",
        "b": "__default_error_handler__",
        "c": "__default_error_handler__",
        "__default_error_handler__": None,
    }
    assert [node.cache_policy and node.cache_policy.ttl for node in nodes.values()] == [None, None, 1, 2, 2, None]
    assert [node.timeout and node.timeout.run_timeout for node in nodes.values()] == [None, 2, 1, 2, 2, 2]


def test_error_handlers_have_no_trigger() -> None:
    """Only the engine runs them, when their node has failed."""
    app = built("a", a={"error_handler": body}).compile()

    assert triggers(app)["__error_handler__a"] == ()
    assert "branch:to:__error_handler__a" not in app.channels


def test_compiling_leaves_the_builder_as_it_is() -> None:
    """LangGraph's second compile with a default error handler fails, for the first one added it."""
    builder = built("a").set_node_defaults(error_handler=body)

    builder.compile()
    again = builder.compile()

    assert (list(builder.nodes), list(again.nodes)) == (["a"], ["__start__", "a", "__default_error_handler__"])


def test_a_compiled_graph_does_not_follow_its_builder() -> None:
    """K11: nodes, channels and the builder that is drawn stay as they were."""
    builder = built("a")
    app = builder.compile()

    builder.add_node("b", body, input_schema=TypedDict("Other", {"y": int})).add_edge("a", "b")
    builder.add_conditional_edges("a", lambda state: "b")

    assert list(app.nodes) == ["__start__", "a"]
    assert "y" not in app.channels
    assert (list(app.builder.nodes), app.builder.edges, app.builder.branches) == (["a"], {(START, "a")}, {})
    assert app.builder.compile().nodes.keys() == app.nodes.keys()


def test_a_graph_as_a_node_is_found() -> None:
    """The node knows its subgraph, for drawings and get_subgraphs."""
    inner = built("a").compile(name="inner")
    app = StateGraph(State).add_node(inner).add_edge(START, "inner").compile()

    assert app.nodes["inner"].subgraph is inner
    assert app.nodes["inner"].reads == ("x",)


@pytest.mark.parametrize("name", ["CompiledStateGraph", "StateGraph", "MessagesState", "MessageGraph", "add_messages"])
def test_names_of_the_room_are_loaded_when_asked_for(name: str) -> None:
    """Constants cost nothing; an unknown name is an ordinary AttributeError."""
    import tracegraph.graph as room

    vars(room).pop(name, None)

    assert getattr(room, name).__name__ == name
    assert name in dir(room)
    with pytest.raises(AttributeError, match="no attribute 'StateGraff'"):
        room.StateGraff  # noqa: B018


def test_a_graph_can_be_annotated_by_its_state_alone() -> None:
    """The other type parameters have defaults; LangGraph's four work too."""
    assert StateGraph[State].__origin__ is StateGraph  # type: ignore[attr-defined]
    assert CompiledStateGraph[State, None, State, State].__origin__ is CompiledStateGraph  # type: ignore[attr-defined]
