"""Mode ``tasks``: starts of a superstep before any task runs, and how each task ended (spec 8.5)."""

from __future__ import annotations

from typing import Any, TypedDict

import pytest
from channel_graphs import channel_graph
from colours import Colour
from pydantic import BaseModel
from small_graphs import THREAD, State, chain, parallel, saving, says

from tracegraph.func import task
from tracegraph.graph import START, StateGraph
from tracegraph.pregel import NodeBuilder
from tracegraph.types import Command, RetryPolicy, Send, interrupt


def tasks(colour: Colour, app: Any, given: Any = None, config: Any = THREAD, **options: Any) -> list[Any]:
    """Return the parts of a run."""
    return colour.stream(app, {"n": 0} if given is None else given, config, stream_mode="tasks", **options)


def starts(parts: list[Any]) -> list[Any]:
    return [part for part in parts if "input" in part]


def ends(parts: list[Any]) -> list[Any]:
    return [part for part in parts if "result" in part]


def test_a_task_is_shown_as_it_starts_and_as_it_ends(colour: Colour) -> None:
    """With what it reads, what made it run, and what it wrote; the hidden start node is not shown."""
    start, end = tasks(colour, chain(a=says("x")))

    assert start == {"id": start["id"], "name": "a", "input": {"xs": [], "n": 0}, "triggers": ("branch:to:a",)}
    assert end == {"id": start["id"], "name": "a", "error": None, "result": {"xs": ["x"]}, "interrupts": []}


def test_all_starts_of_a_superstep_come_before_any_of_its_tasks_runs(colour: Colour) -> None:
    """The reader has them in hand while no node has begun."""
    log: list[str] = []

    def node(state: State) -> None:
        log.append("ran")

    colour.each(
        parallel(a=node, b=node), {"n": 0}, lambda part: log.append("start" if "input" in part else "end"), stream_mode="tasks"
    )

    assert log[:2] == ["start", "start"]
    assert log.count("ran") == log.count("end") == 2


def test_the_first_superstep_of_a_low_level_graph_is_no_exception(colour: Colour) -> None:
    """It has no start node whose step would come before."""
    log: list[str] = []

    def double(x: int) -> int:
        log.append("ran")
        return x * 2

    app = channel_graph({"double": NodeBuilder().subscribe_only("a").do(double).write_to("b")}, stream_channels=["a", "b"])
    colour.each(app, 2, lambda part: log.append("start" if "input" in part else "end"), stream_mode="tasks")

    assert log == ["start", "ran", "end"]


def test_the_start_says_what_users_said_of_run_and_node(colour: Colour) -> None:
    """Not what the runtime adds to metadata, and no tags that count steps."""
    graph: StateGraph[Any, Any, Any, Any] = StateGraph(State)
    graph.add_node("a", says("x"), metadata={"team": "blue"})
    graph.add_edge(START, "a")
    config = {**THREAD, "metadata": {"user": "u1", "checkpoint_id": "no"}, "tags": ["mine", "seq:step:7"]}

    start, _ = tasks(colour, graph.compile(**saving()), config=config)

    assert start["metadata"] == {"user": "u1", "team": "blue", "tags": ["mine"]}


def test_repeated_writes_are_listed(colour: Colour) -> None:
    """In their order; whatever mode was asked for beside, it is not cut to output keys."""

    def twice(state: State) -> Any:
        return [Command(update={"xs": ["x"], "n": 1}), Command(update={"xs": ["y"]})]

    _, end = tasks(colour, chain(a=twice), output_keys=["n"])

    assert end["result"] == {"xs": {"$writes": [["x"], ["y"]]}, "n": 1}


def test_a_failed_task_shows_its_exception_and_the_saved_state_its_text(colour: Colour) -> None:
    """The very object, delivered before it is raised."""
    boom = ValueError("boom")

    def fail(state: State) -> None:
        raise boom

    app = chain(saving(), a=fail)
    found: list[Any] = []
    with pytest.raises(ValueError, match="boom"):
        colour.each(app, {"n": 0}, found.append, THREAD, stream_mode="tasks")

    assert ends(found)[0]["error"] is boom
    assert (ends(found)[0]["result"], ends(found)[0]["interrupts"]) == ({}, [])
    assert "boom" in app.get_state(THREAD).tasks[0].error


def test_a_question_is_a_dict(colour: Colour) -> None:
    """Of a task that pauses, that is its end; resumed it starts again."""
    app = chain(saving(), a=lambda state: {"xs": [interrupt("sure?")]})

    (_, paused), resumed = tasks(colour, app), tasks(colour, app, Command(resume="yes"))

    (asked,) = paused["interrupts"]
    assert asked == {"value": "sure?", "id": asked["id"], "response_schema": None}
    assert (paused["error"], paused["result"]) == (None, {})
    assert [part["id"] for part in resumed] == [paused["id"]] * 2
    assert resumed[1]["result"] == {"xs": ["yes"]}


