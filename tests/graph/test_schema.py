"""Which channel or managed value each field of a schema becomes, and who sees which."""

from __future__ import annotations

import operator
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Generic, TypedDict, TypeVar

import pytest
from pydantic import BaseModel

from tracegraph.channels import (
    BinaryOperatorAggregate,
)
from tracegraph.constants import MISSING
from tracegraph.errors import GraphDefinitionError
from tracegraph.graph import END, START, CompiledStateGraph, MessagesState, StateGraph
from tracegraph.graph.message import MessageGraph
from tracegraph.graph.schema import read_schema
from tracegraph.managed import IsLastStep, RemainingSteps
from tracegraph.managed.is_last_step import RemainingStepsManager


def keep(old: Any, new: Any) -> Any:
    return old


class State(TypedDict):
    log: Annotated[list, operator.add]
    total: int


class Left(TypedDict):
    left: RemainingSteps


@dataclass
class Record:
    a: int = 1
    b: list[int] = field(default_factory=list)
    kind: ClassVar[str] = "record"


class Model(BaseModel):
    a: int = 1
    b: str | None = None


def kinds(schema: Any) -> dict[str, str]:
    return {name: type(made).__name__ for name, made in StateGraph(schema).channels.items()}


def body(state: Any) -> None:
    """A node that writes nothing."""


@pytest.mark.parametrize("schema", [Record, Model])
def test_classes_with_annotations_give_one_channel_per_field(schema: Any) -> None:
    """Class variables, Pydantic's own among them, are no fields."""
    assert kinds(schema) == {"a": "LastValue", "b": "LastValue"}


def test_inherited_fields_count_and_slots_do_not() -> None:
    """A subclass has all fields of its bases; `__slots__` may be annotated too."""

    class Base:
        __slots__: tuple[str, ...] = ()
        first: int

    class Derived(Base):
        second: Annotated[int, operator.add]

    assert kinds(Derived) == {"first": "LastValue", "second": "BinaryOperatorAggregate"}


@pytest.mark.parametrize(
    ("schema", "kind"),
    [
        (int, "LastValue"),
        (dict, "LastValue"),
        (list[int], "LastValue"),
        (Annotated[list, operator.add], "BinaryOperatorAggregate"),
    ],
)
def test_any_other_type_is_the_whole_state(schema: Any, kind: str) -> None:
    """A state that is one value has one channel, `__root__`."""
    assert kinds(schema) == {"__root__": kind}


def test_something_that_is_no_type_warns() -> None:
    """It is taken as the whole state, and its author is told."""
    with pytest.warns(UserWarning, match="'text' is no type"):
        assert kinds("text") == {"__root__": "LastValue"}


def test_channels_come_in_the_order_in_which_schemas_brought_them() -> None:
    """S1: state, input, output, then the schemas of nodes and branches."""

    class Given(TypedDict):
        given: int
        total: int

    class Result(TypedDict):
        result: int

    class Private(TypedDict):
        private: int

    class Chosen(TypedDict):
        chosen: int

    def choose(state: Chosen) -> str:
        return END

    builder = StateGraph(State, input_schema=Given, output_schema=Result)
    builder.add_node("n", body, input_schema=Private)
    hints = choose.__annotations__
    hints["state"] = Chosen
    builder.add_conditional_edges("n", choose)

    assert list(builder.channels) == ["log", "total", "given", "result", "private", "chosen"]


def test_managed_values_are_not_allowed_in_input_and_output() -> None:
    """S7: they are computed, never given; the error names them."""
    with pytest.raises(GraphDefinitionError, match="input schema 'Left' has managed values.*'left'"):
        StateGraph(State, input_schema=Left)
    with pytest.raises(GraphDefinitionError, match="output schema 'Left'"):
        StateGraph(State, output_schema=Left)
    assert StateGraph(Left).managed == {"left": RemainingStepsManager}
    assert StateGraph(State).add_node("n", body, input_schema=Left).managed == {"left": RemainingStepsManager}


def test_a_plain_field_keeps_the_reducer_of_an_earlier_schema() -> None:
    """S5: it says nothing of how writes combine."""

    class Plain(TypedDict):
        log: list

    assert isinstance(StateGraph(State, input_schema=Plain).channels["log"], BinaryOperatorAggregate)
    with pytest.raises(
        GraphDefinitionError, match="field 'log' of schema 'State' is a value with the reducer 'add'.*a LastValue"
    ):
        StateGraph(Plain, input_schema=State)


def with_reducer(reducer: Any) -> Any:
    return TypedDict("Other", {"log": Annotated[list, reducer]})  # type: ignore[operator]


def test_two_reducers_for_one_field_conflict_unless_one_is_a_lambda() -> None:
    """S6: a lambda is made anew with each schema and cannot be told apart."""
    with pytest.raises(GraphDefinitionError, match="reducer 'keep'.*reducer 'add'"):
        StateGraph(State, input_schema=with_reducer(keep))

    StateGraph(State, input_schema=with_reducer(lambda old, new: new))
    StateGraph(State, input_schema=with_reducer(operator.add))


