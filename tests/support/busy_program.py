"""A program that makes runs of all kinds until its input ends: `python busy_program.py FOLDER`.

It says on its first line where Prometheus finds its metrics.
"""

from __future__ import annotations

import operator
import sqlite3
import sys
from contextlib import suppress
from itertools import count
from pathlib import Path
from threading import Event, Thread
from typing import Annotated, Any, TypedDict

from scripted_models import ScriptedModel

from tracegraph import START, StateGraph
from tracegraph.checkpoint.sqlite import SqliteSaver
from tracegraph.config import get_config, get_stream_writer
from tracegraph.telemetry import setup
from tracegraph.types import Command, RetryPolicy, Send, interrupt

PRICED = "m-1"
"""The model that the test has a price for; the other one has none."""

USAGE: Any = {
    "input_tokens": 50,
    "output_tokens": 30,
    "total_tokens": 80,
    "input_token_details": {"cache_read": 20, "cache_creation": 10},
    "output_token_details": {"reasoning": 7},
}


class State(TypedDict, total=False):
    said: Annotated[list[str], operator.add]


def think(state: State) -> State:
    """Ask a model that streams, another one, one that breaks off, and a retriever."""
    get_config()["callbacks"].on_retriever_start({"name": "docs"}, "x").on_retriever_end([])
    for model in (PRICED, "m-2"):
        list(ScriptedModel("one ", "two ", "three", usage=USAGE, model=model, provider="openai").stream([]))
    with suppress(ConnectionError):
        list(ScriptedModel("one ", "two", fails_after=1, model="m-2", provider="openai").stream([]))
    return {}


def act(state: State) -> State:
    """Call a tool that works and one that does not."""
    callbacks = get_config()["callbacks"]
    callbacks.on_tool_start({"name": "search"}, "x").on_tool_end("found")
    callbacks.on_tool_start({"name": "divide"}, "x").on_tool_error(ZeroDivisionError("x"))
    return {}


def flaky() -> Any:
    """Return a node whose every second call fails."""
    calls = count()

    def body(state: State) -> State:
        if next(calls) % 2 == 0:
            raise ConnectionError("try again")
        return {}

    return body


def agent(saver: SqliteSaver) -> Any:
    """Return a graph with models, tools, retries, a fan-out, a subgraph and a question."""
    ask = (
        StateGraph(State).add_node("ask", lambda _: {"said": [interrupt("sure?")]}).add_edge(START, "ask").compile(name="asking")
    )
    graph = StateGraph(State)
    graph.add_node("think", think)
    graph.add_node("act", act)
    graph.add_node("flaky", flaky(), retry_policy=RetryPolicy(initial_interval=0.001, jitter=False))
    graph.add_node("asking", ask)
    graph.add_edge(START, "think")
    graph.add_conditional_edges("think", lambda _: [Send("act", {}), Send("flaky", {})], ["act", "flaky"])
    graph.add_edge(["act", "flaky"], "asking")
    return graph.compile(name="agent", checkpointer=saver)


class FullDisk(SqliteSaver):
    """A saver that cannot store anything."""

    def put(self, *args: Any, **kwargs: Any) -> Any:
        """Fail as SQLite does."""
        raise sqlite3.OperationalError("database or disk is full")


def small(name: str, node: Any, saver: Any = None) -> Any:
    """Return a graph of one node."""
    return StateGraph(State).add_node("work", node).add_edge(START, "work").compile(name=name, checkpointer=saver)


def talk(state: State) -> State:
    """Say more than the reader's buffer holds."""
    write = get_stream_writer()
    for number in range(10):
        write(number)
    return {}


def play(app: Any, full: Any, number: int) -> None:
    """Do one run of each kind."""
    config: Any = {"configurable": {"thread_id": str(number)}}
    app.invoke({"said": []}, config, durability="sync")
    app.invoke(Command(resume="yes"), config, durability="sync")
    list(small("talker", talk).stream({"said": []}, stream_mode="custom", buffer=(1, "drop_oldest")))
    with suppress(ZeroDivisionError):
        small("failing", lambda _: 1 / 0).invoke({"said": []})
    with suppress(sqlite3.OperationalError):
        full.invoke({"said": []}, config, durability="sync")


def main(folder: Path) -> None:
    """Play until the input ends."""
    done = Event()
    Thread(target=lambda: (sys.stdin.read(), done.set()), daemon=True).start()
    handle = setup()
    sys.stdout.write(f"{handle.prometheus_url}\n")
    sys.stdout.flush()
    with SqliteSaver.from_conn_string(str(folder / "threads.db")) as saver, FullDisk.from_conn_string(":memory:") as broken:
        app, full = agent(saver), small("unsaved", lambda _: {}, broken)
        for number in count():
            play(app, full, number)
            if done.wait(0.05):
                break
    handle.shutdown()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
