"""What is shown of nested fields: to nodes, callers, streams, snapshots."""

from __future__ import annotations

from typing import Annotated, Any, Required

import pytest
from colours import Colour
from nested_states import State, chain, nested, side_by_side, typed

from tracegraph.channels import EphemeralValue, LastValue, Nested
from tracegraph.checkpoint.memory import InMemorySaver
from tracegraph.errors import InvalidInputError, InvalidUpdateError
from tracegraph.graph import END, START, StateGraph
from tracegraph.managed import RemainingSteps
from tracegraph.pregel import NodeBuilder, Pregel
from tracegraph.types import Command, GraphOutput, Overwrite, RetryPolicy, Send, interrupt

THREAD: dict[str, Any] = {"configurable": {"thread_id": "t"}}
WORDS = nested(title=str, note=Required[str])


def looking(seen: list[Any], returned: Any = None) -> Any:
    def look(state: Any) -> Any:
        seen.append(state)
        return returned

    return look


def test_a_nested_field_without_a_value_is_absent(colour: Colour) -> None:
    """As any field is; one that has a sub-field shows those that have a value, whether the TypedDict is total or not."""
    seen: list[Any] = []
    app = chain(looking(seen, {"meta": {"note": "n"}}), looking(seen, {"meta": Overwrite({})}), looking(seen), schema=WORDS)

    assert colour.invoke(app, {"meta": {}}) == {}
    assert seen == [{}, {"meta": {"note": "n"}}, {}]


def test_a_graph_that_writes_nothing_returns_nothing(colour: Colour) -> None:
    """None, as with flat fields."""
    assert colour.invoke(chain(None, schema=WORDS), {}) is None


def test_what_a_node_does_to_the_dicts_it_reads_changes_nobody_else_s(colour: Colour) -> None:
    """They are made for it alone, like the values in them one level deep."""

    def spoil(state: State) -> None:
        state["meta"]["tags"].add("spoilt")
        state["meta"]["inner"]["a"] = 13
        state["meta"]["more"] = 1  # type: ignore[typeddict-unknown-key]

    given = {"meta": {"tags": {"in"}, "inner": {"a": 1}}}

    assert colour.invoke(chain(spoil), given)["meta"] == {"tags": {"in"}, "inner": {"a": 1, "b": 0}}
    assert given == {"meta": {"tags": {"in"}, "inner": {"a": 1}}}


def test_a_retry_reads_the_nested_field_anew(colour: Colour) -> None:
    """What the failed attempt did to its input is gone."""
    seen: list[Any] = []

    def flaky(state: Any) -> None:
        seen.append(dict(state["meta"]))
        state["meta"]["title"] = "spoilt"
        if len(seen) == 1:
            raise ConnectionError

    builder: Any = StateGraph(WORDS)
    builder.add_node("flaky", flaky, retry_policy=RetryPolicy(initial_interval=0.0, jitter=False)).add_edge(START, "flaky")
    colour.invoke(builder.compile(), {"meta": {"title": "t"}})

    assert seen == [{"title": "t"}] * 2


def test_a_node_reads_the_sub_fields_its_schema_names(colour: Colour) -> None:
    """Managed values beside them."""
    seen: list[Any] = []
    part = typed(meta=Annotated[typed(title=str), Nested], left=RemainingSteps)
    builder: Any = StateGraph(State).add_node("n", looking(seen), input_schema=part).add_edge(START, "n")

    colour.invoke(builder.compile(), {"meta": {"title": "t", "tags": {"a"}}}, {"recursion_limit": 5})

    assert seen == [{"meta": {"title": "t"}, "left": 4}]


def test_an_output_schema_limits_what_is_returned(colour: Colour) -> None:
    """To the sub-fields it names."""
    app = chain({"meta": {"tags": {"n"}, "title": "t"}}, options={"output_schema": nested(title=str)})

    assert colour.invoke(app, {"x": 1}) == {"meta": {"title": "t"}}


def test_short_lived_sub_fields_vanish_by_themselves(colour: Colour) -> None:
    """As the same channel does as a field."""
    seen: list[Any] = []
    schema = nested(signal=Annotated[str, EphemeralValue], title=str)
    app = chain({"meta": {"signal": "s", "title": "t"}}, looking(seen), looking(seen), schema=schema)

    colour.invoke(app, {})

    assert seen == [{"meta": {"signal": "s", "title": "t"}}, {"meta": {"title": "t"}}]


def test_packets_go_to_their_node_as_they_are(colour: Colour) -> None:
    """A Send's argument is no state."""
    seen: list[Any] = []
    builder: Any = StateGraph(State).add_node("worker", looking(seen, {"meta": {"tags": {"w"}}}))
    builder.add_conditional_edges(START, lambda state: [Send("worker", {"meta": 5})], ["worker"])

    assert colour.invoke(builder.compile(), {"x": 1})["meta"]["tags"] == {"w"}
    assert seen == [{"meta": 5}]


