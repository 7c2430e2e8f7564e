"""State and routing of graphs that run, on both drivers."""

from __future__ import annotations

import operator
from dataclasses import dataclass
from itertools import pairwise
from typing import Annotated, Any, TypedDict

import pytest
from colours import ASYNC, SYNC, Colour
from pydantic import BaseModel, ValidationError

from tracegraph.errors import GraphRecursionError, InvalidUpdateError, ParentCommand, UnknownTargetError
from tracegraph.graph import END, START, StateGraph
from tracegraph.managed import IsLastStep, RemainingSteps
from tracegraph.types import Command, Overwrite, Send


@pytest.fixture(params=[SYNC, ASYNC], ids=lambda colour: colour.name)
def colour(request: pytest.FixtureRequest) -> Colour:
    chosen: Colour = request.param
    return chosen


class Log(TypedDict, total=False):
    log: Annotated[list[Any], operator.add]
    n: int
    left: RemainingSteps
    is_last: IsLastStep


Builder = StateGraph[Any, Any, Any, Any]


def says(name: str, **more: Any) -> Any:
    """Return a node that logs its name."""
    return lambda state: {"log": [name], **more}


def flow(names: str, edges: str, schema: Any = Log, **options: dict[str, Any]) -> Builder:
    """Return a builder of one-letter nodes; `>a` is an edge from START."""
    builder: Builder = StateGraph(schema)
    for name in names:
        given = dict(options.get(name, {}))
        builder.add_node(name, given.pop("body", says(name)), **given)
    for source, end in edges.split():
        builder.add_edge(START if source == ">" else source, end)
    return builder


def steps(colour: Colour, builder: Builder) -> list[str]:
    """Return the nodes that ran and logged, one string per superstep."""
    logs = [part["log"] for part in colour.stream(builder.compile(), {"log": []}, stream_mode="values")]
    return ["".join(after[len(before) :]) for before, after in pairwise(logs)]


def logged(colour: Colour, builder: Builder, given: Any = None, **options: Any) -> list[Any]:
    result: dict[str, Any] = colour.invoke(builder.compile(), given or {"n": 0}, **options)
    return result["log"]


# Edges.


def test_a_node_that_returns_none_leads_on(colour: Colour) -> None:
    """K3: the node has finished, and its edges are followed."""
    assert logged(colour, flow("ab", ">a ab", a={"body": lambda state: None})) == ["b"]


def test_several_edges_to_one_node_run_it_once_and_two_sends_twice(colour: Colour) -> None:
    """K4: an edge sets a signal, a Send is a task of its own."""
    builder = (
        flow("abcd", ">a ab ac bd cd").add_conditional_edges("b", lambda state: "d").add_conditional_edges("c", lambda state: "d")
    )
    sends = flow("ab", ">a").add_conditional_edges("a", lambda state: [Send("b", {}), Send("b", {})])

    assert logged(colour, builder) == ["a", "b", "c", "d"]
    assert logged(colour, sends) == ["a", "b", "b"]


def test_a_goto_adds_to_the_edges(colour: Colour) -> None:
    """K5: a Command does not replace what is declared."""
    goes = {"body": lambda state: Command(update={"log": ["a"]}, goto="x")}

    assert logged(colour, flow("axy", ">a ay", a=goes)) == ["a", "x", "y"]


@pytest.mark.parametrize(
    "way",
    [
        lambda state: Command(goto="nowhere"),
        lambda state: Send("nowhere", {}),
        lambda state: Command(goto=[Send("nowhere", {})]),
    ],
)
def test_an_unknown_target_fails_the_run(colour: Colour, way: Any) -> None:
    """K6, D1: with the node that named it and the nodes there are."""
    with pytest.raises(UnknownTargetError, match="node 'a' sent to a node that does not exist; known: ") as caught:
        colour.invoke(flow("ab", ">a", a={"body": way}).compile(), {"n": 0})
    assert set(caught.value.known) >= {"a", "b"}


