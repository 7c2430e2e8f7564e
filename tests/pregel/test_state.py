"""Reading a thread's state and its past."""

from __future__ import annotations

import asyncio
import operator
from typing import Annotated, Any, TypedDict

import pytest
from channel_graphs import channel_graph
from colours import Colour

from tracegraph.checkpoint.memory import InMemorySaver
from tracegraph.errors import InvalidInputError
from tracegraph.func import task
from tracegraph.graph import START, StateGraph
from tracegraph.pregel import NodeBuilder
from tracegraph.types import Command, StateSnapshot, interrupt

THREAD = {"configurable": {"thread_id": "t"}}


class State(TypedDict, total=False):
    log: Annotated[list[Any], operator.add]


def refuse(left: list[Any], right: list[Any]) -> list[Any]:
    """Take everything but what is bad."""
    if "bad" in right:
        raise ValueError("refused")
    return left + right


class Picky(TypedDict, total=False):
    log: Annotated[list[Any], refuse]


def at_once(saver: Any = None, **nodes: Any) -> Any:
    """Return a graph that starts all *nodes* at once."""
    graph: StateGraph[Any, Any, Any, Any] = StateGraph(State)
    for name, body in nodes.items():
        graph.add_node(name, body)
        graph.add_edge(START, name)
    return graph.compile(checkpointer=saver)


def chain(**nodes: Any) -> Any:
    """Return a saved graph that runs *nodes* in a row."""
    graph: StateGraph[Any, Any, Any, Any] = StateGraph(State)
    graph.add_sequence(list(nodes.items()))
    graph.add_edge(START, next(iter(nodes)))
    return graph.compile(checkpointer=InMemorySaver())


def state(colour: Colour, app: Any, config: Any = THREAD, **options: Any) -> StateSnapshot:
    """Return a thread's state in the given colour."""
    if colour.name == "sync":
        return app.get_state(config, **options)  # type: ignore[no-any-return]
    return asyncio.run(app.aget_state(config, **options))  # type: ignore[no-any-return]


def history(colour: Colour, app: Any, **options: Any) -> list[StateSnapshot]:
    """Return a thread's states in the given colour, newest first."""
    if colour.name == "sync":
        return list(app.get_state_history(THREAD, **options))

    async def read() -> list[StateSnapshot]:
        return [found async for found in app.aget_state_history(THREAD, **options)]

    return asyncio.run(read())


def says(word: str) -> Any:
    """Return a node that logs a word."""
    return lambda state: {"log": [word]}


@pytest.fixture
def done(colour: Colour) -> Any:
    """A graph of two nodes whose thread has run to its end."""
    app = chain(a=says("a"), b=says("b"))
    colour.invoke(app, {"log": ["in"]}, {**THREAD, "metadata": {"who": "me"}})
    return app


def test_a_thread_nobody_wrote_is_empty(colour: Colour, done: Any) -> None:
    """No values, nothing next, no time."""
    found = state(colour, done, {"configurable": {"thread_id": "other"}})

    assert (found.values, found.next, found.created_at, found.tasks) == ({}, (), None, ())


def test_a_state_is_read_at_the_checkpoint_named(colour: Colour, done: Any) -> None:
    """What ran next then is a task with its result."""
    before_b = next(found for found in history(colour, done) if found.next == ("b",))

    found = state(colour, done, before_b.config)

    assert found == before_b
    assert found.values == {"log": ["in", "a"]}
    assert [(shown.name, shown.result) for shown in found.tasks] == [("b", {"log": ["b"]})]


def test_history_goes_back_to_the_input(colour: Colour, done: Any) -> None:
    """One state per superstep, newest first; each names its parent."""
    found = history(colour, done)

    assert [step.metadata and step.metadata["step"] for step in found] == [2, 1, 0, -1]
    assert [step.next for step in found] == [(), ("b",), ("a",), ("__start__",)]
    assert [step.parent_config for step in found] == [*(step.config for step in found[1:]), None]
    assert {step.metadata and step.metadata["who"] for step in found} == {"me"}


def test_history_can_be_cut(colour: Colour, done: Any) -> None:
    """By number, by what is older than a state, by metadata."""
    everything = history(colour, done)

    assert history(colour, done, limit=2) == everything[:2]
    assert history(colour, done, before=everything[1].config) == everything[2:]
    assert history(colour, done, filter={"source": "input"}) == everything[3:]
    assert history(colour, done, filter={"step": 1}, limit=1) == everything[1:2]


def test_several_writes_of_a_task_are_listed(colour: Colour) -> None:
    """One channel written twice by one task shows both."""

    def twice(state: State) -> Any:
        return [Command(update={"log": ["x"]}), Command(update={"log": ["y"]})]

    app = at_once(InMemorySaver(), twice=twice)
    colour.invoke(app, {"log": []}, THREAD)

    (shown,) = history(colour, app)[1].tasks

    assert shown.result == {"log": {"$writes": [["x"], ["y"]]}}


