"""A long run does not hold on to what its past steps had."""

from __future__ import annotations

import gc
import weakref
from typing import Any, TypedDict

import pytest
from colours import Colour
from small_graphs import THREAD

from tracegraph.checkpoint.base import BaseCheckpointSaver
from tracegraph.checkpoint.memory import InMemorySaver
from tracegraph.graph import START, StateGraph
from tracegraph.types import Durability


class Value:
    """Something that can be watched."""


class State(TypedDict):
    value: Value


class Forgetful(BaseCheckpointSaver):
    """Keeps nothing, so that only the run itself could."""

    does_io = False

    def get_tuple(self, config: Any) -> None:
        """Find nothing."""

    def put(self, config: Any, checkpoint: Any, metadata: Any, new_versions: Any) -> Any:
        """Keep nothing."""
        return config

    def put_writes(self, config: Any, writes: Any, task_id: str) -> None:
        """Keep nothing."""

    async def _off_loop(self, call: Any) -> Any:
        return call()


@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
def test_values_of_past_steps_are_let_go_of(colour: Colour, durability: Durability, monkeypatch: pytest.MonkeyPatch) -> None:
    """Saves that nobody asks to be told of are forgotten once they are made."""
    monkeypatch.delenv("TRACEGRAPH_CHECK", raising=False)  # a checked engine remembers its reports
    made: list[weakref.ref[Value]] = []
    alive: list[int] = []

    def node(_state: State) -> Any:
        gc.collect()
        alive.append(sum(each() is not None for each in made))
        value = Value()
        made.append(weakref.ref(value))
        return {"value": value}

    graph = StateGraph(State).add_node("node", node).add_edge(START, "node")
    graph.add_conditional_edges("node", lambda state: "node" if len(made) < 8 else "__end__")
    colour.invoke(graph.compile(checkpointer=Forgetful()), {"value": Value()}, THREAD, durability=durability)

    assert max(alive) <= 2


def test_a_process_that_makes_saver_classes_does_not_keep_them_all() -> None:
    """What is known of a class is remembered for so many classes only."""
    kinds: list[weakref.ref[type]] = []
    graph = StateGraph(State).add_node("node", lambda state: {"value": Value()}).add_edge(START, "node")

    def run_with_a_class_of_its_own() -> None:
        class Own(InMemorySaver):
            def put(self, *args: Any, **kwargs: Any) -> Any:
                return super().put(*args, **kwargs)

        kinds.append(weakref.ref(Own))
        graph.compile(checkpointer=Own()).invoke({"value": Value()}, THREAD)

    for _ in range(300):
        run_with_a_class_of_its_own()
    gc.collect()

    assert kinds[0]() is None
