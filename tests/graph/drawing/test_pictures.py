"""Pictures: PNG through a local renderer, a service or Graphviz, and characters."""

from __future__ import annotations

import base64
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any
from urllib.parse import urlsplit

import pytest

from tracegraph.drawing import Graph, MermaidDrawMethod
from tracegraph.drawing.png import RenderError

PICTURE = b"\x89PNG\r\n\x1a\n..."


@pytest.fixture
def graph() -> Graph:
    made = Graph()
    a, b, c = (made.add_node(None, name) for name in ("a", "bee", "c"))
    made.add_edge(a, b, "next")
    made.add_edge(b, c, conditional=True)
    return made


def install_mmdc(folder: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    """Put a command `mmdc` on the path: a renderer that does what *script* says with `source` and `target`."""
    command = folder / "mmdc"
    head = f"#!{sys.executable}\nimport sys\nfrom pathlib import Path\nargs = dict(zip(sys.argv[2::2], sys.argv[3::2]))\n"
    head += "source, target = Path(args['--input']), Path(args['--output'])\n"
    command.write_text(head + script, encoding="utf-8")
    command.chmod(0o755)
    monkeypatch.setenv("PATH", str(folder))


def test_without_a_renderer_the_error_says_which_there_are(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    """The default never goes to the network: it asks for a local renderer, or for permission."""
    monkeypatch.setenv("PATH", "")

    with pytest.raises(ImportError, match="mermaid-cli.*MermaidDrawMethod.API"):
        graph.draw_mermaid_png()


def test_the_local_renderer_gets_the_text_and_the_colour(graph: Graph, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """What it writes is returned, and stored where the caller says."""
    install_mmdc(tmp_path, monkeypatch, "target.write_bytes(args['--backgroundColor'].encode() + source.read_bytes())")
    target = tmp_path / "out.png"

    picture = graph.draw_mermaid_png(background_color="#fff", padding=7, output_file_path=str(target))

    assert picture.startswith(b"#fff---\nconfig:\n  flowchart:\n    curve: linear\n    diagramPadding: 7\n---\ngraph TD;")
    assert target.read_bytes() == picture


def test_a_failing_local_renderer_is_named_with_what_it_said(
    graph: Graph, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Code and message come from the renderer."""
    install_mmdc(tmp_path, monkeypatch, "sys.exit('no browser')")

    with pytest.raises(RenderError, match="code 1: no browser"):
        graph.draw_mermaid_png(draw_method=MermaidDrawMethod.PYPPETEER)


@contextmanager
def service(*codes: int) -> Iterator[tuple[str, list[str]]]:
    """Answer requests with the given codes, one after the other; yield the address and the paths asked for."""
    asked: list[str] = []
    answers = iter(codes)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_response(next(answers))
            self.end_headers()
            self.wfile.write(PICTURE)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}", asked
        finally:
            server.shutdown()
            thread.join()


def test_a_service_is_asked_when_the_caller_says_so(graph: Graph) -> None:
    """The text travels in the address; a server's own failure is tried again."""
    with service(503, 200) as (address, asked):
        picture = graph.draw_mermaid_png(
            draw_method=MermaidDrawMethod.API, base_url=address, retry_delay=0, background_color="red", proxies={"none": "x"}
        )

    parts = urlsplit(asked[1])
    assert picture == PICTURE
    assert parts.query == "type=png&bgColor=!red"
    assert base64.urlsafe_b64decode(parts.path.removeprefix("/img/")).decode().startswith("---\nconfig:")


def test_a_service_that_refuses_the_text_is_not_asked_again(graph: Graph) -> None:
    """A 4xx is about the request: repeating it changes nothing."""
    with service(400, 200) as (address, asked), pytest.raises(RenderError, match="made no picture: HTTP Error 400"):
        graph.draw_mermaid_png(draw_method=MermaidDrawMethod.API, base_url=address, background_color="#fff", retry_delay=0)

    assert len(asked) == 1
    assert asked[0].endswith("bgColor=fff")


def test_an_unreachable_service_is_named(graph: Graph) -> None:
    """After the last try the error says who did not answer."""
    with service() as (address, _):
        pass

    with pytest.raises(RenderError, match="127.0.0.1"):
        graph.draw_mermaid_png(draw_method=MermaidDrawMethod.API, base_url=address, retry_delay=0)


def test_a_notebook_shows_the_picture_or_the_text(graph: Graph, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A missing renderer never breaks a cell."""
    monkeypatch.setenv("PATH", "")
    assert list(graph._repr_mimebundle_()) == ["text/plain"]

    install_mmdc(tmp_path, monkeypatch, "target.write_bytes(b'png')")
    assert graph._repr_mimebundle_()["image/png"] == b"png"


def test_drawing_with_graphviz_needs_its_package(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error names the package."""
    monkeypatch.setitem(sys.modules, "pygraphviz", None)

    with pytest.raises(ImportError, match="pip install pygraphviz"):
        graph.draw_png()


class FakeCanvas:
    """Stands for pygraphviz.AGraph: remembers what was drawn."""

    def __init__(self, **_options: Any) -> None:
        self.drawn: list[tuple[Any, ...]] = []

    def add_node(self, name: str, **look: Any) -> None:
        self.drawn.append((name, look["label"], look["fillcolor"]))

    def add_edge(self, source: str, target: str, **look: Any) -> None:
        self.drawn.append((source, target, look["label"], look["style"]))

    def draw(self, **_options: Any) -> bytes:
        return repr(self.drawn).encode()

    def close(self) -> None: ...


def test_graphviz_gets_nodes_and_edges_with_the_caller_s_labels(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    """The ends have colours of their own, a conditional edge is dotted."""
    package = ModuleType("pygraphviz")
    package.AGraph = FakeCanvas  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "pygraphviz", package)

    picture = graph.draw_png(labels={"nodes": {"bee": "B"}, "edges": {"next": "then"}})

    assert eval(picture) == [
        ("a", "a", "lightblue"),
        ("bee", "B", "yellow"),
        ("c", "c", "orange"),
        ("a", "bee", "then", "solid"),
        ("bee", "c", "", "dotted"),
    ]


def test_drawing_characters_needs_grandalf(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error names the package."""
    monkeypatch.setitem(sys.modules, "grandalf", None)

    with pytest.raises(ImportError, match="pip install grandalf"):
        graph.draw_ascii()


def fake_grandalf(monkeypatch: pytest.MonkeyPatch) -> None:
    """Install a layout that puts the nodes of a graph below each other, and bends each edge once."""

    class Layout:
        def __init__(self, part: Any) -> None:
            self.part = part

        def init_all(self, **_options: Any) -> None: ...

        def draw(self) -> None:
            for row, vertex in enumerate(self.part.sV):
                vertex.view.xy = (0.0, row * 5.0)
            for edge in self.part.sE:
                (x, y), end = edge.v[0].view.xy, edge.v[1].view.xy
                edge.view._pts = [(x, y), (x + 6, (y + end[1]) / 2), end]

    def graph_of(vertices: list[Any], edges: list[Any]) -> Any:
        return SimpleNamespace(C=[SimpleNamespace(sV=vertices, sE=edges)] if vertices else [])

    names = {
        "grandalf": {},
        "grandalf.graphs": {
            "Vertex": lambda data: SimpleNamespace(data=data),
            "Edge": lambda a, b, data: SimpleNamespace(v=(a, b), data=data),
            "Graph": graph_of,
        },
        "grandalf.layouts": {"SugiyamaLayout": Layout},
        "grandalf.routing": {"EdgeViewer": SimpleNamespace},
    }
    for name, content in names.items():
        module = ModuleType(name)
        vars(module).update(content)
        monkeypatch.setitem(sys.modules, name, module)


def test_characters_show_boxes_and_two_kinds_of_edges(
    graph: Graph, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Stars are plain edges, dots conditional ones; boxes cover what runs under them."""
    fake_grandalf(monkeypatch)

    graph.print_ascii()

    lines = capsys.readouterr().out.splitlines()
    assert [line for line in lines if "|" in line] != []
    assert lines[1].lstrip().startswith("| a |")
    assert any("*" in line for line in lines[3:5])
    assert any("." in line for line in lines[8:10])
    assert not any("*" in line for line in lines[8:])


def test_no_nodes_make_no_characters(monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty graph is an empty drawing."""
    fake_grandalf(monkeypatch)

    assert Graph().draw_ascii() == ""
