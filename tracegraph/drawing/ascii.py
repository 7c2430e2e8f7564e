"""Drawings made of characters, for a terminal. The layout is grandalf's (Sugiyama)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from itertools import pairwise
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tracegraph.drawing.model import Edge

__all__ = ["draw_ascii"]

_BOX_HEIGHT = 3
_ROW_GAP = 2
_COLUMN_GAP = 3

_Point = tuple[float, float]


class _Canvas:
    """A sheet of characters; the origin is its upper left corner."""

    def __init__(self, width: int, height: int) -> None:
        self._rows = [[" "] * width for _ in range(height)]

    def put(self, x: int, y: int, text: str) -> None:
        self._rows[y][x : x + len(text)] = text

    def line(self, start: _Point, end: _Point, mark: str) -> None:
        """Draw one mark per character cell on the way."""
        n = max(1, math.ceil(max(abs(end[0] - start[0]), abs(end[1] - start[1]))))
        for i in range(n + 1):
            self.put(round(start[0] + (end[0] - start[0]) * i / n), round(start[1] + (end[1] - start[1]) * i / n), mark)

    def box(self, x: int, y: int, label: str) -> None:
        rule = f"+{'-' * (len(label) + 2)}+"
        for i, row in enumerate((rule, f"| {label} |", rule)):
            self.put(x, y + i, row)

    def text(self) -> str:
        return "\n".join("".join(row).rstrip() for row in self._rows)


class _BoxView:
    """What the layout has to know of a node: its size; it answers with ``xy``, the centre."""

    def __init__(self, label: str) -> None:
        self.label = label
        self.w = len(label) + 4
        self.h = _BOX_HEIGHT
        self.xy: _Point = (0.0, 0.0)


def draw_ascii(labels: Mapping[str, str], edges: Iterable[Edge]) -> str:
    """Return the drawing; dots mark conditional edges, stars the others.

    Args:
        labels: node id -> text in its box.

    Raises:
        ImportError: grandalf is not installed.
    """
    try:
        graphs, layouts, routing = (import_module(f"grandalf.{name}") for name in ("graphs", "layouts", "routing"))
    except ImportError as error:
        raise ImportError("draw_ascii() needs the package grandalf: `pip install grandalf`") from error

    vertices = {node_id: graphs.Vertex(node_id) for node_id in labels}
    for node_id, vertex in vertices.items():
        vertex.view = _BoxView(labels[node_id])
    lines: list[Any] = []
    for edge in edges:
        line = graphs.Edge(vertices[edge.source], vertices[edge.target], data=edge)
        line.view = routing.EdgeViewer()
        lines.append(line)
    left = 0.0
    for part in graphs.Graph(list(vertices.values()), lines).C:
        left = _lay_out(part, layouts.SugiyamaLayout, left)
    return _paint([v.view for v in vertices.values()], lines)


def _lay_out(part: Any, layout_class: Any, left: float) -> float:
    """Place one connected part to the right of *left*; return where the next one may begin."""
    layout = layout_class(part)
    views = [vertex.view for vertex in part.sV]
    layout.xspace, layout.yspace = float(_COLUMN_GAP), float(_ROW_GAP)
    layout.init_all(optimize=True)
    layout.draw()
    shift = left - min(view.xy[0] - view.w / 2 for view in views)
    for view in views:
        view.xy = (view.xy[0] + shift, view.xy[1])
    for edge in part.sE:
        edge.view.shift = shift
    bends = [x + shift for edge in part.sE for x, _ in getattr(edge.view, "_pts", ())]
    right: float = max([view.xy[0] + view.w / 2 for view in views] + bends)
    return right + _COLUMN_GAP


def _paint(views: Sequence[_BoxView], lines: Iterable[Any]) -> str:
    paths = [(line.data.conditional, _path(line)) for line in lines]
    points = [p for _, path in paths for p in path]
    points += [(v.xy[0] + sx * v.w / 2, v.xy[1] + sy * v.h / 2) for v in views for sx in (-1, 1) for sy in (-1, 1)]
    if not points:
        return ""
    left, top = min(x for x, _ in points), min(y for _, y in points)
    width, height = (math.ceil(max(p[i] for p in points) - (left, top)[i]) + 2 for i in (0, 1))
    canvas = _Canvas(width, height)
    for is_conditional, path in paths:
        for a, b in pairwise(path):
            canvas.line((a[0] - left, a[1] - top), (b[0] - left, b[1] - top), "." if is_conditional else "*")
    for view in views:
        canvas.box(round(view.xy[0] - view.w / 2 - left), round(view.xy[1] - view.h / 2 - top), view.label)
    return canvas.text().rstrip("\n")


def _path(line: Any) -> list[_Point]:
    """Return an edge's points from centre to centre: the boxes, painted last, cover what lies under them."""
    ends = [line.v[0].view.xy, line.v[1].view.xy]
    bends = [(x + line.view.shift, y) for x, y in getattr(line.view, "_pts", [])[1:-1]]
    return [ends[0], *bends, ends[1]]
