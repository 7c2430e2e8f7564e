"""Mode ``tools``: calls of tools by the model's id of them (spec 8.10)."""

from __future__ import annotations

from typing import Any

import pytest
from colours import Colour
from langchain_core.tools import tool
from small_graphs import THREAD, State, chain, saving

from tracegraph.config import RunnableConfig
from tracegraph.types import Command, interrupt


def tools(colour: Colour, app: Any, given: Any = None, **options: Any) -> list[Any]:
    return colour.stream(app, {"n": 0} if given is None else given, THREAD, stream_mode="tools", **options)


@tool
def add(a: int) -> int:
    """Add one."""
    return a + 1


@tool
def fail(a: int) -> int:
    """Fail."""
    raise ValueError("nope")


@tool
def ask(what: str) -> str:
    """Ask a person."""
    return str(interrupt(what))


def call_of(name: str, **args: Any) -> Any:
    return {"name": name, "args": args, "id": f"call-{name}", "type": "tool_call"}


def test_a_call_is_shown_by_the_model_s_id_of_it(colour: Colour) -> None:
    """Start with its arguments, then its output."""

    def node(state: State) -> None:
        add.invoke(call_of("add", a=1))

    start, end = tools(colour, chain(a=node))

    assert start == {"event": "tool-started", "tool_call_id": "call-add", "tool_name": "add", "input": {"a": 1}}
    assert (end["event"], end["tool_call_id"], end["output"].content) == ("tool-finished", "call-add", "2")


def test_a_call_without_an_id_has_one_of_its_own(colour: Colour) -> None:
    """The same at its start and end."""

    def node(state: State, config: RunnableConfig) -> None:
        add.invoke({"a": 1}, config)

    start, end = tools(colour, chain(a=node))

    assert len(start["tool_call_id"]) == 36
    assert end == {"event": "tool-finished", "tool_call_id": start["tool_call_id"], "output": 2}


def test_a_failed_call_says_why(colour: Colour) -> None:
    """As text."""

    def node(state: State) -> None:
        with pytest.raises(ValueError, match="nope"):
            fail.invoke(call_of("fail", a=1))

    assert tools(colour, chain(a=node))[1] == {"event": "tool-error", "tool_call_id": "call-fail", "message": "nope"}


def test_a_call_that_pauses_has_no_end(colour: Colour) -> None:
    """It runs again on resume, and is shown then."""
    app = chain(saving(), a=lambda state: {"xs": [ask.invoke(call_of("ask", what="?")).content]})

    paused, resumed = tools(colour, app), tools(colour, app, Command(resume="yes"))

    assert [part["event"] for part in paused] == ["tool-started"]
    assert [part["event"] for part in resumed] == ["tool-started", "tool-finished"]


def test_nostream_hides_a_call(colour: Colour) -> None:
    """Start and end."""

    def node(state: State, config: RunnableConfig) -> None:
        add.with_config(tags=["nostream"]).invoke({"a": 1}, config)

    assert tools(colour, chain(a=node)) == []


def test_a_tool_of_ours_reports_through_the_config_s_manager(colour: Colour) -> None:
    """As text where it has no arguments by name."""

    def node(state: State, config: RunnableConfig) -> None:
        run = config["callbacks"].on_tool_start({"name": "ours"}, "raw", inputs={"q": 1}, tool_call_id="c1")
        run.on_tool_end("done")
        config["callbacks"].on_tool_start({"name": "ours"}, "raw", tool_call_id="c2").on_tool_error(KeyError("k"))

    assert tools(colour, chain(a=node)) == [
        {"event": "tool-started", "tool_call_id": "c1", "tool_name": "ours", "input": {"q": 1}},
        {"event": "tool-finished", "tool_call_id": "c1", "output": "done"},
        {"event": "tool-started", "tool_call_id": "c2", "tool_name": "ours"},
        {"event": "tool-error", "tool_call_id": "c2", "message": "'k'"},
    ]


def test_calls_in_a_graph_inside_are_shown_with_subgraphs(colour: Colour) -> None:
    """Under its namespace."""
    app = chain(outer=chain(inner=lambda state: add.invoke(call_of("add", a=1)) and None))

    deep = tools(colour, app, subgraphs=True)

    assert tools(colour, app) == []
    assert [(len(ns), part["event"]) for ns, part in deep] == [(1, "tool-started"), (1, "tool-finished")]
