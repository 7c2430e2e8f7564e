"""What a node returned, as channel writes."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated, Any, TypedDict

import pytest
from pydantic import BaseModel

from tracegraph.constants import TASKS
from tracegraph.engine.task import Task
from tracegraph.engine.topology import Topology
from tracegraph.errors import ErrorCode, InvalidUpdateError, ParentCommand, UnknownTargetError
from tracegraph.graph import END, START, StateGraph
from tracegraph.managed import RemainingSteps
from tracegraph.types import Command, Overwrite, Send

NOTHING = object()


class State(TypedDict):
    log: Annotated[list, operator.add]
    total: int
    left: RemainingSteps


class Flow:
    """A compiled graph whose writers are driven by hand; path functions are called as a driver would."""

    def __init__(self, builder: StateGraph[Any, Any, Any, Any], *, strict: bool = False, view: Any = None) -> None:
        app = builder.compile(strict=strict)
        self.nodes = app.nodes
        self.view = view or {}
        self.topology = Topology(
            app.nodes,
            app.channels,
            input_channels=app.input_channels,
            output_channels=app.output_channels,
            stream_channels=app.stream_channels,
            joins=app.joins,
        )
        self.task: Any = None

    def write(self, name: str, returned: Any) -> list[tuple[str, Any]]:
        """Return the writes of node *name* when it returned that."""
        self.task = Task(
            id="id", node=self.nodes[name], ns="", path=(), path_str="", input=None, triggers=(), view=self.view, step=2, stop=7,
            topology=self.topology,
        )  # fmt: skip
        writing = self.nodes[name].writer.write(self.task, returned)
        answer = None
        while True:
            try:
                call = writing.send(answer)
            except StopIteration:
                return list(self.task.writes)
            answer = call.path.fn(call.input)


def body(state: Any) -> None: ...


def builder_of(*names: str, schema: Any = State, **options: Any) -> StateGraph[Any, Any, Any, Any]:
    builder: StateGraph[Any, Any, Any, Any] = StateGraph(schema, **options)
    for name in names:
        builder.add_node(name, body)
    return builder.add_edge(START, names[0])


def written(returned: Any, *, schema: Any = State) -> list[tuple[str, Any]]:
    """Return what a node without edges writes."""
    return Flow(builder_of("n", "a", "b", schema=schema)).write("n", returned)


@dataclass
class Part:
    log: list[int] | None = None
    total: int | None = 5
    extra: str = "not in the state"


@dataclass
class Made:
    log: list[int] = field(default_factory=list)


class Model(BaseModel):
    total: int | None = None
    log: list[int] = []


class Sub(Model):
    pass


class Plain:
    total: int

    def __init__(self) -> None:
        self.total = 1
        self.log = [1]


UPDATES: list[tuple[Any, list[tuple[str, Any]]]] = [
    (None, []),
    ({}, []),
    ({"total": 1, "log": [2]}, [("total", 1), ("log", [2])]),
    (type("D", (dict,), {})(total=1), [("total", 1)]),
    ({"total": None}, [("total", None)]),
    (Part(), [("total", 5)]),
    (Part(log=[1], total=None), [("log", [1]), ("total", None)]),
    (Made(), [("log", [])]),
    (Model(), [("log", [])]),
    (Model(total=None), [("total", None), ("log", [])]),
    (Sub(total=3), [("total", 3), ("log", [])]),
    (Plain(), [("total", 1), ("log", [1])]),
    (Command(), []),
    (Command(update={"total": 1}), [("total", 1)]),
    (Command(update=[("log", [1]), ("log", [2])]), [("log", [1]), ("log", [2])]),
    (Command(update=[]), []),
    (Command(update=Part(log=[3])), [("log", [3]), ("total", 5)]),
    ([Command(update={"total": 1}), {"log": [2]}, None], [("total", 1), ("log", [2])]),
    ((Command(update={"log": [1]}), Command(update={"log": [2]})), [("log", [1]), ("log", [2])]),
    ({"log": Overwrite([1])}, [("log", Overwrite([1]))]),
]


@pytest.mark.parametrize(("returned", "writes"), UPDATES)
def test_what_a_return_value_writes(returned: Any, writes: Any) -> None:
    """Spec 1.7; an unset None of an instance erases nothing, and a node that returned None has just finished."""
    assert written(returned) == writes


@pytest.mark.parametrize("returned", [{"nope": 1, "total": 2, "left": 3}, Command(update={"nope": 1, "total": 2, "left": 3})])
def test_unknown_keys_are_ignored_and_noted(returned: Any) -> None:
    """S8: managed values cannot be written either."""
    flow = Flow(builder_of("n"))

    assert flow.write("n", returned) == [("total", 2)]
    assert flow.task.unknown_keys == ["nope", "left"]


def test_unknown_keys_of_instances_and_bare_updates_are_noted() -> None:
    """A value without keys is for a channel that this graph does not have."""
    flow = Flow(builder_of("n"))

    assert (flow.write("n", Part(log=[1])), flow.task.unknown_keys) == ([("log", [1]), ("total", 5)], ["extra"])
    assert (flow.write("n", Command(update=5)), flow.task.unknown_keys) == ([], ["__root__"])
    assert (flow.write("n", {"total": 1}), flow.task.unknown_keys) == ([("total", 1)], None)


def test_unknown_keys_are_errors_in_a_strict_graph() -> None:
    """The error names who wrote it, the key and the keys there are."""
    flow = Flow(builder_of("n"), strict=True)

    with pytest.raises(InvalidUpdateError, match="node 'n' wrote 'nope', which is no key of the state; known: 'log', 'total'"):
        flow.write("n", {"nope": 1})
    with pytest.raises(InvalidUpdateError, match="the input wrote 'nope'"):
        flow.write(START, {"nope": 1})


@pytest.mark.parametrize("returned", [[], [1], "text", 5, [Send("a", 1)], [("total", 1)], [{"total": 1}], State, ()])
def test_what_a_node_cannot_return(returned: Any) -> None:
    """S9: the error has the node, the value and the code that LangGraph users search for."""
    with pytest.raises(InvalidUpdateError, match="node 'n' returned .*; return a dict") as caught:
        written(returned)

    assert caught.value.node == "n"
    assert caught.value.error_code is ErrorCode.INVALID_GRAPH_NODE_RETURN_VALUE


def test_a_long_return_value_is_cut_in_the_error() -> None:
    """Nobody reads ten thousand characters of it."""
    with pytest.raises(InvalidUpdateError) as caught:
        written("long" * 5000)

    assert len(str(caught.value)) < 500


ROOTED: list[tuple[Any, list[tuple[str, Any]]]] = [
    (None, []),
    ([1], [("__root__", [1])]),
    ({"total": 1}, [("__root__", {"total": 1})]),
    (Command(update=[1]), [("__root__", [1])]),
    (Command(update=None), []),
    (Command(update={"__root__": [1]}), [("__root__", [1])]),
    (Command(update={"a": 1}), [("__root__", {"a": 1})]),
    ([Command(update=[1]), [2]], [("__root__", [1]), ("__root__", [2])]),
    (Send("a", 1), [(TASKS, Send("a", 1))]),
]


@pytest.mark.parametrize(("returned", "writes"), ROOTED)
def test_what_a_whole_state_is_written_with(returned: Any, writes: Any) -> None:
    """Any value is the write; a Command's update is, whatever its form, unless it names the channel."""
    assert written(returned, schema=Annotated[list, operator.add]) == writes


