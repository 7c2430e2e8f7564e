"""A program whose runs make every metric that there is: `python measured_program.py FOLDER`.

It says on one line of JSON where Prometheus finds its metrics and which ids its runs had, and ends with its input.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

from measured_graphs import USAGE, State, agent, lose_parts
from scripted_models import ScriptedModel

from tracegraph import START, StateGraph
from tracegraph.checkpoint.sqlite import SqliteSaver
from tracegraph.config import get_config
from tracegraph.messages import AIMessage
from tracegraph.telemetry import TelemetryOptions, setup
from tracegraph.types import Command

THREAD_ID = "thread-7f3a9c"


def think(state: State) -> State:
    """Ask a model that streams its answer, and look something up."""
    get_config()["callbacks"].on_retriever_start({"name": "docs"}, "x").on_retriever_end([])
    model = ScriptedModel("one ", "two ", "three", usage=USAGE, model="m", provider="openai")
    return {"said": ["".join(piece.content for piece in model.stream([]))]}


def flaky(failures: Iterator[Exception]) -> Any:
    """Return a node that fails once for each of *failures*."""

    def body(state: State) -> State:
        for error in failures:
            raise error
        return {}

    return body


def count_tokens_as_released() -> None:
    """Let a model tell its tokens under the released conventions."""

    def spend(state: State) -> State:
        (run,) = get_config()["callbacks"].on_chat_model_start({"name": "fake"}, [[]], model="m", provider="openai")
        run.on_llm_end(AIMessage("x", usage_metadata=USAGE))
        return {}

    setup(options=TelemetryOptions(semconv="1.41"))
    StateGraph(State).add_node("spend", spend).add_edge(START, "spend").compile(name="released").invoke({"said": []})


def fail() -> None:
    """Let a node's error end its run."""
    failing = StateGraph(State).add_node("bad", lambda _: 1 / 0).add_edge(START, "bad").compile(name="failing")
    try:
        failing.invoke({"said": []})
    except ZeroDivisionError:
        return
    raise AssertionError("it did not fail")


def main(folder: Path) -> None:
    """Run all of it, say so, and wait."""
    handle = setup()
    with SqliteSaver.from_conn_string(str(folder / "threads.db")) as saver:
        app = agent(saver, think, flaky(iter([ConnectionError("1"), ConnectionError("2")])))
        config: Any = {"configurable": {"thread_id": THREAD_ID}}
        app.invoke({"said": []}, config, durability="sync")
        questions = [question.id for task in app.get_state(config).tasks for question in task.interrupts]
        app.invoke(Command(resume="yes"), config, durability="sync")
        app.invoke({"said": []}, {"configurable": {"thread_id": f"{THREAD_ID}-2"}}, durability="sync")
        lose_parts()
        fail()
        count_tokens_as_released()
        snapshots = list(app.get_state_history(config))
        checkpoints = [snapshot.config["configurable"]["checkpoint_id"] for snapshot in snapshots]
        tasks = [task.id for task in chain.from_iterable(snapshot.tasks for snapshot in snapshots)]
    json.dump({"url": handle.prometheus_url, "ids": [THREAD_ID, *questions, *checkpoints, *tasks]}, sys.stdout)
    sys.stdout.write("\n")
    sys.stdout.flush()
    sys.stdin.read()
    handle.shutdown()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
