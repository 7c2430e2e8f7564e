"""A state is refused exactly where the sum of its channels' sizes, measured from scratch, is over the limit."""

from __future__ import annotations

import operator
from itertools import pairwise
from typing import Annotated, Any, TypedDict

from hypothesis import given
from hypothesis import strategies as st

from tracegraph.channels import DeltaChannel
from tracegraph.checkpoint.memory import InMemorySaver
from tracegraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from tracegraph.errors import StateSizeError
from tracegraph.graph import END, START, StateGraph, add_messages
from tracegraph.messages import HumanMessage, RemoveMessage
from tracegraph.types import Overwrite

THREAD: dict[str, Any] = {"configurable": {"thread_id": "t"}}
SERDE = JsonPlusSerializer()
HEADER_BYTES = 4
"""A list's header in msgpack is 1 to 5 bytes; that of what it is counted from, 1 at least."""


class State(TypedDict, total=False):
    """Channels that are replaced, that are added to, and that fold what they are given."""

    last: Any
    log: Annotated[list[Any], operator.add]
    odd: Annotated[list[Any], lambda left, right: left + right if len(right) != 2 else right]
    talk: Annotated[list[Any], add_messages]
    lines: Annotated[list[Any], DeltaChannel(lambda lines, batch: [*lines, *batch], list)]


ITEMS = st.lists(st.text(max_size=20) | st.integers(), max_size=20)
WRITES = st.fixed_dictionaries(
    {},
    optional={
        "last": ITEMS | st.none(),
        "log": ITEMS | ITEMS.map(Overwrite),
        "odd": ITEMS,
        "talk": st.lists(st.integers(0, 5), max_size=3).map(lambda ids: [HumanMessage("hi", id=str(n)) for n in ids])
        | st.just([RemoveMessage("__remove_all__")]),
        "lines": st.integers(0, 9) | ITEMS.map(Overwrite),
    },
)
SLACK_BYTES = 4 * HEADER_BYTES  # four channels grow


def app_with(limit: int | None, saver: InMemorySaver, writes: list[Any]) -> Any:
    """Return a graph that writes one of *writes* in each superstep."""
    left = list(writes)
    graph = StateGraph(State)
    graph.add_node("write", lambda state: left.pop(0))
    graph.add_edge(START, "write")
    graph.add_conditional_edges("write", lambda state: "write" if left else END, ["write", END])
    return graph.compile(checkpointer=saver, max_state_bytes=limit)


def sizes_of(app: Any, saver: InMemorySaver) -> list[int]:
    """Return the size of each checkpoint of the thread from scratch, oldest first."""
    found: list[int] = []
    for state in app.get_state_history(THREAD):
        saved = saver.get_tuple(state.config)
        assert saved is not None
        values = dict(saved.checkpoint["channel_values"])
        # A saver hands out what a delta channel folds; its value is what the state has.
        values.update({name: state.values[name] for name in saved.checkpoint["channel_versions"] if name in state.values})
        found.append(sum(len(SERDE.dumps_typed(value)[1]) for value in values.values()))
    return found[::-1]


@given(st.lists(WRITES, min_size=1, max_size=12), st.integers(1, 1500), st.sampled_from(["sync", "async"]))
def test_runs_are_refused_where_their_state_is_too_large(writes: list[Any], limit: int, durability: str) -> None:
    """Exactly there; of lists counted in pieces, at most their headers later."""
    free, limited = InMemorySaver(), InMemorySaver()
    config = {**THREAD, "recursion_limit": 20}
    every, some = app_with(None, free, writes), app_with(limit, limited, writes)
    every.invoke({"last": None}, config)
    refused: StateSizeError | None = None
    try:
        some.invoke({"last": None}, config, durability=durability)
    except StateSizeError as error:
        refused = error

    would_be, were = sizes_of(every, free), sizes_of(some, limited)

    assert were == would_be[: len(were)]
    for before, after in pairwise([0, *were]):
        assert after <= max(limit + SLACK_BYTES, before)
    assert (refused is None) == (len(were) == len(would_be))
    if refused is not None:
        assert refused.size_bytes == would_be[len(were)] > max([limit, *were[-1:]])


@given(st.lists(WRITES.filter(bool), min_size=1, max_size=8), st.integers(20, 1500))
def test_updates_are_refused_exactly_where_the_state_is_too_large(updates: list[Any], limit: int) -> None:
    """An update begins with a state measured from scratch; what was refused left nothing behind."""
    saver = InMemorySaver()
    free, limited = app_with(None, saver, []), app_with(limit, saver, [])
    free.update_state(THREAD, {"last": None}, as_node="write")
    for update in updates:
        sizes, head = sizes_of(free, saver), free.get_state(THREAD).config
        try:
            limited.update_state(THREAD, update, as_node="write")
        except StateSizeError as error:
            assert sizes_of(free, saver) == sizes
            free.update_state(THREAD, update, as_node="write")
            assert error.size_bytes == sizes_of(free, saver)[-1] > max(limit, sizes[-1])
            free.update_state(head, None, as_node="__copy__")
        else:
            assert sizes_of(free, saver)[-1] <= max(limit + SLACK_BYTES, sizes[-1])