@pytest.mark.parametrize("result", ["nowhere", ["b", "nowhere"], Send("nowhere", {})])
def test_an_unknown_branch_target_fails_the_run(colour: Colour, result: Any) -> None:
    """K6, D1: also from a conditional edge."""
    with pytest.raises(UnknownTargetError, match="node 'a'"):
        colour.invoke(flow("ab", ">a").add_conditional_edges("a", lambda state: result).compile(), {"n": 0})


# Conditional edges.


def test_a_branch_sees_its_node_s_writes_and_not_the_siblings(colour: Colour) -> None:
    """K7: through the reducer, on top of the state before the step."""
    seen: dict[str, Any] = {}

    def look(name: str) -> Any:
        def path(state: Any) -> str:
            seen[name] = state["log"]
            return END

        return path

    builder = flow("ab", ">a >b").add_conditional_edges("a", look("a")).add_conditional_edges("b", look("b"))

    assert logged(colour, builder, {"log": ["in"]}) == ["in", "a", "b"]
    assert seen == {"a": ["in", "a"], "b": ["in", "b"]}


@pytest.mark.parametrize(
    ("result", "path_map", "error"),
    [
        ("unmapped", {"b": "b"}, KeyError),
        (START, {"b": "b"}, KeyError),
        (None, None, ValueError),
        (START, None, ValueError),
        (Send(END, {}), {"b": "b"}, InvalidUpdateError),
    ],
)
def test_what_a_path_cannot_return(colour: Colour, result: Any, path_map: Any, error: type[Exception]) -> None:
    """K8: each error is of the type LangGraph raises, and one of ours."""
    builder = flow("ab", ">a").add_conditional_edges("a", lambda state: result, path_map)

    with pytest.raises(error) as caught:
        colour.invoke(builder.compile(), {"n": 0})
    assert isinstance(caught.value, InvalidUpdateError)


def test_an_async_path_is_awaited() -> None:
    """In an async run; a sync run cannot call it and says so."""

    async def path(state: Any) -> str:
        return "b"

    builder = flow("ab", ">a").add_conditional_edges("a", path)

    assert logged(ASYNC, builder) == ["a", "b"]
    with pytest.raises(TypeError, match="ainvoke"):
        logged(SYNC, builder)


def test_a_path_from_the_start_sees_the_input(colour: Colour) -> None:
    """Fields through their reducers, and keys that are no fields."""
    builder = flow("ab", "").set_conditional_entry_point(lambda state: state["log"][-1], {"x": "b"})

    assert logged(colour, builder, {"log": ["x"]}) == ["x", "b"]


# Joins and deferred nodes.


def test_a_join_waits_for_all_its_starts_also_across_supersteps(colour: Colour) -> None:
    """K9: b comes one superstep after a."""
    assert steps(colour, flow("abxc", ">a >x xb").add_edge(["a", "b"], "c")) == ["ax", "b", "c"]


def test_a_join_fires_again_after_it_fired(colour: Colour) -> None:
    """K9: it waits anew for all of them."""

    def again(state: Any) -> Any:
        return ["a", "b"] if state["log"].count("c") < 2 else END

    builder = flow("abc", ">a >b").add_edge(["a", "b"], "c").add_conditional_edges("c", again)

    assert logged(colour, builder) == ["a", "b", "c", "a", "b", "c"]


def test_a_starved_join_is_reported(colour: Colour) -> None:
    """D15: LangGraph ends in silence; the warning names the join and what it waits for."""
    builder = flow("abc", ">a").add_edge(["a", "b"], "c")

    with pytest.warns(UserWarning, match="'b'"):
        assert logged(colour, builder) == ["a"]


def test_a_deferred_node_runs_once_after_everything_else(colour: Colour) -> None:
    """K10: however many edges led to it, and whatever took how long."""
    builder = flow("abcd", ">a ad ab bc cd", d={"defer": True})

    assert steps(colour, builder) == ["a", "b", "c", "d"]


