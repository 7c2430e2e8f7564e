"""The graphs of the programs whose metrics a Prometheus scrapes: `measured_program.py` and `busy_program.py`."""

from __future__ import annotations

import operator
from typing import Annotated, Any, TypedDict

from tracegraph import START, StateGraph
from tracegraph.checkpoint.sqlite import SqliteSaver
from tracegraph.config import get_config, get_stream_writer
from tracegraph.types import RetryPolicy, Send, interrupt

USAGE: Any = {
    "input_tokens": 50,
    "output_tokens": 30,
    "total_tokens": 80,
    "input_token_details": {"cache_read": 20, "cache_creation": 10},
    "output_token_details": {"reasoning": 7},
}


class State(TypedDict, total=False):
    said: Annotated[list[str], operator.add]


def act(state: State) -> State:
    """Call a tool that works and one that does not."""
    callbacks = get_config()["callbacks"]
    callbacks.on_tool_start({"name": "search"}, "x").on_tool_end("found")
    callbacks.on_tool_start({"name": "divide"}, "x").on_tool_error(ZeroDivisionError("x"))
    return {}


def talk(state: State) -> State:
    """Say more than the reader's buffer holds."""
    write = get_stream_writer()
    for number in range(10):
        write(number)
    return {}


def small(name: str, node: Any, saver: Any = None) -> Any:
    """Return a graph of one node."""
    return StateGraph(State).add_node("work", node).add_edge(START, "work").compile(name=name, checkpointer=saver)


def lose_parts() -> None:
    """Read a stream too late."""
    list(small("talker", talk).stream({"said": []}, stream_mode="custom", buffer=(1, "drop_oldest")))


def agent(saver: SqliteSaver, think: Any, flaky: Any) -> Any:
    """Return a graph with models (in *think*), tools, retries (of *flaky*), a fan-out, a subgraph and a question."""
    ask = (
        StateGraph(State).add_node("ask", lambda _: {"said": [interrupt("sure?")]}).add_edge(START, "ask").compile(name="asking")
    )
    graph = StateGraph(State)
    graph.add_node("think", think)
    graph.add_node("act", act)
    graph.add_node("flaky", flaky, retry_policy=RetryPolicy(initial_interval=0.001, jitter=False))
    graph.add_node("asking", ask)
    graph.add_edge(START, "think")
    graph.add_conditional_edges("think", lambda _: [Send("act", {}), Send("flaky", {})], ["act", "flaky"])
    graph.add_edge(["act", "flaky"], "asking")
    return graph.compile(name="agent", checkpointer=saver)
