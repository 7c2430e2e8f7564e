"""``tracegraph stats``: sums over what the embedded store has seen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

from tracegraph.cli.output import fail, note, print_data
from tracegraph.cli.tables import print_table
from tracegraph.cli.trace_store import is_missing, opened_store
from tracegraph_exporters.filters import TraceFilter
from tracegraph_exporters.prices import has_prices
from tracegraph_exporters.stats import KINDS, OperationStats, operation_stats
from tracegraph_exporters.tree import format_duration

__all__ = ["show_stats"]

_HEADINGS = ("kind", "name", "count", "errors", "retries", "p50", "p95", "tokens in", "tokens out", "cost")


def show_stats(which: TraceFilter, kinds: Sequence[str], *, is_json: bool) -> None:
    """Print the sums over the traces that are meant, one line for each graph, node, model and tool.

    Raises:
        CliError: a kind does not exist, or the store cannot be read.
    """
    if wrong := sorted(set(kinds) - set(KINDS)):
        fail(f"--by: there is no kind {wrong[0]!r}, but {', '.join(KINDS)}")
    if is_missing():
        if is_json:
            print_data([])
        return
    with opened_store() as store:
        found = operation_stats(store, which, kinds=kinds or KINDS)
    if is_json:
        print_data([asdict(one) for one in found])
    elif found:
        print_table(_HEADINGS, [_row(one) for one in found], right=set(_HEADINGS) - {"kind", "name"}, free={"name"}, style=_style)
    else:
        note("nothing has ended that is like that")
    _note_prices(found)


def _row(one: OperationStats) -> tuple[str, ...]:
    has_tokens = one.input_tokens or one.output_tokens
    return (
        one.kind,
        one.name,
        str(one.count),
        str(one.errors),
        str(one.retries),
        format_duration(one.p50_ns),
        format_duration(one.p95_ns),
        str(one.input_tokens) if has_tokens else "-",
        str(one.output_tokens) if has_tokens else "-",
        "-" if one.cost is None else f"${one.cost:.4f}",
    )


def _note_prices(found: Sequence[OperationStats]) -> None:
    unpriced = {one.name: one.unpriced for one in found if one.kind == "model" and one.unpriced}
    if not unpriced:
        return
    if has_prices():
        note(f"the price of {', '.join(unpriced)} is not known ({sum(unpriced.values())} calls)")
    else:
        note("to see what it cost: pip install 'tracegraph[prices]'")


def _style(heading: str, cell: str) -> str:
    return "bold red" if heading == "errors" and cell != "0" else ""