def test_a_deferred_join_waits_for_everything_else(colour: Colour) -> None:
    """K10: its starts alone do not release it."""
    builder = flow("abxyd", ">a >b >x xy", d={"defer": True}).add_edge(["a", "b"], "d")

    assert steps(colour, builder) == ["abx", "y", "d"]


def test_a_deferred_node_waits_for_what_was_sent(colour: Colour) -> None:
    """LangGraph overlooks pending Sends and runs it beside them (a quirk of K10)."""
    builder = flow("abcd", ">a ad bc", d={"defer": True}).add_conditional_edges("a", lambda state: Send("b", {}))

    assert steps(colour, builder) == ["a", "b", "c", "d"]


# State.


def test_reducer_fields_are_in_the_first_input_and_others_are_not(colour: Colour) -> None:
    """S4: an empty last value is simply absent; managed values are always there."""
    seen: list[Any] = []

    colour.invoke(flow("a", ">a", a={"body": seen.append}).compile(), {"unknown": 1})

    assert [sorted(state) for state in seen] == [["is_last", "left", "log"]]


def test_a_run_in_which_nothing_is_written_returns_none(colour: Colour) -> None:
    """S13: no output channel ever got a value."""

    class Plain(TypedDict):
        x: int

    app = flow("a", ">a", Plain, a={"body": lambda state: None}).compile()

    assert colour.invoke(app, {}) is None
    assert colour.invoke(app, {"unknown": 1}) is None


def test_private_keys_flow_between_nodes_and_stay_inside(colour: Colour) -> None:
    """S14: nodes that name them see them, streams show them, the result does not."""

    class Public(TypedDict):
        x: int

    class Private(TypedDict):
        secret: int

    def tells(state: Public) -> Any:
        return {"secret": state["x"] + 1}

    def asks(state: Private) -> Any:
        return {"x": state["secret"] * 10}

    builder: Builder = StateGraph(Public)
    builder.add_node("tells", tells, input_schema=Public).add_node("asks", asks, input_schema=Private)
    app = builder.add_edge(START, "tells").add_edge("tells", "asks").compile()

    assert colour.invoke(app, {"x": 1}) == {"x": 20}
    assert colour.stream(app, {"x": 1}, stream_mode="values")[-1] == {"x": 20, "secret": 2}


def test_managed_values_count_down(colour: Colour) -> None:
    """S15: two nodes under a limit of three."""
    seen: list[Any] = []

    def look(state: Any) -> None:
        seen.append((state["left"], state["is_last"]))

    colour.invoke(flow("ab", ">a ab", a={"body": look}, b={"body": look}).compile(), {"n": 1}, {"recursion_limit": 3})

    assert seen == [(2, False), (1, True)]


def test_a_loop_can_stop_before_the_limit(colour: Colour) -> None:
    """Branches read managed values too."""
    builder = flow("a", ">a").add_conditional_edges("a", lambda state: END if state["is_last"] else "a")

    assert len(logged(colour, builder, config={"recursion_limit": 5})) == 4
    with pytest.raises(GraphRecursionError):
        logged(colour, flow("a", ">a aa"), config={"recursion_limit": 5})


def test_validation_happens_when_the_next_node_starts(colour: Colour) -> None:
    """S11: a bad value is stored, and fails the node that reads it."""

    class Model(BaseModel):
        x: int = 1

    ran: list[str] = []

    def bad(state: Model) -> Any:
        ran.append("a")
        return {"x": "no number"}

    builder = flow("ab", ">a ab", Model, a={"body": bad}, b={"body": ran.append})

    with pytest.raises(ValidationError):
        colour.invoke(builder.compile(), {})
    assert ran == ["a"]


