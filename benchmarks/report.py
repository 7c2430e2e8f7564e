"""What was measured, as a table: medians in microseconds, and how many times faster than langgraph.

On a machine that others use too, processor time (``clock="cpu"``) says more than wall-clock time.
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass, field
from statistics import median
from typing import Any, TypeAlias

__all__ = ["Key", "Row", "print_json", "print_table"]

Key: TypeAlias = tuple[str, str]
"""Library and mode."""

BASE: Key = ("langgraph", "untraced")
OPENINFERENCE: Key = ("langgraph", "traced")
HEADS = {
    ("langgraph", "untraced"): "lg",
    ("langgraph", "sampled out"): "lg+oi off",
    ("langgraph", "traced"): "lg+oi",
    ("tracegraph", "untraced"): "tg",
    ("tracegraph", "sampled out"): "tg off",
    ("tracegraph", "traced"): "tg traced",
    ("tracegraph", "traced + metrics"): "+metrics",
}
LEGEND = (
    "Microseconds per unit (first part: until it was there), medians, by the {clock} clock. x: times faster. "
    "lg: langgraph, oi: openinference-instrumentation-langchain, tg: tracegraph; off: sampled out; "
    "traced: to an exporter that encodes OTLP and sends nothing, spans still queued at the end not counted (+flush: counted)."
)


@dataclass
class Row:
    """One scenario in one colour: the measurements of each library and mode, in the order taken."""

    name: str
    colour: str
    unit: str
    clock: str = "wall"
    """``wall``, or ``cpu``: the processor time of all threads."""
    samples: dict[Key, list[dict[str, float]]] = field(default_factory=dict)

    def of_first_parts(self) -> Row | None:
        """Return the times until the first part was there as a line of their own; None if no parts were read."""
        found = {
            key: [{self.clock: one[f"{self.clock}_first"]} for one in taken if f"{self.clock}_first" in one]
            for key, taken in self.samples.items()
        }
        return Row(self.name, self.colour, "first part", self.clock, found) if any(found.values()) else None

    def __str__(self) -> str:
        times = ", ".join(f"{HEADS[key]} {self.us(key):.1f}" for key in self.samples)
        return f"{self.name} {self.colour}, us for a {self.unit}: {times}"

    def us(self, key: Key, suffix: str = "") -> float | None:
        """Return the median time per unit, or None if *key* was not measured."""
        samples = self.samples.get(key)
        return median(s[self.clock + suffix] for s in samples) if samples and self.clock + suffix in samples[0] else None

    def ratio(self, slow: Key, fast: Key) -> float | None:
        """Return how many times faster *fast* is than *slow*."""
        a, b = self.us(slow), self.us(fast)
        return a / b if a and b else None

    def ratios(self) -> dict[str, float | None]:
        """Return the ratios the project holds itself to, by name."""
        ours = "tracegraph"
        off, plain = self.us((ours, "sampled out")), self.us((ours, "untraced"))
        return {
            "untraced x": self.ratio(BASE, (ours, "untraced")),
            "off/untraced": off / plain if off and plain else None,
            "metrics/traced": self.ratio((ours, "traced + metrics"), (ours, "traced")),
            "traced x lg": self.ratio(BASE, (ours, "traced")),
            "traced x lg+oi": self.ratio(OPENINFERENCE, (ours, "traced")),
        }


def _cells(row: Row) -> list[str]:
    flushed = row.us(("tracegraph", "traced"), "_flushed")
    times = [*(row.us(key) for key in HEADS), flushed]
    return [
        f"{row.name} {row.colour}",
        row.unit,
        *("-" if value is None else f"{value:.1f}" for value in times),
        *("-" if value is None else f"{value:.2f}" for value in row.ratios().values()),
    ]


def print_table(rows: list[Row]) -> None:
    """Print with rich on a terminal, in plain columns otherwise."""
    heads = ["graph", "unit", *HEADS.values(), "+flush", *Row("", "", "").ratios()]
    body = [_cells(row) for row in rows]
    legend = LEGEND.format(clock=rows[0].clock if rows else "wall")
    if sys.stdout.isatty():
        from rich.console import Console
        from rich.table import Table

        table = Table(caption=legend)
        for position, head in enumerate(heads):
            table.add_column(head, justify="left" if position < 2 else "right")
        for cells in body:
            table.add_row(*cells)
        Console().print(table)
        return
    widths = [max(map(len, column)) for column in zip(heads, *body, strict=True)]
    for cells in [heads, *body]:
        padded = (
            cell.ljust(width) if i < 2 else cell.rjust(width) for i, (cell, width) in enumerate(zip(cells, widths, strict=True))
        )
        print("  ".join(padded).rstrip())
    print(legend)


def print_json(rows: list[Row]) -> None:
    """Print medians, ratios and every sample as one JSON document."""
    document: list[dict[str, Any]] = [
        {
            "graph": row.name,
            "colour": row.colour,
            "unit": row.unit,
            "clock": row.clock,
            "median_us": {f"{lib} {mode}": row.us((lib, mode)) for lib, mode in row.samples},
            "ratios": row.ratios(),
            "samples": {f"{lib} {mode}": samples for (lib, mode), samples in row.samples.items()},
        }
        for row in rows
    ]
    print(json.dumps(document, indent=1))