# Control.


@pytest.mark.parametrize(
    ("returned", "writes"),
    [
        (Command(goto="a"), [("branch:to:a", None)]),
        (Command(goto=["a", "b"]), [("branch:to:a", None), ("branch:to:b", None)]),
        (Command(goto=END), []),
        (Command(goto=None), []),
        (Command(goto=Send("a", 1)), [(TASKS, Send("a", 1))]),
        (Command(goto=("a", Send("b", 1), END)), [("branch:to:a", None), (TASKS, Send("b", 1))]),
        (Command(update={"total": 1}, goto="a", graph="another"), [("total", 1), ("branch:to:a", None)]),
        (Send("a", 1), [(TASKS, Send("a", 1))]),
        (
            [Command(update={"total": 1}, goto="a"), {"log": [1]}, Send("b", 2)],
            [("total", 1), ("log", [1]), ("branch:to:a", None), (TASKS, Send("b", 2))],
        ),
    ],
)
def test_gotos_and_sends_follow_all_updates(returned: Any, writes: Any) -> None:
    """Spec 3.4; a Send beside a Command is sent too, which LangGraph drops."""
    assert written(returned) == writes


def test_a_command_for_the_parent_leaves_the_node() -> None:
    """Nothing is written here, wherever in a list it stands."""
    command = Command(update={"total": 1}, graph=Command.PARENT)
    flow = Flow(builder_of("n"))

    for returned in (command, [{"total": 2}, command]):
        with pytest.raises(ParentCommand) as caught:
            flow.write("n", returned)
        assert (caught.value.command, flow.task.writes) == (command, [])