def test_defaults_are_for_nodes_and_never_enter_the_state(colour: Colour) -> None:
    """S10: they are made with the node's input."""

    @dataclass
    class Record:
        x: int = 7
        y: int = 0

    app = flow("a", ">a", Record, a={"body": lambda state: {"y": state.x}}).compile()

    assert colour.invoke(app, {}) == {"y": 7}
    assert colour.invoke(app, Record(x=2)) == {"x": 2, "y": 2}


@pytest.mark.parametrize("write", [Overwrite(["new"]), {"__overwrite__": ["new"]}, {"type": "__overwrite__", "value": ["new"]}])
def test_an_overwrite_replaces_a_reduced_value(colour: Colour, write: Any) -> None:
    """S12: in three encodings; a plain field stores what it is given."""
    node = {"body": lambda state: {"log": write, "n": write}}

    assert colour.invoke(flow("a", ">a", a=node).compile(), {"log": ["old"]}) == {"log": ["new"], "n": write}


def test_the_input_is_cut_to_its_schema(colour: Colour) -> None:
    """K12: and a narrow node gets its fields only."""

    class Given(TypedDict):
        n: int

    seen: list[Any] = []
    builder: Builder = StateGraph(Log, input_schema=Given)
    builder.add_node("a", seen.append, input_schema=Given).add_node("b", seen.append)
    app = builder.add_edge(START, "a").add_edge("a", "b").compile()

    colour.invoke(app, {"n": 1, "log": ["lost"]})

    assert seen[0] == {"n": 1}
    assert seen[1]["log"] == []


def test_a_strict_graph_refuses_unknown_keys(colour: Colour) -> None:
    """They are ignored otherwise."""
    builder = flow("a", ">a", a={"body": says("a", other=1)})

    assert colour.invoke(builder.compile(), {"n": 1}) == {"log": ["a"], "n": 1}
    with pytest.raises(InvalidUpdateError, match="node 'a' wrote 'other'"):
        colour.invoke(builder.compile(strict=True), {"n": 1})
    with pytest.raises(InvalidUpdateError, match="the input wrote 'other'"):
        colour.invoke(builder.compile(strict=True), {"other": 1})


# Graphs in graphs.


def test_a_graph_as_a_node_shares_keys_of_one_name(colour: Colour) -> None:
    """Its result is an update like any other; keys of its own are ignored."""
    inner = flow("xy", ">x xy").compile()

    class Outer(TypedDict):
        log: Annotated[list[Any], operator.add]

    builder: Builder = StateGraph(Outer)
    app = builder.add_node("inner", inner).add_edge(START, "inner").compile()

    assert colour.invoke(app, {"log": ["in"]}) == {"log": ["in", "in", "x", "y"]}


def test_a_command_for_the_parent_routes_there(colour: Colour) -> None:
    """Spec 6.7: the child's run ends, its changes are lost, and the node's own edges are followed too."""
    leaves = {"body": lambda state: Command(graph=Command.PARENT, update={"log": ["from inside"]}, goto="b")}
    inner = flow("xy", ">x xy", x=leaves).compile()
    builder = flow("bc", "").add_node("inner", inner).add_edge(START, "inner").add_edge("inner", "c")

    assert logged(colour, builder, {"log": []}) == ["from inside", "b", "c"]


def test_a_command_for_the_parent_of_the_root_is_raised(colour: Colour) -> None:
    """Nobody takes it."""
    with pytest.raises(ParentCommand):
        colour.invoke(flow("a", ">a", a={"body": lambda state: Command(graph=Command.PARENT)}).compile(), {"n": 1})


def test_the_values_of_a_whole_state(colour: Colour) -> None:
    """A state that is one value goes in and comes out bare."""
    schema = Annotated[list, operator.add]
    builder = flow("ab", ">a ab", schema, a={"body": lambda state: [len(state)]}, b={"body": lambda state: Command(update=["b"])})

    assert colour.invoke(builder.compile(), ["in"]) == ["in", 1, "b"]
