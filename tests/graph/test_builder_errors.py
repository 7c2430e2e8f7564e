"""What the builder can know at a call is said at the call, with the way out."""

from __future__ import annotations

import functools
from typing import Any, Literal, TypedDict

import pytest

from tracegraph.errors import GraphDefinitionError
from tracegraph.graph import END, START, StateGraph
from tracegraph.types import Command, RetryPolicy


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
