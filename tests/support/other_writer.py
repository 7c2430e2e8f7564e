"""Invokes a graph on a database, as another process would.

Usage: other_writer.py DATABASE THREAD TAG COUNT, or other_writer.py DATABASE --threads THREADS TAG,
or other_writer.py DATABASE --queue COUNT TAG.
Each run appends one entry to the log of its thread. Prints the entries whose runs succeeded as JSON.
"""

from __future__ import annotations

import json
import operator
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Annotated, Any, TypedDict

from databases import opened

from tracegraph.checkpoint.base import BaseCheckpointSaver
from tracegraph.errors import ConcurrentRunError
from tracegraph.graph import START, StateGraph


class State(TypedDict):
    log: Annotated[list[str], operator.add]


def app_on(saver: BaseCheckpointSaver, node: Any = lambda _state: {}, **options: Any) -> Any:
    return StateGraph(State).add_node("node", node).add_edge(START, "node").compile(checkpointer=saver, **options)


def _done(state: State) -> Any:
    return {"log": [f"{state['log'][-1]}-done"]}


def append(path: str, thread: str, tag: str, count: int) -> list[str]:
    """Return the entries of the runs that nobody disturbed."""
    done = []
    with opened(path) as saver:
        app = app_on(saver)
        for number in range(count):
            entry = f"{tag}{number}"
            try:
                app.invoke({"log": [entry]}, {"configurable": {"thread_id": thread}}, durability="sync")
            except ConcurrentRunError:
                continue
            done.append(entry)
    return done


def append_at_once(database: str, threads: int, tag: str) -> list[str]:
    """Run twice on each of *threads* threads of this process's own, and on one that is everybody's, all at once.

    Return the inputs on the shared thread whose runs nobody disturbed.
    """
    done: list[str] = []
    with opened(database) as saver:
        app = app_on(saver, _done)

        def work(number: int) -> None:
            for entry in "01":
                app.invoke({"log": [entry]}, {"configurable": {"thread_id": f"{tag}{number}"}})
            entry = f"{tag}{number}"
            try:
                app.invoke({"log": [entry]}, {"configurable": {"thread_id": "shared"}})
            except ConcurrentRunError:
                return
            done.append(entry)

        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(work, range(threads)))
    return done


def append_in_turn(database: str, count: int, tag: str) -> list[str]:
    """Run *count* times on a thread that is everybody's, each run waiting for its turn."""
    entries = [f"{tag}{number}" for number in range(count)]
    with opened(database) as saver:
        app = app_on(saver, _done, concurrent_runs="queue")
        for entry in entries:
            app.invoke({"log": [entry]}, {"configurable": {"thread_id": "shared"}})
    return entries


if __name__ == "__main__":
    if sys.argv[2] == "--queue":
        entries = append_in_turn(sys.argv[1], int(sys.argv[3]), sys.argv[4])
    elif sys.argv[2] == "--threads":
        entries = append_at_once(sys.argv[1], int(sys.argv[3]), sys.argv[4])
    else:
        entries = append(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]))
    sys.stdout.write(json.dumps(entries))
