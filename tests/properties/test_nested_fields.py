"""A graph with nested fields gives what a flat one gives whose fields have the paths as names, by hand."""

from __future__ import annotations

import operator
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypeAlias, TypedDict

from colours import ASYNC, SYNC, Colour
from hypothesis import assume, event, given
from hypothesis import strategies as st

from tracegraph.channels import AnyValue, DeltaChannel, Nested
from tracegraph.channels.reducers import union
from tracegraph.checkpoint.memory import InMemorySaver
from tracegraph.errors import InvalidUpdateError
from tracegraph.graph import START, StateGraph
from tracegraph.types import Command, Overwrite

Kind: TypeAlias = Literal["last", "any", "sum", "log", "tags", "late", "delta"]
Tree: TypeAlias = dict[str, Any]
"""Field name -> its kind, or the tree of a nested field."""

THREAD: dict[str, Any] = {"configurable": {"thread_id": "t"}}
EMPTY = "<empty>"
"""What the flat graph writes where the nested one empties a channel: a field alone cannot be emptied."""


def mixed(left: int | str, right: int) -> Any:
    """Merge numbers so that each order of writes has a result of its own."""
    return right if left == EMPTY else (int(left) * 31 + right + 7) % 1_000_003


def extended(left: list[Any], batch: list[Any]) -> list[Any]:
    return [*left, *(item for write in batch for item in write)]


ANNOTATIONS: dict[Kind, Any] = {
    "last": int | str,
    "any": Annotated[int, AnyValue],
    "sum": Annotated[int, operator.add],
    "log": Annotated[list[int], operator.add],
    "tags": Annotated[set[int], union],
    "late": Annotated[int | None, mixed],
    "delta": Annotated[list[int], DeltaChannel(extended, list)],
}
STARTS: dict[Kind, Any] = {"sum": 0, "log": [], "tags": set(), "late": EMPTY, "delta": None}
"""What an Overwrite brings a reducer back to."""

kinds_of_field = st.sampled_from(tuple(ANNOTATIONS))
small = st.dictionaries(st.sampled_from("abc"), kinds_of_field, min_size=1)
trees: st.SearchStrategy[Tree] = st.fixed_dictionaries(
    {"m": st.dictionaries(st.sampled_from("abcd"), kinds_of_field | small, min_size=2)},
    optional={"n": small, "x": kinds_of_field},
)


def leaves(tree: Tree, outer: str = "") -> Iterator[tuple[str, Kind]]:
    for name, part in tree.items():
        if isinstance(part, dict):
            yield from leaves(part, f"{outer}{name}.")
        else:
            yield f"{outer}{name}", part


def nested_schema(tree: Tree) -> Any:
    fields = {
        name: Annotated[nested_schema(part), Nested] if isinstance(part, dict) else ANNOTATIONS[part]
        for name, part in tree.items()
    }
    return TypedDict("Nesting", fields)  # type: ignore[operator]


def flat_schema(tree: Tree) -> Any:
    return TypedDict("Flat", {name: ANNOTATIONS[kind] for name, kind in leaves(tree)})  # type: ignore[operator]


def value_of(kind: Kind, number: int) -> Any:
    match kind:
        case "log" | "delta":
            return [number]
        case "tags":
            return {number}
        case _:
            return number


@st.composite
def writes(draw: st.DrawFn, tree: Tree, *, may_overwrite: bool) -> dict[str, Any]:
    """Draw what a node writes to some fields of *tree*."""
    made: dict[str, Any] = {}
    for name, part in tree.items():
        if draw(st.integers(0, 2)) == 0:
            continue
        if isinstance(part, dict):
            made[name] = draw(st.none()) if draw(st.integers(0, 9)) == 0 else draw(writes(part, may_overwrite=may_overwrite))
            may = True
        else:
            made[name] = value_of(part, draw(st.integers(0, 99)))
            may = part not in ("last", "any")  # alone, a field without a reducer does not take one
        if may_overwrite and may and draw(st.integers(0, 3)) == 0:
            made[name] = Overwrite(made[name])
    return made


def by_hand(
    tree: Tree, written: Mapping[str, Any], outer: str = "", is_replaced: bool = False
) -> Iterator[tuple[str, Any, bool]]:
    """Yield name, value and whether it replaces, of each field that the flat graph has to write for *written*."""
    for name, part in tree.items():
        if name not in written and not is_replaced:
            continue
        found = written.get(name)
        is_whole = isinstance(found, Overwrite)
        value = found.value if isinstance(found, Overwrite) else found
        if isinstance(part, dict):
            yield from by_hand(part, value or {}, f"{outer}{name}.", is_replaced or is_whole)
        else:
            yield f"{outer}{name}", EMPTY if name not in written else value, is_replaced or is_whole


