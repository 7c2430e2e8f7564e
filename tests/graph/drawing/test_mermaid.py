"""The Mermaid text, character by character."""

from __future__ import annotations

from textwrap import dedent
from typing import Any, Literal, TypedDict

import pytest

from tracegraph.drawing import CurveStyle, Graph, NodeStyles
from tracegraph.graph import END, START, StateGraph
from tracegraph.types import Command


class State(TypedDict):
    x: int


def never(state: State) -> Any:
    raise AssertionError("a drawing runs nothing")


def path(state: State) -> str:
    raise AssertionError("a drawing runs nothing")


def built(*nodes: str) -> StateGraph[Any, Any, Any, Any]:
    builder = StateGraph(State)
    for name in nodes:
        builder.add_node(name, never)
    return builder


def text_of(builder: StateGraph[Any, Any, Any, Any]) -> str:
    return builder.compile().get_graph().draw_mermaid()


def whole(body: str) -> str:
    """Return a full drawing: head, the given lines (one tab each), style definitions."""
    lines = "".join(f"\t{line}\n" for line in dedent(body).strip().splitlines())
    return (
        "---\nconfig:\n  flowchart:\n    curve: linear\n---\ngraph TD;\n"
        + lines
        + "\tclassDef default fill:#f2f0ff,line-height:1.2\n\tclassDef first fill-opacity:0\n\tclassDef last fill:#bfb6fc\n"
    )


def test_a_line_of_two_nodes() -> None:
    """D1: plain edges, and the virtual nodes in their own shapes."""
    builder = built("a", "b").add_edge(START, "a").add_edge("a", "b").add_edge("b", END)

    assert text_of(builder) == whole("""
        __start__([<p>__start__</p>]):::first
        a(a)
        b(b)
        __end__([<p>__end__</p>]):::last
        __start__ --> a;
        a --> b;
        b --> __end__;
    """)


def test_a_loop_with_a_router_leads_back_and_out() -> None:
    """D1: both choices are dotted; the loop of one node stands after the other edges."""
    builder = built("work").add_edge(START, "work").add_conditional_edges("work", path, ["work", END])

    assert text_of(builder) == whole("""
        __start__([<p>__start__</p>]):::first
        work(work)
        __end__([<p>__end__</p>]):::last
        __start__ --> work;
        work -.-> __end__;
        work -.-> work;
    """)


def test_a_map_s_keys_are_labels_unless_they_equal_the_target() -> None:
    """D1: `again` says more than the target's name, `stop` does not."""
    builder = built("ask", "stop").add_edge(START, "ask")
    builder.add_conditional_edges("ask", path, {"again": "ask", "stop": "stop", "fine": END})

    assert text_of(builder) == whole("""
        __start__([<p>__start__</p>]):::first
        ask(ask)
        stop(stop)
        __end__([<p>__end__</p>]):::last
        __start__ --> ask;
        ask -. &nbsp;fine&nbsp; .-> __end__;
        ask -.-> stop;
        stop --> __end__;
        ask -. &nbsp;again&nbsp; .-> ask;
    """)


def test_command_destinations_are_dotted() -> None:
    """D1: a return annotation and `destinations=` both declare where a node may go."""

    def decide(state: State) -> Command[Literal["b", "__end__"]]:
        raise AssertionError

    builder = StateGraph(State).add_node("a", decide).add_node("b", never, destinations={"a": "redo"}).add_edge(START, "a")

    assert text_of(builder) == whole("""
        __start__([<p>__start__</p>]):::first
        a(a)
        b(b)
        __end__([<p>__end__</p>]):::last
        __start__ --> a;
        a -.-> __end__;
        a -.-> b;
        b -. &nbsp;redo&nbsp; .-> a;
    """)


def test_a_join_is_drawn_as_plain_edges() -> None:
    """D1: one from each of its starts."""
    builder = built("a", "b", "c").add_edge(START, "a").add_edge(START, "b").add_edge(["a", "b"], "c")

    assert text_of(builder) == whole("""
        __start__([<p>__start__</p>]):::first
        a(a)
        b(b)
        c(c)
        __end__([<p>__end__</p>]):::last
        __start__ --> a;
        __start__ --> b;
        a --> c;
        b --> c;
        c --> __end__;
    """)


def test_a_conditional_start() -> None:
    """D1: the start's own router; each chosen node ends the run."""
    builder = built("a", "b").add_conditional_edges(START, path, {"left": "a", "b": "b"})

    assert text_of(builder) == whole("""
        __start__([<p>__start__</p>]):::first
        a(a)
        b(b)
        __end__([<p>__end__</p>]):::last
        __start__ -. &nbsp;left&nbsp; .-> a;
        __start__ -.-> b;
        a --> __end__;
        b --> __end__;
    """)


