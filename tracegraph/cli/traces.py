"""``tracegraph traces`` and ``tracegraph trace``: what the embedded store has seen."""

from __future__ import annotations

import gc
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

from tracegraph.cli.output import has_terminal, note, print_data
from tracegraph.cli.tables import print_table
from tracegraph.cli.times import time_text
from tracegraph.cli.trace_store import found_id, is_missing, opened_store
from tracegraph_exporters.base import SpanRecord
from tracegraph_exporters.content import without_content
from tracegraph_exporters.filters import TraceFilter
from tracegraph_exporters.folding import folded_tree
from tracegraph_exporters.store import TraceStore, TraceSummary
from tracegraph_exporters.tree import SpanNode, build_tree, format_duration, render_plain, render_rich

__all__ = ["Shown", "list_traces", "show_trace", "status_style"]

_HEADINGS = ("trace", "started", "status", "duration", "spans", "name", "thread")
_STYLES = {
    "failed": "bold red",
    "step_limit": "bold red",
    "interrupted": "yellow",
    "running": "cyan",
    "abandoned": "magenta",
    "unfinished": "dim",
}

_MOST_SIBLINGS: Final = 50
"""So many spans below one are shown where a trace is folded."""

_LONG: Final = 5_000
"""A pipe gets everything of a trace with so many spans; what is left out for a reader's sake a program would miss."""


@dataclass(frozen=True, slots=True)
class Shown:
    """What of a trace is shown: attributes with events and links, content, all spans; as a tree or JSON."""

    has_attributes: bool
    has_content: bool
    has_all: bool
    is_json: bool


def list_traces(which: TraceFilter, limit: int, *, is_json: bool) -> None:
    """Print the newest traces of those that are meant, one a line.

    Raises:
        CliError: the store cannot be read.
    """
    if is_missing():
        if is_json:
            print_data([])
        return
    with opened_store() as store:
        found, drops = store.find(which, limit=limit), store.drops()
    if is_json:
        print_data([_summary(trace) for trace in found])
    elif found:
        _print_table(found)
    elif which != TraceFilter():
        note("no trace is like that")
    for drop in drops:
        # What went because its time was over nobody misses.
        if drop.reason != "expired":
            note(f"the store has left out {drop.spans} spans of {drop.traces} traces ({drop.reason})")


def show_trace(prefix: str, shown: Shown) -> None:
    """Print one trace as a tree, and the further ones that a large run goes on in.

    Args:
        prefix: the first digits of its id, or ``last``.
        shown: what of it; JSON always has the attributes.

    Raises:
        CliError: there is no such trace, or several, or the store cannot be read.
    """
    # Nothing of a trace is garbage before the command ends, and looking for it takes half the time.
    gc.disable()
    with opened_store() as store:
        trace_id = found_id(store, prefix)
        summary = store.summary(trace_id)
        linked = [store.summary(other) for other in store.continuations(trace_id)]
        if shown.is_json:
            spans = [_span(span, has_content=shown.has_content) for span in store.spans(trace_id)]
            ids = {"parts": [part.trace_id for part in linked if part.is_part], "spans": spans}
            print_data(_summary(summary) | {"continued_in": [other.trace_id for other in linked if not other.is_part]} | ids)
            return
        _print_tree(store, summary, shown, "trace")
        for number, part in enumerate([other for other in linked if other.is_part], start=2):
            _print_tree(store, part, shown, f"part {number}: trace")
    for other in linked:
        if not other.is_part:
            print(f"continued in trace {other.trace_id}")


def _print_tree(store: TraceStore, summary: TraceSummary, shown: Shown, heading: str) -> None:
    roots, folded = _tree(store, summary, has_all=shown.has_all)
    more = f"  {folded} folded" if folded else ""
    print(f"{heading} {summary.trace_id}  {time_text(summary.start_ns)}  {summary.status}  {summary.span_count} spans{more}")
    options: dict[str, Any] = {
        "has_attributes": shown.has_attributes,
        "has_content": shown.has_content,
        "max_siblings": None,
    }
    if has_terminal("stdout"):
        from rich.console import Console

        console = Console(highlight=False)
        for tree in render_rich(roots, **options):
            console.print(tree)
    else:
        print(render_plain(roots, **options))
    if folded:
        note(f"{folded} of {summary.span_count} spans are folded; --all shows them")


def _tree(store: TraceStore, summary: TraceSummary, *, has_all: bool) -> tuple[list[SpanNode], int]:
    if has_all or not (has_terminal("stdout") or summary.span_count > _LONG):
        return build_tree(store.spans(summary.trace_id)), 0
    return folded_tree(store, summary.trace_id, _MOST_SIBLINGS)


def status_style(status: str) -> str:
    """Return how a terminal shows a trace's status."""
    return _STYLES.get(status, "green")


def _span(span: SpanRecord, *, has_content: bool) -> dict[str, Any]:
    data = asdict(span)
    return data if has_content else data | {"attributes": without_content(data["attributes"])}


def _summary(trace: TraceSummary) -> dict[str, Any]:
    return asdict(trace) | {"duration_ns": trace.duration_ns}


def _row(trace: TraceSummary) -> tuple[str, ...]:
    return (
        trace.trace_id,
        time_text(trace.start_ns),
        trace.status,
        format_duration(trace.duration_ns),
        str(trace.span_count),
        trace.name or "(root not seen)",
        trace.thread_id or "-",
    )


def _print_table(traces: Sequence[TraceSummary]) -> None:
    rows = [_row(trace) for trace in traces]
    if has_terminal("stdout"):
        # Eight digits are enough to name a trace, and leave room for the rest.
        rows = [(row[0][:8], *row[1:]) for row in rows]
    print_table(_HEADINGS, rows, right={"duration", "spans"}, free={"name", "thread"}, style=_style)


def _style(heading: str, cell: str) -> str:
    return status_style(cell) if heading == "status" else ""
