"""Kills runs at random moments and resumes them; a program of its own, so that the processes it forks have one thread.

Usage: crash_host.py FOLDER DURABILITY ROUNDS [POSTGRES_URL]. Without a URL each round has a SQLite file of its own.
Prints one JSON object a round.
"""

from __future__ import annotations

import json
import operator
import os
import random
import signal
import sys
import time
import traceback
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Annotated, Any, TypedDict

from tracegraph.checkpoint.base import BaseCheckpointSaver
from tracegraph.checkpoint.postgres import PostgresSaver
from tracegraph.checkpoint.sqlite import SqliteSaver
from tracegraph.graph import END, START, StateGraph

LAPS = 12
POSTGRES_URL = sys.argv[4] if len(sys.argv) > 4 else None


def config(folder: Path) -> dict[str, Any]:
    """Return a config whose thread is the folder's own."""
    return {"configurable": {"thread_id": folder.name}, "recursion_limit": 100}


def opened(folder: Path) -> AbstractContextManager[BaseCheckpointSaver]:
    return SqliteSaver.from_conn_string(folder / "db") if POSTGRES_URL is None else PostgresSaver.from_conn_string(POSTGRES_URL)


def is_sound(saver: BaseCheckpointSaver, folder: Path) -> bool:
    """Say whether everything that is stored can be read."""
    if isinstance(saver, SqliteSaver):
        return saver.conn.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    return all(found.checkpoint["channel_values"] for found in saver.list(config(folder)))


class State(TypedDict):
    lap: int
    log: Annotated[list[str], operator.add]


def graph(folder: Path, saver: BaseCheckpointSaver) -> Any:
    """Return a loop with two parallel nodes; every node writes down outside of the graph that it ran."""

    def node(name: str, steps: int = 0) -> Callable[[State], Any]:
        def run(state: State) -> Any:
            entry = f"{name}{state['lap']}"
            effects = os.open(folder / "effects", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
            os.write(effects, f"{entry}\n".encode())
            os.close(effects)
            return {"log": [entry], "lap": state["lap"] + steps} if steps else {"log": [entry]}

        return run

    builder = StateGraph(State).add_node("split", node("split")).add_node("left", node("left")).add_node("right", node("right"))
    builder.add_node("join", node("join", steps=1)).add_edge(START, "split").add_edge("split", "left").add_edge("split", "right")
    builder.add_edge(["left", "right"], "join")
    builder.add_conditional_edges("join", lambda state: "split" if state["lap"] < LAPS else END)
    return builder.compile(checkpointer=saver)


def begin(folder: Path, durability: str) -> None:
    """Run from the beginning."""
    with opened(folder) as saver:
        graph(folder, saver).invoke({"lap": 0, "log": []}, config(folder), durability=durability)


def resume(folder: Path, durability: str) -> None:
    """Note what is stored, run on to the end, and write down how it went."""
    with opened(folder) as saver:
        app = graph(folder, saver)
        found = saver.get_tuple(config(folder))
        stored = [] if found is None else [*found.checkpoint["channel_values"].get("log", [])]
        for _task, channel, value in [] if found is None else found.pending_writes or []:
            stored += value if channel == "log" else []
        # Also when get_state() has nothing next: all of a step's writes may be stored, and the step not be applied.
        app.invoke({"lap": 0, "log": []} if found is None else None, config(folder), durability=durability)
        report = {
            "values": app.get_state(config(folder)).values,
            "stored": stored,
            "effects": (folder / "effects").read_text().split(),
            "is_sound": is_sound(saver, folder),
        }
    (folder / "report").write_text(json.dumps(report))


def forked(work: Callable[[Path, str], None], folder: Path, durability: str, kill_after_s: float | None = None) -> bool:
    """Do something in a new process; say whether it got to its end."""
    child = os.fork()
    if child == 0:
        try:
            work(folder, durability)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    if kill_after_s is not None and signal.sigtimedwait({signal.SIGCHLD}, kill_after_s) is None:
        os.kill(child, signal.SIGKILL)
    status = os.waitpid(child, 0)[1]
    assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0
    signal.sigtimedwait({signal.SIGCHLD}, 0)
    return os.WIFEXITED(status)


def main(root: Path, durability: str, rounds: int) -> None:
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD})
    # The first process of all pays for what is loaded late; the second one shows how long a run takes.
    for name in ("warm", "whole"):
        (root / name).mkdir()
        began = time.monotonic()
        assert forked(begin, root / name, durability)
        took_s = time.monotonic() - began
    forked(resume, root / "whole", durability)
    sys.stdout.write((root / "whole" / "report").read_text() + "\n")
    for number in range(rounds):
        folder = root / str(number)
        folder.mkdir()
        ended = forked(begin, folder, durability, kill_after_s=random.uniform(0, took_s))
        assert forked(resume, folder, durability)
        report = json.loads((folder / "report").read_text()) | {"was_killed": not ended}
        sys.stdout.write(json.dumps(report) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]))