def test_a_router_without_a_map_draws_nothing_of_its_own() -> None:
    """D5: it may go anywhere, so the node looks like a last one."""
    builder = built("a", "b").add_edge(START, "a").add_edge("a", "b").add_conditional_edges("b", path)

    assert text_of(builder).count("-.->") == 0
    assert "\tb --> __end__;\n" in text_of(builder)


def test_without_styles_only_the_edges_are_left() -> None:
    """D2: no head, no nodes, no style definitions."""
    builder = built("a").add_edge(START, "a")

    assert builder.compile().get_graph().draw_mermaid(with_styles=False) == ("graph TD;\n\t__start__ --> a;\n\ta --> __end__;\n")


def test_curve_colours_and_head_can_be_chosen() -> None:
    """D2: what is given is merged over the default head; keys are sorted, values quoted where YAML needs it."""
    graph = Graph()
    graph.add_node(None, "a")
    head = {"title": "T: x", "config": {"theme": "neutral", "flowchart": {"wrap": True, "pads": [1, "no"]}}}

    text = graph.draw_mermaid(
        curve_style=CurveStyle.BUMP_X,
        node_colors=NodeStyles(default="fill:#fff", first="a:b", last="c:d"),
        frontmatter_config=head,
    )

    assert text == dedent("""\
        ---
        config:
          flowchart:
            curve: bumpX
            pads:
            - 1
            - 'no'
            wrap: true
          theme: neutral
        title: 'T: x'
        ---
        graph TD;
        \ta([a]):::last
        \tclassDef default fill:#fff
        \tclassDef first a:b
        \tclassDef last c:d
    """)


def test_a_given_curve_wins_over_the_default() -> None:
    """D2: the head the caller gives has the last word."""
    graph = Graph()
    graph.add_node(None, "a")

    text = graph.draw_mermaid(frontmatter_config={"config": {"flowchart": {"curve": "basis"}}})

    assert "    curve: basis\n" in text


def test_langchain_s_own_style_objects_are_taken() -> None:
    """Whoever moves over passes those; the names and values are the same."""
    from langchain_core.runnables.graph import CurveStyle as TheirCurve
    from langchain_core.runnables.graph import NodeStyles as TheirStyles

    graph = Graph()
    graph.add_node(None, "a")
    theirs = graph.draw_mermaid(curve_style=TheirCurve.STEP, node_colors=TheirStyles(first="x"))  # type: ignore[arg-type]

    assert theirs == graph.draw_mermaid(curve_style=CurveStyle.STEP, node_colors=NodeStyles(first="x"))


def nested() -> Any:
    """t1 holds m1 and m2, and m1 holds s1 and s2."""
    inner = built("s1", "s2").add_edge(START, "s1").add_edge("s1", "s2").compile()
    middle = StateGraph(State).add_node("m1", inner).add_node("m2", never).add_edge(START, "m1").add_edge("m1", "m2").compile()
    return StateGraph(State).add_node("t1", middle).add_node("t2", never).add_edge(START, "t1").add_edge("t1", "t2").compile()


def test_xray_one_opens_direct_children() -> None:
    """D3: edges into a child go to its first node, edges out of it leave its last one."""
    assert nested().get_graph(xray=1).draw_mermaid() == whole("""
        __start__([<p>__start__</p>]):::first
        t2(t2)
        __end__([<p>__end__</p>]):::last
        __start__ --> t1\\3am1;
        t1\\3am2 --> t2;
        t2 --> __end__;
        subgraph t1
        t1\\3am1(m1)
        t1\\3am2(m2)
        t1\\3am1 --> t1\\3am2;
        end
    """)


@pytest.mark.parametrize("levels", [True, 2, 3])
def test_xray_true_opens_all_levels(levels: int | bool) -> None:
    """D3: a grandchild's block stands inside its parent's."""
    assert nested().get_graph(xray=levels).draw_mermaid() == whole("""
        __start__([<p>__start__</p>]):::first
        t2(t2)
        __end__([<p>__end__</p>]):::last
        __start__ --> t1\\3am1\\3as1;
        t1\\3am2 --> t2;
        t2 --> __end__;
        subgraph t1
        t1\\3am2(m2)
        t1\\3am1\\3as2 --> t1\\3am2;
        subgraph m1
        t1\\3am1\\3as1(s1)
        t1\\3am1\\3as2(s2)
        t1\\3am1\\3as1 --> t1\\3am1\\3as2;
        end
        end
    """)


def test_a_child_that_holds_only_a_child_keeps_its_block() -> None:
    """Nodes two levels down are drawn even if the block between has nothing else (LangGraph loses them)."""
    inner = built("s1", "s2").add_edge(START, "s1").add_edge("s1", "s2").compile()
    middle = StateGraph(State).add_node("m", inner).add_edge(START, "m").compile()
    outer = StateGraph(State).add_node("t", middle).add_edge(START, "t").compile()

    assert outer.get_graph(xray=True).draw_mermaid() == whole("""
        __start__([<p>__start__</p>]):::first
        __end__([<p>__end__</p>]):::last
        __start__ --> t\\3am\\3as1;
        t\\3am\\3as2 --> __end__;
        subgraph t
        subgraph m
        t\\3am\\3as1(s1)
        t\\3am\\3as2(s2)
        t\\3am\\3as1 --> t\\3am\\3as2;
        end
        end
    """)