def test_a_paused_thread_shows_its_questions(colour: Colour) -> None:
    """Beside the values of finished siblings, which are not next any more."""
    app = at_once(InMemorySaver(), ask=lambda state: {"log": [interrupt("?")]}, work=says("work"))
    colour.invoke(app, {"log": ["in"]}, THREAD)

    found = state(colour, app)

    assert found.values == {"log": ["in", "work"]}
    assert found.next == ("ask",)
    assert [question.value for question in found.interrupts] == ["?"]
    assert {shown.name: shown.result for shown in found.tasks} == {"ask": None, "work": {"log": ["work"]}}


def test_a_failed_thread_shows_the_error(colour: Colour) -> None:
    """On the task that failed; it is next."""

    def fail(state: State) -> None:
        raise ValueError("boom")

    app = at_once(InMemorySaver(), fail=fail)
    with pytest.raises(ValueError, match="boom"):
        colour.invoke(app, {"log": ["in"]}, THREAD)

    found = state(colour, app)

    assert found.next == ("fail",)
    assert "boom" in str(found.tasks[0].error)


def test_writes_that_cannot_be_applied_leave_the_state_readable(colour: Colour) -> None:
    """The superstep failed on them; what was before it is shown, and its tasks are next."""
    graph: StateGraph[Any, Any, Any, Any] = StateGraph(Picky)
    graph.add_node("a", says("bad"))
    graph.add_edge(START, "a")
    app = graph.compile(checkpointer=InMemorySaver())
    with pytest.raises(ValueError, match="refused"):
        colour.invoke(app, {"log": ["in"]}, THREAD)

    found = state(colour, app)

    assert (found.values, found.next) == ({"log": ["in"]}, ("a",))


def test_a_stored_command_counts_as_state(colour: Colour) -> None:
    """Its update is shown, and where it leads to is next until it has run."""
    app = at_once(InMemorySaver(), ask=lambda state: {"log": [interrupt("?")]})
    colour.invoke(app, {"log": ["in"]}, THREAD)
    colour.invoke(app, Command(update={"log": ["more"]}), THREAD)

    found = state(colour, app)

    assert (found.values, found.next) == ({"log": ["in", "more"]}, ("ask",))


def test_nested_states_are_shown_on_request(colour: Colour) -> None:
    """The inner graph's state is its task's; otherwise the task says where it is found."""
    inner = at_once(ask=lambda state: {"log": [interrupt("inner?")]})
    middle = at_once(inner=inner)
    app = at_once(InMemorySaver(), middle=middle)
    colour.invoke(app, {"log": ["in"]}, THREAD)

    (plain,) = state(colour, app).tasks
    (deep,) = state(colour, app, subgraphs=True).tasks

    assert plain.state == {"configurable": {"thread_id": "t", "checkpoint_ns": f"middle:{plain.id}"}}
    (innermost,) = deep.state.tasks
    assert innermost.state.next == ("ask",)
    assert innermost.state.values == {"log": ["in"]}
    assert [question.value for question in innermost.state.interrupts] == ["inner?"]


def test_the_state_of_an_inner_graph_can_be_read_by_its_namespace(colour: Colour) -> None:
    """Where the task of the outer state says it is."""
    inner = at_once(ask=lambda state: {"log": [interrupt("inner?")]})
    app = at_once(InMemorySaver(), inner=inner)
    colour.invoke(app, {"log": ["in"]}, THREAD)
    (outer,) = state(colour, app, subgraphs=True).tasks
    (unopened,) = state(colour, app).tasks

    assert state(colour, app, outer.state.config).next == ("ask",)
    assert state(colour, app, unopened.state).next == ("ask",)


def test_called_tasks_leave_no_trace_in_the_state(colour: Colour) -> None:
    """Their results are kept for a resume of their caller, and are no state."""

    @task
    def double(x: int) -> int:
        return x * 2

    def call(state: State) -> Any:
        return {"log": [double(2).result(10)]}

    app = at_once(InMemorySaver(), call=call)
    colour.invoke(app, {"log": []}, THREAD)

    assert state(colour, app).values == {"log": [4]}
    assert [shown.name for shown in history(colour, app)[1].tasks] == ["call"]


def test_a_low_level_graph_shows_its_streamed_channels(colour: Colour) -> None:
    """One name alone is shown bare."""
    nodes = {"double": NodeBuilder().subscribe_only("a").do(lambda x: x * 2).write_to("b")}
    app = channel_graph(nodes, checkpointer=InMemorySaver(), stream_channels="b")
    colour.invoke(app, 2, THREAD)

    assert state(colour, app).values == 4


def test_state_needs_a_checkpointer_and_a_thread(colour: Colour, done: Any) -> None:
    """Both errors say what to do."""
    with pytest.raises(InvalidInputError, match="without a checkpointer"):
        state(colour, at_once(a=says("a")))
    with pytest.raises(InvalidInputError, match="read by thread"):
        state(colour, done, {})


def test_a_saver_that_fails_is_heard(colour: Colour) -> None:
    """Its error comes out of the call that reads."""

    class Broken(InMemorySaver):
        """Cannot read."""

        def get_tuple(self, config: Any) -> Any:
            raise OSError("disk")

    app = at_once(Broken(), a=says("a"))

    with pytest.raises(OSError, match="disk"):
        state(colour, app)
    with pytest.raises(OSError, match="disk"):
        colour.invoke(app, {"log": []}, THREAD)
