"""What is stored of nested fields: one version and one blob per sub-field; and threads saved before or without the marker."""

from __future__ import annotations

import operator
import sqlite3
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Optional, Protocol

import pytest
from colours import Colour
from nested_states import chain, nested, side_by_side, typed
from pydantic import BaseModel

from tracegraph.channels import DeltaChannel, Nested
from tracegraph.channels.reducers import union
from tracegraph.checkpoint.memory import InMemorySaver
from tracegraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from tracegraph.checkpoint.sqlite import SqliteSaver
from tracegraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from tracegraph.errors import InvalidUpdateError, UnknownTargetError
from tracegraph.graph import START, StateGraph
from tracegraph.types import Command, Overwrite, interrupt

THREAD: dict[str, Any] = {"configurable": {"thread_id": "t"}}
BIG = {f"word {number}" for number in range(2_000)}

INNER = typed(a=int, b=Annotated[int, operator.add])
META = typed(tags=Annotated[set, union], title=str, inner=Annotated[INNER, Nested])
UNMARKED_META = typed(tags=set, title=str, inner=dict)
MARKED, HALF, UNMARKED = (
    typed(x=int, meta=Annotated[META, Nested]),
    typed(x=int, meta=Annotated[UNMARKED_META, Nested]),
    typed(x=int, meta=dict),
)


class InRows(JsonPlusSerializer):
    """A serialiser that savers keep short values from: each has a row of its own."""


class File:
    """A database file, and what it holds."""

    def __init__(self, path: Path) -> None:
        self.path = str(path)

    def run(self, colour: Colour, make: Any, given: Any) -> Any:
        """Invoke the graph that *make* compiles with a saver of this file and colour."""
        if colour.name == "sync":
            with SqliteSaver.from_conn_string(self.path, serde=InRows()) as saver:
                return make(saver).invoke(given, THREAD)

        async def run() -> Any:
            async with AsyncSqliteSaver.from_conn_string(self.path, serde=InRows()) as saver:
                return await make(saver).ainvoke(given, THREAD)

        import asyncio

        return asyncio.run(run())

    def blobs(self) -> list[tuple[str, int]]:
        """Return channel and size of each stored value of a state's channel, oldest first."""
        with sqlite3.connect(self.path) as connection:
            rows = connection.execute("SELECT channel, length(value) FROM tracegraph_blobs ORDER BY version, channel").fetchall()
        connection.close()
        return [(channel, size) for channel, size in rows if not channel.startswith(("branch:", "__"))]


@pytest.fixture
def file(tmp_path: Path) -> Iterator[File]:
    yield File(tmp_path / "checkpoints.db")


def test_a_change_to_one_sub_field_stores_that_sub_field_only(colour: Colour, file: File) -> None:
    """The big one beside it is stored when it changes, and not again."""

    def make(saver: Any) -> Any:
        returned = [{"meta": {"title": f"{step}"}} for step in range(3)]
        return chain(*returned, {"meta": {"inner": {"b": 1}}}, schema=MARKED, checkpointer=saver)

    result = file.run(colour, make, {"meta": {"tags": BIG}})

    assert result == {"meta": {"tags": BIG, "title": "2", "inner": {"b": 1}}}
    stored = file.blobs()
    assert [channel for channel, _ in stored] == ["meta.tags", *["meta.title"] * 3, "meta.inner.b"]
    assert stored[0][1] > 10_000
    assert sum(size for _, size in stored[1:]) < 100


def test_only_the_changed_sub_fields_get_a_new_version(colour: Colour) -> None:
    """An Overwrite of the whole changes those that held something."""
    saver = InMemorySaver()
    app = chain(
        {"meta": {"title": "t"}},
        {"meta": {"tags": {"a"}}},
        {"meta": Overwrite({"tags": {"b"}})},
        schema=MARKED,
        checkpointer=saver,
    )

    colour.invoke(app, {"x": 1}, THREAD)

    assert changed_channels(saver) == [set(), {"x"}, {"meta.title"}, {"meta.tags"}, {"meta.tags", "meta.title", "meta.inner.b"}]


def changed_channels(saver: InMemorySaver) -> list[set[str]]:
    """Return the channels of the state that each checkpoint of the thread has new versions of, oldest first."""
    found = [saved.checkpoint["channel_versions"] for saved in saver.list(THREAD)][::-1]
    changed = [{c for c in new if new[c] != old.get(c)} for old, new in zip([{}, *found], found, strict=False)]
    return [{c for c in names if not c.startswith(("branch:", "__"))} for names in changed]


WHOLE = {"tags": {"old"}, "title": "t", "inner": {"a": 1, "b": 2}, "gone": 1}


