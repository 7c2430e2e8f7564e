"""Invokes a graph on a database, as another process would: sqlite_writer.py DATABASE THREAD TAG COUNT.

Each run appends one entry to the thread's log. Prints the entries whose runs succeeded as JSON.
"""

from __future__ import annotations

import json
import operator
import sys
from typing import Annotated, Any, TypedDict

from tracegraph.checkpoint.sqlite import SqliteSaver
from tracegraph.errors import ThreadConflictError
from tracegraph.graph import START, StateGraph


class State(TypedDict):
    log: Annotated[list[str], operator.add]


def app_on(saver: SqliteSaver, node: Any = lambda _state: {}) -> Any:
    return StateGraph(State).add_node("node", node).add_edge(START, "node").compile(checkpointer=saver)


def append(path: str, thread: str, tag: str, count: int) -> list[str]:
    """Return the entries of the runs that nobody disturbed."""
    done = []
    with SqliteSaver.from_conn_string(path) as saver:
        app = app_on(saver)
        for number in range(count):
            entry = f"{tag}{number}"
            try:
                app.invoke({"log": [entry]}, {"configurable": {"thread_id": thread}}, durability="sync")
            except ThreadConflictError:
                continue
            done.append(entry)
    return done


if __name__ == "__main__":
    sys.stdout.write(json.dumps(append(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]))))
