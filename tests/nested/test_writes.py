"""What may be written to a nested field: dicts of what changes, Overwrites, nothing; and what may not."""

from __future__ import annotations

import operator
from dataclasses import dataclass
from typing import Annotated, Any

import pytest
from colours import Colour
from nested_states import Meta, State, chain, nested, side_by_side, typed
from pydantic import BaseModel
from recording import recording
from typing_extensions import TypedDict as PortableTypedDict

from tracegraph.channels import DeltaChannel, LastValue, Nested, Topic, UntrackedValue
from tracegraph.channels.reducers import union
from tracegraph.errors import ErrorCode, InvalidUpdateError
from tracegraph.events import UnknownKeyIgnored
from tracegraph.graph import START, StateGraph
from tracegraph.types import Command, Overwrite

START_META = {"tags": {"in"}, "title": "first", "inner": {"a": 1, "b": 1}}
GIVEN = {"x": 0, "meta": START_META}


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ({"tags": {"new"}}, {**START_META, "tags": {"in", "new"}}),
        ({"title": "second"}, {**START_META, "title": "second"}),
        ({"inner": {"b": 2}}, {**START_META, "inner": {"a": 1, "b": 3}}),
        ({"inner": {"a": None}}, {**START_META, "inner": {"a": None, "b": 1}}),
        ({"inner": None}, START_META),
        ({"inner": {}}, START_META),
        ({}, START_META),
        (None, START_META),
        # An Overwrite replaces what it is of, and empties what it does not name.
        (Overwrite({"title": "only"}), {"tags": set(), "title": "only", "inner": {"b": 0}}),
        (Overwrite({"inner": {"a": 5}}), {"tags": set(), "inner": {"a": 5, "b": 0}}),
        (Overwrite({"tags": Overwrite({"new"}), "inner": None}), {"tags": {"new"}, "inner": {"b": 0}}),
        (Overwrite({}), {"tags": set(), "inner": {"b": 0}}),
        (Overwrite(None), {"tags": set(), "inner": {"b": 0}}),
        ({"__overwrite__": {"title": "only"}}, {"tags": set(), "title": "only", "inner": {"b": 0}}),
        ({"type": "__overwrite__", "value": {"title": "only"}}, {"tags": set(), "title": "only", "inner": {"b": 0}}),
        ({"tags": Overwrite({"new"})}, {**START_META, "tags": {"new"}}),
        ({"title": Overwrite("new")}, {**START_META, "title": "new"}),
        ({"inner": Overwrite({"b": 7})}, {**START_META, "inner": {"b": 7}}),
    ],
)
def test_what_a_node_writes_changes_the_sub_fields_it_names(colour: Colour, written: Any, expected: Any) -> None:
    """Returned, in a Command, in a list of Commands, as the input or as an update from outside: the same."""
    commands = [Command(update={"meta": written}), Command(goto=())]
    for returned in ({"meta": written}, Command(update={"meta": written}), commands, Command(update=[("meta", written)])):
        assert colour.invoke(chain(returned), GIVEN) == {"x": 0, "meta": expected}


def larger(old: int, new: int) -> int:
    return max(old, new)


KINDS = nested(
    kept=Annotated[list[str], Topic(str, accumulate=True)],
    late=Annotated[int | None, larger],
    log=Annotated[list[str], DeltaChannel(lambda old, batch: [*old, *batch], list)],
    handle=Annotated[str, UntrackedValue],
)
FULL = {"kept": ["a"], "late": 3, "log": "a", "handle": "h"}


def test_sub_fields_of_any_kind_are_emptied_and_filled_by_an_overwrite(colour: Colour) -> None:
    """Those that start with a value have that one again, the others have none."""
    refilled = {"kept": ["b"], "late": 1, "log": ["b"], "handle": "i"}

    assert colour.invoke(chain({"meta": FULL}, schema=KINDS), {"meta": FULL}) == {
        "meta": {"kept": ["a", "a"], "late": 3, "log": ["a", "a"], "handle": "h"}
    }
    assert colour.invoke(chain({"meta": Overwrite({})}, schema=KINDS), {"meta": FULL}) == {"meta": {"log": []}}
    assert colour.invoke(chain({"meta": Overwrite(refilled)}, schema=KINDS), {"meta": FULL}) == {"meta": refilled}


def test_parallel_nodes_write_different_sub_fields(colour: Colour) -> None:
    """And the same one, if it has a reducer."""
    app = side_by_side({"meta": {"title": "t", "tags": {"1"}}}, {"meta": {"inner": {"a": 1}, "tags": {"2"}}})

    assert colour.invoke(app, {}) == {"meta": {"title": "t", "tags": {"1", "2"}, "inner": {"a": 1, "b": 0}}}


