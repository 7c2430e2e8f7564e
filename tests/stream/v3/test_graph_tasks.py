"""Of tasks only those are told of that have to do with graphs inside; what is made of them is what all of them would give."""

from __future__ import annotations

from typing import Any

import pytest
from colours import Colour
from run_faces import Face, with_run
from small_graphs import THREAD, State, chain, saving, says

from tracegraph.graph import START, StateGraph
from tracegraph.stream import TasksTransformer
from tracegraph.types import Command, Send, interrupt

CALL = {"type": "tool_call", "id": "c1", "name": "ask", "args": {}}


def deep() -> Any:
    """Return three levels, with a question at the bottom."""

    def asks(state: State) -> State:
        return {"xs": [interrupt("who?")]}

    mid = chain(quick=says("quick"), bottom=chain(one=says("one"), asks=asks), after=says("after"))
    return chain(saving(), first=says("first"), mid=mid, again=chain(one=says("one")), last=says("last"))


def failing() -> Any:
    """Return a graph inside which another fails, after one that does not."""

    def breaks(state: State) -> State:
        raise ValueError("broken")

    return chain(saving(), good=chain(one=says("one")), bad=chain(one=says("one"), inside=chain(breaks=breaks)))


def agents() -> Any:
    """Return a graph that sends two tool calls, alone and with the state around it, one of them to an agent."""
    agent = chain(model=says("model"), more=says("more")).with_config(metadata={"lc_agent_name": "helper"})

    def tools(given: Any) -> State:
        found: State = agent.invoke({"xs": []})
        return found

    graph: StateGraph[Any, Any, Any, Any] = StateGraph(State)
    graph.add_node("plan", says("plan"))
    graph.add_node("tools", tools)
    graph.add_node("plain", lambda _: {"xs": ["plain"]})
    graph.add_edge(START, "plan")
    sends = [Send("tools", {"tool_call": CALL}), Send("tools", CALL), Send("plain", CALL)]
    graph.add_conditional_edges("plan", lambda _: sends, ["tools", "plain"])
    return graph.compile(**saving())


def told(colour: Colour, app: Any, inputs: list[Any], transformers: list[Any]) -> list[Any]:
    """Return what lifecycle and handles say of some runs on a thread, ids numbered as they come."""
    names: dict[str, int] = {}

    def shown(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: shown(each) if key in ("namespace", "trigger_call_id") else each for key, each in value.items()}
        if isinstance(value, (list, tuple)):
            return [shown(each) for each in value]
        node, _, task_id = value.rpartition(":")
        return node, names.setdefault(task_id, len(names))

    def told_by(item: Any) -> Any:
        if isinstance(item, (str, dict)):
            return shown(item) if isinstance(item, dict) else item
        return shown(item.path), item.graph_name, item.status, item.error

    async def body(run: Face) -> list[Any]:
        log, lifecycle, handles = run.begin(run.run), run.begin(run.lifecycle), run.begin(run.subgraphs)
        seen: list[Any] = []
        try:
            seen += [event["method"] for event in await run.rest(log)]
        except ValueError as error:
            seen.append(str(error))
        for items in (lifecycle, handles):
            found: list[Any] = []
            try:
                if run.is_async:
                    async for item in items:
                        found.append(item)
                else:
                    for item in items:
                        found.append(item)
            except ValueError as error:
                found.append(str(error))
            seen += [told_by(item) for item in found]
        return seen

    return [with_run(colour, app, given, body, THREAD, transformers=transformers) for given in inputs]


@pytest.mark.parametrize(
    ("make", "inputs", "count"),
    [(deep, [{"xs": []}, Command(resume="me")], 5), (failing, [{"xs": []}], 3), (agents, [{"xs": []}], 2)],
)
def test_graphs_inside_are_told_of_as_if_all_tasks_were(colour: Colour, make: Any, inputs: list[Any], count: int) -> None:
    ours, all_of_them = (told(colour, make(), inputs, transformers) for transformers in ([], [TasksTransformer]))

    if make is not agents:
        assert ours == all_of_them
    else:  # they run side by side
        assert sorted(map(repr_without_numbers, ours[0])) == sorted(map(repr_without_numbers, all_of_them[0]))
    started = [each for run in ours for each in run if isinstance(each, dict) and each["event"] == "started"]
    assert len(started) == count
    if make is agents:
        assert [each["cause"]["tool_call_id"] for each in started] == ["c1", "c1"]


def repr_without_numbers(value: Any) -> str:
    """Return a text without the numbers of ids, which depend on who comes first."""
    return "".join(letter for letter in repr(value) if not letter.isdigit())
