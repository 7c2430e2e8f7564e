"""Drawings as PNG: Mermaid through a local renderer or a service, or Graphviz."""

from __future__ import annotations

import base64
import shutil
import subprocess
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.error import HTTPError, URLError
from urllib.parse import quote
from urllib.request import ProxyHandler, build_opener

if TYPE_CHECKING:
    from tracegraph.drawing.model import Graph

__all__ = ["PUBLIC_SERVICE", "MermaidDrawMethod", "RenderError", "Service", "graphviz_png", "mermaid_png", "store"]

PUBLIC_SERVICE = "https://mermaid.ink"

_TIMEOUT_S = 30.0
_MMDC_TIMEOUT_S = 120.0


class MermaidDrawMethod(Enum):
    """Who turns Mermaid text into a picture."""

    LOCAL = "local"
    """Mermaid's own command ``mmdc``, which drives a browser on this machine."""
    PYPPETEER = "local"  # noqa: PIE796  # an alias is what it is meant to be
    """The same; the name LangGraph users know."""
    API = "api"
    """A service on the network, which is sent the whole text."""


class RenderError(RuntimeError):
    """The renderer did not make a picture."""


@dataclass(frozen=True, slots=True)
class Service:
    """Where the API method sends the text, and how often it tries again."""

    base_url: str
    max_retries: int = 1
    retry_delay_s: float = 1.0
    proxies: Mapping[str, str] | None = None


def store(picture: bytes, path: str | None) -> bytes:
    """Write the picture to *path* if there is one, and return it."""
    if path is not None:
        Path(path).write_bytes(picture)
    return picture


def mermaid_png(text: str, method: MermaidDrawMethod, background: str, service: Service) -> bytes:
    """Render Mermaid text.

    Raises:
        ImportError: the local renderer is not installed.
        RenderError: the renderer failed.
    """
    # By value: programs that come from LangGraph pass langchain-core's enum of the same name.
    if method.value == MermaidDrawMethod.API.value:
        return _from_service(text, background, service)
    return _from_mmdc(text, background)


def _from_mmdc(text: str, background: str) -> bytes:
    command = shutil.which("mmdc")
    if command is None:
        raise ImportError(
            "no Mermaid renderer found: install mermaid-cli (`npm install -g @mermaid-js/mermaid-cli` puts `mmdc` on the "
            "path), or let a service on the network draw it with draw_method=MermaidDrawMethod.API, "
            "or paste draw_mermaid() into any Mermaid viewer"
        )
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder, "graph.mmd"), Path(folder, "graph.png")
        source.write_text(text, encoding="utf-8")
        arguments = [command, "--quiet", "--input", str(source), "--output", str(target)]
        arguments += ["--backgroundColor", background]
        done = subprocess.run(arguments, capture_output=True, text=True, timeout=_MMDC_TIMEOUT_S, check=False)  # noqa: S603
        if done.returncode != 0 or not target.exists():
            raise RenderError(f"mmdc ended with code {done.returncode}: {done.stderr.strip() or done.stdout.strip()}")
        return target.read_bytes()


def _from_service(text: str, background: str, service: Service) -> bytes:
    encoded = base64.urlsafe_b64encode(text.encode()).decode("ascii")
    colour = background[1:] if background.startswith("#") else f"!{background}"  # the service's mark of a name
    url = f"{service.base_url.rstrip('/')}/img/{encoded}?type=png&bgColor={quote(colour, safe='!')}"
    opener = build_opener(ProxyHandler(dict(service.proxies))) if service.proxies else build_opener()
    problem: Exception | None = None
    for attempt in range(service.max_retries + 1):
        if attempt:
            time.sleep(service.retry_delay_s)
        try:
            with opener.open(url, timeout=_TIMEOUT_S) as answer:
                picture: bytes = answer.read()
                return picture
        except HTTPError as error:
            problem = error
            error.close()
            if error.code < 500 and error.code != 429:
                break  # the text is what it does not like; it will not like it later either
        except (URLError, OSError) as error:
            problem = error
    raise RenderError(f"the Mermaid service at {service.base_url!r} made no picture: {problem}") from problem


def graphviz_png(graph: Graph, font: str, labels: Mapping[str, Mapping[str, str]]) -> bytes:
    """Draw with Graphviz.

    Raises:
        ImportError: pygraphviz is not installed.
    """
    try:
        pygraphviz = import_module("pygraphviz")
    except ImportError as error:
        raise ImportError("draw_png() needs Graphviz and its Python package: `pip install pygraphviz`") from error

    canvas: Any = pygraphviz.AGraph(directed=True, nodesep=0.9, ranksep=1.0)
    node_labels, edge_labels = labels.get("nodes", {}), labels.get("edges", {})
    ends = {n and n.id: colour for n, colour in ((graph.first_node(), "lightblue"), (graph.last_node(), "orange"))}
    for node in graph.nodes.values():
        colour = ends.get(node.id, "yellow")
        canvas.add_node(
            node.id, label=node_labels.get(node.name, node.name), style="filled", fillcolor=colour, fontsize=15, fontname=font
        )
    for edge in graph.edges:
        label = "" if edge.data is None else str(edge.data)
        style = "dotted" if edge.conditional else "solid"
        canvas.add_edge(edge.source, edge.target, label=edge_labels.get(label, label), fontsize=12, fontname=font, style=style)
    try:
        picture: bytes = canvas.draw(format="png", prog="dot")
    finally:
        canvas.close()
    return picture
