"""What is in a part: values after each superstep, updates of each task (spec 8.3, 8.4)."""

from __future__ import annotations

import operator
from typing import Annotated, Any, TypedDict

import pytest
from channel_graphs import channel_graph, doubling
from colours import Colour

from tracegraph.checkpoint.memory import InMemorySaver
from tracegraph.config import get_stream_writer
from tracegraph.func import task
from tracegraph.graph import START, StateGraph
from tracegraph.pregel import NodeBuilder
from tracegraph.types import Command, Send, interrupt

THREAD = {"configurable": {"thread_id": "t"}}


class State(TypedDict, total=False):
    log: Annotated[list[Any], operator.add]
    n: int


def at_once(**nodes: Any) -> Any:
    """Return a saved graph that starts all *nodes* at once."""
    graph: StateGraph[Any, Any, Any, Any] = StateGraph(State)
    for name, body in nodes.items():
        graph.add_node(name, body)
        graph.add_edge(START, name)
    return graph.compile(checkpointer=InMemorySaver())


def chain(*bodies: Any, **options: Any) -> Any:
    """Return a saved graph that runs *bodies* as ``s0``, ``s1``, ... in a row."""
    graph: StateGraph[Any, Any, Any, Any] = StateGraph(State)
    graph.add_sequence([(f"s{at}", body) for at, body in enumerate(bodies)])
    graph.add_edge(START, "s0")
    return graph.compile(checkpointer=InMemorySaver(), **options)


def updates(colour: Colour, app: Any, given: Any = None, **options: Any) -> list[Any]:
    """Return the updates of a run."""
    return colour.stream(app, {"n": 0} if given is None else given, THREAD, stream_mode="updates", **options)


# --- values -----------------------------------------------------------------------------------------------------


def test_values_come_after_every_superstep(colour: Colour) -> None:
    """The first ones are the state with the input applied; empty channels are left out."""
    app = chain(lambda state: {"n": 1}, lambda state: {"log": ["end"]})

    found = colour.stream(app, {"log": ["in"]}, THREAD, stream_mode="values")

    assert found == [{"log": ["in"]}, {"log": ["in"], "n": 1}, {"log": ["in", "end"], "n": 1}]


def test_values_can_be_cut_to_some_keys(colour: Colour) -> None:
    """A list of keys makes dicts, one key bare values."""
    app = chain(lambda state: {"n": 1})

    assert colour.stream(app, {"log": ["in"]}, THREAD, stream_mode="values", output_keys=["n"]) == [{}, {"n": 1}]
    assert colour.stream(app, {"n": 5}, {"configurable": {"thread_id": "u"}}, stream_mode="values", output_keys="n") == [5, 1]


def test_a_resumed_run_shows_its_state_first(colour: Colour) -> None:
    """Before any superstep of its own."""
    app = chain(lambda state: {"log": [interrupt("?")]})
    colour.invoke(app, {"log": ["in"]}, THREAD)

    found = colour.stream(app, Command(resume="yes"), THREAD, stream_mode="values")

    assert found == [{"log": ["in"]}, {"log": ["in", "yes"]}]


def test_each_question_shows_with_the_state_and_finished_siblings_last(colour: Colour) -> None:
    """One part per task that asks, then the values with what the others wrote."""
    app = at_once(
        ask=lambda state: {"log": [interrupt("a?")]},
        other=lambda state: {"log": [interrupt("b?")]},
        work=lambda state: {"log": ["work"]},
    )

    found = colour.stream(app, {"log": ["in"]}, THREAD, stream_mode="values")

    asked = [part for part in found if "__interrupt__" in part]
    assert sorted(part["__interrupt__"][0].value for part in asked) == ["a?", "b?"]
    assert {len(part["log"]) for part in asked} == {1}
    assert found[-1] == {"log": ["in", "work"]}


# --- updates ----------------------------------------------------------------------------------------------------


def test_an_update_is_what_the_node_wrote_to_shown_keys(colour: Colour) -> None:
    """None if it wrote none of them."""
    app = chain(lambda state: {"n": 1, "log": ["x"]}, lambda state: None, lambda state: {"log": ["y"]})

    assert updates(colour, app) == [{"s0": {"n": 1, "log": ["x"]}}, {"s1": None}, {"s2": {"log": ["y"]}}]
    assert updates(colour, app, output_keys=["n"]) == [{"s0": {"n": 1}}, {"s1": None}, {"s2": None}]