def saved_without_the_marker(colour: Colour, file: File, whole: Any = WHOLE) -> None:
    file.run(colour, lambda saver: chain({"meta": whole}, schema=UNMARKED, checkpointer=saver), {"x": 1})


def test_a_thread_saved_before_the_field_was_nested_loads(colour: Colour, file: File) -> None:
    """The old whole value is split, one level or all at once; what is no sub-field is left behind."""
    saved_without_the_marker(colour, file)
    with SqliteSaver.from_conn_string(file.path) as saver:
        expected = {key: WHOLE[key] for key in ("tags", "title", "inner")}
        for schema in (MARKED, HALF):
            app = chain(None, schema=schema, checkpointer=saver)
            assert app.get_state(THREAD).values == {"x": 1, "meta": expected}
            history = [found.values for found in app.get_state_history(THREAD)]
            assert [values.get("meta", {}).get("title") for values in history] == ["t", None, None]


def test_it_goes_on_by_sub_field(colour: Colour, file: File) -> None:
    """The first checkpoint of the new graph stores all parts, later ones what changed; nothing is lost in between."""
    saved_without_the_marker(colour, file)
    before = len(file.blobs())

    def half(saver: Any) -> Any:
        return chain({"meta": {"title": "half"}}, schema=HALF, checkpointer=saver)

    def whole(saver: Any) -> Any:
        return chain({"meta": {"title": "u", "tags": {"new"}}}, {"meta": {"inner": {"b": 1}}}, schema=MARKED, checkpointer=saver)

    file.run(colour, half, {"x": 2})
    assert sorted(name for name, _ in file.blobs()[before:]) == ["meta.inner", "meta.tags", "meta.title", "meta.title", "x"]
    result = file.run(colour, whole, {"x": 3})

    assert result == {"x": 3, "meta": {"tags": {"old", "new"}, "title": "u", "inner": {"a": 1, "b": 3}}}
    with SqliteSaver.from_conn_string(file.path) as saver:
        assert whole(saver).get_state(THREAD).values == result


def test_a_pause_from_before_is_resumed(colour: Colour, file: File) -> None:
    """What a finished sibling wrote to the field as one value is split as well."""

    def make(schema: Any) -> Any:
        asking = lambda state: {"x": interrupt("?")}  # noqa: E731
        return lambda saver: side_by_side(asking, {"meta": {"title": "t", "inner": {"b": 1}}}, schema=schema, checkpointer=saver)

    file.run(colour, make(UNMARKED), {"x": 1, "meta": {"tags": {"old"}}})
    with SqliteSaver.from_conn_string(file.path) as saver:
        shown = make(MARKED)(saver).get_state(THREAD).values

    assert shown["meta"] == {"tags": {"old"}, "title": "t", "inner": {"b": 1}}
    assert file.run(colour, make(MARKED), Command(resume=2)) == {"x": 2, "meta": shown["meta"]}


@pytest.mark.parametrize(
    ("whole", "values"), [(None, {"tags": set(), "inner": {"b": 0}}), ({"inner": None}, {"tags": set(), "inner": {"b": 0}})]
)
def test_none_was_no_value(colour: Colour, file: File, whole: Any, values: Any) -> None:
    """A field that held None has no sub-fields to load."""
    saved_without_the_marker(colour, file, whole)
    with SqliteSaver.from_conn_string(file.path) as saver:
        assert chain(None, schema=MARKED, checkpointer=saver).get_state(THREAD).values == {"x": 1, "meta": values}


@pytest.mark.parametrize(("whole", "field"), [(5, "meta"), ({"inner": [1]}, "meta.inner")])
def test_what_cannot_be_split_is_an_error(colour: Colour, file: File, whole: Any, field: str) -> None:
    """Nothing of a thread is dropped without a word; the text says how to get it over."""
    saved_without_the_marker(colour, file, whole)
    with SqliteSaver.from_conn_string(file.path) as saver:
        app = chain(None, schema=MARKED, checkpointer=saver)
        with pytest.raises(
            InvalidUpdateError, match=rf"the thread holds a (int|list) for '{field}', saved before .* marker away"
        ):
            app.get_state(THREAD)


def test_a_thread_goes_back_to_a_field_without_the_marker(colour: Colour, file: File) -> None:
    """Saved sub-fields make up the dict again, and stay one value from then on."""
    meta = {"tags": {"a"}, "title": "t", "inner": {"a": 1, "b": 2}}
    file.run(colour, lambda saver: chain({"meta": meta}, schema=MARKED, checkpointer=saver), {"x": 1})

    def unmarked(saver: Any) -> Any:
        return chain(lambda state: {"x": state["x"] + 1}, schema=UNMARKED, checkpointer=saver)

    with SqliteSaver.from_conn_string(file.path) as saver:
        half = chain(None, schema=HALF, checkpointer=saver)
        assert half.get_state(THREAD).values == {"x": 1, "meta": meta}
    assert file.run(colour, unmarked, {"x": 2}) == {"x": 3, "meta": meta}
    with SqliteSaver.from_conn_string(file.path) as saver:
        app = unmarked(saver)
        assert app.get_state(THREAD).values == {"x": 3, "meta": meta}
        (newest, *_rest) = saver.list(THREAD)
        assert not {name for name in newest.checkpoint["channel_versions"] if name.startswith("meta.")}


