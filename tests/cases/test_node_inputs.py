"""What a node and its path functions are given: found by comparing generated graphs with LangGraph."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any, TypedDict

import pytest
from colours import Colour

from tracegraph.channels import AnyValue, BaseChannel, EphemeralValue, Topic
from tracegraph.errors import EmptyChannelError, NodeError
from tracegraph.graph import END, START, StateGraph
from tracegraph.types import Command, RetryPolicy, Send


@dataclass
class Data:
    n: int = 0
    log: list[str] = field(default_factory=list)


class Cleared(TypedDict, total=False):
    kept: str
    once: Annotated[str, EphemeralValue]
    any: Annotated[str, AnyValue]
    topic: Annotated[list[str], Topic(str)]


def test_argument_of_a_send_is_the_input_whatever_the_schema(colour: Colour) -> None:
    """A packet is for the node alone: it is not made into the state class, even if that could hold it."""
    seen: list[Any] = []

    def worker(given: Any) -> dict[str, Any]:
        seen.append(given)
        return {}

    graph = StateGraph(Data)
    graph.add_node("worker", worker)
    graph.add_conditional_edges(START, lambda state: [Send("worker", {"item": 1}), Send("worker", {"n": 2})], ["worker"])

    colour.invoke(graph.compile(), {"n": 1})

    assert sorted(seen, key=str) == [{"item": 1}, {"n": 2}]


def test_each_attempt_gets_an_input_of_its_own(colour: Colour) -> None:
    """The input of a retry is made of the state again: neither what the failed attempt did to it, nor made twice."""
    seen: list[Data] = []

    def flaky(state: Data) -> dict[str, Any]:
        seen.append(Data(state.n, list(state.log)))
        state.log.append("spoilt")
        if len(seen) < 3:
            raise ConnectionError
        return {"n": 2}

    graph = StateGraph(Data)
    graph.add_node("flaky", flaky, retry_policy=RetryPolicy(initial_interval=0.0, jitter=False))
    graph.add_edge(START, "flaky")

    result = colour.invoke(graph.compile(), {"n": 1, "log": ["good"]})

    assert seen == [Data(1, ["good"])] * 3
    assert result == {"n": 2, "log": ["good"]}


def test_dict_input_of_a_retry_is_not_what_the_failed_attempt_left(colour: Colour) -> None:
    """The same for a plain dict of fields."""
    seen: list[Any] = []

    class State(TypedDict, total=False):
        log: list[str]
        more: str

    def flaky(state: State) -> dict[str, Any]:
        seen.append({**state, "log": list(state["log"])})
        state["log"].append("spoilt")
        state["more"] = "spoilt"
        if len(seen) < 2:
            raise ConnectionError
        return {}

    graph = StateGraph(State)
    graph.add_node("flaky", flaky, retry_policy=RetryPolicy(initial_interval=0.0, jitter=False))
    graph.add_edge(START, "flaky")

    colour.invoke(graph.compile(), {"log": ["good"]})

    assert seen == [{"log": ["good"]}] * 2


def test_error_handler_gets_the_input_of_the_node_that_failed(colour: Colour) -> None:
    """As an instance of the state class, like the node itself."""
    seen: list[Any] = []

    def broken(state: Data) -> dict[str, Any]:
        raise ValueError("no")

    def rescue(state: Data, error: NodeError) -> dict[str, Any]:
        seen.append((state, error.node))
        return {"n": 2}

    graph = StateGraph(Data)
    graph.add_node("broken", broken, error_handler=rescue)
    graph.add_edge(START, "broken")

    result = colour.invoke(graph.compile(), {"n": 1})

    assert (seen, result["n"]) == ([(Data(1, []), "broken")], 2)


CLEARED = {"once": "in", "any": "in", "topic": ["in"]}


@pytest.mark.parametrize(
    ("returned", "left"),
    [
        ({"kept": "new"}, {"kept": "new"}),
        (None, {"kept": "in"}),
        ({"once": "new"}, {"kept": "in", "once": "new"}),
        ({"topic": ["new"]}, {"kept": "in", "topic": ["new"]}),
    ],
    ids=repr,
)
def test_path_function_sees_the_state_as_the_node_leaves_it(colour: Colour, returned: Any, left: Any) -> None:
    """What a superstep without a write to it empties is empty for the path, unless the node wrote it."""
    seen: list[Any] = []

    def node(state: Cleared) -> Any:
        seen.append(dict(state))
        return returned

    def path(state: Cleared) -> str:
        seen.append(dict(state))
        return END

    graph = StateGraph(Cleared)
    graph.add_node("node", node)
    graph.add_edge(START, "node")
    graph.add_conditional_edges("node", path, [END])

    colour.invoke(graph.compile(), {"kept": "in", **CLEARED})

    assert seen == [{"kept": "in", **CLEARED}, left]


class Total(BaseChannel[int, int, int]):
    """A channel of the user's own, in object form."""

    def __init__(self, typ: Any, key: str = "") -> None:
        super().__init__(typ, key)
        self.value: int | None = None

    @property
    def ValueType(self) -> Any:
        return int

    @property
    def UpdateType(self) -> Any:
        return int

    def update(self, values: Any) -> bool:
        if values:
            self.value = (self.value or 0) + sum(values)
        return bool(values)

    def get(self) -> int:
        if self.value is None:
            raise EmptyChannelError
        return self.value

    def from_checkpoint(self, checkpoint: Any) -> Total:
        made = Total(self.typ, self.key)
        made.value = checkpoint if isinstance(checkpoint, int) else None
        return made


def test_path_function_sees_a_channel_of_the_users_own_with_its_past(colour: Colour) -> None:
    """Its own writes are added to what was there."""

    class State(TypedDict, total=False):
        total: Annotated[int, Total]

    seen: list[Any] = []

    def path(state: State) -> str:
        seen.append(state["total"])
        return END

    graph = StateGraph(State)
    graph.add_node("node", lambda state: {"total": 1})
    graph.add_edge(START, "node")
    graph.add_conditional_edges("node", path, [END])

    assert colour.invoke(graph.compile(), {"total": 5}) == {"total": 6}
    assert seen == [6]


@dataclass
class Part:
    a: int | None = None
    b: int | None = 5


class Fields(TypedDict, total=False):
    a: int | None
    b: int | None


@pytest.mark.parametrize("given", ["by the node", "by a Command", "as the input"])
def test_none_in_a_dataclass_instance_is_an_update(colour: Colour, given: str) -> None:
    """A dataclass does not know what was set, so all its fields count, as they do in LangGraph."""

    def node(state: Fields) -> Any:
        return {"by the node": Part(), "by a Command": Command(update=Part()), "as the input": {}}[given]

    graph = StateGraph(Fields)
    graph.add_node("node", node)
    graph.add_edge(START, "node")

    assert colour.invoke(graph.compile(), Part() if given == "as the input" else {"a": 7}) == {"a": None, "b": 5}
