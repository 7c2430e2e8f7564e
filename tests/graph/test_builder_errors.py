"""What is wrong with a graph, said when it is first known and with the way out."""

from __future__ import annotations

import functools
import logging
from typing import Annotated, Any, Literal, TypedDict

import pytest

from tracegraph.channels import Topic
from tracegraph.errors import GraphDefinitionError
from tracegraph.graph import END, START, StateGraph
from tracegraph.types import CachePolicy, Command, RetryPolicy, Send, TimeoutPolicy


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


# At the call.


class Named:
    def __call__(self, state: Any) -> None: ...


class FakeRunnable:
    def get_name(self) -> str:
        return "runnable"

    def invoke(self, given: Any, config: Any = None) -> None: ...
    async def ainvoke(self, given: Any, config: Any = None) -> None: ...


@pytest.mark.parametrize(
    ("action", "name"),
    [
        (a, "a"),
        (lambda state: None, "<lambda>"),
        (Named(), "Named"),
        (FakeRunnable(), "runnable"),
        (functools.partial(a), "partial"),
    ],
)
def test_a_node_is_named_after_what_it_runs(action: Any, name: str) -> None:
    """Runnable name, function name, class name."""
    assert list(StateGraph(State).add_node(action).nodes) == [name]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a", "node 'a' exists already"),
        (START, "name of a virtual node"),
        (END, "name of a virtual node"),
        ("a|b", r"has a '\|'"),
        ("a:b", "has a ':'"),
    ],
)
def test_names_a_node_cannot_have(name: str, text: str) -> None:
    """K1: taken, virtual, or with a mark that namespaces use."""
    builder = built("a")

    with pytest.raises(GraphDefinitionError, match=text):
        builder.add_node(name, b)
    with pytest.raises(GraphDefinitionError, match=text):
        builder.add_sequence([("first", a), (name, b)])
    assert list(builder.nodes) == ["a"]


def test_a_node_without_a_function() -> None:
    """K1: a name alone is no node."""
    with pytest.raises(RuntimeError, match=r"add_node\('n', function\)"):
        StateGraph(State).add_node("n")


@pytest.mark.parametrize("action", [3, {"x": 1}, object()])
def test_a_body_that_cannot_be_called(action: Any) -> None:
    """Nodes, paths and handlers must be callable or Runnables."""
    with pytest.raises(TypeError, match="node 'n' must be a function"):
        StateGraph(State).add_node("n", action)
    with pytest.raises(TypeError, match="path of a conditional edge of node 'n'"):
        StateGraph(State).add_conditional_edges("n", action)
    with pytest.raises(TypeError, match="error handler of node 'n'"):
        StateGraph(State).add_node("n", a, error_handler=action)
    with pytest.raises(TypeError, match="the default error handler"):
        StateGraph(State).set_node_defaults(error_handler=action)


@pytest.mark.parametrize(
    ("edge", "text"),
    [
        ((END, "a"), "cannot start at END"),
        (("a", START), "cannot end at START"),
        (([], "a"), "list of starts of the edge to 'a' is empty"),
        ((["a", "nowhere"], "b"), "waits for 'nowhere', which is no node yet; add it first, known: 'a', 'b'"),
        ((["a", START], "b"), "waits for '__start__'"),
        ((["a", END], "b"), "cannot wait for END"),
        ((["a", "b"], "nowhere"), "ends at 'nowhere', which is no node yet"),
        ((["a", "b"], START), "cannot end at START"),
    ],
)
def test_edges_that_cannot_be(edge: Any, text: str) -> None:
    """K1: the nodes of a list must be there already."""
    builder = built("a", "b")

    with pytest.raises(GraphDefinitionError, match=text):
        builder.add_edge(*edge)
    assert (builder.edges, builder.waiting_edges) == ({(START, "a")}, set())


def test_a_join_may_lead_to_the_end() -> None:
    """It then waits for nothing in particular."""
    assert built("a", "b").add_edge(["a", "b"], END).waiting_edges == {(("a", "b"), END)}


def choose(state: Any) -> str:
    return END


class Chooser:
    def __call__(self, state: Any) -> Literal["a"]:
        return "a"


@pytest.mark.parametrize(
    ("path", "name"),
    [(choose, "choose"), (lambda state: END, "condition"), (Chooser(), "condition"), (FakeRunnable(), "runnable")],
)
def test_a_conditional_edge_is_named_after_its_path_and_only_once(path: Any, name: str) -> None:
    """K1: two of one name on one node are an error, on two nodes they are not."""
    builder = built("a", "b").add_conditional_edges("a", path).add_conditional_edges("b", path)

    assert list(builder.branches["a"]) == [name]
    with pytest.raises(GraphDefinitionError, match=f"node 'a' has a conditional edge '{name}' already"):
        builder.add_conditional_edges("a", path)