TITLED = nested(title=str)


class Titled(BaseModel):
    """A model that a nested field's values fit."""

    title: str


class Keyed(Protocol):
    """What a dict is too, though Python cannot say so."""

    def keys(self) -> Any: ...


class Numbered(BaseModel):
    """One that they do not fit."""

    title: int


def titled(colour: Colour) -> InMemorySaver:
    """Return a saver with a thread whose field is nested and has a title."""
    saver = InMemorySaver()
    colour.invoke(chain({"meta": {"title": "t"}}, schema=TITLED, checkpointer=saver), {}, THREAD)
    return saver


@pytest.mark.parametrize(
    "plain",
    [
        Any,
        object,
        dict[str, str] | None,
        Optional[META],  # noqa: UP045  # the older form is of another class
        str | META,
        Annotated[dict | None, "what it is"],
        Mapping[str, str],
        Annotated[dict, operator.or_],
        Keyed,
    ],
)
def test_sub_fields_are_joined_whatever_the_field_may_hold_beside_a_dict(colour: Colour, plain: Any) -> None:
    """A field that is declared as a union, or as anything, holds a dict as well."""
    app = chain(lambda state: {"meta": dict(state["meta"])}, schema=typed(meta=plain), checkpointer=titled(colour))

    assert app.get_state(THREAD).values == {"meta": {"title": "t"}}
    assert colour.invoke(app, {}, THREAD) == {"meta": {"title": "t"}}


@pytest.mark.parametrize("plain", [Titled, Titled | None])
def test_sub_fields_make_up_a_model(colour: Colour, plain: Any) -> None:
    """As one that a node has written."""
    app = chain(
        lambda state: {"meta": Titled(title=f"{state['meta'].title}!")}, schema=typed(meta=plain), checkpointer=titled(colour)
    )

    assert app.get_state(THREAD).values == {"meta": Titled(title="t")}
    assert colour.invoke(app, {}, THREAD) == {"meta": Titled(title="t!")}


@pytest.mark.parametrize("plain", [int, list[str], str | None, Literal["t"], None, Annotated[list, operator.add], Numbered])
def test_sub_fields_that_the_field_cannot_hold_are_an_error(colour: Colour, plain: Any) -> None:
    """Nothing of a thread is dropped without a word; the text says how to get it over."""
    app = chain(None, schema=typed(meta=plain), checkpointer=titled(colour))

    with pytest.raises(InvalidUpdateError, match="the thread holds 'meta.title', .* 'meta', .*; give 'meta' a type") as raised:
        app.get_state(THREAD)
    assert raised.value.channel == "meta"


def test_trigger_of_a_node_that_is_gone_is_no_sub_field(colour: Colour) -> None:
    """Though a name with a dot may begin with that of another node."""
    saver = InMemorySaver()

    def make(*names: str) -> Any:
        builder: Any = StateGraph(typed(x=int))
        for name in names:
            builder.add_node(name, lambda state: {"x": 1}).add_edge(START, name)
        return builder.compile(checkpointer=saver, interrupt_before=list(names))

    colour.invoke(make("a.b"), {"x": 0}, THREAD)

    assert make("a").get_state(THREAD).next == ()


def test_field_that_is_gone_is_left_behind(colour: Colour) -> None:
    """A name with a dot is a sub-field only where there is a field of its first part."""
    saver = InMemorySaver()
    colour.invoke(chain({"a.b": 1, "c": 2}, schema=typed(**{"a.b": int, "c": int}), checkpointer=saver), {"c": 1}, THREAD)

    app = chain(None, schema=typed(c=int), checkpointer=saver)

    assert app.get_state(THREAD).values == {"c": 2}


def test_a_pause_that_wrote_sub_fields_is_not_resumed_without_the_marker(colour: Colour) -> None:
    """Writes of finished siblings cannot be put together again: the error names the channel."""
    saver = InMemorySaver()

    def make(schema: Any) -> Any:
        asking = lambda state: {"x": interrupt("?")}  # noqa: E731
        return side_by_side(asking, {"meta": {"title": "t"}}, schema=schema, checkpointer=saver)

    colour.invoke(make(MARKED), {"x": 1}, THREAD)

    with pytest.raises(UnknownTargetError, match="node 'n2' sent to channel 'meta.title', which does not exist"):
        colour.invoke(make(UNMARKED), Command(resume=2), THREAD)


