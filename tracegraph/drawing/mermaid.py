"""Mermaid flowchart text of a drawable graph."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any

from tracegraph.drawing.yaml_text import yaml_lines

if TYPE_CHECKING:
    from tracegraph.drawing.model import Edge, Node

__all__ = ["CurveStyle", "NodeStyles", "mermaid_text", "with_padding"]


class CurveStyle(Enum):
    """How Mermaid bends an edge."""

    BASIS = "basis"
    BUMP_X = "bumpX"
    BUMP_Y = "bumpY"
    CARDINAL = "cardinal"
    CATMULL_ROM = "catmullRom"
    LINEAR = "linear"
    MONOTONE_X = "monotoneX"
    MONOTONE_Y = "monotoneY"
    NATURAL = "natural"
    STEP = "step"
    STEP_AFTER = "stepAfter"
    STEP_BEFORE = "stepBefore"


@dataclass
class NodeStyles:
    """CSS of nodes in general, and of the first and the last one."""

    default: str = "fill:#f2f0ff,line-height:1.2"
    first: str = "fill-opacity:0"
    last: str = "fill:#bfb6fc"


@dataclass(slots=True)
class _Block:
    """One ``subgraph``: what lies directly in it, and the blocks below."""

    nodes: list[Node] = field(default_factory=list)
    edges: list[Edge] = field(default_factory=list)
    blocks: dict[str, _Block] = field(default_factory=dict)
    is_loop: bool = False
    """It only holds an edge from a node to itself, and is drawn without a frame."""

    def at(self, path: Iterable[str]) -> _Block:
        """Return the block at *path*, making what is missing."""
        block = self
        for name in path:
            block = block.blocks.setdefault(name, _Block())
        return block


def mermaid_text(
    nodes: Mapping[str, Node],
    edges: Iterable[Edge],
    *,
    first_id: str | None,
    last_id: str | None,
    with_styles: bool,
    curve_style: CurveStyle,
    node_styles: NodeStyles,
    wrap_label_n_words: int,
    frontmatter_config: Mapping[str, Any] | None,
) -> str:
    """Return the text; see :meth:`tracegraph.drawing.Graph.draw_mermaid`."""
    root = _sort_into_blocks(nodes.values() if with_styles else (), edges)
    _check_unique(root, set())
    shapes = {first_id: "first", last_id: "last"}
    lines = [*_frontmatter(curve_style, frontmatter_config)] if with_styles else []
    lines.append("graph TD;")
    lines += _block_lines(root, shapes, wrap_label_n_words)
    if with_styles:
        lines += [f"\tclassDef {kind} {css}" for kind, css in vars(node_styles).items()]
    return "\n".join(lines) + "\n"


def with_padding(config: Mapping[str, Any] | None, padding: int) -> dict[str, Any]:
    """Return a frontmatter config with a margin, unless it has one."""
    head = dict(config or {})
    head["config"] = dict(head.get("config") or {})
    head["config"]["flowchart"] = {"diagramPadding": padding, **(head["config"].get("flowchart") or {})}
    return head


def _frontmatter(curve_style: CurveStyle, config: Mapping[str, Any] | None) -> list[str]:
    head = dict(config or {})
    head["config"] = dict(head.get("config") or {})
    head["config"]["flowchart"] = {"curve": curve_style.value, **(head["config"].get("flowchart") or {})}
    return ["---", *yaml_lines(head), "---"]


def _sort_into_blocks(nodes: Iterable[Node], edges: Iterable[Edge]) -> _Block:
    # Blocks stand in the order of their first edges, and those that have none last.
    root = _Block()
    for edge in edges:
        block = root.at(_common_path(edge))
        block.edges.append(edge)
        block.is_loop = edge.source == edge.target
    for node in nodes:
        root.at(node.id.split(":")[:-1]).nodes.append(node)
    return root


def _common_path(edge: Edge) -> list[str]:
    """Return the path of the innermost block that holds both ends; a loop has a block of its own, the node's."""
    if edge.source == edge.target:
        return edge.source.split(":")
    common = []
    for a, b in zip(edge.source.split(":")[:-1], edge.target.split(":")[:-1], strict=False):
        if a != b:
            break
        common.append(a)
    return common


def _check_unique(block: _Block, seen: set[str]) -> None:
    for name, inner in block.blocks.items():
        if inner.is_loop:
            continue
        if name in seen:
            raise ValueError(
                f"two subgraphs are called {name!r}, and Mermaid would draw them as one; "
                "rename one of the nodes, or expand fewer levels (xray=1)"
            )
        seen.add(name)
        _check_unique(inner, seen)


def _block_lines(block: _Block, shapes: Mapping[str | None, str], n_words: int) -> list[str]:
    lines = [f"\t{_escaped_id(n.id)}{_node_shape(n, shapes.get(n.id))}" for n in block.nodes]
    lines += [f"\t{_escaped_id(e.source)}{_arrow(e, n_words)}{_escaped_id(e.target)};" for e in block.edges]
    for name, inner in block.blocks.items():
        inside = _block_lines(inner, shapes, n_words)
        lines += inside if inner.is_loop else [f"\tsubgraph {name}", *inside, "\tend"]
    return lines


def _node_shape(node: Node, kind: str | None) -> str:
    label = node.name.rsplit(":", 1)[-1]
    if label.startswith(_MARKDOWN) and label.endswith(_MARKDOWN):
        label = f"<p>{label}</p>"  # else Mermaid reads the characters as emphasis
    if facts := _metadata_lines(node.metadata or {}):
        label += "<hr/><small><em>" + "\n".join(facts) + "</em></small>"
    return f"([{label}]):::{kind}" if kind else f"({label})"


_MARKDOWN = ("*", "_", "`")


def _metadata_lines(metadata: Mapping[Any, Any]) -> list[str]:
    return [f"{_escaped_text(k)} = {text}" for k, v in metadata.items() if (text := _metadata_text(v)) is not None]


def _metadata_text(value: Any) -> str | None:
    """Return a value as shown; None if it is too deep for a line of a drawing."""
    if isinstance(value, (list, tuple, set)):
        return ", ".join(map(_escaped_text, value)) if all(isinstance(v, _PLAIN) for v in value) else None
    return _escaped_text(value) if isinstance(value, _PLAIN) else None


_PLAIN = (str, int, float)

_ENTITIES = str.maketrans({'"': "#quot;"} | {c: f"#{ord(c)};" for c in "#<>{}[]()|"})


def _escaped_text(value: Any) -> str:
    return str(value).translate(_ENTITIES)


def _escaped_id(node_id: str) -> str:
    r"""Return an id that Mermaid takes.

    >>> print(_escaped_id("plan:step 1"))
    plan\3astep\201
    """
    return re.sub("[^a-zA-Z0-9_-]", lambda found: f"\\{ord(found[0]):x}", node_id)


def _arrow(edge: Edge, n_words: int) -> str:
    if edge.data is None:
        return " -.-> " if edge.conditional else " --> "
    label = str(edge.data)
    words = label.split()
    if len(words) > n_words:
        label = "&nbsp<br>&nbsp".join(" ".join(words[i : i + n_words]) for i in range(0, len(words), n_words))
    return f" -. &nbsp;{label}&nbsp; .-> " if edge.conditional else f" -- &nbsp;{label}&nbsp; --> "