def test_what_had_finished_before_a_pause_has_no_second_end(colour: Colour) -> None:
    """Its start is shown with those of its superstep, for that is planned anew."""
    app = parallel(saving(), ask=lambda state: {"xs": [interrupt("?")]}, work=says("w"))
    tasks(colour, app)

    resumed = tasks(colour, app, Command(resume="a"))

    assert sorted(part["name"] for part in starts(resumed)) == ["ask", "work"]
    assert [part["name"] for part in ends(resumed)] == ["ask"]


def test_each_send_is_a_task(colour: Colour) -> None:
    """Its input is what was sent."""
    graph: StateGraph[Any, Any, Any, Any] = StateGraph(State)
    graph.add_node("work", lambda given: {"xs": [given]})
    graph.add_conditional_edges(START, lambda state: [Send("work", 1), Send("work", {"k": 2})])

    found = tasks(colour, graph.compile())

    assert [part["input"] for part in starts(found)] == [1, {"k": 2}]
    assert {part["triggers"] for part in starts(found)} == {("__pregel_push",)}
    assert len({part["id"] for part in ends(found)}) == 2


def test_a_called_task_starts_when_it_is_called(colour: Colour) -> None:
    """Between its caller's start and end; a result that is kept from before the pause is not shown again."""

    @task
    def double(x: int) -> int:
        return x * 2

    def call(state: State) -> Any:
        return {"n": double(2).result() + interrupt("?")}

    async def acall(state: State) -> Any:
        return {"n": await double(2) + interrupt("?")}

    app = chain(saving(), a=call if colour.name == "sync" else acall)
    found, resumed = tasks(colour, app), tasks(colour, app, Command(resume=3))

    assert [(part["name"], "input" in part) for part in found] == [("a", True), ("double", True), ("double", False), ("a", False)]
    assert found[1]["input"] == ((2,), {})
    assert found[2]["result"] == {"__return__": 4}
    assert [part["name"] for part in resumed] == ["a", "a"]
    assert resumed[1]["result"] == {"n": 7}


def test_an_error_handler_starts_when_it_takes_over(colour: Colour) -> None:
    """The failed task has ended by then."""

    def fail(state: State) -> None:
        raise ValueError("boom")

    graph: StateGraph[Any, Any, Any, Any] = StateGraph(State)
    graph.add_node("a", fail, error_handler=says("handled"))
    graph.add_edge(START, "a")

    found = tasks(colour, graph.compile())

    assert [("input" in part, part["name"]) for part in found] == [
        (True, "a"), (False, "a"), (True, "__error_handler__a"), (False, "__error_handler__a"),
    ]  # fmt: skip
    assert found[-1]["result"] == {"xs": ["handled"]}


def test_a_retried_task_is_one_task(colour: Colour) -> None:
    """Attempts are no parts."""
    left = [1]

    def flaky(state: State) -> State:
        if left:
            left.pop()
            raise ConnectionError
        return {"xs": ["ok"]}

    graph: StateGraph[Any, Any, Any, Any] = StateGraph(State)
    graph.add_node("a", flaky, retry_policy=RetryPolicy(initial_interval=0.0, jitter=False))
    graph.add_edge(START, "a")

    assert [part["name"] for part in tasks(colour, graph.compile())] == ["a", "a"]


def test_the_input_is_what_the_node_gets_and_not_what_it_makes_of_it(colour: Colour) -> None:
    """An instance of the schema; changed in place it is the node's own."""

    class Model(BaseModel):
        n: int = 0
        left: list[int] = []

    graph: StateGraph[Any, Any, Any, Any] = StateGraph(Model)
    graph.add_node("a", lambda state: {"n": 1})
    graph.add_edge(START, "a")

    def greedy(state: State) -> State:
        state["xs"].clear()
        state["n"] = 9
        return {}

    assert tasks(colour, graph.compile(), {"n": 5})[0]["input"] == Model(n=5)
    assert tasks(colour, chain(a=greedy), {"xs": ["x"], "n": 0})[0]["input"] == {"xs": ["x"], "n": 0}


def test_an_input_that_the_schema_refuses_is_shown_as_it_is(colour: Colour) -> None:
    """The node's failure says what is wrong."""

    class Model(BaseModel):
        n: int

    class Loose(TypedDict):
        n: Any

    graph: StateGraph[Any, Any, Any, Any] = StateGraph(Loose)
    graph.add_node("a", lambda state: None, input_schema=Model)
    graph.add_edge(START, "a")
    found: list[Any] = []

    with pytest.raises(ValueError, match="valid integer"):
        colour.each(graph.compile(), {"n": "text"}, found.append, stream_mode="tasks")

    assert found[0]["input"] == {"n": "text"}


def test_a_task_that_leaves_its_graph_has_no_end_there(colour: Colour) -> None:
    """Its command is the outer task's update."""
    inner = chain(leave=lambda state: Command(graph=Command.PARENT, update={"xs": ["up"]}))

    found = tasks(colour, chain(outer=inner), subgraphs=True)

    assert [(len(ns), part["name"], "input" in part) for ns, part in found] == [
        (0, "outer", True), (1, "leave", True), (0, "outer", False),
    ]  # fmt: skip
    assert found[-1][1]["result"] == {"xs": ["up"]}