def extended(left: list[str], batch: list[Any]) -> list[str]:
    return [*left, *(item for write in batch for item in write)]


LINES = [f"line {number}" for number in range(500)]
LOGS = {"list": Annotated[list, operator.add], "delta": Annotated[list, DeltaChannel(extended, list)]}


@pytest.mark.parametrize("kind", LOGS)
@pytest.mark.parametrize("is_marked_first", [True, False])
def test_a_sub_field_that_grows_stores_what_was_added(colour: Colour, file: File, kind: str, is_marked_first: bool) -> None:
    """As the same channel does as a field; also after a field that was one value became nested."""
    schema = nested(log=LOGS[kind], title=str)

    def first(saver: Any) -> Any:
        return chain(None, schema=schema if is_marked_first else UNMARKED, checkpointer=saver)

    def later(saver: Any) -> Any:
        return chain({"meta": {"log": ["a"]}}, {"meta": {"log": ["b"]}}, schema=schema, checkpointer=saver)

    file.run(colour, first, {"meta": {"log": LINES, "title": "t"}})
    file.run(colour, later, {"meta": {"title": "u"}})
    result = file.run(colour, later, {"meta": {"title": "v"}})

    assert result == {"meta": {"log": [*LINES, "a", "b", "a", "b"], "title": "v"}}
    sizes = [size for name, size in file.blobs() if name == "meta.log"]
    assert (len(sizes), sizes[0] > 3_000, max(sizes[1:]) < 100) == (5, True, True)
    with SqliteSaver.from_conn_string(file.path) as saver:
        assert later(saver).get_state(THREAD).values == result


def test_a_growing_sub_field_that_is_overwritten_starts_anew(colour: Colour, file: File) -> None:
    """What was stored of it before does not come back."""

    def make(saver: Any) -> Any:
        written = [{"log": ["a"]}, Overwrite({"title": "t"}), {"log": ["b"]}]
        return chain(*({"meta": part} for part in written), schema=nested(log=LOGS["delta"], title=str), checkpointer=saver)

    assert file.run(colour, make, {"meta": {"log": LINES}}) == {"meta": {"log": ["b"], "title": "t"}}
    with SqliteSaver.from_conn_string(file.path) as saver:
        assert make(saver).get_state(THREAD).values == {"meta": {"log": ["b"], "title": "t"}}


def test_increments_of_a_delta_channel_cannot_be_joined(colour: Colour, file: File) -> None:
    """Without the channel nobody can fold them, so the marker cannot go; the error says what to do."""

    def make(schema: Any) -> Any:
        return lambda saver: chain({"meta": {"log": ["a"]}}, schema=schema, checkpointer=saver)

    file.run(colour, make(nested(log=LOGS["delta"])), {"meta": {"log": LINES}})
    with SqliteSaver.from_conn_string(file.path) as saver:
        with pytest.raises(InvalidUpdateError, match="the thread holds 'meta.log' as writes that only its DeltaChannel can fold"):
            make(UNMARKED)(saver).get_state(THREAD)
        make(nested(log=LOGS["delta"]))(saver).update_state(THREAD, {"meta": {"log": Overwrite(["all"])}})
        assert make(UNMARKED)(saver).get_state(THREAD).values == {"meta": {"log": ["all"]}}


def test_a_fork_replays_with_nested_fields(colour: Colour) -> None:
    """Each checkpoint gives the sub-fields as they were."""
    saver = InMemorySaver()
    app = chain({"meta": {"tags": {"1"}}}, {"meta": {"tags": {"2"}, "title": "t"}}, schema=MARKED, checkpointer=saver)
    colour.invoke(app, {"x": 1}, THREAD)
    middle = next(found for found in app.get_state_history(THREAD) if found.next == ("n2",))

    app.update_state(middle.config, {"meta": {"tags": {"fork"}, "title": "f"}}, as_node="n1")

    assert colour.invoke(app, None, THREAD)["meta"] == {"tags": {"1", "fork", "2"}, "title": "t", "inner": {"b": 0}}


def test_private_sub_fields_are_stored_too(colour: Colour) -> None:
    """A sub-field that only one node's schema names is in checkpoints and not in the output."""
    builder: Any = StateGraph(MARKED).add_node("p", lambda state: {"meta": {"note": "n"}}, input_schema=nested(note=str))
    app = builder.add_edge(START, "p").compile(checkpointer=InMemorySaver())

    assert colour.invoke(app, {"x": 1}, THREAD) == {"x": 1, "meta": {"tags": set(), "inner": {"b": 0}}}
    assert app.get_state(THREAD).values["meta"]["note"] == "n"