def test_a_key_written_twice_makes_a_list(colour: Colour) -> None:
    """One dict with one key per write, in order."""

    def twice(state: State) -> Any:
        return [Command(update={"log": ["x"], "n": 1}), Command(update={"log": ["y"]})]

    app = chain(twice)

    assert updates(colour, app) == [{"s0": [{"log": ["x"]}, {"n": 1}, {"log": ["y"]}]}]


def test_one_shown_key_shows_bare_updates(colour: Colour) -> None:
    """The value, or a list of values if it was written several times."""

    def twice(state: State) -> Any:
        return [Command(update={"log": ["x"]}), Command(update={"log": ["y"]})]

    app = chain(twice, lambda state: {"log": ["z"]}, lambda state: {"n": 1})

    assert updates(colour, app, output_keys="log") == [{"s0": [["x"], ["y"]]}, {"s1": ["z"]}, {"s2": None}]


def test_each_send_has_an_update_of_its_own(colour: Colour) -> None:
    """Under the same name; the hidden start node has none."""
    graph: StateGraph[Any, Any, Any, Any] = StateGraph(State)
    graph.add_node("work", lambda state: {"log": [state["n"]]})
    graph.add_conditional_edges(START, lambda state: [Send("work", {"n": n}) for n in range(3)])

    found = colour.stream(graph.compile(), {"n": 0}, stream_mode="updates")

    assert sorted(part["work"]["log"] for part in found) == [[0], [1], [2]]


def test_a_failed_task_has_no_update(colour: Colour) -> None:
    """What finished before it is delivered before the error."""

    def fail(state: State) -> None:
        raise ValueError("boom")

    found: list[Any] = []

    with pytest.raises(ValueError, match="boom"):
        colour.each(chain(lambda state: {"n": 1}, fail), {"n": 0}, found.append, THREAD, stream_mode="updates")

    assert found == [{"s0": {"n": 1}}]


def test_a_question_shows_among_the_updates(colour: Colour) -> None:
    """As a tuple under its own key."""
    app = chain(lambda state: {"log": [interrupt("?")]})

    ((key, asked),) = updates(colour, app)[0].items()

    assert key == "__interrupt__"
    assert [question.value for question in asked] == ["?"]


@pytest.mark.parametrize("where", ["interrupt_before", "interrupt_after"])
def test_a_static_breakpoint_shows_without_questions(colour: Colour, where: str) -> None:
    """The values do not mention it."""
    app = chain(lambda state: {"n": 1}, lambda state: {"n": 2})
    node = "s1" if where == "interrupt_before" else "s0"

    found = colour.stream(app, {"n": 0}, THREAD, stream_mode=["updates", "values"], **{where: [node]})

    assert found == [
        ("values", {"n": 0, "log": []}),
        ("updates", {"s0": {"n": 1}}),
        ("values", {"n": 1, "log": []}),
        ("updates", {"__interrupt__": ()}),
    ]


def test_a_called_task_shows_what_it_returned(colour: Colour) -> None:
    """Under its own name, before its caller's update."""

    @task
    def double(x: int) -> int:
        return x * 2

    def call(state: State) -> Any:
        return {"n": double(2).result()}

    async def acall(state: State) -> Any:
        return {"n": await double(2)}

    app = chain(call if colour.name == "sync" else acall)

    assert updates(colour, app) == [{"double": 4}, {"s0": {"n": 4}}]


def test_a_called_task_that_asks_is_shown_once(colour: Colour) -> None:
    """By its caller, which the pause passes through."""

    @task
    def ask() -> Any:
        return interrupt("?")

    def call(state: State) -> Any:
        return {"n": ask().result()}

    async def acall(state: State) -> Any:
        return {"n": await ask()}

    app = chain(call if colour.name == "sync" else acall)

    found = updates(colour, app)

    assert [list(part) for part in found] == [["__interrupt__"]]
    assert colour.invoke(app, Command(resume=3), THREAD) == {"n": 3, "log": []}


