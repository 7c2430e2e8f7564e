"""What a stream shows is the run's own, and what a reader does to it is the reader's own."""

from __future__ import annotations

from typing import Any

import pytest
from colours import Colour
from small_graphs import THREAD, State, bounded, chain, saving, says

from tracegraph.config import get_stream_writer


@pytest.mark.parametrize("subgraphs", [False, True])
def test_a_run_on_a_thread_of_its_own_is_not_shown(colour: Colour, subgraphs: bool) -> None:
    """A node may call another graph on another thread: its values, updates and custom parts are nobody else's."""

    def inner(state: State) -> State:
        get_stream_writer()("foreign")
        return {"xs": ["foreign"]}

    other = chain(saving(), inner=inner)

    def a(state: State) -> State:
        other.invoke({"xs": []}, {"configurable": {"thread_id": "other"}})
        get_stream_writer()("own")
        return {"xs": ["a"]}

    parts: list[Any] = bounded(
        lambda: colour.stream(
            chain(saving(), a=a), {"xs": []}, THREAD, stream_mode=["updates", "values", "custom"], subgraphs=subgraphs
        )
    )

    expected = [("values", {"xs": []}), ("custom", "own"), ("updates", {"a": {"xs": ["a"]}}), ("values", {"xs": ["a"]})]
    assert parts == [((), *part) for part in expected] if subgraphs else parts == expected


def test_a_reader_may_change_the_parts_it_got(colour: Colour) -> None:
    """The state is not among them: the next node sees what the one before it wrote."""
    seen: list[Any] = []

    def consume(part: Any) -> None:
        for update in part.values():
            update["xs"].append("reader")
        seen.append(part)

    def look(state: State) -> State:
        seen.append(list(state["xs"]))
        return {"xs": ["b"]}

    app = chain(a=says("a"), b=look)
    bounded(lambda: colour.each(app, {"xs": []}, consume, stream_mode="updates"))

    assert seen == [{"a": {"xs": ["a", "reader"]}}, ["a"], {"b": {"xs": ["b", "reader"]}}]
