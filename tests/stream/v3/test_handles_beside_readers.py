"""A handle of a graph inside, read in the body of the loop, misses nothing, however many read the run beside it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterable, Awaitable, Callable
from itertools import permutations
from typing import Any

import pytest
from small_graphs import State, chain


async def collect(items: AsyncIterable[Any]) -> None:
    async for _ in items:
        pass


def quick(word: str) -> Callable[[State], Awaitable[State]]:
    """Return a node that is done so soon that its parts come in one burst."""

    async def node(state: State) -> State:
        await asyncio.sleep(0)
        return {"xs": [word]}

    return node


@pytest.mark.parametrize("order", list(permutations(("subgraphs", "values", "lifecycle", "log"))), ids="-".join)
async def test_the_first_values_of_a_graph_inside_are_seen(order: tuple[str, ...]) -> None:
    """In whichever order the readers began: one that is woken first does not run ahead of the others."""
    seen: list[Any] = []

    async def inside(handles: AsyncIterable[Any]) -> None:
        async for handle in handles:
            async for values in handle.values:
                seen.append(values["xs"])

    graph = chain(a=quick("a"), inner=chain(one=quick("one"), two=quick("two")))
    async with await graph.astream_events({"xs": []}, version="v3") as run:
        begin: dict[str, Callable[[], Awaitable[None]]] = {
            "subgraphs": lambda: inside(aiter(run.subgraphs)),
            "values": lambda: collect(aiter(run.values)),
            "lifecycle": lambda: collect(aiter(run.lifecycle)),
            "log": lambda: collect(aiter(run)),
        }
        await asyncio.gather(*(begin[name]() for name in order))

    assert seen == [["a", "one"], ["a", "one", "two"]]
