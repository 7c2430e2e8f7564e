"""Programs that are run on LangGraph, moved with their threads, and go on with tracegraph.

Each is built with the names of one of the two libraries, so that both graphs have the same shape. The nodes are pure.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Annotated, Any, TypedDict

Calls = list[Any]


class Names:
    """What a program needs of a library."""

    def __init__(self, library: str) -> None:
        graph, types, channels = (import_module(f"{library}.{name}") for name in ("graph", "types", "channels"))
        self.library = library
        self.StateGraph, self.START, self.END = graph.StateGraph, graph.START, graph.END
        self.add_messages = import_module(f"{library}.graph.message").add_messages
        self.Command, self.Send, self.interrupt, self.Overwrite = types.Command, types.Send, types.interrupt, types.Overwrite
        self.DeltaChannel = getattr(channels, "DeltaChannel", None) or import_module(f"{library}.channels.delta").DeltaChannel


@dataclass(frozen=True)
class Program:
    """How a graph is built, what it is called with on LangGraph, and then on tracegraph."""

    build: Callable[..., Any]
    before: Callable[[Names], Calls]
    after: Callable[[Names], Calls]
    kwargs: Any = None


class Log(TypedDict, total=False):
    log: Annotated[list[str], operator.add]
    n: int


def _loop(names: Names) -> Any:
    def count(state: Any) -> Any:
        return {"n": state["n"] + 1, "log": [f"count {state['n']}"]}

    builder = names.StateGraph(Log).add_node("count", count).add_edge(names.START, "count")
    return builder.add_conditional_edges("count", lambda state: "count" if state["n"] % 4 else names.END, ["count", names.END])


def _questions(names: Names) -> Any:
    def two(state: Any) -> Any:
        return {"log": [f"two {names.interrupt('first?')} {names.interrupt('second?')}"]}

    def one(state: Any) -> Any:
        return {"log": [f"one {names.interrupt({'ask': 'third?'})}"]}

    builder = names.StateGraph(Log).add_node("two", two).add_node("one", one).add_node("quick", _said("quick"))
    builder.add_node("joined", _said("joined"))
    for node in ("two", "one", "quick"):
        builder.add_edge(names.START, node)
    return builder.add_edge(["two", "one", "quick"], "joined").add_edge("joined", names.END)


def _said(what: str) -> Callable[[Any], Any]:
    return lambda state: {"log": [what]}


def _sends(names: Names) -> Any:
    def work(state: Any) -> Any:
        if state["n"] == 1:
            return {"log": [f"work 1 {names.interrupt('which?')}"]}
        return {"log": [f"work {state['n']}"]}

    builder = names.StateGraph(Log).add_node("fan", _said("fan")).add_node("work", work).add_node("last", _said("last"))
    builder.add_edge(names.START, "fan").add_edge("work", "last")
    return builder.add_conditional_edges("fan", lambda state: [names.Send("work", {"n": n}) for n in range(3)], ["work"])


class Inner(TypedDict, total=False):
    steps: Annotated[list[str], operator.add]
    n: int


def _subgraphs(names: Names) -> Any:
    def before(state: Any) -> Any:
        return {"steps": [f"before {state['n']}"]}

    def ask(state: Any) -> Any:
        return {"steps": [names.interrupt("inner?")], "n": state["n"] + 10}

    def remember(state: Any) -> Any:
        return {"steps": ["remembered"], "n": len(state["steps"])}

    fresh = names.StateGraph(Inner).add_node("before", before).add_node("ask", ask)
    fresh.add_edge(names.START, "before").add_edge("before", "ask")
    lasting = names.StateGraph(Inner).add_node("remember", remember).add_edge(names.START, "remember")
    builder = names.StateGraph(Log).add_node("fresh", fresh.compile())
    builder.add_node("lasting", lasting.compile(checkpointer=True)).add_node("end", _said("end"))
    return builder.add_edge(names.START, "lasting").add_edge("lasting", "fresh").add_edge("fresh", "end")


def _messages(names: Names) -> Any:
    from langchain_core.messages import AIMessage, ToolMessage

    state = TypedDict("Chat", {"messages": Annotated[list[Any], names.add_messages]})  # type: ignore[operator]  # noqa: UP013

    def model(state: Any) -> Any:
        if isinstance(state["messages"][-1], ToolMessage):
            return {"messages": [AIMessage("done", id=f"m{len(state['messages'])}")]}
        call = {"name": "search", "args": {"q": "x"}, "id": "c1", "type": "tool_call"}
        return {"messages": [AIMessage("", id=f"m{len(state['messages'])}", tool_calls=[call])]}

    def tool(state: Any) -> Any:
        return {"messages": [ToolMessage(names.interrupt("allow?"), tool_call_id="c1", id="t1")]}

    def route(state: Any) -> str:
        return "tool" if state["messages"][-1].tool_calls else str(names.END)

    builder = names.StateGraph(state).add_node("model", model).add_node("tool", tool).add_edge(names.START, "model")
    return builder.add_conditional_edges("model", route, ["tool", names.END]).add_edge("tool", "model")


def joined(lines: list[str], batch: list[list[str]]) -> list[str]:
    return [*lines, *(line for each in batch for line in each)]


def _delta(names: Names, snapshot_frequency: int = 3) -> Any:
    state = TypedDict(  # noqa: UP013  # made anew for each library
        "Long",
        {"log": Annotated[list[str], names.DeltaChannel(joined, list, snapshot_frequency=snapshot_frequency)], "n": int},  # type: ignore[misc]
        total=False,
    )

    def count(state: Any) -> Any:
        return {"n": state["n"] + 1, "log": [f"count {state['n']}"]}

    def reset(state: Any) -> Any:
        return {"log": names.Overwrite([f"reset {names.interrupt('sure?')}"])}

    def route(state: Any) -> str:
        return "reset" if state["n"] % 5 == 0 else "count"

    builder = names.StateGraph(state).add_node("count", count).add_node("reset", reset).add_edge(names.START, "count")
    return builder.add_conditional_edges("count", route, ["count", "reset"]).add_edge("reset", names.END)


PROGRAMS: dict[str, Program] = {
    "loop": Program(_loop, lambda _: [{"n": 0}, {"n": 1}, {"n": 2, "log": ["again"]}], lambda _: [{"n": 2}]),
    "questions": Program(
        _questions,
        lambda _: [{"log": ["start"]}],
        lambda names: [names.Command(resume={}), "answer", "answer"],
    ),
    "half_answered": Program(
        _questions, lambda _: [{"log": ["start"]}, "answer"], lambda _: ["answer", {"log": ["more"]}, "answer"]
    ),
    "sends": Program(_sends, lambda _: [{"log": []}], lambda names: [names.Command(resume="this")]),
    "subgraphs": Program(_subgraphs, lambda names: [{"n": 0}, "answer", {"n": 5}], lambda names: ["answer", {"n": 7}, "answer"]),
    "messages": Program(
        _messages,
        lambda _: [{"messages": [{"role": "human", "content": "find x", "id": "h1"}]}],
        lambda names: [names.Command(resume="found"), {"messages": [{"role": "human", "content": "and y", "id": "h2"}]}],
    ),
    "delta": Program(
        _delta, lambda names: [{"n": 0}, names.Command(resume="yes"), {"n": 1, "log": ["in"]}], lambda names: ["answer", {"n": 0}]
    ),
}


def run(app: Any, calls: Calls, names: Names, config: Any, **options: Any) -> list[Any]:
    """Call a graph with one input after the other; "answer" stands for an answer to every open question."""
    results = []
    for given in calls:
        if given == "answer":
            questions = app.get_state(config).interrupts
            given = names.Command(resume={question.id: f"yes to {question.value}" for question in questions})
        results.append(app.invoke(given, config, **options))
    return results