def literal(state: Any) -> Literal["a", "__end__"]: ...
def unresolved(state: Any) -> Nowhere: ...  # type: ignore[name-defined]  # noqa: F821


@pytest.mark.parametrize(
    ("path", "path_map", "ends"),
    [
        (choose, None, None),
        (choose, ["a", END], {"a": "a", END: END}),
        (choose, {True: "a", False: END}, {True: "a", False: END}),
        (literal, None, {"a": "a", "__end__": "__end__"}),
        (literal, ["b"], {"b": "b"}),
        (Chooser(), None, {"a": "a"}),
        (unresolved, None, None),
    ],
)
def test_where_a_conditional_edge_may_lead(path: Any, path_map: Any, ends: Any) -> None:
    """A map, a list as a map, a Literal annotation, or anywhere."""
    (branch,) = built("a").add_conditional_edges("a", path, path_map).branches["a"].values()

    assert branch.ends == ends


def commands(state: Any) -> Command[Literal["a", "b"]]: ...
def maybe(state: Any) -> Command[Literal["a"]] | None: ...
def anywhere(state: Any) -> Command[str]: ...


@pytest.mark.parametrize(
    ("action", "destinations", "ends"),
    [
        (commands, None, ("a", "b")),
        (maybe, None, ("a",)),
        (anywhere, None, None),
        (a, None, None),
        (commands, ["b"], ("b",)),
        (commands, {"b": "next"}, {"b": "next"}),
    ],
)
def test_where_a_node_s_commands_may_lead(action: Any, destinations: Any, ends: Any) -> None:
    """Its return annotation says so, unless destinations do."""
    assert StateGraph(State).add_node("n", action, destinations=destinations).nodes["n"].ends == ends


def test_a_sequence_needs_nodes_of_different_names() -> None:
    """K1: nothing is added if it does not work out."""
    builder = StateGraph(State)

    with pytest.raises(GraphDefinitionError, match="has no nodes"):
        builder.add_sequence([])
    with pytest.raises(GraphDefinitionError, match="names node 'a' twice"):
        builder.add_sequence([a, ("a", b)])
    assert builder.nodes == {}
    assert builder.add_sequence([a, ("c", b)]).edges == {("a", "c")}


def test_entry_and_finish_points_are_edges() -> None:
    """They are other words for edges from START and to END."""
    builder = StateGraph(State).add_node(a).set_entry_point("a").set_finish_point("a").set_conditional_entry_point(choose)

    assert builder.edges == {(START, "a"), ("a", END)}
    assert list(builder.branches[START]) == ["choose"]


def test_an_error_handler_is_a_node_that_needs_its_name() -> None:
    """The handler comes first, reads what its node reads, and has no policies."""
    builder = StateGraph(State).add_node("n", a, error_handler=commands, retry_policy=RetryPolicy())

    handler, node = builder.nodes.values()
    assert (handler.name, node.error_handler) == ("__error_handler__n", "__error_handler__n")
    assert (handler.is_error_handler, handler.retry_policies, handler.ends) == (True, None, ("a", "b"))
    taken = StateGraph(State).add_node("__error_handler__n", a)
    with pytest.raises(GraphDefinitionError, match="'__error_handler__n' exists already"):
        taken.add_node("n", a, error_handler=b)


def test_a_timeout_must_be_positive() -> None:
    """It is known at the call, so it is said there."""
    with pytest.raises(ValueError, match="must be positive"):
        StateGraph(State).add_node("n", waits, timeout=-1)


def test_old_argument_names_warn() -> None:
    """They work; the new name counts if both are given."""

    class Other(TypedDict):
        y: int

    with pytest.warns(DeprecationWarning):
        builder = StateGraph(State, config_schema=Other, input=Other, output=Other)
    assert (builder.context_schema, builder.input_schema, builder.output_schema) == (Other, Other, Other)
    with pytest.warns(DeprecationWarning, match="'output' is called 'output_schema' now"):
        assert StateGraph(State, output_schema=State, output=Other).output_schema is State
    with pytest.warns(DeprecationWarning):
        builder.add_node("n", a, retry=RetryPolicy(max_attempts=5), input=Other)
    assert builder.nodes["n"].input_schema is Other
    assert builder.nodes["n"].retry_policies == (RetryPolicy(max_attempts=5),)


def test_unknown_arguments_are_type_errors() -> None:
    """As with any function."""
    with pytest.raises(TypeError, match=r"StateGraph\(\) got unexpected arguments: 'oops'"):
        StateGraph(State, oops=1)
    with pytest.raises(TypeError, match=r"add_node\(\) got unexpected arguments: 'oops'"):
        StateGraph(State).add_node("n", a, oops=1)


# At compile.


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