@pytest.mark.parametrize("returned", [None, {}, {"title": "t"}, Overwrite({"title": "t"})])
def test_a_path_function_reads_the_state_and_not_what_was_returned(colour: Colour, returned: Any) -> None:
    """Other keys that were returned it does get, a nested field of its state never in the form in which it was written."""
    seen: list[Any] = []

    def path(state: Any) -> str:
        seen.append(state)
        return END

    builder: Any = StateGraph(WORDS).add_node("n", lambda state: {"meta": returned, "more": 1}).add_edge(START, "n")
    colour.invoke(builder.add_conditional_edges("n", path).compile(), {})

    assert seen == [{"more": 1, "meta": {"title": "t"}} if returned else {"more": 1}]


# Streams.


def test_updates_have_the_shape_in_which_they_were_written(colour: Colour) -> None:
    """And values that of the state."""
    app = chain(
        {"x": 1, "meta": {"title": "t", "inner": {"b": 1}}},
        {"meta": {"tags": Overwrite({"a"}), "inner": Overwrite({"a": 1})}},
        {"meta": Overwrite({"title": "u"})},
        {"meta": {}},
    )

    parts = colour.stream(app, {"meta": {"tags": {"in"}}}, stream_mode=["updates", "values"])

    assert parts == [
        ("values", {"meta": {"tags": {"in"}, "inner": {"b": 0}}}),
        ("updates", {"n1": {"x": 1, "meta": {"title": "t", "inner": {"b": 1}}}}),
        ("values", {"x": 1, "meta": {"tags": {"in"}, "title": "t", "inner": {"b": 1}}}),
        ("updates", {"n2": {"meta": {"tags": Overwrite({"a"}), "inner": Overwrite({"a": 1, "b": 0})}}}),
        ("values", {"x": 1, "meta": {"tags": {"a"}, "title": "t", "inner": {"a": 1, "b": 0}}}),
        ("updates", {"n3": {"meta": Overwrite({"tags": set(), "title": "u", "inner": {"b": 0}})}}),
        ("values", {"x": 1, "meta": {"tags": set(), "title": "u", "inner": {"b": 0}}}),
        ("updates", {"n4": None}),
        ("values", {"x": 1, "meta": {"tags": set(), "title": "u", "inner": {"b": 0}}}),
    ]


def test_a_field_written_twice_by_one_node_is_shown_as_a_list(colour: Colour) -> None:
    """One dict for each time it was written."""
    app = chain([Command(update={"meta": Overwrite({"title": "t"})}), {"x": 1}, {"meta": {"tags": {"a"}}}])

    with_tags = {"tags": set(), "title": "t", "inner": {"b": 0}}
    assert colour.stream(app, {"x": 0}, stream_mode="updates") == [
        {"n1": [{"meta": Overwrite(with_tags)}, {"x": 1}, {"meta": {"tags": {"a"}}}]}
    ]
    assert colour.stream(app, {"x": 0}, stream_mode="updates", output_keys="meta") == [
        {"n1": [Overwrite(with_tags), {"tags": {"a"}}]}
    ]


@pytest.mark.parametrize(
    ("keys", "values", "update"),
    [
        ("meta", {"tags": {"n"}, "inner": {"b": 0}}, {"tags": {"n"}}),
        (["meta"], {"meta": {"tags": {"n"}, "inner": {"b": 0}}}, {"meta": {"tags": {"n"}}}),
        (["meta.tags", "x"], {"meta": {"tags": {"n"}}, "x": 1}, {"meta": {"tags": {"n"}}, "x": 1}),
        ("meta.tags", {"n"}, {"n"}),
        (["x"], {"x": 1}, {"x": 1}),
    ],
)
def test_output_keys_name_nested_fields_or_sub_fields(colour: Colour, keys: Any, values: Any, update: Any) -> None:
    """A name alone gives the bare value."""
    app = chain({"x": 1, "meta": {"tags": {"n"}}})

    assert colour.invoke(app, {}, output_keys=keys) == values
    assert colour.stream(app, {}, output_keys=keys, stream_mode="updates") == [{"n1": update}]
    assert colour.stream(app, {}, output_keys=keys, stream_mode="values")[-1] == values


def test_an_output_key_alone_that_has_no_value_gives_none(colour: Colour) -> None:
    """As an empty channel does."""
    assert colour.invoke(chain(None, schema=WORDS), {}, output_keys="meta") is None
    with pytest.raises(InvalidInputError, match="output key 'nome' is no channel; there are 'meta.title', 'meta.note', 'meta'"):
        colour.invoke(chain(None, schema=WORDS), {}, output_keys="nome")


