"""Conditional edges: what a path function sees, may say, and where it leads."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any, TypedDict

import pytest
from writing import Flow

from tracegraph.constants import TASKS
from tracegraph.errors import InvalidUpdateError, UnknownTargetError
from tracegraph.graph import END, START, StateGraph
from tracegraph.managed import RemainingSteps
from tracegraph.types import Command, Send


class State(TypedDict):
    log: Annotated[list, operator.add]
    total: int
    left: RemainingSteps


def body(state: Any) -> None: ...


def builder_of(*names: str, schema: Any = State) -> StateGraph[Any, Any, Any, Any]:
    builder: StateGraph[Any, Any, Any, Any] = StateGraph(schema)
    for name in names:
        builder.add_node(name, body)
    return builder.add_edge(START, names[0])


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
