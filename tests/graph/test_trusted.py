"""What a strict serialiser revives for a graph: the classes that its schemas name, and no others."""

from __future__ import annotations

import enum
import operator
from contextlib import closing
from dataclasses import dataclass, field
from typing import Annotated, Any, NamedTuple, TypedDict

import pytest
from pydantic import BaseModel

from tracegraph.channels import DeltaChannel
from tracegraph.checkpoint.memory import InMemorySaver
from tracegraph.checkpoint.serde.encrypted import EncryptedSerializer
from tracegraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from tracegraph.checkpoint.sqlite import SqliteSaver
from tracegraph.checkpoint.sqlite.database import connect
from tracegraph.graph import START, StateGraph

THREAD: dict[str, Any] = {"configurable": {"thread_id": "t"}}


class Level(enum.Enum):
    LOW = 1


class Spot(NamedTuple):
    x: int


@dataclass
class Inner:
    level: Level = Level.LOW


@dataclass
class Outer:
    inner: list[Inner] = field(default_factory=lambda: [Inner()])


class Model(BaseModel):
    spot: Spot = Spot(1)


@dataclass
class OfAChannel:
    n: int = 1


@dataclass
class Unnamed:
    n: int = 1


class State(TypedDict, total=False):
    outer: dict[str, Outer | None]
    models: Annotated[list[Model], operator.add]
    log: Annotated[list[Any], DeltaChannel(lambda log, batch: [*log, *(x for write in batch for x in write)], list[OfAChannel])]
    anything: Any


class ChildState(TypedDict, total=False):
    child: Annotated[OfAChannel, "metadata that is no type"]
    spot: Spot


STRICT = JsonPlusSerializer(allowed_msgpack_modules=None)


def app_on(saver: Any, **values: Any) -> Any:
    return StateGraph(State).add_node("give", lambda state: values).add_edge(START, "give").compile(checkpointer=saver)


@pytest.mark.parametrize("serde", [STRICT, EncryptedSerializer.from_aes(b"k" * 16, serde=STRICT)])
@pytest.mark.parametrize("make", [InMemorySaver, lambda serde: SqliteSaver(connect(":memory:"), serde=serde)])
def test_classes_of_the_state_come_back_and_others_do_not(serde: Any, make: Any) -> None:
    """In fields, reducers' and channels' types, generics, unions, and fields of those classes."""
    saver = make(serde=serde)
    values = {"outer": {"a": Outer()}, "models": [Model()], "log": [OfAChannel()]}
    app = app_on(saver, **values, anything=Unnamed())

    app.invoke({}, THREAD)

    found = app.get_state(THREAD).values
    assert {name: found[name] for name in values} == values
    assert found["anything"] != Unnamed()
    # The saver that was given is as it was.
    assert saver.get(THREAD)["channel_values"]["models"] != [Model()]


def test_classes_of_subgraphs_come_back() -> None:
    """They save with the parent's saver."""
    child = StateGraph(ChildState).add_node("give", lambda state: {"child": OfAChannel(2)}).add_edge(START, "give")
    child.add_node("stop", lambda state: {}).add_edge("give", "stop")
    graph = StateGraph(ChildState).add_node("sub", child.compile(interrupt_before=["stop"])).add_edge(START, "sub")
    with closing(connect(":memory:")) as connection:
        app = graph.compile(checkpointer=SqliteSaver(connection, serde=STRICT))
        app.invoke({"spot": Spot(1)}, THREAD)

        (task,) = app.get_state(THREAD, subgraphs=True).tasks
        assert task.state.values == {"child": OfAChannel(2), "spot": Spot(1)}


def test_savers_that_are_not_strict_stay_the_same_object() -> None:
    saver = InMemorySaver(serde=JsonPlusSerializer())

    assert app_on(saver).checkpointer is saver
