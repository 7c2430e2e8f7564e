"""Which graph a checkpoint namespace leads to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracegraph.constants import NS_END, NS_SEP
from tracegraph.errors import InvalidInputError

if TYPE_CHECKING:
    from tracegraph.pregel.graph import Pregel

__all__ = ["graph_at"]


def graph_at(graph: Pregel, ns: str) -> Pregel:
    """Return the graph whose state is filed under a namespace: *graph* itself for the empty one.

    Raises:
        InvalidInputError: there is none.
    """
    found = graph
    for segment in ns.split(NS_SEP) if ns else ():
        if segment.isdigit():
            continue  # the second and later calls of one task
        name = segment.partition(NS_END)[0]
        child: Pregel | None = found.nodes[name].subgraph if name in found.nodes else None
        if child is None or child.checkpointer is False:
            raise InvalidInputError(f"checkpoint_ns {ns!r} leads to no state: {name!r} is no subgraph that is saved")
        found = child
    return found
