"""The drawable graph: nodes, edges, and the operations that expanding a subgraph needs."""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Container
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from uuid import UUID, uuid4

from tracegraph.drawing import ascii as ascii_art
from tracegraph.drawing import png
from tracegraph.drawing.mermaid import CurveStyle, NodeStyles, mermaid_text, with_padding
from tracegraph.drivers.body import Body
from tracegraph.engine.node import Node as EngineNode

__all__ = ["Edge", "Graph", "Node"]


class Edge(NamedTuple):
    """A way from *source* to *target* (node ids); ``data`` is its label."""

    source: str
    target: str
    data: Any = None
    conditional: bool = False

    def copy(self, *, source: str | None = None, target: str | None = None) -> Edge:
        """Return the edge between other ends."""
        return self._replace(source=source or self.source, target=target or self.target)


class Node(NamedTuple):
    """A node; ``data`` is what it runs, ``metadata`` what a drawing shows below its name."""

    id: str
    name: str
    data: Any = None
    metadata: dict[str, Any] | None = None

    def copy(self, *, id: str | None = None, name: str | None = None) -> Node:
        """Return the node under another id or name."""
        return self._replace(id=id or self.id, name=name or self.name)


@dataclass
class Graph:
    """What ``get_graph()`` returns. Changing it changes no compiled graph.

    >>> graph = Graph()
    >>> a, b = graph.add_node(None, "a"), graph.add_node(None, "b")
    >>> graph.add_edge(a, b, "next").conditional
    False
    >>> print(graph.draw_mermaid(with_styles=False), end="")
    graph TD;
        a -- &nbsp;next&nbsp; --> b;
    """

    nodes: dict[str, Node] = field(default_factory=dict)
    edges: list[Edge] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.nodes)

    def next_id(self) -> str:
        """Return an id for a node that is given none."""
        return uuid4().hex

    def add_node(self, data: Any, id: str | None = None, *, metadata: dict[str, Any] | None = None) -> Node:
        """Add a node. Without an id it gets a random one, and is called as its data are.

        Raises:
            ValueError: the id is taken.
        """
        if id is not None and id in self.nodes:
            raise ValueError(f"a node with id {id!r} exists already; give the new one another id")
        node_id = id or self.next_id()
        node = Node(node_id, _name_of(node_id, data), data, metadata)
        self.nodes[node_id] = node
        return node

    def remove_node(self, node: Node) -> None:
        """Remove a node and its edges."""
        self.nodes.pop(node.id)
        self.edges = [e for e in self.edges if node.id not in (e.source, e.target)]

    def add_edge(self, source: Node, target: Node, data: Any = None, conditional: bool = False) -> Edge:
        """Add an edge between two nodes of this graph.

        Raises:
            ValueError: one of them is not in this graph.
        """
        for role, node in (("source", source), ("target", target)):
            if node.id not in self.nodes:
                raise ValueError(f"the {role} {node.id!r} is not a node of this graph; add it first")
        edge = Edge(source.id, target.id, data, conditional)
        self.edges.append(edge)
        return edge

    def next_node(self, node: Node) -> Node | None:
        """Return the node that always follows *node*: None if there is none, or several, or it depends."""
        followers = [e for e in self.edges if e.source == node.id]
        if len(followers) != 1 or followers[0].conditional:
            return None
        return self.nodes[followers[0].target]

    def first_node(self) -> Node | None:
        """Return the node that no edge leads to; None if there is none or several."""
        return self._only_node_outside(role="target", without=())

    def last_node(self) -> Node | None:
        """Return the node that no edge starts from; None if there is none or several."""
        return self._only_node_outside(role="source", without=())

    def trim_first_node(self) -> None:
        """Remove the first node if one edge leaves it, and to a node that is the first one then."""
        first = self.first_node()
        if first and self._count(source=first.id) == 1 and self._only_node_outside(role="target", without=(first.id,)):
            self.remove_node(first)

    def trim_last_node(self) -> None:
        """Remove the last node if one edge leads to it, and from a node that is the last one then."""
        last = self.last_node()
        if last and self._count(target=last.id) == 1 and self._only_node_outside(role="source", without=(last.id,)):
            self.remove_node(last)

    def _count(self, *, source: str | None = None, target: str | None = None) -> int:
        return sum(1 for e in self.edges if source in (None, e.source) and target in (None, e.target))

    def _only_node_outside(self, *, role: str, without: Container[str]) -> Node | None:
        other = "source" if role == "target" else "target"
        taken = {getattr(e, role) for e in self.edges if getattr(e, other) not in without}
        found = [n for n in self.nodes.values() if n.id not in taken and n.id not in without]
        return found[0] if len(found) == 1 else None

    def extend(self, graph: Any, *, prefix: str = "") -> tuple[Node | None, Node | None]:
        """Add all nodes and edges of *graph*, each id behind ``prefix:``; return its first and last node.

        Random ids are unique as they are and get no prefix.
        """
        if all(_is_uuid(node_id) for node_id in graph.nodes):
            prefix = ""

        def renamed(node_id: str) -> str:
            return f"{prefix}:{node_id}" if prefix else node_id

        first, last = graph.first_node(), graph.last_node()
        for node in graph.nodes.values():
            self.nodes[renamed(node.id)] = Node(renamed(node.id), node.name, node.data, node.metadata)
        self.edges += [Edge(renamed(e.source), renamed(e.target), e.data, e.conditional) for e in graph.edges]
        return (first and self.nodes[renamed(first.id)], last and self.nodes[renamed(last.id)])

    def reid(self) -> Graph:
        """Return this graph with names as ids; equal names are numbered from 1."""
        total = Counter(n.name for n in self.nodes.values())
        used: Counter[str] = Counter()
        labels: dict[str, str] = {}
        for node in self.nodes.values():
            if not _is_uuid(node.id):
                labels[node.id] = node.id
                continue
            used[node.name] += 1
            labels[node.id] = f"{node.name}_{used[node.name]}" if total[node.name] > 1 else node.name
        return Graph(
            nodes={labels[n.id]: n._replace(id=labels[n.id]) for n in self.nodes.values()},
            edges=[e._replace(source=labels[e.source], target=labels[e.target]) for e in self.edges],
        )

    def to_json(self, *, with_schemas: bool = False) -> dict[str, list[dict[str, Any]]]:
        """Return nodes and edges as JSON data; random ids become numbers, so that equal graphs give equal data.

        With *with_schemas*, a node whose data is a Pydantic model shows its JSON schema instead of its name.
        """
        ids: dict[str, Any] = {node_id: i if _is_uuid(node_id) else node_id for i, node_id in enumerate(self.nodes)}
        return {
            "nodes": [{"id": ids[node.id], **_node_json(node, with_schemas)} for node in self.nodes.values()],
            "edges": [_edge_json(edge, ids) for edge in self.edges],
        }

    def draw_mermaid(
        self,
        *,
        with_styles: bool = True,
        curve_style: CurveStyle = CurveStyle.LINEAR,
        node_colors: NodeStyles | None = None,
        wrap_label_n_words: int = 9,
        frontmatter_config: dict[str, Any] | None = None,
    ) -> str:
        """Return the graph as Mermaid text.

        Args:
            wrap_label_n_words: an edge label of more words is broken into lines of so many.
            frontmatter_config: merged over the YAML head, e.g. ``{"config": {"theme": "neutral"}}``.

        Raises:
            ValueError: two expanded subgraphs in different places have the same name; Mermaid would merge them.
        """
        graph = self.reid()
        first, last = graph.first_node(), graph.last_node()
        return mermaid_text(
            graph.nodes,
            graph.edges,
            first_id=first and first.id,
            last_id=last and last.id,
            with_styles=with_styles,
            curve_style=curve_style,
            node_styles=node_colors or NodeStyles(),
            wrap_label_n_words=wrap_label_n_words,
            frontmatter_config=frontmatter_config,
        )

    def draw_mermaid_png(
        self,
        *,
        curve_style: CurveStyle = CurveStyle.LINEAR,
        node_colors: NodeStyles | None = None,
        wrap_label_n_words: int = 9,
        output_file_path: str | None = None,
        draw_method: png.MermaidDrawMethod = png.MermaidDrawMethod.LOCAL,
        background_color: str = "white",
        padding: int = 10,
        max_retries: int = 1,
        retry_delay: float = 1.0,
        frontmatter_config: dict[str, Any] | None = None,
        base_url: str | None = None,
        proxies: dict[str, str] | None = None,
    ) -> bytes:
        """Return the Mermaid drawing as PNG, and write it to *output_file_path* if given.

        The default method renders on this machine. ``MermaidDrawMethod.API`` sends the graph's node names, labels
        and metadata to the service at *base_url*, so it has to be asked for.

        Args:
            padding: margin around the drawing, in pixels.
            retry_delay: seconds between two of the *max_retries* further tries of the API method.

        Raises:
            ImportError: no renderer is installed; the text says which there are.
            png.RenderError: the renderer failed.
        """
        text = self.draw_mermaid(
            curve_style=curve_style,
            node_colors=node_colors,
            wrap_label_n_words=wrap_label_n_words,
            frontmatter_config=with_padding(frontmatter_config, padding),
        )
        service = png.Service(base_url or png.PUBLIC_SERVICE, max_retries, retry_delay, proxies)
        return png.store(png.mermaid_png(text, draw_method, background_color, service), output_file_path)

    def draw_png(self, output_file_path: str | None = None, fontname: str | None = None, labels: Any = None) -> bytes:
        """Return a Graphviz drawing as PNG, and write it to *output_file_path* if given.

        Args:
            labels: ``{"nodes": {name: label}, "edges": {label: label}}``, shown instead.

        Raises:
            ImportError: pygraphviz is not installed.
        """
        return png.store(png.graphviz_png(self.reid(), fontname or "arial", labels or {}), output_file_path)

    def draw_ascii(self) -> str:
        """Return the graph as characters.

        Raises:
            ImportError: grandalf is not installed.
        """
        graph = self.reid()
        return ascii_art.draw_ascii({n.id: n.name for n in graph.nodes.values()}, graph.edges)

    def print_ascii(self) -> None:
        """Print :meth:`draw_ascii`."""
        print(self.draw_ascii())  # noqa: T201  # printing is what it is for

    def _repr_mimebundle_(self, **_kwargs: Any) -> dict[str, Any]:
        """Show the drawing in a notebook; where it cannot be rendered, the text representation has to do."""
        bundle: dict[str, Any] = {"text/plain": repr(self)}
        with suppress(Exception):  # a cell that only names the graph must never fail because of its picture
            bundle["image/png"] = self.draw_mermaid_png()
        return bundle


