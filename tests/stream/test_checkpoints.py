"""Modes ``checkpoints`` and ``debug``: what ``get_state_history`` will say, told as it comes about (spec 8.6, 8.7)."""

from __future__ import annotations

import asyncio
import operator
from datetime import datetime
from typing import Annotated, Any

import pytest
from colours import Colour
from small_graphs import THREAD, State, chain, parallel, saving, says

from tracegraph.errors import GraphRecursionError
from tracegraph.graph import START, StateGraph
from tracegraph.types import Command, RetryPolicy, StateSnapshot, interrupt


def history(colour: Colour, app: Any, config: Any = THREAD) -> list[StateSnapshot]:
    """Return the thread's states, oldest first."""
    if colour.name == "sync":
        return list(app.get_state_history(config))[::-1]

    async def read() -> list[StateSnapshot]:
        return [found async for found in app.aget_state_history(config)][::-1]

    return asyncio.run(read())


def facts_of_part(part: Any) -> Any:
    return (
        part["config"], part["parent_config"], part["values"], part["metadata"], tuple(part["next"]),
        [(task["id"], task["name"], task["state"]) for task in part["tasks"]],
    )  # fmt: skip


def facts_of_state(state: StateSnapshot) -> Any:
    return (
        state.config, state.parent_config, state.values, state.metadata, state.next,
        [(task.id, task.name, task.state) for task in state.tasks],
    )  # fmt: skip


def checkpoints(colour: Colour, app: Any, given: Any, config: Any = THREAD, **options: Any) -> list[Any]:
    return colour.stream(app, given, config, stream_mode="checkpoints", **options)


def test_each_saved_checkpoint_is_shown_as_the_history_has_it(colour: Colour) -> None:
    """Configs, parents, values, metadata with what users said, what comes next: one part per state."""
    app = chain(saving(), a=says("x"), b=says("y"))
    config = {"configurable": {"thread_id": "t", "user": "u1"}, "metadata": {"team": "blue"}, "tags": ["mine"]}

    found = checkpoints(colour, app, {"n": 0}, config)

    assert [facts_of_part(part) for part in found] == [facts_of_state(state) for state in history(colour, app)]
    assert [part["metadata"]["step"] for part in found] == [-1, 0, 1, 2]
    assert found[0]["metadata"] == {"source": "input", "step": -1, "parents": {}, "user": "u1", "team": "blue"}
    assert [part["next"] for part in found] == [["__start__"], ["a"], ["b"], []]


@pytest.mark.parametrize("durability", ["sync", "async"])
def test_a_graph_inside_has_checkpoints_of_its_own(colour: Colour, durability: str) -> None:
    """Shown with subgraphs, with the map that leads to them; the outer ones say where they are."""
    app = chain(saving(), outer=chain(inner=says("x")))

    found = checkpoints(colour, app, {"n": 0}, subgraphs=True, durability=durability)

    outer = [part for ns, part in found if not ns]
    inner = [part for ns, part in found if ns]
    where = inner[0]["config"]["configurable"]
    config = {"configurable": {"thread_id": "t", "checkpoint_ns": where["checkpoint_ns"]}}
    assert [facts_of_part(part) for part in outer] == [facts_of_state(state) for state in history(colour, app)]
    assert [facts_of_part(part) for part in inner] == [facts_of_state(state) for state in history(colour, app, config)]
    assert set(where["checkpoint_map"]) == {"", where["checkpoint_ns"]}
    assert outer[1]["tasks"][0]["state"] == config


def test_a_stateful_graph_inside_is_filed_without_ids(colour: Colour) -> None:
    """So says the task that runs it."""
    app = chain(saving(), outer=chain({"checkpointer": True}, inner=says("x")))

    found = checkpoints(colour, app, {"n": 0})

    assert found[1]["tasks"][0]["state"] == {"configurable": {"thread_id": "t", "checkpoint_ns": "outer"}}


def test_a_resumed_run_shows_first_where_it_goes_on(colour: Colour) -> None:
    """With what is stored of its tasks: questions asked, results, errors."""
    app = parallel(saving(), ask=lambda state: {"xs": [interrupt("?")]}, work=says("w"), idle=lambda state: None)
    before = checkpoints(colour, app, {"n": 0})

    first, last = checkpoints(colour, app, Command(resume="a"))

    assert facts_of_part(first) == facts_of_part(before[-1])
    told = {task["name"]: task for task in first["tasks"]}
    (asked,) = told["ask"]["interrupts"]
    assert (asked["value"], "result" in told["ask"]) == ("?", False)
    assert (told["work"]["result"], told["work"]["interrupts"]) == ({"xs": ["w"]}, ())
    assert "result" not in told["idle"]
    assert last["parent_config"] == first["config"]
    assert facts_of_state(history(colour, app)[-1]) == facts_of_part(last)


def test_a_failure_that_is_stored_is_shown(colour: Colour) -> None:
    """By the run that tries again."""
    failing = [ValueError("boom")]

    def fail(state: State) -> State:
        if failing:
            raise failing.pop()
        return {"xs": ["ok"]}

    app = chain(saving(), a=fail)
    with pytest.raises(ValueError, match="boom"):
        colour.invoke(app, {"n": 0}, THREAD)

    first, last = checkpoints(colour, app, None)

    assert "boom" in first["tasks"][0].pop("error")
    assert first["tasks"][0].keys() == {"id", "name", "state"}
    assert (last["values"], last["next"]) == ({"xs": ["ok"], "n": 0}, [])


