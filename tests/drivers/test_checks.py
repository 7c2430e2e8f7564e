"""What is watched under TRACEGRAPH_CHECK=1: deep mutation of what was read, slow code on the event loop."""

from __future__ import annotations

import asyncio
import time
import warnings
from typing import Any, TypedDict

import pytest
from colours import Colour

from tracegraph.drivers import checks
from tracegraph.errors import TracegraphWarning
from tracegraph.graph import END, START, StateGraph


class State(TypedDict, total=False):
    items: Any
    n: int


class Uncopyable:
    """Refuses to be copied."""

    def __deepcopy__(self, memo: Any) -> Any:
        raise TypeError("one of a kind")


class Undecided:
    """Compares like an array: with an answer that is neither true nor false."""

    def __init__(self, is_settled: bool = True) -> None:
        self.is_settled = is_settled

    def __eq__(self, other: object) -> bool:
        return True

    def __ne__(self, other: object) -> bool:
        raise ValueError("ambiguous")

    __hash__ = None  # type: ignore[assignment]  # mutable


class SameOnly:
    """Is equal to nothing but itself, so a copy tells nothing."""

    def __init__(self) -> None:
        self.changes: list[int] = []


def graph_of(body: Any) -> Any:
    """Return a graph of one node."""
    graph: StateGraph[Any, Any, Any, Any] = StateGraph(State)
    graph.add_node("node", body)
    graph.add_edge(START, "node")
    return graph.compile()


def test_a_deep_change_of_the_input_is_reported(colour: Colour) -> None:
    """One level is copied for the node; what it changes below that, everybody sees."""

    def careless(state: State) -> State:
        state["items"][0].append("mine")
        return {"n": 1}

    with pytest.warns(TracegraphWarning, match="node 'node' changed the value of channel 'items' in place"):
        colour.invoke(graph_of(careless), {"items": [["theirs"]]})


def test_a_deep_change_by_an_attempt_that_failed_is_reported(colour: Colour) -> None:
    """The next attempt would see it, and the node's own error is what is raised."""

    def careless(state: State) -> State:
        state["items"][0].append("mine")
        raise ValueError("boom")

    with (
        pytest.warns(TracegraphWarning, match="node 'node' changed the value of channel 'items' in place"),
        pytest.raises(ValueError, match="boom"),
    ):
        colour.invoke(graph_of(careless), {"items": [["theirs"]]})


def test_a_change_of_the_first_level_is_the_nodes_own(colour: Colour) -> None:
    """It got a copy."""

    def harmless(state: State) -> State:
        state["items"].append("mine")
        return {"n": 1}

    assert colour.invoke(graph_of(harmless), {"items": ["theirs"]}) == {"items": ["theirs"], "n": 1}


@pytest.mark.parametrize("value", [Uncopyable(), Undecided(), SameOnly()], ids=lambda value: type(value).__name__)
def test_what_cannot_be_copied_or_compared_is_let_pass(colour: Colour, value: Any) -> None:
    """The check never breaks a run, and never cries wolf."""

    def changes(state: State) -> State:
        if isinstance(state["items"], SameOnly):
            state["items"].changes.append(1)
        return {"n": 1}

    assert colour.invoke(graph_of(changes), {"items": value}) == {"items": value, "n": 1}


@pytest.mark.parametrize("setting", ["", "0", None])
def test_nothing_is_watched_unless_asked_for(colour: Colour, monkeypatch: pytest.MonkeyPatch, setting: str | None) -> None:
    """The setting is read when a run starts."""
    if setting is None:
        monkeypatch.delenv("TRACEGRAPH_CHECK")
    else:
        monkeypatch.setenv("TRACEGRAPH_CHECK", setting)

    def careless(state: State) -> State:
        state["items"][0].append("mine")
        return {"n": 1}

    assert not checks.is_checking()
    assert colour.invoke(graph_of(careless), {"items": [["theirs"]]})["n"] == 1


def branching(path: Any) -> Any:
    """Return a graph with a conditional edge."""
    graph: StateGraph[Any, Any, Any, Any] = StateGraph(State)
    graph.add_node("node", lambda state: {"n": 1})
    graph.add_edge(START, "node")
    graph.add_conditional_edges("node", path, [END])
    return graph.compile()


def slow_route(state: State) -> str:
    """Stand for a path function that takes its time."""
    return END


def test_a_slow_path_function_on_the_loop_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    """In an async run it holds up everything else; the limit is lowered here, so that any function is slow."""
    monkeypatch.setattr(checks, "SLOW_S", -1.0)

    with pytest.warns(TracegraphWarning, match="'slow_route' took .* ms on the event loop"):
        asyncio.run(branching(slow_route).ainvoke({"n": 0}))


def test_a_slow_path_function_of_a_sync_run_is_nobodys_business(monkeypatch: pytest.MonkeyPatch) -> None:
    """There is no loop it could hold up."""
    monkeypatch.setattr(checks, "SLOW_S", -1.0)

    assert branching(slow_route).invoke({"n": 0}) == {"n": 1}


def test_a_quick_path_function_is_fine() -> None:
    """Below the limit nothing is said."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        checks.warn_if_slow("quick", time.perf_counter())
