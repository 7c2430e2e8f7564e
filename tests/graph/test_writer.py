"""What a node returned, as channel writes."""

from __future__ import annotations

import operator
from dataclasses import dataclass, field
from typing import Annotated, Any, TypedDict

import pytest
from pydantic import BaseModel
from writing import Flow

from tracegraph.constants import TASKS
from tracegraph.errors import ErrorCode, InvalidUpdateError, ParentCommand, UnknownTargetError
from tracegraph.graph import END, START, StateGraph
from tracegraph.managed import RemainingSteps
from tracegraph.types import Command, Overwrite, Send


class State(TypedDict):
    log: Annotated[list, operator.add]
    total: int
    left: RemainingSteps


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
    (Part(), [("log", None), ("total", 5)]),
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
    """Spec 1.7; an unset None of a Pydantic model erases nothing, and a node that returned None has just finished."""
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
    with pytest.raises(InvalidUpdateError, match="node 'n' sent a packet to END, which takes none"):
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
    with pytest.raises(InvalidUpdateError, match="the input, an? (int|list|str).*, is no state"):
        Flow(builder_of("n")).write(START, given)


def test_the_input_of_a_whole_state_is_the_value() -> None:
    """Also if it is a dict."""
    assert Flow(builder_of("n", schema=dict)).write(START, {"a": 1}) == [("__root__", {"a": 1}), ("branch:to:n", None)]
