"""``tracegraph graph``: the drawing, without a run."""

from __future__ import annotations

from pathlib import Path

from command_line import GRAPHS, Command


def test_a_graph_is_printed_as_mermaid(command: Command, tmp_path: Path) -> None:
    """Text that any Mermaid viewer takes; nothing is run and nothing stored."""
    done = command("graph", f"{GRAPHS}:failing_inside")

    assert done.code == 0
    assert done.out.startswith("---\nconfig:\n  flowchart:\n    curve: linear\n---\ngraph TD;\n")
    assert "\t__start__ --> inner;\n\tinner --> __end__;\n" in done.out
    assert not (tmp_path / "home").exists()


def test_xray_opens_subgraphs(command: Command) -> None:
    """The child's nodes stand in a block of its name."""
    out = command("graph", f"{GRAPHS}:failing_inside", "--xray").out

    assert "\tsubgraph inner\n\tinner\\3aadd(add)\n\tinner\\3aexplode(explode)\n" in out


def test_json_has_nodes_and_edges(command: Command) -> None:
    """The same as the drawing's `to_json`."""
    data = command("graph", f"{GRAPHS}:good", "--json").data

    assert [node["id"] for node in data["nodes"]] == ["__start__", "add", "__end__"]
    assert data["edges"] == [{"source": "__start__", "target": "add"}, {"source": "add", "target": "__end__"}]


def test_the_command_alone_prints_its_help(command: Command) -> None:
    """And ends with the code of a wrong command line; the version is an option."""
    done = command()

    assert done.code == 2
    assert all(name in done.out for name in ("run", "traces", "trace", "graph"))
    assert command("--version").out.startswith("tracegraph ")