@pytest.mark.parametrize("target", ["nowhere", START, 5, ["a"], Send("nowhere", 1), Send(START, 1)])
def test_an_unknown_target_is_an_error(target: Any) -> None:
    """D1: LangGraph logs and goes on. The error has the node and the names there are."""
    with pytest.raises(UnknownTargetError, match="node 'n' sent to") as caught:
        written(Command(goto=[target]))

    assert set(caught.value.known) - {END} == {"a", "b", "n"}


def test_an_error_handler_is_no_target() -> None:
    """It runs when its node has failed, and only then."""
    flow = Flow(builder_of("n").add_node("m", body, error_handler=body))

    with pytest.raises(UnknownTargetError):
        flow.write("n", Command(goto="__error_handler__m"))


@pytest.mark.parametrize("returned", [Send(END, 1), Command(goto=Send(END, 1))])
def test_end_takes_no_packets(returned: Any) -> None:
    """K8: it is no node."""
    with pytest.raises(InvalidUpdateError, match="END takes no packets"):
        written(returned)


# Edges.


@pytest.mark.parametrize("returned", [None, {}, Command(goto="a")])
def test_edges_and_joins_are_followed_whatever_was_returned(returned: Any) -> None:
    """K3, K14: after a goto too; an edge to END writes nothing."""
    builder = builder_of("n", "a", "b").add_edge("n", "b").add_edge("n", "a").add_edge("n", END)
    builder.add_edge(["n", "a"], "b").add_edge(["n", "a"], END)

    writes = Flow(builder).write("n", returned)

    assert writes[-3:] == [("branch:to:a", None), ("branch:to:b", None), ("join:n+a:b", "n")]


def test_a_start_named_twice_in_a_join_is_written_once() -> None:
    """The barrier waits for names, not for writes."""
    assert Flow(builder_of("n", "a").add_edge(["n", "n"], "a")).write("n", None) == [("join:n+n:a", "n")]


# Conditional edges.


def branching(path: Any, path_map: Any = None, *, schema: Any = State, view: Any = None) -> Flow:
    builder = builder_of("n", "a", "b", schema=schema)
    return Flow(builder.add_conditional_edges("n", path, path_map), view=view)


class Kind(StrEnum):
    A = "a"


@pytest.mark.parametrize(
    ("result", "path_map", "writes"),
    [
        ("a", None, [("branch:to:a", None)]),
        (["a", "b"], None, [("branch:to:a", None), ("branch:to:b", None)]),
        (("a",), None, [("branch:to:a", None)]),
        (END, None, []),
        ([], None, []),
        (Kind.A, None, [("branch:to:a", None)]),
        (Send("a", 1), None, [(TASKS, Send("a", 1))]),
        ([Send("a", 1), "b"], {"b": "a"}, [(TASKS, Send("a", 1)), ("branch:to:a", None)]),
        (True, {True: "a", False: END}, [("branch:to:a", None)]),
        (False, {True: "a", False: END}, []),
        ("a", {}, [("branch:to:a", None)]),
    ],
)
def test_where_a_path_leads(result: Any, path_map: Any, writes: Any) -> None:
    """Names, Sends, lists of both, END, or the labels of a map."""
    assert branching(lambda state: result, path_map).write("n", None) == writes


@pytest.mark.parametrize("result", ["b", 5, ["a", "b"], ["unhashable", []]])
def test_a_label_that_is_not_in_the_map(result: Any) -> None:
    """K8: a KeyError, and at once the error of every unknown target, with edge and labels."""
    flow = branching(lambda state: result, ["a"])

    with pytest.raises(KeyError, match="conditional edge 'condition' of node 'n' returned .* known: 'a'") as caught:
        flow.write("n", None)
    assert isinstance(caught.value, UnknownTargetError)
    assert str(caught.value).startswith("[TG202]")


@pytest.mark.parametrize("result", [None, START, [None], [START]])
def test_a_path_that_names_no_destination(result: Any) -> None:
    """K8: a ValueError, and at once an invalid update, with edge and node."""
    flow = branching(lambda state: result)

    with pytest.raises(ValueError, match="conditional edge 'condition' of node 'n' returned") as caught:
        flow.write("n", None)
    assert isinstance(caught.value, InvalidUpdateError)


