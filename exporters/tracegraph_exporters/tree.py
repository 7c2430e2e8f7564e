"""Spans as a tree, and the tree as text: plain lines for pipes and files, rich for terminals."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tracegraph_exporters import base
from tracegraph_exporters.base import SpanRecord
from tracegraph_exporters.content import content_lines, without_content

if TYPE_CHECKING:
    from rich.tree import Tree

__all__ = ["LeftOut", "SpanNode", "build_tree", "format_duration", "render_plain", "render_rich", "status_of"]

_STATUS_KEYS = (base.RUN_STATUS, base.TASK_STATUS, base.CALL_STATUS)
_ORDINARY = frozenset({"completed", "unset", "ok", "cached"})
_STYLES = {
    "abandoned": "magenta",
    "error": "bold red",
    "failed": "bold red",
    "interrupted": "yellow",
    "running": "cyan",
    "step_limit": "bold red",
}


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Children of a span that are not shown: how many, how many spans with all below them, and how many of these have errors."""

    children: int
    spans: int
    errors: int


@dataclass(slots=True)
class SpanNode:
    """A span and the spans below it, by start time.

    ``is_orphan``: it has a parent that is not among the spans given (not ended, not stored, or elsewhere).
    ``left_out``: what is below it besides ``children``.
    """

    span: SpanRecord
    is_orphan: bool = False
    children: list[SpanNode] = field(default_factory=list)
    left_out: LeftOut | None = None

    def walk(self) -> Iterator[tuple[int, SpanNode]]:
        """Yield this node and all below it with their depths, as a tree is printed. No recursion: chains may be long."""
        stack = [(0, self)]
        while stack:
            depth, node = stack.pop()
            yield depth, node
            stack.extend((depth + 1, child) for child in reversed(node.children))


def build_tree(spans: Iterable[SpanRecord]) -> list[SpanNode]:
    """Return the top nodes of *spans*, by start time. Spans whose parent is missing are top nodes as well."""
    nodes = {span.span_id: SpanNode(span) for span in sorted(spans, key=lambda s: (s.start_ns, -s.end_ns, s.span_id))}
    roots: list[SpanNode] = []
    for node in nodes.values():
        parent_id = node.span.parent_id
        parent = nodes.get(parent_id) if parent_id is not None and parent_id != node.span.span_id else None
        if parent is None:
            node.is_orphan = parent_id is not None and not node.span.is_local_root
            roots.append(node)
        else:
            parent.children.append(node)
    return roots


def status_of(span: SpanRecord) -> str:
    """Return how a span ended: ``error``, what it says of itself (``interrupted``, ...), or its OpenTelemetry status.

    ``running`` if it has not ended, ``abandoned`` if its process died before.
    """
    if span.status == "error":
        return "error"
    if span.is_running:
        return "running"
    if base.ABANDONED in span.attributes:
        return "abandoned"
    return next((str(span.attributes[key]) for key in _STATUS_KEYS if key in span.attributes), span.status)


def format_duration(duration_ns: int) -> str:
    """Return a duration in a readable unit.

    >>> [format_duration(n) for n in (950, 12_300, 4_560_000, 1_500_000_000, 125_000_000_000)]
    ['0.9 us', '12.3 us', '4.6 ms', '1.50 s', '2 min 5 s']
    """
    if duration_ns < 1_000_000:
        return f"{duration_ns / 1e3:.1f} us"
    if duration_ns < 1_000_000_000:
        return f"{duration_ns / 1e6:.1f} ms"
    if duration_ns < 120_000_000_000:
        return f"{duration_ns / 1e9:.2f} s"
    minutes, seconds = divmod(round(duration_ns / 1e9), 60)
    return f"{minutes} min {seconds} s"


def render_plain(
    roots: Sequence[SpanNode], *, has_attributes: bool = False, has_content: bool = False, max_siblings: int | None = 50
) -> str:
    """Return the tree as indented lines without any markup.

    Args:
        roots: what :func:`build_tree` returned.
        has_attributes: show attributes, events and links below each span.
        has_content: show messages, inputs and results below each span, where there are any.
        max_siblings: of more spans below one parent only the first so many are shown, and how many are not.
    """
    lines: list[str] = []
    for root in roots:
        for depth, line, _ in _lines(root, has_attributes, has_content, max_siblings):
            lines.append("  " * depth + line)
    return "\n".join(lines)


