"""What a measurement is made of: a library, a graph of it, and the line of the table that it is measured for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from importlib import import_module
from types import SimpleNamespace
from typing import Any, TypeAlias

from benchmarks.clocks import Clocks

__all__ = ["Case", "Library", "Scenario", "load"]

Library: TypeAlias = SimpleNamespace
"""What the graphs use of one library, and its name."""


def load(name: str) -> Library:
    """Return the names the graphs use, from the library called *name*.

    Both libraries have the same import paths, so there is nothing else to inject.
    """
    graph, types, channels, config = (import_module(f"{name}.{room}") for room in ("graph", "types", "channels", "config"))
    return SimpleNamespace(
        name=name,
        StateGraph=graph.StateGraph,
        START=graph.START,
        END=graph.END,
        Send=types.Send,
        DeltaChannel=channels.DeltaChannel,
        get_config=config.get_config,
        get_stream_writer=config.get_stream_writer,
    )


@dataclass(frozen=True)
class Case:
    """A compiled graph, what to run it on, and how many units of work one run has."""

    graph: Any
    input: dict[str, Any]
    units: int
    """Supersteps of the run, its parallel tasks, or the parts that are read: what the table divides by."""
    firsts: list[Clocks] = field(default_factory=list)
    """What passed until the first part was there, of each run so far whose parts are read."""


@dataclass(frozen=True)
class Scenario:
    """One line of the table for each colour."""

    name: str
    unit: str
    size: int
    quick_size: int
    build: Callable[[Library, int, bool], Case]
    """Library, size, async nodes or not."""
    colours: tuple[str, ...] = ("sync", "async")
    runs: int = 1
    """Runs per measurement: enough for a short graph to outlast the clock's noise."""