def _is_uuid(value: str) -> bool:
    try:
        UUID(value)
    except ValueError:
        return False
    return True


def _name_of(node_id: str, data: Any) -> str:
    if not _is_uuid(node_id) or data is None:
        return node_id
    name = getattr(data, "name", None) or getattr(data, "__name__", None)
    return name if isinstance(name, str) else type(data).__name__


def _node_json(node: Node, with_schemas: bool) -> dict[str, Any]:
    name = _name_of(node.id, node.data)
    shown: dict[str, Any] = {}
    if inspect.isclass(node.data) and hasattr(node.data, "model_json_schema"):
        shown = {"type": "schema", "data": node.data.model_json_schema() if with_schemas else name}
    elif isinstance(node.data, (Body, EngineNode)) or (hasattr(node.data, "invoke") and not inspect.isclass(node.data)):
        owner = type(node.data)
        shown = {"type": "runnable", "data": {"id": [*owner.__module__.split("."), owner.__name__], "name": name}}
    elif node.data is not None:
        shown = {"type": "unknown", "data": name}
    if node.metadata:
        shown["metadata"] = node.metadata
    return shown


def _edge_json(edge: Edge, ids: dict[str, Any]) -> dict[str, Any]:
    shown: dict[str, Any] = {"source": ids[edge.source], "target": ids[edge.target]}
    if edge.data is not None:
        shown["data"] = edge.data
    if edge.conditional:
        shown["conditional"] = True
    return shown
