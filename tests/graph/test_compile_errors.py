"""What compile() finds wrong is said all at once, with the way out."""

from __future__ import annotations

import functools
import logging
from typing import Annotated, Any, TypedDict

import pytest

from tracegraph.channels import Topic
from tracegraph.errors import GraphDefinitionError
from tracegraph.graph import END, START, StateGraph
from tracegraph.types import CachePolicy, Send, TimeoutPolicy


class State(TypedDict):
    x: int


def a(state: Any) -> None: ...
def b(state: Any) -> None: ...
async def waits(state: Any) -> None: ...


def built(*names: str) -> StateGraph[Any, Any, Any, Any]:
    builder: StateGraph[Any, Any, Any, Any] = StateGraph(State)
    for name in names:
        builder.add_node(name, a)
    return builder.add_edge(START, names[0])


def choose(state: Any) -> str:
    return END


class Named:
    def __call__(self, state: Any) -> None: ...


class FakeRunnable:
    def invoke(self, given: Any, config: Any = None) -> None: ...
    async def ainvoke(self, given: Any, config: Any = None) -> None: ...


def problems(builder: StateGraph[Any, Any, Any, Any], **options: Any) -> tuple[str, ...]:
    with pytest.raises(GraphDefinitionError) as caught:
        builder.compile(**options)
    return caught.value.problems


def test_a_graph_without_an_entry_point() -> None:
    """K1: the way out is in the text."""
    assert problems(StateGraph(State).add_node(a)) == (
        "the graph has no entry point, so nothing would run; add an edge from START: add_edge(START, 'a')",
    )
    assert "add_edge(START, 'first_node')" in problems(StateGraph(State))[0]


def test_an_edge_from_a_node_that_does_not_exist() -> None:
    """K1: as the source of an edge or of a conditional edge."""
    builder = built("a").add_edge("nowhere", "a").add_conditional_edges("lost", choose)

    assert problems(builder) == (
        "the edge from 'nowhere' to 'a' starts at a node that does not exist; add 'nowhere', known nodes: 'a'",
        "the conditional edge 'choose' starts at 'lost', a node that does not exist; add 'lost', known nodes: 'a'",
    )


def test_targets_that_do_not_exist() -> None:
    """K1: of edges, path maps and declared destinations."""
    builder = built("a").add_edge("a", "b").add_conditional_edges("a", choose, {"x": "c", "y": START, "z": END})
    builder.add_node("n", a, destinations=["d", "a", END])

    found = problems(builder)

    assert [text.partition(";")[0] for text in found] == [
        "the edge from 'a' to 'b' ends at a node that does not exist",
        "the conditional edge 'choose' of node 'a' leads to 'c' (for 'x'), a node that does not exist",
        "the conditional edge 'choose' of node 'a' leads to '__start__' (for 'y'), a node that does not exist",
        "node 'n' declares that it leads to 'd', a node that does not exist",
    ]


@pytest.mark.parametrize("other", [None, "*"])
def test_interrupt_names_must_be_nodes(other: Any) -> None:
    """K1: one argument being "*" does not let the other one off."""
    assert "interrupt_before names 'b'" in problems(built("a"), interrupt_before=["a", "b"], interrupt_after=other)[0]
    assert "interrupt_after names 'b'" in problems(built("a"), interrupt_before=other, interrupt_after="b")[0]
    with pytest.raises(GraphDefinitionError, match="interrupt_before names 'b'"):
        built("a").validate(["b"])
    assert built("a").validate("*").validate(["a"]) is not None


@pytest.mark.parametrize("name", ["configurable", "__input__", "checkpoint_ns"])
def test_reserved_names(name: str) -> None:
    """K1: neither nodes nor fields may have them."""
    schema = TypedDict("Reserved", {name: int})  # type: ignore[operator,misc]

    assert problems(built("a").add_node(name, a)) == (
        f"{name!r} cannot be the name of a node, for it has a meaning inside runs; rename the node",
    )
    assert problems(StateGraph(schema).add_node(a).add_edge(START, "a")) == (
        f"{name!r} cannot be a field of the state, for it has a meaning inside runs; rename the field",
    )


@pytest.mark.parametrize("name", ["__start__", "__pregel_tasks", "branch:to:a", "join:a+b:c"])
def test_fields_cannot_have_the_names_of_inner_channels(name: str) -> None:
    """LangGraph replaces such a channel, so that what is written to it is lost or routes."""
    schema = TypedDict("Reserved", {name: Annotated[list, Topic(Send)]})  # type: ignore[operator,misc]

    assert "cannot be a field of the state" in problems(StateGraph(schema).add_node(a).add_edge(START, "a"))[0]


