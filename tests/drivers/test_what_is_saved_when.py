"""The order in which a run saves, per durability (spec 05, 5.4), as a saver of another make sees it."""

from __future__ import annotations

from typing import Any

import pytest
from colours import Colour
from nested import THREAD, Recorder, State

from tracegraph.checkpoint.memory import InMemorySaver
from tracegraph.graph import START, StateGraph
from tracegraph.types import interrupt


class Spy(InMemorySaver):
    """Writes down what it is asked to store."""

    def __init__(self) -> None:
        super().__init__()
        self.told: list[Any] = []

    def put(self, config: Any, checkpoint: Any, metadata: Any, new_versions: Any, **options: Any) -> Any:
        self.told.append((metadata["source"], metadata["step"]))
        return super().put(config, checkpoint, metadata, new_versions, **options)

    def put_writes(self, config: Any, writes: Any, task_id: str, task_path: str = "") -> None:
        self.told.append(task_path.rpartition(", ")[2])
        super().put_writes(config, writes, task_id, task_path)


def saved_by(spy: Spy, *, last: Any) -> Any:
    """Return a graph of two nodes, the second of which is *last*."""
    graph: StateGraph[Any, Any, Any, Any] = StateGraph(State)
    graph.add_sequence([("x", Recorder().says("x")), ("y", last)])
    graph.add_edge(START, "x")
    return graph.compile(checkpointer=spy)


def fail(state: State) -> Any:
    """Fail."""
    raise ValueError("no")


@pytest.mark.parametrize("durability", ["sync", "async"])
def test_each_step_is_saved_after_what_its_tasks_wrote(colour: Colour, durability: Any) -> None:
    """P4: the input, then in turn a task's writes and the checkpoint that follows from them."""
    spy = Spy()
    colour.invoke(saved_by(spy, last=Recorder().says("y")), {"log": []}, THREAD, durability=durability)

    assert spy.told == [("input", -1), "__start__", ("loop", 0), "x", ("loop", 1), "y", ("loop", 2)]


def test_under_exit_one_checkpoint_is_saved(colour: Colour) -> None:
    """P4: the last one."""
    spy = Spy()
    colour.invoke(saved_by(spy, last=Recorder().says("y")), {"log": []}, THREAD, durability="exit")

    assert spy.told == [("loop", 2)]


@pytest.mark.parametrize("last", [fail, lambda state: interrupt("?")], ids=["an error", "a pause"])
def test_under_exit_what_stopped_the_run_is_saved_with_it(colour: Colour, last: Any) -> None:
    """P5: the checkpoint, then the writes of the superstep that did not end."""
    spy = Spy()
    try:
        colour.invoke(saved_by(spy, last=last), {"log": []}, THREAD, durability="exit")
    except ValueError:
        assert last is fail

    assert spy.told == [("loop", 1), "y"]
