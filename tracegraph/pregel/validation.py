"""What an assembled graph is checked for; everything found is reported at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracegraph.constants import RESERVED_NAMES, TASKS
from tracegraph.drivers.body import Body
from tracegraph.errors import GraphDefinitionError
from tracegraph.types import seconds_of

if TYPE_CHECKING:
    from tracegraph.pregel.graph import Pregel

__all__ = ["check_graph", "refuse_unsupported"]


def check_graph(graph: Pregel) -> None:
    """Check a graph's nodes and channels against each other.

    Raises:
        GraphDefinitionError: with every fault, each naming the node or channel and the way out.
    """
    problems = [*_reserved(graph), *_channels(graph), *_nodes(graph), *_breakpoints(graph)]
    if problems:
        raise GraphDefinitionError(*problems)


def refuse_unsupported(graph: Pregel) -> None:
    """Refuse what this release does not do: accepted and ignored it would look as if it worked.

    Raises:
        GraphDefinitionError: with every such option.
    """
    problems: list[str] = []
    if graph.cache is not None:
        problems.append("cache= is not supported yet: leave it out (a cache_policy without a cache has no effect)")
    if graph.concurrent_runs not in ("reject", "queue"):
        problems.append(f"concurrent_runs={graph.concurrent_runs!r} is unknown: give 'reject' or 'queue'")
    elif graph.concurrent_runs == "queue" and isinstance(graph.checkpointer, bool | None):
        problems.append(
            f"concurrent_runs='queue' needs a saver, which keeps the queue, but checkpointer={graph.checkpointer!r}: give "
            "compile() a saver; a subgraph takes its turns with the graph around it, so leave the option out there"
        )
    if graph.max_state_bytes is not None and graph.max_state_bytes < 1:
        problems.append(f"max_state_bytes must be at least 1, not {graph.max_state_bytes!r}: leave it out for no limit")
    if graph.step_timeout is not None:
        try:
            seconds_of(graph.step_timeout, "step_timeout")
        except ValueError as error:
            problems.append(str(error))
    if problems:
        raise GraphDefinitionError(*problems)


def _reserved(graph: Pregel) -> list[str]:
    names = [*graph.channels, *graph.managed, *graph.nodes]
    return [f"{name!r} is a reserved name: choose another for this channel or node" for name in names if name in RESERVED_NAMES]


def _channels(graph: Pregel) -> list[str]:
    problems: list[str] = []
    known = ", ".join(map(repr, graph.channels)) or "none"
    for role, given in (("input", graph.input_channels), ("output", graph.output_channels), ("stream", graph.stream_channels)):
        names = (given,) if isinstance(given, str) else given
        problems.extend(
            f"{role} channel {name!r} does not exist; there are {known}" for name in names if name not in graph.channels
        )
    inputs = (graph.input_channels,) if isinstance(graph.input_channels, str) else graph.input_channels
    subscribed = {trigger for node in graph.nodes.values() for trigger in node.triggers}
    if not subscribed.intersection(inputs):
        problems.append(f"no node subscribes to the input channel {inputs!r}, so no input would ever run anything")
    return problems


def _nodes(graph: Pregel) -> list[str]:
    problems: list[str] = []
    for name, node in graph.nodes.items():
        reads = (node.reads,) if isinstance(node.reads, str) else node.reads
        problems.extend(
            f"node {name!r} reads or is triggered by channel {channel!r}, which does not exist"
            for channel in (*reads, *node.triggers)
            if channel not in graph.channels and channel != TASKS
        )
        if node.timeout is not None and isinstance(node.body, Body) and not node.body.is_async:
            problems.append(
                f"node {name!r} has a timeout but is not async, so it could not be stopped: make it async, or drop the timeout"
            )
        if node.error_handler is not None and node.error_handler not in graph.nodes:
            problems.append(f"node {name!r} names error handler {node.error_handler!r}, which is no node")
    return problems


def _breakpoints(graph: Pregel) -> list[str]:
    named = [("interrupt_before", graph.interrupt_before), ("interrupt_after", graph.interrupt_after)]
    return [
        f"{role} names {name!r}, which is no node; there are {', '.join(map(repr, graph.nodes))}"
        for role, names in named
        if names != "*"
        for name in sorted(names)
        if name not in graph.nodes
    ]
