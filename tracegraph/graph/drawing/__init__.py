"""Drawings of a graph, read from its declaration: no node and no path function is called."""

from tracegraph.graph.drawing.from_graph import draw
from tracegraph.graph.drawing.mermaid import CurveStyle, NodeStyles
from tracegraph.graph.drawing.model import Edge, Graph, Node
from tracegraph.graph.drawing.png import MermaidDrawMethod

__all__ = ["CurveStyle", "Edge", "Graph", "MermaidDrawMethod", "Node", "NodeStyles", "draw"]