def test_child_runs_stream_their_nested_output(colour: Colour) -> None:
    """In the shape of their own schema."""
    app = chain(chain({"meta": {"tags": {"c"}}}, options={"output_schema": nested(tags=set)}))

    parts = colour.stream(app, {"meta": {"title": "t"}}, stream_mode=["values", "updates"], subgraphs=True)

    assert [(mode, data) for ns, mode, data in parts if ns] == [
        ("values", {"meta": {"tags": set()}}),
        ("updates", {"n1": {"meta": {"tags": {"c"}}}}),
        ("values", {"meta": {"tags": {"c"}}}),
    ]


def test_a_pause_shows_what_finished_siblings_wrote(colour: Colour) -> None:
    """In the result, in both versions of it, and in the snapshot; after the answer it is there once."""
    app = side_by_side(
        lambda state: {"meta": {"title": interrupt("title?")}}, {"meta": {"inner": {"b": 1}}}, checkpointer=InMemorySaver()
    )

    paused = colour.invoke(app, {"x": 1}, THREAD)

    assert {key: paused[key] for key in ("x", "meta")} == {"x": 1, "meta": {"tags": set(), "inner": {"b": 1}}}
    snapshot = app.get_state(THREAD)
    assert snapshot.values["meta"] == {"tags": set(), "inner": {"b": 1}}
    assert [task.result for task in snapshot.tasks] == [None, {"meta": {"inner": {"b": 1}}}]
    answered = colour.invoke(app, Command(resume="t", update={"meta": {"tags": {"c"}}, "no": 1}), THREAD, version="v2")
    assert answered == GraphOutput({"x": 1, "meta": {"tags": {"c"}, "title": "t", "inner": {"b": 1}}})


def test_a_command_that_resumes_follows_the_rule_for_unknown_keys(colour: Colour) -> None:
    """In strict mode an unknown sub-key is an error, and so is the name of a sub-field's channel."""
    for update, unknown in (({"meta": {"no": 1}}, "meta.no"), ({"meta.title": "t"}, "meta.title")):
        app = chain(lambda state: {"x": interrupt("?")}, checkpointer=InMemorySaver(), strict=True)
        colour.invoke(app, {"x": 1}, THREAD)

        with pytest.raises(InvalidUpdateError, match=f"channel '{unknown}', which does not exist; known: '.*meta") as caught:
            colour.invoke(app, Command(resume=1, update=update), THREAD)
        assert f", '{unknown}'" not in str(caught.value)


# State from outside.


async def test_updates_from_outside_merge_as_a_node_s_do() -> None:
    """By ``update_state`` and its twin; history shows them in the shape they were given."""
    app = chain({"x": 1}, {"x": 2}, checkpointer=InMemorySaver(), interrupt_before=["n2"])
    app.invoke({"meta": {"tags": {"in"}, "title": "t"}}, THREAD)

    app.update_state(THREAD, {"meta": {"tags": {"up"}}})
    assert app.get_state(THREAD).values["meta"] == {"tags": {"in", "up"}, "title": "t", "inner": {"b": 0}}
    await app.aupdate_state(THREAD, {"meta": Overwrite({"inner": {"b": 3}})})
    assert (await app.aget_state(THREAD)).values["meta"] == {"tags": set(), "inner": {"b": 3}}

    results = [task.result for found in app.get_state_history(THREAD) for task in found.tasks]
    assert {"x": 1, "meta": {"tags": {"in"}}} not in results
    assert app.invoke(None, THREAD) == {"x": 2, "meta": {"tags": set(), "inner": {"b": 3}}}


def test_history_shows_what_tasks_wrote_in_its_shape() -> None:
    """An Overwrite of the whole, and of a channel that a task wrote twice the list of both."""
    app = chain(
        {"meta": Overwrite({"title": "t"})},
        [Command(update={"meta": {"tags": {"a"}}}), Command(update={"meta": {"tags": {"b"}}})],
        checkpointer=InMemorySaver(),
    )
    app.invoke({"meta": {"tags": {"in"}}}, THREAD)

    assert [task.result for found in app.get_state_history(THREAD) for task in found.tasks] == [
        {"meta": {"tags": {"$writes": [{"a"}, {"b"}]}}},
        {"meta": Overwrite({"tags": set(), "title": "t", "inner": {"b": 0}})},
        {"meta": {"tags": {"in"}}},
    ]


def test_low_level_graphs_have_no_nested_fields() -> None:
    """Their channels are what they are named, dots or not."""
    app = Pregel(
        nodes={"n": NodeBuilder().subscribe_only("a.b").do(lambda value: value + 1).write_to("c.d")},
        channels={"a.b": LastValue(int), "c.d": LastValue(int)},
        input_channels="a.b",
        output_channels=["c.d"],
    )

    assert app.invoke(1) == {"c.d": 2}
