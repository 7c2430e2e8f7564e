"""``tracegraph traces`` and ``tracegraph trace``: what the embedded store has seen."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from tracegraph.cli.output import fail, has_terminal, local_time, note, print_data
from tracegraph.cli.tables import print_table
from tracegraph_exporters.abandoned import close_abandoned
from tracegraph_exporters.base import default_path
from tracegraph_exporters.store import AmbiguousTraceError, TraceNotFoundError, TraceStore, TraceStoreError, TraceSummary
from tracegraph_exporters.tree import build_tree, format_duration, render_plain, render_rich

__all__ = ["list_traces", "show_trace"]

_HEADINGS = ("trace", "started", "status", "duration", "spans", "name", "thread")
_STYLES = {
    "failed": "bold red",
    "step_limit": "bold red",
    "interrupted": "yellow",
    "running": "cyan",
    "abandoned": "magenta",
    "unfinished": "dim",
}


def list_traces(limit: int, *, is_json: bool) -> None:
    """Print the newest traces, one a line.

    Raises:
        CliError: the store cannot be read.
    """
    if not default_path().exists():
        if is_json:
            print_data([])
        note(f"no traces yet in {str(default_path())!r}; `tracegraph run` makes some")
        return
    with _store() as store:
        found, drops = store.traces(limit=limit), store.drops()
    if is_json:
        print_data([_summary(trace) for trace in found])
    elif found:
        _print_table(found)
    for drop in drops:
        note(f"the store has left out {drop.spans} spans of {drop.traces} traces ({drop.reason})")


def show_trace(prefix: str, *, has_attributes: bool, is_json: bool) -> None:
    """Print one trace as a tree.

    Args:
        prefix: the first digits of its id, or ``last``.
        has_attributes: print attributes, events and links too (JSON always has them).
        is_json: print the spans as JSON instead.

    Raises:
        CliError: there is no such trace, or several, or the store cannot be read.
    """
    with _store() as store:
        try:
            trace_id = store.resolve("latest" if prefix == "last" else prefix)
        except (TraceNotFoundError, AmbiguousTraceError) as error:
            fail(str(error), error)
        summary, spans, continued_in = store.summary(trace_id), store.spans(trace_id), store.continuations(trace_id)
    if is_json:
        print_data(_summary(summary) | {"continued_in": continued_in, "spans": [asdict(span) for span in spans]})
        return
    print(f"trace {trace_id}  {_time(summary.start_ns)}  {summary.status}  {summary.span_count} spans")
    roots = build_tree(spans)
    if has_terminal("stdout"):
        from rich.console import Console

        console = Console(highlight=False)
        for tree in render_rich(roots, has_attributes=has_attributes):
            console.print(tree)
    else:
        # A pipe gets everything: what is left out for a reader's sake a program would miss.
        print(render_plain(roots, has_attributes=has_attributes, max_siblings=None))
    for other in continued_in:
        print(f"continued in trace {other}")


@contextmanager
def _store() -> Iterator[TraceStore]:
    is_current = True
    try:
        close_abandoned()
    except (TraceStoreError, sqlite3.Error, OSError):
        # Reading may well be possible all the same; where it is not, that alone is said.
        is_current = False
    try:
        with TraceStore() as store:
            if not is_current:
                note("the trace store cannot be written: runs of processes that have died are shown as running")
            yield store
    except FileNotFoundError as error:
        fail(str(error), error)
    except TraceStoreError as error:
        fail(str(error), error)
    except (sqlite3.Error, OSError) as error:
        fail(f"the trace store {str(default_path())!r} cannot be read: {error}", error)


def _summary(trace: TraceSummary) -> dict[str, Any]:
    return asdict(trace) | {"duration_ns": trace.duration_ns}


def _time(at_ns: int) -> str:
    return local_time(datetime.fromtimestamp(at_ns / 1e9, UTC))


def _row(trace: TraceSummary) -> tuple[str, ...]:
    return (
        trace.trace_id,
        _time(trace.start_ns),
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
    return _STYLES.get(cell, "green") if heading == "status" else ""
