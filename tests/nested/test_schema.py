"""Which channels a nested field brings, what several schemas say of it, and what cannot be nested."""

from __future__ import annotations

import operator
from dataclasses import dataclass
from typing import Annotated, Any, Generic, NotRequired, Required, TypedDict, TypeVar

import pytest
import typing_extensions
from nested_states import Inner, Meta, State, chain, nested, typed
from pydantic import BaseModel

from tracegraph.channels import DeltaChannel, LastValue, Nested, Topic
from tracegraph.channels.reducers import union
from tracegraph.errors import GraphDefinitionError
from tracegraph.graph import START, StateGraph
from tracegraph.managed import RemainingSteps

T = TypeVar("T")


def one_field(annotation: Any) -> Any:
    return typed(meta=annotation)


def names(schema: Any) -> list[str]:
    return list(StateGraph(schema).channels)


def nothing(state: Any) -> None:
    """A node that writes nothing."""


def test_each_sub_field_is_a_channel_named_by_the_path_to_it() -> None:
    """With its own reducer; the field itself is no channel."""
    channels = StateGraph(State).channels

    assert list(channels) == ["x", "meta.tags", "meta.title", "meta.inner.a", "meta.inner.b"]
    assert [channels[name].key for name in channels] == list(channels)
    assert (channels["meta.tags"].operator, channels["meta.inner.b"].operator) == (union, operator.add)
    assert isinstance(channels["meta.title"].inner, LastValue)


@pytest.mark.parametrize(
    "annotation",
    [
        Annotated[Inner, Nested],
        Annotated[Inner, Nested()],
        Annotated[Inner, "doc", Nested, "more"],
        Annotated[Inner | None, Nested],
        NotRequired[Annotated[Inner, Nested]],
        Required[Annotated[Inner, Nested]],
        Annotated[NotRequired[Inner], Nested],
        Annotated[Inner, Nested] | None,
    ],
)
def test_the_marker_may_stand_beside_other_words(annotation: Any) -> None:
    """Optional, required or documented, it is the same nested field."""
    assert names(one_field(annotation)) == ["meta.a", "meta.b"]


def test_typed_dicts_of_typing_extensions_nest_too() -> None:
    """They are what Pydantic asks for on older Pythons."""
    made = typing_extensions.TypedDict("Made", {"a": int})  # noqa: UP013

    assert names(one_field(Annotated[made, Nested])) == ["meta.a"]


def test_two_fields_of_one_type_have_channels_of_their_own() -> None:
    """The channel object in the annotation is shared by both and named twice."""
    part = typed(log=Annotated[list[str], Topic(str)])
    made = StateGraph(typed(one=Annotated[part, Nested], two=Annotated[part, Nested]))

    assert [channel.inner.key for channel in made.channels.values()] == ["one.log", "two.log"]


class Record(BaseModel):
    a: int = 0


class Box(TypedDict, Generic[T]):
    content: T


class Endless(TypedDict):
    again: Annotated[Endless, Nested]  # type: ignore[misc]


class Counting(TypedDict):
    left: RemainingSteps


class Hollow(TypedDict):
    pass


@pytest.mark.parametrize(
    ("annotation", "text"),
    [
        (Annotated[dict, Nested], r"field 'meta' is marked Nested, which takes a TypedDict, not dict"),
        (Annotated[Record, Nested], r"takes a TypedDict, not Record"),
        (Annotated[Box[int], Nested], r"takes a TypedDict, not .*Box"),
        (Annotated[Inner | int, Nested], r"takes a TypedDict, not .*Inner"),
        (list[Annotated[Inner, Nested]], r"stands elsewhere in the annotation of 'meta'; write meta: Annotated\["),
        (Annotated[Inner, operator.or_, Nested], r"'meta' is marked Nested and has <built-in function or_> beside it"),
        (Annotated[Inner, Nested, Topic(str)], r"'meta' is marked Nested and has <Topic '': empty> beside it"),
        (Annotated[Endless, Nested], r"the nested field 'meta.again' contains itself, without end"),
        (Annotated[Counting, Nested], r"the nested field 'meta' has managed values \('left'\)"),
        (Annotated[Hollow, Nested], r"the nested field 'meta' has no sub-fields"),
    ],
)
def test_what_cannot_be_nested_is_an_error_that_names_the_field(annotation: Any, text: str) -> None:
    """At the call that brings the schema, with the way out."""
    with pytest.raises(GraphDefinitionError, match=text):
        StateGraph(one_field(annotation))


def test_the_whole_state_is_not_a_nested_field() -> None:
    """Its fields are channels without a marker."""
    with pytest.raises(GraphDefinitionError, match="Nested marks a field of the state"):
        StateGraph(Annotated[Meta, Nested])  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "fields",
    [
        {"meta": Annotated[Inner, Nested], "meta.a": int},
        {"meta.a": int, "meta": Annotated[Inner, Nested]},
        {"meta": Annotated[Inner, Nested], "meta.a": RemainingSteps},
        {
            "m": Annotated[typed(**{"n.a": int}), Nested],
            "m.n": Annotated[typed(a=int), Nested],
        },
    ],
)
def test_a_channel_name_that_two_fields_would_have_is_an_error(fields: Any) -> None:
    """A name with a dot is the author's own, until a nested field needs it."""
    with pytest.raises(GraphDefinitionError, match=r"two fields would have the channel '(meta|m\.n)\.a'.*rename one"):
        StateGraph(typed(**fields))