@pytest.mark.parametrize(("result", "error"), [("nowhere", UnknownTargetError), (Send(END, 1), InvalidUpdateError)])
def test_a_path_to_what_does_not_exist(result: Any, error: type[Exception]) -> None:
    """D1, K8: an unknown name without a map, and a packet for END."""
    with pytest.raises(error):
        branching(lambda state: result).write("n", None)


def seen(returned: Any, *, view: Any = None, schema: Any = State, path_schema: Any = None) -> Any:
    """Return what a path function gets after a node returned that."""
    given: list[Any] = []

    def path(state: Any) -> str:
        given.append(state)
        return END

    if path_schema is not None:
        path.__annotations__["state"] = path_schema
    branching(path, schema=schema, view=view).write("n", returned)
    return given[0]


def test_a_path_sees_its_node_s_writes_through_the_reducers() -> None:
    """K7: on top of the state at the step's start, with managed values; nothing of siblings."""
    assert seen({"log": [2], "total": 5}, view={"log": [1], "total": 4}) == {"log": [1, 2], "total": 5, "left": 5}
    assert seen(None) == {"left": 5}


def test_extra_keys_of_a_returned_dict_reach_the_path() -> None:
    """Underneath the state; not if it declared a schema, and not for other return values."""

    class Narrow(TypedDict):
        total: int

    returned = {"log": [2], "note": "hi", "left": 9}

    assert seen(returned, view={"log": [1]}) == {"log": [1, 2], "note": "hi", "left": 5}
    assert seen(returned, view={"log": [1], "total": 1}, path_schema=Narrow) == {"total": 1}
    assert seen(Command(update=returned)) == {"log": [2], "left": 5}


def test_a_path_gets_an_instance_of_its_schema() -> None:
    """Its own, or else that of its node."""

    @dataclass
    class Record:
        total: int = 0

    assert seen({"total": 3}, path_schema=Record) == Record(3)
    assert seen({"total": 3, "note": 1}, schema=Record) == Record(3)


def test_a_path_over_a_whole_state_gets_the_value() -> None:
    """None if there is none yet."""
    assert seen([2], schema=Annotated[list, operator.add], view={"__root__": [1]}) == [1, 2]
    assert seen(None, schema=int) is None


def test_a_path_from_the_start_sees_the_input() -> None:
    """It reads the state, with keys of the input that are no fields underneath."""
    given: list[Any] = []
    builder = builder_of("n").set_conditional_entry_point(lambda state: given.append(state) or "n")

    writes = Flow(builder).write(START, {"total": 1, "note": "hi"})

    assert given == [{"total": 1, "note": "hi", "left": 5}]
    assert writes == [("total", 1), ("branch:to:n", None), ("branch:to:n", None)]


def test_several_conditional_edges_are_followed_in_order() -> None:
    """Each is a call of its own, named after its function."""

    def first(state: Any) -> str:
        return "b"

    def second(state: Any) -> Sequence[str]:
        return ["a"]

    builder = builder_of("n", "a", "b").add_conditional_edges("n", first).add_conditional_edges("n", second)

    assert Flow(builder).write("n", None) == [("branch:to:b", None), ("branch:to:a", None)]


# The start node.


class Given(TypedDict):
    total: int


@pytest.mark.parametrize("given", [{"total": 1, "log": [1]}, Part(log=[1], total=1)])
def test_the_input_is_cut_to_the_input_schema(given: Any) -> None:
    """K12: fields of the state that are no input are dropped."""
    flow = Flow(builder_of("n", input_schema=Given))

    assert flow.write(START, given) == [("total", 1), ("branch:to:n", None)]
    assert flow.task.unknown_keys[0] == "log"


@pytest.mark.parametrize("given", [5, [1], "text"])
def test_an_input_that_is_no_state(given: Any) -> None:
    """Spec 1.10: raised by the start node, inside the run."""
    with pytest.raises(InvalidUpdateError, match="the input .* is no state"):
        Flow(builder_of("n")).write(START, given)


def test_the_input_of_a_whole_state_is_the_value() -> None:
    """Also if it is a dict."""
    assert Flow(builder_of("n", schema=dict)).write(START, {"a": 1}) == [("__root__", {"a": 1}), ("branch:to:n", None)]
