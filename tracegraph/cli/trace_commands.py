"""The commands that ask the embedded trace store, and their options; what they do is in the modules beside this one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from tracegraph.cli.options import MOST, Json, reported

if TYPE_CHECKING:
    from tracegraph_exporters.filters import TraceFilter

__all__ = ["diff", "stats", "store", "tail", "trace", "traces"]

_FILTERS = "Which traces"


def _filter(*names: str, metavar: str | None = None, help: str) -> Any:
    return typer.Option(*names, metavar=metavar, help=help, rich_help_panel=_FILTERS)


Error = Annotated[bool, _filter("--error", help="With a span that has an error, be it a try that was made again.")]
Slower = Annotated[str | None, _filter("--slower", metavar="TIME", help="That took longer, or have so far: 500ms, 2s, 1m30s.")]
Since = Annotated[
    str | None, _filter("--since", metavar="TIME", help="Started so long ago at most, 15m, 1h, 7d, or since a date and time.")
]
Status = Annotated[
    str | None,
    _filter("--status", metavar="STATUS", help="completed, failed, interrupted, running, abandoned, cancelled, step_limit, ..."),
]
Thread = Annotated[str | None, _filter("--thread", metavar="ID", help="Of this thread.")]
Graph = Annotated[str | None, _filter("--graph", metavar="NAME", help="In which this graph ran, at the root or nested.")]
Name = Annotated[str | None, _filter("--name", metavar="TEXT", help="Whose root span's name contains this.")]
Node = Annotated[str | None, _filter("--node", metavar="NAME", help="In which this node ran.")]
Model = Annotated[str | None, _filter("--model", metavar="NAME", help="In which this model was asked.")]
Tool = Annotated[str | None, _filter("--tool", metavar="NAME", help="In which this tool was called.")]
TraceId = Annotated[str, typer.Argument(metavar="ID", help="The first digits of a trace's id, or `last`.")]

store = typer.Typer(
    name="store", help="The embedded trace store: its size, what it keeps, and how it is tidied.", add_completion=False
)


def traces(
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=MOST, help="How many, newest first.")] = 20,
    error: Error = False,
    slower: Slower = None,
    since: Since = None,
    status: Status = None,
    thread: Thread = None,
    graph: Graph = None,
    name: Name = None,
    node: Node = None,
    model: Model = None,
    tool: Tool = None,
    is_json: Json = False,
) -> None:
    """List the traces in the embedded store; of several conditions all must hold."""
    from tracegraph.cli.traces import list_traces

    with reported():
        list_traces(_which(error, slower, since, status, thread, graph, name, node, model, tool), limit, is_json=is_json)


def trace(
    trace_id: TraceId,
    attributes: Annotated[bool, typer.Option("--attributes", "-a", help="Show attributes, events and links.")] = False,
    content: Annotated[
        bool, typer.Option("--content", "-c", help="Show messages, inputs and results, where they were recorded.")
    ] = False,
    all_: Annotated[bool, typer.Option("--all", help="Show every span, however many there are.")] = False,
    is_json: Json = False,
) -> None:
    """Show one trace as a tree. Without --content what the run worked on is left out, from JSON too."""
    from tracegraph.cli.traces import Shown, show_trace

    with reported():
        show_trace(trace_id, Shown(attributes, content, all_, is_json))


def stats(
    by: Annotated[
        list[str] | None,
        typer.Option("--by", metavar="KIND", help="graph, node, model, tool, retrieval or memory; may be repeated. All if none."),
    ] = None,
    error: Error = False,
    slower: Slower = None,
    since: Since = None,
    status: Status = None,
    thread: Thread = None,
    graph: Graph = None,
    name: Name = None,
    node: Node = None,
    model: Model = None,
    tool: Tool = None,
    is_json: Json = False,
) -> None:
    """Sum up traces: how often graphs, nodes, models and tools ran, how long, how many failed, what they cost.

    Costs are in US dollars and need `pip install tracegraph[prices]`. The conditions choose whole traces.
    """
    from tracegraph.cli.stats import show_stats

    with reported():
        which = _which(error, slower, since, status, thread, graph, name, node, model, tool)
        show_stats(which, by or (), is_json=is_json)


def diff(
    a: Annotated[str, typer.Argument(metavar="A", help="The first digits of a trace's id, or `last`.")],
    b: Annotated[str, typer.Argument(metavar="B", help="Another's.")],
    is_json: Json = False,
) -> None:
    """Compare two runs: which nodes they went through, with what values where these were recorded, and where they part."""
    from tracegraph.cli.diff import show_differences

    with reported():
        show_differences(a, b, is_json=is_json)


def tail(
    graph: Annotated[str | None, typer.Option(metavar="NAME", help="Only traces of this graph.")] = None,
    thread: Annotated[str | None, typer.Option(metavar="ID", help="Only of this thread.")] = None,
    is_json: Annotated[bool, typer.Option("--json", help="Print a JSON object a line.")] = False,
) -> None:
    """Show what runs do while they do it, from every process that writes to the store, until Ctrl-C.

    What runs at this moment comes first. A point shows when it has been written, which is seconds after it was.
    """
    from tracegraph.cli.tail import follow

    with reported():
        code = follow(graph=graph, thread_id=thread, is_json=is_json)
    raise typer.Exit(code)


@store.callback(invoke_without_command=True)
def _info(context: typer.Context, is_json: Json = False) -> None:
    if context.invoked_subcommand is not None:
        return
    from tracegraph.cli.store import show_store

    with reported():
        show_store(is_json=is_json)


@store.command()
def prune(
    keep: Annotated[str | None, typer.Option(metavar="TIME", help="Drop traces that ended longer ago: 30d, 12h.")] = None,
    max_mb: Annotated[
        float | None, typer.Option("--max-mb", metavar="MB", min=0, help="Then the oldest, until the rest takes no more.")
    ] = None,
    is_json: Json = False,
) -> None:
    """Drop old traces, never one that still runs for its age. Without options: what the variables say.

    TRACEGRAPH_TRACES_KEEP and TRACEGRAPH_TRACES_MAX_MB do the same all the time, in every process that writes.
    """
    from tracegraph.cli.store import prune_store

    with reported():
        prune_store(keep, max_mb, is_json=is_json)


@store.command()
def vacuum(is_json: Json = False) -> None:
    """Write the store's file anew, in order and without gaps. Needs as much room again on the disk while it works."""
    from tracegraph.cli.store import vacuum_store

    with reported():
        vacuum_store(is_json=is_json)


def _which(
    error: bool, slower: str | None, since: str | None, status: str | None, thread: str | None, graph: str | None,
    name: str | None, node: str | None, model: str | None, tool: str | None,
) -> TraceFilter:  # fmt: skip
    from tracegraph.cli.times import duration_ns, since_ns
    from tracegraph_exporters.filters import TraceFilter

    return TraceFilter(
        thread_id=thread,
        status=status,
        name=name,
        since_ns=None if since is None else since_ns(since),
        slower_ns=None if slower is None else duration_ns("--slower", slower),
        has_error=error,
        graph=graph,
        node=node,
        model=model,
        tool=tool,
    )
