"""Storing what was added, rather than values, changes nothing that can be read, whatever is done to a thread."""

from __future__ import annotations

import operator
from contextlib import closing
from typing import Annotated, Any, TypedDict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracegraph.channels import DeltaChannel
from tracegraph.checkpoint.memory import InMemorySaver
from tracegraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from tracegraph.checkpoint.sqlite import SqliteSaver
from tracegraph.checkpoint.sqlite.database import connect
from tracegraph.graph import START, StateGraph, add_messages
from tracegraph.messages import HumanMessage, RemoveMessage, add_message_batches
from tracegraph.types import Overwrite

THREAD: dict[str, Any] = {"configurable": {"thread_id": "t"}}


class WholeValues(InMemorySaver):
    """A saver that is told of no increments, as those written for LangGraph are not."""

    def put(self, *args: Any, **kwargs: Any) -> Any:
        """Store a whole checkpoint."""
        return super().put(*args, **kwargs)


def merged(table: dict[str, int], batch: list[dict[str, int]]) -> dict[str, int]:
    return {key: value for each in (table, *batch) for key, value in each.items()}


class State(TypedDict, total=False):
    """One channel of each kind that can grow, and one that cannot."""

    log: Annotated[list[Any], operator.add]
    odd: Annotated[list[Any], lambda left, right: left + right if len(right) != 2 else right]
    talk: Annotated[list[Any], add_messages]
    lines: Annotated[list[Any], DeltaChannel(lambda lines, batch: [*lines, *batch], list)]
    table: Annotated[dict[str, int], DeltaChannel(merged, dict)]
    deltas: Annotated[list[Any], DeltaChannel(add_message_batches, list)]
    last: int


ITEMS = st.lists(st.integers(0, 9) | st.tuples(st.integers(0, 3)), max_size=3)
MESSAGES = st.lists(st.integers(0, 5), max_size=3).map(lambda ids: [HumanMessage("x", id=str(n)) for n in ids])
WRITES = st.fixed_dictionaries(
    {},
    optional={
        "log": ITEMS | ITEMS.map(Overwrite),
        "odd": ITEMS,
        "talk": MESSAGES | st.just([RemoveMessage("__remove_all__")]),
        "lines": st.integers(0, 9) | ITEMS.map(Overwrite),
        "table": st.dictionaries(st.sampled_from("abc"), st.integers(0, 9)),
        "deltas": st.lists(st.integers(0, 5), min_size=1, max_size=2).map(
            lambda ids: [HumanMessage("y", id=str(n)) for n in ids]
        ),
        "last": st.integers(0, 9),
    },
)
DURABILITY = st.sampled_from(("sync", "async", "exit"))
ACTIONS = st.lists(
    st.tuples(st.just("run"), st.lists(WRITES, min_size=1, max_size=4), DURABILITY)
    | st.tuples(st.just("update"), WRITES, st.integers(0, 30))
    | st.tuples(st.just("drop"), st.none(), st.just(0)),
    min_size=1,
    max_size=8,
)


def play(saver: Any, actions: list[Any]) -> list[Any]:
    """Do all that to a thread; return the values of its history, newest first."""
    script: list[Any] = []
    graph = StateGraph(State)
    graph.add_node("say", lambda state: script.pop(0) if script else {})
    graph.add_edge(START, "say")
    graph.add_conditional_edges("say", lambda state: "say" if script else "__end__")
    app = graph.compile(checkpointer=saver)
    for kind, given_writes, how in actions:
        if kind == "run":
            script[:] = given_writes[1:]
            app.invoke({"last": 0, **given_writes[0]}, THREAD, durability=how)
        elif kind == "update":
            history = list(app.get_state_history(THREAD))
            if history:
                app.update_state(history[how % len(history)].config, given_writes, "say")
        else:
            saver.prune(["t"])
    return [snapshot.values for snapshot in app.get_state_history(THREAD)]


def sqlite() -> Any:
    return SqliteSaver(connect(":memory:"))


@pytest.mark.parametrize("fan", [2, 32])
@given(actions=ACTIONS)
def test_history_is_the_same_as_with_whole_values(fan: int, actions: list[Any]) -> None:
    """Runs of every durability, updates anywhere in the past, overwrites, removals, pruning."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tracegraph.checkpoint.sql.values.FAN", fan)
        expected = play(WholeValues(), actions)

        assert play(InMemorySaver(), actions) == expected
        assert play(InMemorySaver(serde=JsonPlusSerializer()), actions) == expected
        saver = sqlite()
        with closing(saver.conn):
            assert play(saver, actions) == expected


@given(sizes=st.lists(st.integers(0, 40), min_size=1, max_size=200))
def test_a_list_is_stored_at_most_three_times_and_read_once(sizes: list[int]) -> None:
    """Whatever is added, in whatever portions; the rows of a chain stay few."""

    class Log(TypedDict):
        log: Annotated[list[Any], operator.add]

    portions = [["x" * size] for size in sizes]
    graph = StateGraph(Log)
    graph.add_node("say", lambda state: {"log": portions[len(state["log"])]})
    graph.add_edge(START, "say")
    graph.add_conditional_edges("say", lambda state: "say" if len(state["log"]) < len(portions) else "__end__")
    saver = sqlite()
    with closing(saver.conn):
        app = graph.compile(checkpointer=saver)
        app.invoke({"log": []}, {**THREAD, "recursion_limit": 300})

        content = len(saver.serde.dumps_typed([item for portion in portions for item in portion])[1])
        (stored,) = saver.conn.execute("SELECT sum(length(value)) FROM tracegraph_blobs WHERE channel = 'log'").fetchone()
        newest = "SELECT chain_bytes FROM tracegraph_blobs WHERE channel = 'log' ORDER BY version DESC LIMIT 1"
        (read,) = saver.conn.execute(newest).fetchone()
        assert stored <= 3 * content + 8
        assert read <= 2 * content + 8