def test_a_conflict_adds_nothing() -> None:
    """The builder is as if the call had not been made."""

    class Other(TypedDict):
        new: int
        log: Annotated[list, keep]

    builder = StateGraph(State)

    with pytest.raises(GraphDefinitionError):
        builder.add_node("n", body, input_schema=Other)

    assert (list(builder.channels), builder.nodes) == (["log", "total"], {})


def test_two_managed_values_for_one_field_conflict() -> None:
    """They compute different things; a plain field takes what is there."""

    class Last(TypedDict):
        left: IsLastStep

    class Plain(TypedDict):
        left: int

    with pytest.raises(GraphDefinitionError, match="managed value IsLastStepManager.*managed value RemainingStepsManager"):
        StateGraph(Left).add_node("n", body, input_schema=Last)
    builder = StateGraph(Left).add_node("n", body, input_schema=Plain)
    assert builder.schemas.managed_of(Plain) == (("left", RemainingStepsManager),)


def test_annotations_that_cannot_be_resolved_are_an_error() -> None:
    """The name that is missing is in the text."""

    class Broken:
        x: Nowhere  # type: ignore[name-defined]  # noqa: F821

    with pytest.raises(GraphDefinitionError, match="schema 'Broken' cannot be resolved.*'Nowhere' is not defined"):
        read_schema(Broken)


def test_a_schema_that_cannot_be_hashed_is_an_error() -> None:
    """Schemas are told apart by identity and hash."""
    with pytest.raises(GraphDefinitionError, match="not hashable"):
        StateGraph(Annotated[list, []])  # type: ignore[arg-type]


T = TypeVar("T")


class Box(TypedDict, Generic[T]):
    content: T


def test_a_parametrised_generic_class_is_the_whole_state() -> None:
    """As in LangGraph: its annotations are those of another object."""
    assert kinds(Box[int]) == {"__root__": "LastValue"}


def compiled(schema: Any, **options: Any) -> CompiledStateGraph[Any, Any, Any, Any]:
    return StateGraph(schema, **options).add_node("n", body).add_edge(START, "n").compile()


@pytest.mark.parametrize(("schema", "value"), [(Record, Record(a=5)), (Model, Model(a=5))])
def test_a_class_schema_builds_a_node_s_input(schema: Any, value: Any) -> None:
    """S10: defaults and validation happen there; channels never see a default."""
    app = compiled(schema)

    mapper = app.nodes["n"].mapper
    assert mapper is not None
    assert mapper({"a": 5}) == value
    assert all(made.peek(made.initial()) is MISSING for name, made in app.channels.items() if name in "ab")


def test_dicts_and_whole_states_are_given_as_they_are() -> None:
    """A TypedDict is a dict already; the whole state is its own input."""
    assert (compiled(State).nodes["n"].mapper, compiled(State).nodes["n"].reads) == (None, ("log", "total"))
    assert (compiled(int).nodes["n"].mapper, compiled(int).nodes["n"].reads) == (None, "__root__")


def test_the_views_of_a_graph() -> None:
    """Output fields, stream fields with the private ones, and `__root__` as a bare name."""

    class Result(TypedDict):
        total: int

    builder = StateGraph(State, output_schema=Result).add_edge(START, "n")
    app = builder.add_node("n", body, input_schema=TypedDict("Private", {"private": int, "left": RemainingSteps})).compile()

    assert (app.output_channels, app.stream_channels) == (("total",), ("log", "total", "private"))
    assert app.nodes["n"].reads == ("private",)
    assert app.nodes["n"].managed == (("left", RemainingStepsManager),)
    assert (compiled(int).output_channels, compiled(int).stream_channels) == ("__root__", "__root__")


def narrow(state: Left) -> None: ...
def unresolved(state: Nowhere) -> None: ...  # type: ignore[name-defined]  # noqa: F821


class Hollow:
    x: Nowhere  # type: ignore[name-defined]  # noqa: F821


def hollow(state: Hollow) -> None: ...
def plain_dict(state: dict) -> None: ...
def nothing() -> None: ...


class Callable_:
    def __call__(self, state: Left) -> None: ...

    def method(self, state: Left) -> None: ...


@pytest.mark.parametrize(
    ("action", "schema"),
    [
        (narrow, Left),
        (Callable_(), Left),
        (Callable_().method, Left),
        (Callable_, State),
        (unresolved, State),
        (plain_dict, State),
        (hollow, State),
        (nothing, State),
        (lambda state: None, State),
        (max, State),
    ],
)
def test_a_node_s_schema_is_that_of_its_first_parameter(action: Any, schema: Any) -> None:
    """Of a callable object too; what has no fields or cannot be resolved counts as not given."""
    assert StateGraph(State).add_node("n", action).nodes["n"].input_schema is schema
    assert StateGraph(State).add_node("n", action, input_schema=Record).nodes["n"].input_schema is Record


def test_messages_state_adds_to_its_list() -> None:
    """The ready state and the old graph class reduce with add_messages."""
    assert kinds(MessagesState) == {"messages": "BinaryOperatorAggregate"}
    with pytest.warns(DeprecationWarning, match="MessagesState"):
        assert list(MessageGraph().channels) == ["__root__"]
