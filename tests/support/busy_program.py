"""A program that makes runs of all kinds until its input ends: `python busy_program.py FOLDER`.

It says on its first line where Prometheus finds its metrics.
"""

from __future__ import annotations

import sqlite3
import sys
from contextlib import suppress
from itertools import count
from pathlib import Path
from threading import Event, Thread
from typing import Any

from measured_graphs import USAGE, State, agent, lose_parts, small
from scripted_models import ScriptedModel

from tracegraph.checkpoint.sqlite import SqliteSaver
from tracegraph.config import get_config
from tracegraph.telemetry import setup
from tracegraph.types import Command

PRICED = "m-1"
"""The model that the test has a price for; the other one has none."""


def think(state: State) -> State:
    """Ask a model that streams, another one, one that breaks off, and a retriever."""
    get_config()["callbacks"].on_retriever_start({"name": "docs"}, "x").on_retriever_end([])
    for model in (PRICED, "m-2"):
        list(ScriptedModel("one ", "two ", "three", usage=USAGE, model=model, provider="openai").stream([]))
    with suppress(ConnectionError):
        list(ScriptedModel("one ", "two", fails_after=1, model="m-2", provider="openai").stream([]))
    return {}


def flaky() -> Any:
    """Return a node whose every second call fails."""
    calls = count()

    def body(state: State) -> State:
        if next(calls) % 2 == 0:
            raise ConnectionError("try again")
        return {}

    return body


class FullDisk(SqliteSaver):
    """A saver that cannot store anything."""

    def put(self, *args: Any, **kwargs: Any) -> Any:
        """Fail as SQLite does."""
        raise sqlite3.OperationalError("database or disk is full")


def play(app: Any, full: Any, number: int) -> None:
    """Do one run of each kind."""
    config: Any = {"configurable": {"thread_id": str(number)}}
    app.invoke({"said": []}, config, durability="sync")
    app.invoke(Command(resume="yes"), config, durability="sync")
    lose_parts()
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
        app, full = agent(saver, think, flaky()), small("unsaved", lambda _: {}, broken)
        for number in count():
            play(app, full, number)
            if done.wait(0.05):
                break
    handle.shutdown()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
