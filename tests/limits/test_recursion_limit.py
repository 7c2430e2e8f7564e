"""The recursion limit ends a run by name and leaves a thread that goes on with a higher one."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from colours import Colour
from recording import recording
from small_graphs import THREAD, State

from tracegraph.checkpoint.base import BaseCheckpointSaver
from tracegraph.errors import GraphRecursionError
from tracegraph.events import RunEnded
from tracegraph.graph import END, START, StateGraph


class Ran:
    """Counts supersteps of the graphs it makes."""

    def __init__(self) -> None:
        self.names: Counter[str] = Counter()

    def looping(self, name: str, turns: int, **options: Any) -> Any:
        """Return a graph that takes as many supersteps as *turns*, its node's name being *name*."""

        def body(state: State) -> State:
            self.names[name] += 1
            return {"n": state.get("n", 0) + 1}

        graph = StateGraph(State)
        graph.add_node(name, body)
        graph.add_edge(START, name)
        graph.add_conditional_edges(name, lambda state: name if state["n"] < turns else END)
        return graph.compile(**options)


@pytest.fixture
def ran() -> Ran:
    return Ran()


def limited(limit: int) -> dict[str, Any]:
    return {**THREAD, "recursion_limit": limit}


@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
def test_a_thread_goes_on_from_its_limit(colour: Colour, saver: BaseCheckpointSaver, ran: Ran, durability: str) -> None:
    """The error names limit, step and what would have come next; none of what ran is run again."""
    app = ran.looping("turn", 8, checkpointer=saver)

    with recording() as recorder, pytest.raises(GraphRecursionError) as failure:
        colour.invoke(app, {"n": 0}, limited(3), durability=durability)

    error = failure.value
    assert (error.limit, error.step, error.next_nodes) == (3, 4, ("turn",))
    assert str(error).startswith("[TG205] 3 supersteps were not enough to finish; next would be 'turn' in step 4. ")
    assert "GRAPH_RECURSION_LIMIT" in str(error)
    assert isinstance(error, RecursionError)
    assert [event.status for event in recorder.events if isinstance(event, RunEnded)] == ["step_limit"]
    state = app.get_state(THREAD)
    assert (state.values, state.next, ran.names) == ({"n": 3, "xs": []}, ("turn",), Counter(turn=3))

    assert colour.invoke(app, None, limited(20)) == {"n": 8, "xs": []}
    assert ran.names == Counter(turn=8)


def test_each_run_of_a_thread_has_its_limit_anew(colour: Colour, saver: BaseCheckpointSaver, ran: Ran) -> None:
    """It counts the run's supersteps, not the thread's. One that goes on needs none for its input, and so has two more."""
    app = ran.looping("turn", 10, checkpointer=saver)
    steps: list[int | None] = []
    given: Any = {"n": 0}
    for _ in range(10):
        try:
            colour.invoke(app, given, limited(3))
            break
        except GraphRecursionError as error:
            steps.append(error.step)
            given = None

    assert steps == [4, 9]
    assert ran.names == Counter(turn=10)


def nested(ran: Ran, inner: Any, saver: BaseCheckpointSaver) -> Any:
    """Return a graph with a graph inside, between two nodes of its own."""
    graph = StateGraph(State)
    graph.add_node("before", lambda state: {"xs": ["before"]})
    graph.add_node("inner", inner)
    graph.add_node("after", lambda state: {"xs": ["after"]})
    graph.add_edge(START, "before")
    graph.add_edge("before", "inner")
    graph.add_edge("inner", "after")
    return graph.compile(checkpointer=saver)


def test_a_graph_inside_meets_its_own_limit_and_goes_on(colour: Colour, saver: BaseCheckpointSaver, ran: Ran) -> None:
    """The outer run has supersteps left; resumed with a higher limit inside, what the inner graph did is kept."""
    tight = nested(ran, ran.looping("turn", 6).with_config({"recursion_limit": 4}), saver)

    with recording() as recorder, pytest.raises(GraphRecursionError) as failure:
        colour.invoke(tight, {"n": 0}, limited(50))

    assert (failure.value.limit, failure.value.step, failure.value.next_nodes) == (4, 5, ("turn",))
    assert [event.status for event in recorder.events if isinstance(event, RunEnded)] == ["step_limit", "failed"]
    assert tight.get_state(THREAD).next == ("inner",)
    assert any("'inner'" in note for note in failure.value.__notes__)

    wide = nested(ran, ran.looping("turn", 6).with_config({"recursion_limit": 40}), saver)
    result = colour.invoke(wide, None, limited(50))
    assert (result["n"], result["xs"][-1], ran.names) == (6, "after", Counter(turn=6))


def test_a_graph_inside_without_a_limit_has_the_outer_runs(colour: Colour, saver: BaseCheckpointSaver, ran: Ran) -> None:
    """One limit for each of them, not one for both; a higher one lets both go on."""
    app = nested(ran, ran.looping("turn", 6), saver)

    with pytest.raises(GraphRecursionError) as failure:
        colour.invoke(app, {"n": 0}, limited(4))
    assert (failure.value.limit, failure.value.next_nodes) == (4, ("turn",))

    assert colour.invoke(app, None, limited(5))["n"] == 6
    assert ran.names == Counter(turn=6)


def test_an_outer_limit_does_not_stop_the_graph_inside(colour: Colour, saver: BaseCheckpointSaver, ran: Ran) -> None:
    """With a limit of its own it runs to its end; then the outer run stops before its last node."""
    app = nested(ran, ran.looping("turn", 6).with_config({"recursion_limit": 40}), saver)

    with pytest.raises(GraphRecursionError) as failure:
        colour.invoke(app, {"n": 0}, limited(2))

    assert (failure.value.limit, failure.value.step, failure.value.next_nodes) == (2, 3, ("after",))
    assert ran.names == Counter(turn=6)
    assert colour.invoke(app, None, limited(2))["xs"][-1] == "after"
    assert ran.names == Counter(turn=6)