@pytest.mark.parametrize("checkpointer", [3, "memory", object(), dict])
def test_a_checkpointer_must_be_a_saver(checkpointer: Any) -> None:
    """K1: a class, or a context manager not yet entered, is none."""
    with pytest.raises(TypeError, match="checkpointer must be a saver"):
        built("a").compile(checkpointer)


class FakeSaver:
    def get_tuple(self, config: Any) -> None: ...
    def put(self, *args: Any) -> None: ...


@pytest.mark.parametrize("checkpointer", [None, True, False, FakeSaver()])
def test_what_a_checkpointer_may_be(checkpointer: Any) -> None:
    """True and False are for subgraphs."""
    assert built("a").compile(checkpointer).checkpointer is checkpointer


class AsyncCallable:
    async def __call__(self, state: Any) -> None: ...


class Steps:
    """Looks like a Runnable sequence, or like a parallel."""

    def __init__(self, *steps: Any, is_parallel: bool = False) -> None:
        if is_parallel:
            self.steps__ = {str(i): step for i, step in enumerate(steps)}
        else:
            self.steps = list(steps)

    def invoke(self, given: Any, config: Any = None) -> None: ...
    async def ainvoke(self, given: Any, config: Any = None) -> None: ...


class Lambda:
    """Looks like a Runnable around one function."""

    def __init__(self, **lanes: Any) -> None:
        self.__dict__.update(lanes)

    def invoke(self, given: Any, config: Any = None) -> None: ...
    async def ainvoke(self, given: Any, config: Any = None) -> None: ...


def inherited_ainvoke() -> Any:
    class Runnable:
        def invoke(self, given: Any, config: Any = None) -> None: ...
        async def ainvoke(self, given: Any, config: Any = None) -> None: ...

    Runnable.ainvoke.__qualname__ = "Runnable.ainvoke"
    return type("Tool", (Runnable,), {})()


@pytest.mark.parametrize(
    "action",
    [a, Named(), functools.partial(a), Steps(waits, a), Steps(a, is_parallel=True), Lambda(func=a), inherited_ainvoke()],
)
def test_a_timeout_on_what_cannot_be_stopped(action: Any) -> None:
    """K13: nothing can stop a thread, so a sync node with a timeout does not compile."""
    builder = built("a").add_node("n", action, timeout=1)

    (text,) = problems(builder)
    assert text.startswith("node 'n' has a timeout but is not async, and nothing can stop a thread; make it an async function")


@pytest.mark.parametrize(
    "action",
    [
        waits,
        AsyncCallable(),
        functools.partial(waits),
        Steps(waits, waits),
        Steps(waits, is_parallel=True),
        Lambda(afunc=waits),
        FakeRunnable(),
    ],
)
def test_a_timeout_on_what_awaits(action: Any) -> None:
    """K13: natively async end to end."""
    app = built("a").add_node("n", action, timeout=1).compile()

    assert app.nodes["n"].timeout == TimeoutPolicy(run_timeout=1)


def test_a_default_timeout_holds_for_every_node() -> None:
    """All that cannot be stopped are named at once."""
    builder = built("a", "b").add_node("n", waits, error_handler=a).set_node_defaults(timeout=3)

    assert [text.split("'")[1] for text in problems(builder)] == ["a", "b", "__error_handler__n"]


def test_the_default_error_handler_needs_its_name() -> None:
    """A node that has it already would be taken for the handler."""
    builder = built("__default_error_handler__").set_node_defaults(error_handler=a)

    assert "has the name of the default error handler" in problems(builder)[0]


def test_all_problems_are_reported_at_once() -> None:
    """D15b: one error lists them, one sentence each; the builder can be mended and compiled."""
    builder = StateGraph(State).add_node(a).add_edge("a", "b").add_node("n", a, timeout=1)

    found = problems(builder, interrupt_before=["c"])

    assert len(found) == 4
    with pytest.raises(GraphDefinitionError, match="several faults:\n- the graph has no entry point"):
        builder.compile(interrupt_before=["c"])
    builder.add_edge(START, "a").add_node("b", b)
    assert len(problems(builder)) == 1


def test_changing_a_compiled_builder_warns_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    """K11: the compiled graph does not change, so somebody should know."""
    builder = built("a")
    builder.compile()

    with caplog.at_level(logging.WARNING, "tracegraph"):
        builder.add_node("late", a).add_edge("a", "late").set_node_defaults(cache_policy=CachePolicy())

    assert [record.message.split(" was")[0] for record in caplog.records] == ["A node", "An edge", "A default"]