def flat_step(tree: Tree, step: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return what the flat graph's nodes of one superstep write for what the nested one's do.

    Fields without a reducer know no Overwrite, so that it wins over the other nodes' writes is done by leaving these out.
    """
    kinds = dict(leaves(tree))
    found = [list(by_hand(tree, written)) for written in step]
    replaced = [name for entries in found for name, _, is_replaced in entries if is_replaced and kinds[name] == "any"]
    assume(len(set(replaced)) == len(replaced))  # an error, as two Overwrites always are, that a field alone does not know
    winners = {name: at for at, entries in enumerate(found) for name, _, is_replaced in entries if is_replaced}
    made: list[dict[str, Any]] = []
    for at, entries in enumerate(found):
        update: dict[str, Any] = {}
        for name, value, is_replaced in entries:
            kind = kinds[name]
            if kind in STARTS:
                update[name] = Overwrite(STARTS[kind] if value is EMPTY else value) if is_replaced else value
            elif (is_replaced or name not in winners) and not (kind == "any" and value is EMPTY):
                update[name] = value
        made.append(update)
    return made


def flattened(tree: Tree, state: Any, outer: str = "") -> dict[str, Any]:
    made: dict[str, Any] = {}
    for name, value in (state or {}).items():
        part = tree[name]
        made |= flattened(part, value, f"{outer}{name}.") if isinstance(part, dict) else {f"{outer}{name}": value}
    return made


@dataclass
class Outcome:
    """What a graph did: the values after each superstep, what nodes read, and the channels that each step changed."""

    values: list[Any]
    reads: list[Any]
    changed: list[set[str]]
    has_failed: bool


def outcome(colour: Colour, schema: Any, first: Any, steps: list[list[dict[str, Any]]], as_commands: bool) -> Outcome:
    """Run a graph whose supersteps write *steps*, a node for each dict."""
    read: dict[str, Any] = {}
    builder: Any = StateGraph(schema)
    before: list[str] = []
    for number, step in enumerate(steps):
        names = [f"s{number}n{at}" for at in range(len(step))]
        for name, written in zip(names, step, strict=True):
            builder.add_node(name, _node(name, Command(update=written) if as_commands else written, read))
            builder.add_edge(before or START, name)
        before = names
    saver = InMemorySaver()
    app = builder.compile(checkpointer=saver)
    values: list[Any] = []
    has_failed = False
    try:
        colour.each(app, first, values.append, THREAD, stream_mode="values")
    except InvalidUpdateError:
        has_failed = True
    versions = [saved.checkpoint["channel_versions"] for saved in saver.list(THREAD)][::-1]
    changed = [{c for c in new if new[c] != old.get(c)} for old, new in zip([{}, *versions], versions, strict=False)]
    return Outcome(values, [read[name] for name in sorted(read)], changed, has_failed)


def _node(name: str, returned: Any, read: dict[str, Any]) -> Any:
    def body(state: Any) -> Any:
        read[name] = state
        return returned

    return body


def without_empty(values: list[Any]) -> list[dict[str, Any]]:
    return [{name: value for name, value in (found or {}).items() if value != EMPTY} for found in values]


def checked(tree: Tree, draw: Any, colour: Colour, *, may_overwrite: bool) -> tuple[Outcome, Outcome]:
    """Run both graphs with the same writes and compare all but the versions."""
    some_writes = writes(tree, may_overwrite=may_overwrite)
    first = draw(some_writes)
    steps = draw(st.lists(st.lists(some_writes, min_size=1, max_size=3), min_size=2, max_size=4))
    as_commands = draw(st.booleans())

    nested = outcome(colour, nested_schema(tree), first, steps, as_commands)
    (flat_first,) = flat_step(tree, [first])
    flat = outcome(colour, flat_schema(tree), flat_first, [flat_step(tree, step) for step in steps], as_commands)

    event(f"failed: {flat.has_failed}, steps: {len(steps)}")
    assert nested.has_failed == flat.has_failed
    assert [flattened(tree, found) for found in nested.values] == without_empty(flat.values)
    assert [flattened(tree, found) for found in nested.reads] == without_empty(flat.reads)
    return nested, flat


@given(trees, st.data(), st.sampled_from([SYNC, ASYNC]))
def test_values_are_those_of_the_flat_graph(tree: Tree, data: st.DataObject, colour: Colour) -> None:
    """After each superstep and in what each node reads, Overwrites of wholes and parts among the writes."""
    checked(tree, data.draw, colour, may_overwrite=True)


@given(trees, st.data(), st.sampled_from([SYNC, ASYNC]))
def test_versions_are_those_of_the_flat_graph(tree: Tree, data: st.DataObject, colour: Colour) -> None:
    """Each checkpoint has new versions of the same channels."""
    nested, flat = checked(tree, data.draw, colour, may_overwrite=False)

    assert nested.changed == flat.changed
