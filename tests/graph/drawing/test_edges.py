"""Which edges are drawn, where LangGraph's drawing is not the measure."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, ClassVar, TypedDict

import pytest

from tracegraph.constants import END, START
from tracegraph.drawing import draw
from tracegraph.drawing.edges import Wiring, derive_edges, wiring_of_nodes
from tracegraph.graph import StateGraph


def wired(plain: str, *, deferred: str = "", joins: Any = ()) -> Wiring:
    """Return a wiring of one-letter nodes; `>` is the start, as in `>a ab bc`."""
    wiring = Wiring(joins=list(joins), deferred=set(deferred))
    for source, target in plain.split():
        wiring.plain[START if source == ">" else source].append(target)
    return wiring


def arrows(wiring: Wiring) -> list[str]:
    short = {START: ">", END: "."}
    edges = derive_edges(wiring)
    return [f"{short.get(e.source, e.source)}{'?' * e.conditional}{short.get(e.target, e.target)}" for e in edges]


def test_a_deferred_node_gets_only_its_declared_edges() -> None:
    """LangGraph also draws one from the node that ran while it waited; it was never declared."""
    assert arrows(wired(">a ab ac", deferred="b")) == [">a", "ab", "ac", "b.", "c."]
    assert arrows(wired(">a ab ac cd", deferred="b")) == [">a", "ab", "ac", "cd", "b.", "d."]


def test_a_deferred_join_is_drawn_like_any_other() -> None:
    """It waits for its starts and for everything else, and then leads on."""
    assert arrows(wired(">a >b cd", deferred="c", joins=[(("a", "b"), "c")])) == [">a", ">b", "ac", "bc", "cd", "d."]


@pytest.mark.parametrize(("cycle", "last"), [("ab ba", "b"), ("ab bc ca", "a"), ("ab bc cd da", "b")])
def test_an_endless_cycle_ends_where_the_walk_stops(cycle: str, last: str) -> None:
    """Nobody declared an end, and one node is left after 250 steps."""
    assert arrows(wired(f">a {cycle}"))[-1] == f"{last}?."


def test_an_endless_cycle_of_several_nodes_has_no_end() -> None:
    """Several nodes are left: none of them is where it ends."""
    assert arrows(wired(">a >b ab ba aa")) == [">a", ">b", "aa", "ab", "ba"]


def test_a_chain_longer_than_the_limit_is_drawn_whole() -> None:
    """Only repetition is cut off, never what has not been seen yet."""
    names = [f"n{i:03}" for i in range(400)]
    wiring = Wiring()
    for source, target in zip([START, *names], names, strict=False):
        wiring.plain[source].append(target)

    assert len(derive_edges(wiring)) == 401


def node(*triggers: str, writes: tuple[str, ...] | None = None) -> Any:
    writer = SimpleNamespace() if writes is None else SimpleNamespace(channels=writes)
    return SimpleNamespace(triggers=triggers, writer=writer, body=None, metadata=None, subgraph=None)


def low_level(nodes: dict[str, Any], inputs: Any = "in") -> Any:
    return SimpleNamespace(nodes=nodes, input_channels=inputs, interrupt_before=(), interrupt_after=())


def test_a_low_level_graph_is_wired_through_its_channels() -> None:
    """A node leads to those that listen to what it writes; the virtual nodes come last."""
    graph = low_level({"one": node("in", writes=("mid",)), "two": node("mid", "in", writes=("out",))})

    assert draw(graph).draw_mermaid(with_styles=False) == (
        "graph TD;\n\t__start__ --> one;\n\t__start__ --> two;\n\tone --> two;\n\ttwo --> __end__;\n"
    )
    assert list(draw(graph).nodes) == ["one", "two", "__start__", "__end__"]


def test_several_input_channels_all_start_their_listeners() -> None:
    """LangGraph cannot draw such a graph."""
    wiring = wiring_of_nodes({"one": node("a", writes=()), "two": node("b", writes=())}, ["a", "b"])

    assert arrows(wiring)[:2] == [">one", ">two"]


def test_a_writer_that_does_not_tell_leads_nowhere() -> None:
    """What cannot be known is not guessed."""
    assert arrows(wiring_of_nodes({"one": node("in"), "two": node("mid", writes=("out",))}, "in")) == [">one", "one."]


def test_a_functional_graph_leads_from_start_through_its_entrypoint() -> None:
    """D9: the end is dotted; tasks are not shown."""
    graph = low_level({"wf": node(START, writes=(END, "__previous__"))}, START)

    assert draw(graph).draw_mermaid(with_styles=False) == "graph TD;\n\t__start__ --> wf;\n\twf -.-> __end__;\n"
    assert list(draw(graph).nodes) == ["wf", "__start__", "__end__"]


class State(TypedDict):
    x: int


def test_a_tool_node_shows_the_names_of_its_tools() -> None:
    """D4: whatever has `tools_by_name` counts as one."""

    class Tools:
        tools_by_name: ClassVar[dict[str, Any]] = {"search": 1, "add": 2}

        def __call__(self, state: State) -> Any:
            raise AssertionError

    compiled = StateGraph(State).add_node("tools", Tools()).add_edge(START, "tools").compile()

    assert compiled.get_graph().nodes["tools"].metadata == {"__tools": ["search", "add"]}


def test_nothing_of_the_user_s_is_called() -> None:
    """D8: bodies and path functions that would raise are drawn all the same."""

    def explode(state: State) -> Any:
        raise AssertionError

    builder = StateGraph(State).add_node("a", explode).add_node("b", explode).add_edge(START, "a")
    builder.add_conditional_edges("a", explode, {"go": "b"})

    assert len(builder.compile().get_graph(xray=True).edges) == 3


def test_an_input_nobody_listens_to_leads_to_the_end() -> None:
    """Such a run takes no step; the node stays without edges."""
    assert arrows(wiring_of_nodes({"one": node("elsewhere")}, "in")) == [">?."]
