"""Drawings of a graph, read from its declaration: no node and no path function is called."""

from tracegraph.drawing.from_graph import draw
from tracegraph.drawing.mermaid import CurveStyle, NodeStyles
from tracegraph.drawing.model import Edge, Graph, Node
from tracegraph.drawing.png import MermaidDrawMethod

__all__ = ["CurveStyle", "Edge", "Graph", "MermaidDrawMethod", "Node", "NodeStyles", "draw"]