def test_two_writes_to_a_sub_field_without_a_reducer_are_an_error(colour: Colour) -> None:
    """The usual one: it names the channel and who wrote."""
    app = side_by_side({"meta": {"inner": {"a": 1}}}, {"meta": {"inner": {"a": 2}}})

    with pytest.raises(InvalidUpdateError, match=r"channel 'meta.inner.a' takes one write per step, but got 2") as caught:
        colour.invoke(app, {})

    error = caught.value
    assert (error.channel, error.writers) == ("meta.inner.a", ("n1", "n2"))
    assert error.error_code is ErrorCode.INVALID_CONCURRENT_GRAPH_UPDATE


@pytest.mark.parametrize("is_first", [True, False])
def test_an_overwrite_of_the_whole_wins_over_what_siblings_write(colour: Colour, is_first: bool) -> None:
    """Whatever the order, and whether a sub-field has a reducer or not, as with a reducer's Overwrite."""
    whole, parts = {"meta": Overwrite({"title": "o"})}, {"meta": {"title": "t", "tags": {"1"}, "inner": {"a": 1, "b": 2}}}
    app = side_by_side(*((whole, parts) if is_first else (parts, whole)))

    assert colour.invoke(app, GIVEN)["meta"] == {"tags": set(), "title": "o", "inner": {"b": 0}}


@pytest.mark.parametrize("second", [Overwrite({}), {"title": Overwrite("t")}, {"tags": Overwrite({"t"})}])
def test_two_overwrites_in_one_superstep_are_an_error(colour: Colour, second: Any) -> None:
    """Which of them won would be chance."""
    app = side_by_side({"meta": Overwrite({})}, {"meta": second})

    with pytest.raises(InvalidUpdateError, match=r"channel 'meta\.\w+' takes one Overwrite per step") as caught:
        colour.invoke(app, {})

    assert caught.value.writers == ("n1", "n2")


@pytest.mark.parametrize("written", [5, "text", ["tags"], Meta, LastValue(int), "x" * 500])
def test_anything_but_a_dict_is_refused(colour: Colour, written: Any) -> None:
    """The text names the node, the field and what it takes; a long value is cut."""
    with pytest.raises(InvalidUpdateError, match=r"node 'n1' wrote .* to the nested field 'meta', which takes a dict") as caught:
        colour.invoke(chain({"meta": written}), {})

    error = caught.value
    assert (error.channel, error.node) == ("meta", "n1")
    assert "sub-fields 'tags', 'title', 'inner'" in str(error)
    assert "Overwrite({...})" in str(error)
    assert len(str(error)) < 400


@pytest.mark.parametrize(
    ("written", "field"),
    [
        ({"inner": 5}, "meta.inner"),
        (Overwrite({"inner": 5}), "meta.inner"),
        (Overwrite("t"), "meta"),
        ({"inner": Overwrite(5)}, "meta.inner"),
    ],
)
def test_the_error_names_the_field_that_is_wrong(colour: Colour, written: Any, field: str) -> None:
    """Of fields within each other, the inner one; in an Overwrite as well."""
    with pytest.raises(InvalidUpdateError, match=f"nested field '{field}'") as caught:
        colour.invoke(chain({"meta": written}), {})

    assert caught.value.channel == field


def test_a_wrong_input_says_so(colour: Colour) -> None:
    """Nobody looks for a node of that name."""
    with pytest.raises(InvalidUpdateError, match="the input wrote an int to the nested field 'meta'"):
        colour.invoke(chain(None), {"meta": 5})


@pytest.mark.parametrize(
    ("written", "unknown"),
    [
        ({"meta": {"oops": 1, "title": "t"}}, "meta.oops"),
        ({"meta": {"inner": {"oops": 1}, "title": "t"}}, "meta.inner.oops"),
        ({"meta": Overwrite({"oops": 1, "title": "t"})}, "meta.oops"),
        ({"meta.title": "no", "meta": {"title": "t"}}, "meta.title"),
    ],
)
def test_unknown_sub_keys_are_ignored_but_not_in_strict_mode(colour: Colour, written: Any, unknown: str) -> None:
    """The rule of unknown keys of the state; a channel's name is none of its keys either."""
    with recording() as recorder:
        assert colour.invoke(chain(written), {})["meta"]["title"] == "t"
    assert [(e.node, e.key) for e in recorder.events if isinstance(e, UnknownKeyIgnored)] == [("n1", unknown)]

    with pytest.raises(
        InvalidUpdateError, match=f"node 'n1' wrote '{unknown}', which is no key of the state; known: '"
    ) as caught:
        colour.invoke(chain(written, strict=True), {})
    assert caught.value.channel == unknown