def test_a_low_level_graph_shows_bare_updates_of_one_channel(colour: Colour) -> None:
    """Writes to other channels are not shown."""
    node = NodeBuilder().subscribe_only("b").do(lambda x: x).write_to("c")
    app = channel_graph({"double": doubling(), "copy": node}, stream_channels="b")

    assert colour.stream(app, 2, stream_mode="updates") == [{"double": 4}, {"copy": None}]


def test_a_named_event_is_no_custom_part(colour: Colour) -> None:
    """Callbacks get those; the stream has what a writer wrote."""
    from tracegraph.callbacks import dispatch_custom_event

    def emit(state: State) -> None:
        dispatch_custom_event("named", 1)
        get_stream_writer()(2)

    assert colour.stream(chain(emit), {"n": 0}, THREAD, stream_mode="custom") == [2]


# --- graphs inside graphs ---------------------------------------------------------------------------------------


def test_inner_parts_lie_between_those_of_their_task(colour: Colour) -> None:
    """With subgraphs; an inner graph's routing channels are not shown."""
    app = chain(chain(lambda state: {"n": 1}, lambda state: {"log": ["x"]}))

    found = colour.stream(app, {"n": 0}, THREAD, stream_mode=["updates", "values"], subgraphs=True)

    assert [(len(ns), mode, payload) for ns, mode, payload in found] == [
        (0, "values", {"n": 0, "log": []}),
        (1, "values", {"n": 0, "log": []}),
        (1, "updates", {"s0": {"n": 1}}),
        (1, "values", {"n": 1, "log": []}),
        (1, "updates", {"s1": {"log": ["x"]}}),
        (1, "values", {"n": 1, "log": ["x"]}),
        (0, "updates", {"s0": {"n": 1, "log": ["x"]}}),
        (0, "values", {"n": 1, "log": ["x"]}),
    ]


def test_a_question_of_an_inner_graph_is_shown_at_both_levels(colour: Colour) -> None:
    """The inner task asks, the outer one passes it on; without subgraphs only the latter is seen."""
    inner: StateGraph[Any, Any, Any, Any] = StateGraph(State)
    inner.add_node("ask", lambda state: {"n": interrupt("?")})
    inner.add_edge(START, "ask")
    app = chain(inner.compile())

    deep = colour.stream(app, {"n": 0}, THREAD, stream_mode="updates", subgraphs=True)
    flat = updates(colour, app)

    assert [(len(ns), list(part)) for ns, part in deep] == [(1, ["__interrupt__"]), (0, ["__interrupt__"])]
    assert [list(part) for part in flat] == [["__interrupt__"]]


def test_a_stream_read_by_a_node_is_its_own(colour: Colour) -> None:
    """It shows whole states unless asked otherwise, starts at the empty namespace, and is no part of the outer stream."""
    inner = chain(lambda state: {"n": 1})
    seen: list[Any] = []

    def outer(state: State) -> None:
        seen.extend(inner.stream({"n": 0}))
        seen.extend(inner.stream({"n": 0}, stream_mode="updates", subgraphs=True))

    async def aouter(state: State) -> None:
        seen.extend([part async for part in inner.astream({"n": 0})])
        seen.extend([part async for part in inner.astream({"n": 0}, stream_mode="updates", subgraphs=True)])

    app = chain(outer if colour.name == "sync" else aouter)

    assert updates(colour, app) == [{"s0": None}]
    assert seen == [{"n": 0, "log": []}, {"n": 1, "log": []}, ((), {"s0": {"n": 1}})]


def test_a_stream_read_by_a_node_is_part_of_an_outer_one_with_subgraphs(colour: Colour) -> None:
    """The outer reader sees the inner parts too, in its own modes."""
    inner = chain(lambda state: {"n": 1})

    def outer(state: State) -> None:
        list(inner.stream({"n": 0}))

    async def aouter(state: State) -> None:
        _ = [part async for part in inner.astream({"n": 0})]

    app = chain(outer if colour.name == "sync" else aouter)

    found = updates(colour, app, subgraphs=True)

    assert [(len(ns), part) for ns, part in found] == [(1, {"s0": {"n": 1}}), (0, {"s0": None})]