def test_two_subgraphs_of_one_name_are_refused() -> None:
    """Mermaid would draw them as one, so the error names it and the way out."""
    child = built("s1", "s2").add_edge(START, "s1").add_edge("s1", "s2").compile()
    middle = (
        StateGraph(State).add_node("same", child).add_node("z", never).add_edge(START, "same").add_edge("same", "z").compile()
    )
    outer = StateGraph(State).add_node("a", middle).add_node("b", middle).add_edge(START, "a").add_edge("a", "b").compile()

    with pytest.raises(ValueError, match="two subgraphs are called 'same'.*xray=1"):
        outer.get_graph(xray=True).draw_mermaid()


def test_metadata_stand_below_the_name() -> None:
    """D4: the user's, `defer`, and static interrupts."""
    builder = StateGraph(State)
    builder.add_node("a", never, metadata={"owner": "ops <team>", "sizes": [1, 2], "deep": {"no": "line"}}, defer=True)
    builder.add_node("b", never).add_node("c", never)
    builder.add_edge(START, "a").add_edge("a", "b").add_edge("b", "c")
    compiled = builder.compile(interrupt_before=["a", "b"], interrupt_after=["a", "c"])

    drawing = compiled.get_graph()

    assert [drawing.nodes[name].metadata for name in "bc"] == [{"__interrupt": "before"}, {"__interrupt": "after"}]
    assert (
        "\ta(a<hr/><small><em>owner = ops #60;team#62;\nsizes = 1, 2\ndefer = True\n__interrupt = before,after</em></small>)\n"
    ) in drawing.draw_mermaid()


def test_an_interrupt_everywhere_marks_no_single_node() -> None:
    """D4: `"*"` is no news of a node."""
    compiled = built("a").add_edge(START, "a").compile(interrupt_before="*")

    assert compiled.get_graph().nodes["a"].metadata is None


def test_ids_are_escaped_and_special_labels_wrapped() -> None:
    """D6: an id has only letters, digits, `_` and `-`; a label that looks like Markdown is made a paragraph."""
    graph = Graph()
    names = ["a b", "d.e", "ü", "_c_", "*x*", "`y`", "_", "m(n)", "p:q-1"]
    for name in names:
        graph.add_node(None, name)

    lines = graph.draw_mermaid().splitlines()

    assert [line.strip() for line in lines if line.startswith("\t") and "classDef" not in line] == [
        "a\\20b(a b)",
        "d\\2ee(d.e)",
        "\\fc(ü)",
        "_c_(<p>_c_</p>)",
        "\\2ax\\2a(<p>*x*</p>)",
        "\\60y\\60(<p>`y`</p>)",
        "_(<p>_</p>)",
        "m\\28n\\29(m(n))",
        "subgraph p",
        "p\\3aq-1(q-1)",
        "end",
    ]


def test_long_labels_are_broken_into_lines() -> None:
    """D6: nine words a line unless told otherwise; a label that is short enough stays as it is."""
    graph = Graph()
    a, b, c = (graph.add_node(None, name) for name in "abc")
    graph.add_edge(a, b, "one two three four five six seven eight nine ten", conditional=True)
    graph.add_edge(b, c, "x  y")

    assert "\ta -. &nbsp;one two three four five six seven eight nine&nbsp<br>&nbspten&nbsp; .-> b;\n" in graph.draw_mermaid()
    assert "\tb -- &nbsp;x  y&nbsp; --> c;\n" in graph.draw_mermaid()
    assert "\tb -- &nbsp;x&nbsp<br>&nbspy&nbsp; --> c;\n" in graph.draw_mermaid(wrap_label_n_words=1)


def test_json_names_what_a_node_runs() -> None:
    """D7: ids as they are, the end without data, an edge's label and kind only where it has them."""
    builder = built("a").add_edge(START, "a").add_conditional_edges("a", path, {"more": "a", "done": END})

    assert builder.compile().get_graph().to_json() == {
        "nodes": [
            {
                "id": "__start__",
                "type": "runnable",
                "data": {"id": ["tracegraph", "engine", "node", "Node"], "name": "__start__"},
            },
            {"id": "a", "type": "runnable", "data": {"id": ["tracegraph", "drivers", "body", "Body"], "name": "a"}},
            {"id": "__end__"},
        ],
        "edges": [
            {"source": "__start__", "target": "a"},
            {"source": "a", "target": "__end__", "data": "done", "conditional": True},
            {"source": "a", "target": "a", "data": "more", "conditional": True},
        ],
    }
