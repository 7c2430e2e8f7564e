"""A reader holds a streamed run back: no superstep begins before it asks for more."""

from __future__ import annotations

import asyncio
import operator
from typing import Annotated, Any, TypedDict

from colours import ASYNC, Colour

from tracegraph.checkpoint.memory import InMemorySaver
from tracegraph.graph import END, START, StateGraph
from tracegraph.types import Send, interrupt

THREAD = {"configurable": {"thread_id": "t"}}


class State(TypedDict, total=False):
    n: int
    log: Annotated[list[Any], operator.add]


def charging(charged: list[int]) -> Any:
    """Return a graph: two parallel tasks, then a node that should not run for a reader who has left."""

    def charge(state: State) -> State:
        charged.append(state.get("n", 0))
        return {"n": state.get("n", 0) + 1}

    graph = StateGraph(State)
    graph.add_node("work", lambda state: None)
    graph.add_node("charge", charge)
    graph.add_conditional_edges(START, lambda state: [Send("work", {}), Send("work", {})], ["work"])
    graph.add_edge("work", "charge")
    graph.add_conditional_edges("charge", lambda state: "charge" if state["n"] < 50 else END)
    return graph.compile(checkpointer=InMemorySaver())


def test_nothing_runs_ahead_of_the_reader(colour: Colour) -> None:
    """While a reader holds the first part, the superstep that is under way ends, and no other begins."""
    charged: list[int] = []
    app = charging(charged)

    if colour is ASYNC:

        async def read_one() -> None:
            async with app.astream({}, THREAD, stream_mode="updates") as parts:
                await anext(parts)
                for _ in range(20):
                    await asyncio.sleep(0)

        asyncio.run(read_one())
    else:
        with app.stream({}, THREAD, stream_mode="updates") as parts:
            next(parts)

    assert charged == []
    assert app.get_state(THREAD).next[-1:] != ()


def test_a_replayed_checkpoint_runs_its_nodes_again(colour: Colour) -> None:
    """On a branch: questions are asked anew, nodes run anew, the history that was replayed stays."""
    ran: list[str] = []

    def node(name: str) -> Any:
        def body(state: State) -> State:
            ran.append(name)
            return {"log": [interrupt("?") if name == "ask" else name]}

        return body

    graph = StateGraph(State)
    graph.add_sequence([(name, node(name)) for name in ("a", "b", "ask")])
    graph.add_edge(START, "a")
    app = graph.compile(checkpointer=InMemorySaver())
    colour.invoke(app, {"log": []}, THREAD)
    before_b = next(s for s in app.get_state_history(THREAD) if s.next == ("b",))
    length = len(list(app.get_state_history(THREAD)))
    ran.clear()

    again = colour.invoke(app, None, before_b.config)

    assert ran == ["b", "ask"]
    assert (again["log"], [i.value for i in again["__interrupt__"]]) == (["a", "b"], ["?"])
    sources = [(s.metadata or {})["source"] for s in app.get_state_history(THREAD)]
    assert (len(sources), sources[:2]) == (length + 2, ["loop", "fork"])
