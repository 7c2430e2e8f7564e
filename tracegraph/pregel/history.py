"""A thread's past states."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tracegraph.drivers.effects import Flow, ListTuples, ask
from tracegraph.pregel.addressing import graph_at
from tracegraph.pregel.snapshot import saver_of, snapshot, thread_config
from tracegraph.types import StateSnapshot

if TYPE_CHECKING:
    from tracegraph.pregel.graph import Pregel

__all__ = ["history_flow"]


def history_flow(
    graph: Pregel, config: Any, *, filter: dict[str, Any] | None, before: Any, limit: int | None
) -> Flow[list[StateSnapshot]]:
    """Load a thread's snapshots, newest first."""
    saver = saver_of(graph)
    spec, address = thread_config(graph, config)
    found = yield from ask(ListTuples(saver, address, filter, before, limit))
    at = graph_at(graph, spec.checkpoint_ns)
    return [snapshot(at, saved, is_live=False, nested={}) for saved in found]