def test_strict_mode_lists_the_sub_fields_there_are(colour: Colour) -> None:
    """Of that field, not of the whole state."""
    with pytest.raises(InvalidUpdateError, match=r"known: 'meta.tags', 'meta.title', 'meta.inner.a', 'meta.inner.b' \("):
        colour.invoke(chain({"meta": {"oops": 1}}, strict=True), {})


@dataclass
class Data:
    x: int = 0
    meta: Annotated[Meta | None, Nested] = None


class PortableMeta(PortableTypedDict, total=False):
    tags: Annotated[set[str], union]
    title: str


class Model(BaseModel):
    x: int = 0
    meta: Annotated[PortableMeta, Nested] = {}


@pytest.mark.parametrize("schema", [Data, Model])
def test_instances_of_state_classes_write_and_read_nested_fields(colour: Colour, schema: Any) -> None:
    """The field of a class is a dict; one that is None, or not set, writes nothing."""
    seen: list[Any] = []

    def look(state: Any) -> Any:
        seen.append(state)
        return schema(x=2)

    app = chain(schema(x=1, meta={"tags": {"1"}}), look, schema=schema)
    result = colour.invoke(app, schema(meta={"tags": {"0"}, "title": "t"}))

    assert [(type(state), state.meta["tags"], state.meta["title"]) for state in seen] == [(schema, {"0", "1"}, "t")]
    assert (result["x"], result["meta"]["tags"], result["meta"]["title"]) == (2, {"0", "1"}, "t")


def test_an_input_schema_limits_what_the_input_may_write(colour: Colour) -> None:
    """An Overwrite in the input replaces the sub-fields that its schema names."""
    app = chain({"meta": {"tags": {"n"}, "inner": {"b": 1}}}, options={"input_schema": nested(title=str)})

    assert colour.invoke(app, {"meta": {"title": "t", "tags": {"in"}}}) == {
        "meta": {"tags": {"n"}, "title": "t", "inner": {"b": 1}}
    }
    assert colour.invoke(app, {"meta": Overwrite({})})["meta"] == {"tags": {"n"}, "inner": {"b": 1}}


def test_a_command_as_input_updates_sub_fields(colour: Colour) -> None:
    """At the start of a run by the start node, on a paused thread by the run itself."""
    app = chain(None, None)

    assert colour.invoke(app, Command(update={"meta": {"title": "t"}}, goto="n1"))["meta"]["title"] == "t"


def test_a_subgraph_shares_nested_fields(colour: Colour) -> None:
    """What it returns of them is merged like anything a node returns; the sub-fields it does not know stay."""
    known = nested(title=str, inner=Annotated[typed(a=int), Nested])
    seen: list[Any] = []

    def look(state: Any) -> Any:
        seen.append(state)
        return {"meta": {"title": state["meta"]["title"] + "!"}}

    app = chain(chain(look, schema=known))

    assert colour.invoke(app, GIVEN)["meta"] == {**START_META, "title": "first!"}
    assert seen == [{"meta": {"title": "first", "inner": {"a": 1}}}]


def test_a_subgraph_writes_to_its_parent_s_nested_field(colour: Colour) -> None:
    """By a Command for the parent graph."""
    child = chain(Command(graph=Command.PARENT, update={"meta": {"tags": {"child"}}}))

    assert colour.invoke(chain(child), GIVEN)["meta"]["tags"] == {"in", "child"}


def test_reducers_that_raise_change_no_sub_field(colour: Colour) -> None:
    """A superstep that fails leaves all of them as they were, and the note names the channel."""
    app = chain({"meta": {"m": 2, "n": "text"}}, schema=nested(n=Annotated[int, operator.add], m=int))
    parts: list[Any] = []

    with pytest.raises(TypeError) as caught:
        colour.each(app, {"meta": {"m": 1, "n": 1}}, parts.append, stream_mode="values")

    assert parts[-1] == {"meta": {"n": 1, "m": 1}}
    assert any("channel 'meta.n' took the writes of 'n1'" in note for note in caught.value.__notes__)


def test_low_level_parts_of_a_builder_see_nested_fields_where_they_are_declared() -> None:
    """A conditional edge gets the state with its source's writes put into the nested field."""
    seen: list[Any] = []

    def path(state: State) -> str:
        seen.append(state)
        return "end"

    builder: Any = StateGraph(State).add_node("n", lambda state: {"meta": Overwrite({"title": "t"}), "more": 1})
    builder.add_edge(START, "n").add_conditional_edges("n", path, {"end": "__end__"})
    builder.compile().invoke(GIVEN)

    assert seen == [{"x": 0, "meta": {"tags": set(), "title": "t", "inner": {"b": 0}}}]