def test_a_reserved_name_is_refused_for_a_nested_field_too() -> None:
    """The field has the name though it is no channel."""
    builder = StateGraph(typed(configurable=Annotated[Inner, Nested])).add_node("n", nothing).add_edge(START, "n")

    with pytest.raises(GraphDefinitionError, match="'configurable' cannot be a field of the state"):
        builder.compile()


# Several schemas.


class OnlyTags(TypedDict):
    tags: set[str]


class MoreMeta(TypedDict):
    title: str
    note: str


Part = one_field(Annotated[OnlyTags, Nested])
Private = one_field(Annotated[MoreMeta, Nested])
Plain = one_field(dict)


def test_a_schema_that_names_a_part_reads_that_part() -> None:
    """The sub-field keeps the reducer it has in the state."""
    app = chain(nothing, options={"input_schema": Part, "output_schema": Part})

    assert app.output_channels == ("meta.tags",)
    assert app.channels["meta.tags"].operator is union


def test_a_plain_field_of_a_later_schema_is_the_whole_nested_field() -> None:
    """It says nothing of how the state combines writes, so any declaration beats it."""
    app = StateGraph(State).add_node("n", nothing, input_schema=Plain).add_edge(START, "n").compile()

    assert app.nodes["n"].reads == ("meta.tags", "meta.title", "meta.inner.a", "meta.inner.b")


def test_a_node_may_bring_sub_fields_of_its_own() -> None:
    """Others do not see them, as with private fields."""
    builder = StateGraph(State).add_node("n", nothing).add_node("p", nothing, input_schema=Private)
    app = builder.add_edge(START, "n").add_edge(START, "p").compile()

    assert list(builder.channels)[-2:] == ["meta.inner.b", "meta.note"]
    assert app.nodes["p"].reads == ("meta.title", "meta.note")
    assert "meta.note" not in (*app.nodes["n"].reads, *app.output_channels)


@pytest.mark.parametrize(
    ("first", "later", "text"),
    [
        (Plain, State, r"field 'meta' of schema 'State' is a nested field, but the graph has it as a LastValue"),
        (State, one_field(Annotated[dict, operator.or_]), r"'meta' .* the reducer 'or_', but the graph has it as a nested field"),
        (State, one_field(RemainingSteps), r"'meta' .* the managed value RemainingStepsManager, but .* a nested field"),
        (
            State,
            nested(tags=Annotated[set, operator.or_]),
            r"field 'meta.tags' of schema 'typed' is a value with the reducer 'or_', but .* reducer 'union'",
        ),
        (
            State,
            nested(title=Annotated[list, Topic(str)]),
            r"field 'meta.title' of schema 'typed' is a Topic, but the graph has it as a LastValue",
        ),
    ],
)
def test_schemas_that_disagree_are_an_error_and_add_nothing(first: Any, later: Any, text: str) -> None:
    """The text names the sub-field; the builder is as if the call had not been made."""
    builder = StateGraph(first)
    before = list(builder.channels)

    with pytest.raises(GraphDefinitionError, match=text):
        builder.add_node("n", nothing, input_schema=later)

    assert (list(builder.channels), builder.nodes) == (before, {})


# What stays as it is.


class Unmarked(TypedDict, total=False):
    x: int
    meta: Meta


def test_json_schemas_are_those_without_the_marker() -> None:
    """The marker says how writes merge, not what the state looks like."""
    marked, plain = chain(nothing), chain(nothing, schema=Unmarked)

    for ask in ("get_input_jsonschema", "get_output_jsonschema"):
        assert {**getattr(marked, ask)(), "title": ""} == {**getattr(plain, ask)(), "title": ""}
    models = [app.get_output_schema().model_json_schema() for app in (marked, plain)]
    assert models[0] == models[1]


def test_drawings_do_not_show_channels() -> None:
    """Nodes and edges are the same."""
    marked, plain = chain(nothing), chain(nothing, schema=Unmarked)

    assert marked.get_graph().draw_mermaid() == plain.get_graph().draw_mermaid()


def test_a_graph_without_nested_fields_reads_by_plain_tuples() -> None:
    """What it does at each step is what it did before there were any."""
    app = chain(nothing, schema=Unmarked)

    views = (app.nodes["n1"].reads, app.output_channels, app.stream_channels)
    assert {type(view) for view in views} == {tuple}
    assert (app.topology.nested, app.topology.paths) == ({}, {})


def test_delta_channels_stay_what_they_are() -> None:
    """They take an Overwrite themselves, and how they are stored depends on their kind."""
    made = nested(log=Annotated[list, DeltaChannel(lambda old, batch: [*old, *batch], list)])

    assert isinstance(StateGraph(made).channels["meta.log"], DeltaChannel)


@dataclass
class Data:
    x: int = 0
    meta: Annotated[Meta | None, Nested] = None


def test_dataclasses_hold_nested_fields() -> None:
    """The state class is any; what is nested in it is a TypedDict."""
    assert names(Data) == names(State)
