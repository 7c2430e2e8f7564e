"""``tracegraph diff``: two runs side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from tracegraph.cli.output import json_line, note, print_data, print_line
from tracegraph.cli.tables import print_table
from tracegraph.cli.times import time_text
from tracegraph.cli.trace_store import found_id, opened_store
from tracegraph_exporters.differences import Pair, Step, compare
from tracegraph_exporters.store import TraceSummary
from tracegraph_exporters.tree import format_duration

__all__ = ["show_differences"]

_HEADINGS = ("", "step", "a", "time", "b", "time b")
_MARKS = {"same": " ", "changed": "~", "only_a": "-", "only_b": "+"}
_STYLES = {"~": "yellow", "-": "red", "+": "green"}


def show_differences(first: str, second: str, *, is_json: bool) -> None:
    """Print the steps of two traces side by side, what differs between them, and where they part.

    Raises:
        CliError: there is no such trace, or several, or the store cannot be read.
    """
    with opened_store() as store:
        ids = [found_id(store, prefix) for prefix in (first, second)]
        a, b = (store.summary(trace_id) for trace_id in ids)
        pairs = compare(*(store.spans(trace_id) for trace_id in ids))
    differs = next((pair for pair in pairs if pair.kind != "same"), None)
    parted = next((pair for pair in pairs if None in (pair.a, pair.b)), None)
    if is_json:
        print_data(
            {
                "a": asdict(a) | {"duration_ns": a.duration_ns},
                "b": asdict(b) | {"duration_ns": b.duration_ns},
                "differs_at": None if differs is None else pairs.index(differs),
                "parted_at": None if parted is None else pairs.index(parted),
                "steps": [_data(pair) for pair in pairs],
            }
        )
        return
    for letter, summary in (("a", a), ("b", b)):
        print_line(_heading(letter, summary))
    if pairs:
        print_table(_HEADINGS, [_row(pair) for pair in pairs], right={"step", "time", "time b"}, free={"a", "b"}, style=_style)
    _print_changes(pairs)
    if differs is not None and differs is not parted:
        print_line(f"they differ first at {_where(differs)}")
    print_line("both went the same way" if parted is None else f"they part at {_where(parted)}")
    if not any(step.values for pair in pairs for step in (pair.a, pair.b) if step is not None):
        note("no values were recorded, so only paths, statuses and times are compared (docs/content.md)")


def _heading(letter: str, trace: TraceSummary) -> str:
    duration = format_duration(trace.duration_ns)
    return (
        f"{letter}  {trace.trace_id}  {time_text(trace.start_ns)}  {trace.status}  {duration}  {trace.name or '(root not seen)'}"
    )


def _row(pair: Pair) -> tuple[str, ...]:
    step = pair.a or pair.b
    assert step is not None  # of a pair one is there
    return (_MARKS[pair.kind], "-" if step.superstep is None else str(step.superstep), *_cells(pair.a), *_cells(pair.b))


def _cells(step: Step | None) -> tuple[str, str]:
    if step is None:
        return "", ""
    parts = ["/".join(step.path)]
    if step.status not in ("completed", "cached", "unset", "ok"):
        parts.append(f"({step.status})")
    if step.attempts > 1:
        parts.append(f"({step.attempts} attempts)")
    if step.is_cached:
        parts.append("(cached)")
    return " ".join(parts), format_duration(step.duration_ns)


def _print_changes(pairs: Sequence[Pair]) -> None:
    for pair in pairs:
        if pair.changed and pair.a is not None:
            print_line(f"~ {_where(pair)}")
            for where, (before, after) in pair.changed.items():
                print_line(f"    {where}: {json_line(before)} -> {json_line(after)}")


def _where(pair: Pair) -> str:
    step = pair.a or pair.b
    assert step is not None  # of a pair one is there
    only = {"only_a": ", which only a went through", "only_b": ", which only b went through"}.get(pair.kind, "")
    place = "" if step.superstep is None else f"step {step.superstep}, "
    return f"{place}{'/'.join(step.path)}{only}"


def _data(pair: Pair) -> dict[str, Any]:
    changed = {where: {"a": both[0], "b": both[1]} for where, both in pair.changed.items()}
    return {
        "kind": pair.kind,
        "a": None if pair.a is None else asdict(pair.a),
        "b": None if pair.b is None else asdict(pair.b),
        "changed": changed,
    }


def _style(heading: str, cell: str) -> str:
    return _STYLES.get(cell, "") if heading == "" else ""
