"""The drawable graph as a data structure."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import BaseModel

from tracegraph.drawing import Edge, Graph, Node


def graph_of(nodes: str, *edges: str) -> Graph:
    """Return a graph of one-letter nodes; an edge is written `ab`, a conditional one `a?b`."""
    graph = Graph()
    for name in nodes:
        graph.add_node(None, name)
    for edge in edges:
        graph.add_edge(graph.nodes[edge[0]], graph.nodes[edge[-1]], conditional="?" in edge)
    return graph


@pytest.mark.parametrize(
    ("edges", "first", "last"),
    [
        (("ab", "bc"), "a", "c"),
        (("ac", "bc"), None, "c"),
        (("ab", "ac"), "a", None),
        (("ab", "bc", "ca"), None, None),
    ],
)
def test_first_and_last_are_single_nodes_or_none(edges: tuple[str, ...], first: str | None, last: str | None) -> None:
    """The first has no edge in, the last none out; two of either are as good as none."""
    graph = graph_of("abc", *edges)

    assert (graph.first_node() and graph.first_node().id, graph.last_node() and graph.last_node().id) == (first, last)


@pytest.mark.parametrize(
    ("edges", "left"),
    [
        (("ab", "bc", "cd"), "bc"),
        (("a?b", "bc", "cd"), "bc"),
        (("ab", "ac", "bd", "cd"), "abcd"),
        (("ab", "bb", "bc", "cc", "cd"), "abcd"),
    ],
    ids=["a line", "a single choice", "a fork", "loops next to the ends"],
)
def test_trimming_keeps_a_first_and_a_last_node(edges: tuple[str, ...], left: str) -> None:
    """An end goes only if its one neighbour becomes the new end."""
    graph = graph_of("abcd", *edges)

    graph.trim_first_node()
    graph.trim_last_node()

    assert "".join(graph.nodes) == left


def test_trimming_an_empty_graph_does_nothing() -> None:
    """There is no end to remove."""
    graph = Graph()

    graph.trim_first_node()
    graph.trim_last_node()

    assert not graph


def test_the_next_node_is_the_one_that_always_follows() -> None:
    """A fork, a choice and an end have no such node."""
    graph = graph_of("abcd", "ab", "bc", "bd", "c?d")

    assert [graph.next_node(graph.nodes[name]) for name in "abcd"] == [graph.nodes["b"], None, None, None]


def test_extending_prefixes_ids_and_returns_the_ends() -> None:
    """The other graph stays as it is."""
    graph, other = graph_of("a"), graph_of("xy", "x?y")

    ends = graph.extend(other, prefix="p")

    assert list(graph.nodes) == ["a", "p:x", "p:y"]
    assert graph.edges == [Edge("p:x", "p:y", None, True)]
    assert ends == (graph.nodes["p:x"], graph.nodes["p:y"])
    assert list(other.nodes) == ["x", "y"]


def test_random_ids_need_no_prefix() -> None:
    """They are unique as they are; a graph without ends returns none."""
    graph, other = Graph(), Graph()
    node = other.add_node(None)
    other.add_edge(node, node)

    assert graph.extend(other, prefix="p") == (None, None)
    assert list(graph.nodes) == [node.id]


def test_new_ids_are_names_with_numbers_where_names_are_equal() -> None:
    """So that a drawing of anonymous nodes can be read."""
    graph = Graph()
    first, second, other = graph.add_node(Model), graph.add_node(Model), graph.add_node(Other())
    named = graph.add_node(None, "named")
    graph.add_edge(first, second)

    assert list(graph.reid().nodes) == ["Model_1", "Model_2", "Other", "named"]
    assert graph.reid().edges == [Edge("Model_1", "Model_2")]
    assert graph.nodes[named.id] is named
    assert other.name == "Other"


class Model(BaseModel):
    n: int


class Other:
    def invoke(self, value: Any) -> Any: ...


def test_json_numbers_random_ids_and_tells_what_the_data_are() -> None:
    """Equal graphs give equal data although their ids differ."""
    graph = Graph()
    for data in (Model, Other(), 3):
        graph.add_node(data)
    graph.add_node(None, "end", metadata={"k": 1})

    assert graph.to_json()["nodes"] == [
        {"id": 0, "type": "schema", "data": "Model"},
        {"id": 1, "type": "runnable", "data": {"id": [*__name__.split("."), "Other"], "name": "Other"}},
        {"id": 2, "type": "unknown", "data": "int"},
        {"id": "end", "metadata": {"k": 1}},
    ]
    assert graph.to_json(with_schemas=True)["nodes"][0]["data"] == Model.model_json_schema()


def test_an_id_is_given_once_and_edges_need_nodes() -> None:
    """Both mistakes are named at once."""
    graph = graph_of("a")
    stranger = Node("z", "z")

    with pytest.raises(ValueError, match="'a' exists already"):
        graph.add_node(None, "a")
    with pytest.raises(ValueError, match="the target 'z' is not a node"):
        graph.add_edge(graph.nodes["a"], stranger)
    with pytest.raises(ValueError, match="the source 'z' is not a node"):
        graph.add_edge(stranger, graph.nodes["a"])


def test_nodes_and_edges_are_copied_under_other_names() -> None:
    """What is not named stays."""
    assert Node("a", "n", 1, {"k": 1}).copy(id="b") == Node("b", "n", 1, {"k": 1})
    assert Node("a", "n").copy(name="m") == Node("a", "m")
    assert Edge("a", "b", "l", True).copy(target="c") == Edge("a", "c", "l", True)
    assert Edge("a", "b").copy(source="c") == Edge("c", "b")


def test_removing_a_node_removes_its_edges() -> None:
    """No edge may lead nowhere."""
    graph = graph_of("abc", "ab", "bc", "ac")

    graph.remove_node(graph.nodes["b"])

    assert graph.edges == [Edge("a", "c")]