def test_the_whole_state_is_shown_where_it_is_one_value(colour: Colour) -> None:
    """Bare, as in a snapshot; so is a task's result."""
    graph: StateGraph[Any, Any, Any, Any] = StateGraph(Annotated[list, operator.add])  # type: ignore[arg-type]
    graph.add_node("a", lambda state: [1])
    graph.add_node("b", lambda state: [interrupt("?")])
    graph.add_edge(START, "a")
    graph.add_edge(START, "b")
    app = graph.compile(**saving())
    checkpoints(colour, app, [0])

    first, last = checkpoints(colour, app, Command(resume=2))

    assert (first["values"], last["values"]) == ([0], [0, 1, 2])
    assert [task.get("result") for task in first["tasks"]] == [[1], None]


@pytest.mark.parametrize("where", ["interrupt_before", "interrupt_after"])
def test_a_run_that_stops_at_a_breakpoint_shows_its_last_checkpoint(colour: Colour, where: str) -> None:
    """Before it says that it pauses."""
    app = chain(saving(), a=says("x"), b=says("y"))
    node = "b" if where == "interrupt_before" else "a"

    found = colour.stream(app, {"n": 0}, THREAD, stream_mode=["checkpoints", "updates"], **{where: [node]})

    assert [mode for mode, _ in found] == ["checkpoints", "checkpoints", "updates", "checkpoints", "updates"]
    assert facts_of_part(found[-2][1]) == facts_of_state(history(colour, app)[-1])


def test_a_run_out_of_steps_shows_its_last_checkpoint(colour: Colour) -> None:
    """With what would come next."""
    app = chain(saving(), a=says("x"), b=says("y"))
    found: list[Any] = []

    with pytest.raises(GraphRecursionError):
        colour.each(app, {"n": 0}, found.append, {**THREAD, "recursion_limit": 1}, stream_mode="checkpoints")

    assert [part["next"] for part in found] == [["__start__"], ["a"], ["b"]]
    assert len(history(colour, app)) == 3


def test_without_a_checkpointer_there_are_no_checkpoints(colour: Colour) -> None:
    """Debug has its tasks all the same."""
    app = chain(a=says("x"))

    assert checkpoints(colour, app, {"n": 0}, None) == []
    assert [part["type"] for part in colour.stream(app, {"n": 0}, stream_mode="debug")] == ["task", "task_result"]


def test_exit_durability_stores_the_last_of_the_checkpoints_shown(colour: Colour) -> None:
    """All of them hang on what was stored before the run, for nothing else is."""
    app = chain(saving(), a=says("x"), b=says("y"))

    found = checkpoints(colour, app, {"n": 0}, durability="exit")

    (saved,) = history(colour, app)
    assert len(found) == 4
    assert [part["parent_config"] for part in found] == [None] * 4
    assert facts_of_part(found[-1]) == facts_of_state(saved)


def test_a_fork_and_an_update_are_shown_as_the_history_has_them(colour: Colour) -> None:
    """What was gone back to is the parent."""
    app = chain(saving(), a=says("x"), b=says("y"))
    colour.invoke(app, {"n": 0}, THREAD)
    past = next(state for state in history(colour, app) if state.next == ("b",))

    found = checkpoints(colour, app, None, past.config)

    assert [part["metadata"]["source"] for part in found] == ["fork", "loop"]
    assert found[0]["parent_config"] == past.config
    assert [facts_of_part(part) for part in found] == [facts_of_state(state) for state in history(colour, app)[-2:]]


# --- debug ------------------------------------------------------------------------------------------------------


def test_debug_wraps_tasks_and_checkpoints(colour: Colour) -> None:
    """Each with its superstep and the time: a checkpoint has the number of the step that made it."""
    app = chain(saving(), a=says("x"))

    found = colour.stream(app, {"n": 0}, THREAD, stream_mode=["debug", "tasks", "checkpoints"])

    wrapped = [part for mode, part in found if mode == "debug"]
    assert [(part["type"], part["step"]) for part in wrapped] == [
        ("checkpoint", -1), ("checkpoint", 0), ("task", 1), ("task_result", 1), ("checkpoint", 1),
    ]  # fmt: skip
    times = [datetime.fromisoformat(part["timestamp"]) for part in wrapped]
    assert times == sorted(times)
    assert all(time.tzinfo is not None for time in times)
    for kinds, mode in ((("task", "task_result"), "tasks"), (("checkpoint",), "checkpoints")):
        assert [part["payload"] for part in wrapped if part["type"] in kinds] == [part for m, part in found if m == mode]


def test_a_retry_is_one_task_for_debug_too(colour: Colour) -> None:
    """Its number is that of its superstep."""
    left = [1]

    def flaky(state: State) -> None:
        if left:
            left.pop()
            raise ConnectionError

    graph: StateGraph[Any, Any, Any, Any] = StateGraph(State)
    graph.add_node("a", flaky, retry_policy=RetryPolicy(initial_interval=0.0, jitter=False))
    graph.add_edge(START, "a")

    found = colour.stream(graph.compile(), {"n": 0}, stream_mode="debug")

    assert [(part["type"], part["step"]) for part in found] == [("task", 1), ("task_result", 1)]
