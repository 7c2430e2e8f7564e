"""Programs that were moved over by half, or by guess: the error says what to write instead."""

from __future__ import annotations

from typing import Any, TypedDict

import langgraph.types
import pytest
from colours import Colour

from tracegraph.errors import InvalidUpdateError
from tracegraph.graph import START, StateGraph
from tracegraph.types import RetryPolicy


class State(TypedDict, total=False):
    n: int


def test_a_command_of_langgraph_is_refused_by_name(colour: Colour) -> None:
    """It has fields like any annotated class, and would be dropped without a word."""
    graph = StateGraph(State)
    graph.add_node("a", lambda state: langgraph.types.Command(update={"n": 5}))
    graph.add_edge(START, "a")

    with pytest.raises(InvalidUpdateError, match="a Command of langgraph; import it from tracegraph"):
        colour.invoke(graph.compile(), {"n": 0})


@pytest.mark.parametrize("policy", [{"max_attempts": 3}, ["often"], [3]])
def test_a_retry_policy_that_is_none_is_an_error_at_the_call(policy: Any) -> None:
    """Not when the node fails for the first time."""
    with pytest.raises(TypeError, match="RetryPolicy"):
        StateGraph(State).add_node("a", lambda state: None, retry_policy=policy)


def test_langgraphs_retry_policy_is_as_good(colour: Colour) -> None:
    """It says the same things under the same names."""
    tries: list[int] = []

    def flaky(state: State) -> State:
        tries.append(1)
        if len(tries) < 2:
            raise ConnectionError
        return {"n": len(tries)}

    graph = StateGraph(State)
    theirs: Any = langgraph.types.RetryPolicy(initial_interval=0.001, jitter=False)
    graph.add_node("flaky", flaky, retry_policy=theirs)
    graph.add_edge(START, "flaky")
    app = graph.compile()

    assert isinstance(app.nodes["flaky"].retry_policies[0], RetryPolicy)
    assert colour.invoke(app, {"n": 0}) == {"n": 2}