def render_rich(
    roots: Sequence[SpanNode], *, has_attributes: bool = False, has_content: bool = False, max_siblings: int | None = 50
) -> list[Tree]:
    """Return one rich tree per top node; arguments as for :func:`render_plain`."""
    from rich.text import Text
    from rich.tree import Tree

    trees: list[Tree] = []
    for root in roots:
        path: list[Tree] = []
        for depth, line, style in _lines(root, has_attributes, has_content, max_siblings):
            # Text, not markup: names and messages may hold brackets.
            text = Text(line, style=style, overflow="fold")
            del path[depth:]
            path.append(path[-1].add(text) if path else Tree(text, guide_style="dim"))
        trees.append(path[0])
    return trees


def _lines(root: SpanNode, has_attributes: bool, has_content: bool, max_siblings: int | None) -> Iterator[tuple[int, str, str]]:
    """Yield (depth, text, style) of every line below and including *root*."""
    stack: list[tuple[int, SpanNode | str]] = [(0, root)]
    while stack:
        depth, item = stack.pop()
        if isinstance(item, str):
            yield depth, item, "dim"
            continue
        yield depth, _headline(item), _STYLES.get(status_of(item.span), "")
        if has_content:
            for line in content_lines(item.span.attributes):
                yield depth + 1, _escaped(line), ""
        if has_attributes:
            for detail in _details(item.span):
                yield depth + 1, detail, "dim"
        children = item.children
        if max_siblings is not None and len(children) > max_siblings:
            stack.append((depth + 1, _left_out_line(_left_out(children[max_siblings:]))))
            children = children[:max_siblings]
        if item.left_out is not None:
            stack.append((depth + 1, _left_out_line(item.left_out)))
        stack.extend((depth + 1, child) for child in reversed(children))


def _headline(node: SpanNode) -> str:
    span = node.span
    parts = [span.name]
    if (number := span.attributes.get(base.ATTEMPT_NUMBER)) is not None:
        parts[0] += f" {number}"
    if (step := span.attributes.get(base.SUPERSTEP)) is not None:
        parts.append(f"step {step}")
    parts.append(format_duration(span.duration_ns))
    if (status := status_of(span)) not in _ORDINARY:
        parts.append(f"{status}: {_first_line(span.message)}" if status == "error" and span.message else status)
    if span.attributes.get(base.CACHE_HIT):
        parts.append("cached")
    if isinstance(attempts := span.attributes.get(base.TASK_ATTEMPTS), int) and attempts > 1:
        parts.append(f"{attempts} attempts")
    if (tokens := span.attributes.get(base.OUTPUT_TOKENS)) is not None:
        parts.append(f"{span.attributes.get(base.INPUT_TOKENS, '?')} tokens in, {tokens} out")
    # Links inside a trace (who sent a task) would only clutter; those to another trace are how a story goes on.
    if linked := dict.fromkeys(link.trace_id[:8] for link in span.links if link.trace_id != span.trace_id):
        parts.append(f"linked to {', '.join(linked)}")
    if node.is_orphan:
        parts.append("parent not seen")
    return "  ".join(parts)


def _details(span: SpanRecord) -> Iterator[str]:
    attributes = without_content(span.attributes)
    for key in sorted(attributes):
        yield f"{key} = {_value(attributes[key])}"
    for event in span.events:
        offset = format_duration(max(0, event.at_ns - span.start_ns))
        values = ", ".join(f"{key}={_value(event.attributes[key])}" for key in sorted(event.attributes))
        yield f"event {event.name} at +{offset}  {values}".rstrip()
    for link in span.links:
        yield f"link to trace {link.trace_id} span {link.span_id}"


def _left_out(nodes: Sequence[SpanNode]) -> LeftOut:
    errors = sum(status_of(node.span) == "error" for node in nodes)
    return LeftOut(len(nodes), sum(1 for node in nodes for _ in node.walk()), errors)


def _left_out_line(found: LeftOut) -> str:
    return f"... and {found.children} more ({found.spans} spans, {found.errors} with errors)"


def _value(value: Any) -> str:
    if isinstance(value, str):
        # One line a detail, whatever a stack trace holds.
        return value if value.isprintable() else base.dump_json(value)
    return base.dump_json(value)


def _escaped(line: str) -> str:
    """Return a line of what somebody wrote: it must not steer the terminal."""
    return line if line.isprintable() else "".join(c if c.isprintable() else ascii(c)[1:-1] for c in line)


def _first_line(text: str) -> str:
    return text.partition("\n")[0]
