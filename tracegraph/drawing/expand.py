"""Opening subgraphs in a drawing (``xray``)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tracegraph.drawing.model import Graph

__all__ = ["expand_subgraphs"]


def expand_subgraphs(
    drawing: Graph, children: Mapping[str, Any], levels: int | bool, draw: Callable[[Any, int | bool], Any]
) -> None:
    """Replace the nodes of *drawing* that hold a child graph by what is in it.

    A child without a first and a last node stays closed: it would have no place to lead into and out of.

    Args:
        children: node name -> compiled graph.
        levels: True for all levels, else how many.
        draw: makes the drawing of a child, opened so many levels deep.
    """
    deeper = levels if isinstance(levels, bool) else levels - 1
    for name, child in children.items():
        inner = draw(child, deeper)
        if len(inner.nodes) > 1 and inner.first_node() and inner.last_node():
            _replace(drawing, name, inner)


def _replace(drawing: Graph, name: str, inner: Any) -> None:
    inner.trim_first_node()
    inner.trim_last_node()
    own_edges, drawing.edges = drawing.edges, []
    first, last = drawing.extend(inner, prefix=name)
    inner_edges = drawing.edges
    enter, leave = (first.id if first else name), (last.id if last else name)
    drawing.edges = [
        *(e.copy(source=leave if e.source == name else None, target=enter if e.target == name else None) for e in own_edges),
        *inner_edges,
    ]
    del drawing.nodes[name]
