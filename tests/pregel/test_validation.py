"""What an assembled graph is refused for."""

from __future__ import annotations

import operator
from datetime import timedelta
from typing import Annotated, Any, TypedDict

import pytest
from channel_graphs import channel_graph, doubling

from tracegraph.channels import LastValue
from tracegraph.errors import GraphDefinitionError
from tracegraph.graph import START, StateGraph
from tracegraph.pregel import NodeBuilder


class State(TypedDict, total=False):
    log: Annotated[list[str], operator.add]


def problems(nodes: dict[str, Any], **options: Any) -> tuple[str, ...]:
    """Return what a low-level graph is refused for."""
    with pytest.raises(GraphDefinitionError) as failure:
        channel_graph(nodes, **options)
    return failure.value.problems


def test_all_faults_are_reported_at_once() -> None:
    """A channel that does not exist, in three roles, beside a breakpoint that is none."""
    found = problems(
        {"double": doubling()}, output_channels=["x"], stream_channels="y", input_channels=["a", "z"], interrupt_before_nodes="w"
    )

    assert [text.partition(" does not")[0].partition(",")[0] for text in found] == [
        "input channel 'z'",
        "output channel 'x'",
        "stream channel 'y'",
        "interrupt_before names 'w'",
    ]


def test_reserved_names_are_refused() -> None:
    """Channels, managed values and nodes share them."""
    found = problems(
        {"double": doubling(), "__interrupt__": doubling()},
        channels={"a": LastValue(int), "b": LastValue(int), "__error__": LastValue(int)},
        managed={"checkpoint_id": object},
    )

    assert [text.split()[0] for text in found] == ["'__error__'", "'checkpoint_id'", "'__interrupt__'"]


def test_an_input_that_runs_nothing_is_refused() -> None:
    """No node subscribes to it."""
    (found,) = problems({"double": doubling()}, input_channels="c")

    assert "no node subscribes to the input channel ('c',)" in found


def test_unknown_channels_of_nodes_are_refused() -> None:
    """Those it reads and those that run it."""
    node = NodeBuilder().subscribe_to("a", "x").read_from("y")

    found = problems({"node": node})

    assert {text.split("channel ")[1] for text in found} == {"'x', which does not exist", "'y', which does not exist"}


def test_a_time_limit_needs_an_async_node() -> None:
    """A thread cannot be stopped."""
    (found,) = problems({"double": doubling().set_timeout(1)})

    assert "node 'double' has a timeout but is not async" in found


def test_an_error_handler_must_be_a_node() -> None:
    """Its name is looked up when a task fails, so it is checked when the graph is made."""
    node = doubling().build("double")
    node.error_handler = "rescue"

    assert problems({"double": node}) == ("node 'double' names error handler 'rescue', which is no node",)


def test_breakpoints_must_be_nodes() -> None:
    """Before or after; "*" stands for all."""
    found = problems({"double": doubling()}, interrupt_before_nodes=["x"], interrupt_after_nodes=["double", "y"])

    assert [text.split(";")[0] for text in found] == [
        "interrupt_before names 'x', which is no node",
        "interrupt_after names 'y', which is no node",
    ]


def test_what_this_release_does_not_do_is_refused() -> None:
    """Accepted and ignored it would look as if it worked."""
    found = problems({"double": doubling()}, cache=object())

    assert [text.split(" ")[0] for text in found] == ["cache="]


@pytest.mark.parametrize("limit", [0, -1.5, float("nan"), float("inf"), "1", True, timedelta(0)])
def test_a_step_timeout_is_a_positive_time(limit: Any) -> None:
    """Of whatever it is not, the text says what it was."""
    assert problems({"double": doubling()}, step_timeout=limit) == (
        f"step_timeout must be positive: a finite number of seconds or a timedelta, not {limit!r}",
    )


def test_a_step_timeout_that_is_set_later_is_checked_by_the_run() -> None:
    """It is an attribute, which anybody may set."""
    app = channel_graph({"double": doubling()})
    app.step_timeout = -1

    with pytest.raises(ValueError, match="step_timeout must be positive"):
        app.invoke(1)


def test_validation_can_be_put_off() -> None:
    """``auto_validate=False`` builds the graph; ``validate()`` tells later, and returns the graph if all is well."""
    unchecked = channel_graph({"double": doubling()}, output_channels="x", auto_validate=False)
    good = channel_graph({"double": doubling()}, auto_validate=False)

    with pytest.raises(GraphDefinitionError, match="output channel 'x' does not exist"):
        unchecked.validate()
    assert good.validate() is good


def test_breakpoints_read_back_as_they_are_meant() -> None:
    """A sorted list of names, or "*"."""
    graph: StateGraph[Any, Any, Any, Any] = StateGraph(State)
    for name in ("b", "a"):
        graph.add_node(name, lambda state: None)
        graph.add_edge(START, name)

    app = graph.compile(interrupt_before=["b", "a"], interrupt_after="*")

    assert (app.interrupt_before_nodes, app.interrupt_after_nodes) == (["a", "b"], "*")
