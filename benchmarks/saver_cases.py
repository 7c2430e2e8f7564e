"""What is measured of savers, written once against whichever library is handed in."""

from __future__ import annotations

import operator
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from itertools import chain, pairwise
from statistics import median
from typing import Annotated, Any, TypedDict

from benchmarks.case import Library

__all__ = ["MEASURES", "Measure", "opened"]

THREAD: dict[str, Any] = {"configurable": {"thread_id": "t"}, "recursion_limit": 1_000_000}
WINDOW = 100
"""Steps whose median is one figure."""


@contextmanager
def opened(library: str, kind: str, place: str) -> Iterator[Any]:
    """Open a saver: "memory", "sqlite" on the file *place*, or "postgres" at the URL *place*."""
    if kind == "memory":
        yield import_module(f"{library}.checkpoint.memory").InMemorySaver()
    elif kind == "sqlite":
        # The same settings for both.
        connection = sqlite3.connect(place, check_same_thread=False)
        saver = import_module(f"{library}.checkpoint.sqlite").SqliteSaver(connection)
        saver.setup()
        for pragma in ("journal_mode = WAL", "synchronous = NORMAL"):
            connection.execute(f"PRAGMA {pragma}").fetchall()
        yield saver
        connection.close()
    else:
        with import_module(f"{library}.checkpoint.postgres").PostgresSaver.from_conn_string(place) as saver:
            saver.setup()
            yield saver


class Counter(TypedDict):
    """State of the loop."""

    n: int


def _loop(lib: Library, saver: Any, size: int) -> Any:
    builder = lib.StateGraph(Counter)
    builder.add_node("bump", lambda state: {"n": state["n"] + 1})
    builder.add_edge(lib.START, "bump")
    builder.add_conditional_edges("bump", lambda state: "bump" if state["n"] < size else lib.END)
    return builder.compile(checkpointer=saver)


def _step(durability: str) -> Callable[[Library, Any, int], dict[str, float]]:
    def measure(lib: Library, saver: Any, size: int) -> dict[str, float]:
        app = _loop(lib, saver, size)
        began, began_cpu = time.perf_counter(), time.process_time()
        app.invoke({"n": 0}, THREAD, durability=durability)
        took, took_cpu = time.perf_counter() - began, time.process_time() - began_cpu
        return {"wall": took / size * 1e6, "cpu": took_cpu / size * 1e6}

    return measure


def _growing(lib: Library, saver: Any, size: int, channel: Any, *, use: str) -> dict[str, float]:
    """Measure steps that each add one item to a list: early ones, and those *size* steps later.

    The node leaves the list ("unread"), looks at its last item ("read"), or gets hold of it all ("taken").
    """
    state: Any = TypedDict("state", {"log": channel, "n": int})
    at: list[float] = []

    def unread(seen: Any) -> Any:
        at.append(time.perf_counter())
        return {"log": [f"{seen['n']:020}"], "n": seen["n"] + 1}

    def read(seen: Any) -> Any:
        at.append(time.perf_counter())
        last = seen["log"][-1] if seen["n"] else "0"
        return {"log": [f"{int(last) + 1:020}"], "n": seen["n"] + 1}

    def taken(seen: Any) -> Any:
        at.append(time.perf_counter())
        log = seen["log"]
        return {"log": [f"{len(log):020}"], "n": seen["n"] + 1}

    builder = lib.StateGraph(state)
    builder.add_node("say", {"unread": unread, "read": read, "taken": taken}[use])
    builder.add_edge(lib.START, "say")
    builder.add_conditional_edges("say", lambda seen: "say" if seen["n"] < size else lib.END)
    builder.compile(checkpointer=saver).invoke({"log": [], "n": 0}, THREAD, durability="sync")
    steps = [later - earlier for earlier, later in pairwise(at)]
    early, late = median(steps[50 : 50 + WINDOW]), median(steps[-WINDOW:])
    return {"early": early * 1e6, "late": late * 1e6, "ratio": late / early}


def _list(lib: Library, saver: Any, size: int, *, use: str) -> dict[str, float]:
    return _growing(lib, saver, size, Annotated[list[str], operator.add], use=use)


def _delta(lib: Library, saver: Any, size: int, *, use: str) -> dict[str, float]:
    def extended(log: list[str], batch: list[list[str]]) -> list[str]:
        return [*log, *chain.from_iterable(batch)]

    return _growing(lib, saver, size, Annotated[list[str], lib.DeltaChannel(extended, list)], use=use)


def _get_state(lib: Library, saver: Any, size: int) -> dict[str, float]:
    """Measure reading a small state after 10 steps and after *size*."""
    found = {}
    for name, steps in (("early", 10), ("late", size)):
        app, config = _loop(lib, saver, steps), {**THREAD, "configurable": {"thread_id": name}}
        app.invoke({"n": 0}, config, durability="async")
        times = []
        for _ in range(50):
            began = time.perf_counter()
            app.get_state(config)
            times.append(time.perf_counter() - began)
        found[name] = median(times) * 1e6
    return {**found, "ratio": found["late"] / found["early"]}


@dataclass(frozen=True)
class Measure:
    """One line of the table for each kind of saver."""

    name: str
    kinds: tuple[str, ...]
    size: int
    quick_size: int
    take: Callable[[Library, Any, int], dict[str, float]]
    figure: str
    """Which of the figures the libraries are compared by."""
    libraries: tuple[str, ...] = ("langgraph", "tracegraph")


MEASURES = (
    Measure("loop, async durability", ("memory", "sqlite", "postgres"), 1000, 50, _step("async"), "wall"),
    Measure("loop, sync durability", ("memory", "sqlite", "postgres"), 1000, 50, _step("sync"), "wall"),
    *(
        Measure(f"growing {name}, {use}", ("memory", "sqlite"), 10_000, 300, partial(take, use=use), "ratio", ("tracegraph",))
        for name, take in (("list", _list), ("delta", _delta))
        for use in ("unread", "read", "taken")
    ),
    Measure("get_state, by past steps", ("memory", "sqlite", "postgres"), 5000, 50, _get_state, "ratio", ("tracegraph",)),
)
