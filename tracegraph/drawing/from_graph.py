"""The drawing of a compiled graph."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from tracegraph.constants import END, START
from tracegraph.drawing.edges import Wiring, derive_edges, wiring_of_builder, wiring_of_nodes
from tracegraph.drawing.expand import expand_subgraphs
from tracegraph.drawing.model import Graph

__all__ = ["draw"]


def draw(compiled: Any, *, xray: int | bool = False) -> Graph:
    """Return the drawing of a compiled graph; ``compiled.get_graph()`` is this.

    Nothing of the user's is called.

    Args:
        xray: True opens subgraphs at all levels, a number so many levels.
    """
    builder = getattr(compiled, "builder", None)
    has_builder = builder is not None and hasattr(builder, "waiting_edges")
    wiring = wiring_of_builder(builder) if has_builder else wiring_of_nodes(compiled.nodes, compiled.input_channels)
    drawing = Graph()
    for name in compiled.nodes:
        drawing.add_node(_data(compiled.nodes[name]), name, metadata=_metadata(compiled, name, wiring))
    edges = derive_edges(wiring)
    for virtual in (START, END):
        if virtual not in drawing.nodes and any(virtual in (e.source, e.target) for e in edges):
            drawing.add_node(None, virtual)
    drawing.edges = edges
    if xray:
        children = {name: node.subgraph for name, node in compiled.nodes.items() if node.subgraph is not None}
        expand_subgraphs(drawing, children, xray, _draw_child)
    return drawing


def _draw_child(child: Any, xray: int | bool) -> Any:
    """Let a child draw itself: a graph that lives elsewhere knows its own way."""
    return child.get_graph(xray=xray) if hasattr(child, "get_graph") else draw(child, xray=xray)


def _data(node: Any) -> Any:
    """Return what a node runs: a compiled graph as it is, else the body, else (the start node) the node itself."""
    target = getattr(node.body, "target", None)
    if hasattr(target, "get_graph"):
        return target
    return node if node.body is None else node.body


def _metadata(compiled: Any, name: str, wiring: Wiring) -> dict[str, Any] | None:
    metadata = dict(compiled.nodes[name].metadata or {})
    if name in wiring.deferred:
        metadata["defer"] = True
    if stops := _stops(compiled, name):
        metadata["__interrupt"] = stops
    if tools := _tool_names(compiled.nodes[name]):
        metadata["__tools"] = tools
    return metadata or None


def _stops(compiled: Any, name: str) -> str:
    def names(stop: str | Collection[str]) -> Collection[str]:
        return () if isinstance(stop, str) else stop  # "*" stops everywhere: no news of a single node

    before = name in names(compiled.interrupt_before)
    after = name in names(compiled.interrupt_after)
    return ",".join(when for when, holds in (("before", before), ("after", after)) if holds)


def _tool_names(node: Any) -> list[str]:
    tools = getattr(getattr(node.body, "target", None), "tools_by_name", None)
    return list(tools) if isinstance(tools, dict) else []
