"""A Command as the input of a run: on a fresh thread, on a finished one, on one that waits (spec 6.6)."""

from __future__ import annotations

import operator
from dataclasses import dataclass
from typing import Annotated, Any, TypedDict

import pytest
from colours import Colour

from tracegraph.checkpoint.memory import InMemorySaver
from tracegraph.errors import EmptyInputError, InvalidUpdateError, UnknownTargetError
from tracegraph.graph import END, START, StateGraph
from tracegraph.types import Command, Send, interrupt

THREAD = {"configurable": {"thread_id": "t"}}


class State(TypedDict, total=False):
    log: Annotated[list[Any], operator.add]
    topic: str


@dataclass
class Topic:
    """An update in the form of an annotated instance."""

    topic: str


def says(name: str) -> Any:
    """Return a node that logs its name and the topic it sees."""
    return lambda state: {"log": [name if "topic" not in state else f"{name}:{state['topic']}"]}


def two_nodes(**options: Any) -> Any:
    """Return a saved graph that runs ``a``; only a goto runs ``b``."""
    graph: StateGraph[Any, Any, Any, Any] = StateGraph(State)
    graph.add_node("a", says("a"))
    graph.add_node("b", says("b"))
    graph.add_edge(START, "a")
    return graph.compile(checkpointer=InMemorySaver(), **options)


def asking(*, asks: int = 1) -> Any:
    """Return a saved graph whose node asks so many questions, beside a node that only a goto runs."""
    graph: StateGraph[Any, Any, Any, Any] = StateGraph(State)
    graph.add_node("ask", lambda state: {"log": [interrupt(f"{number}?") for number in range(asks)]})
    graph.add_node("b", says("b"))
    graph.add_edge(START, "ask")
    return graph.compile(checkpointer=InMemorySaver())


def finished(colour: Colour, **options: Any) -> Any:
    """Return a graph of two nodes with a thread that has run to its end."""
    app = two_nodes(**options)
    colour.invoke(app, {"log": ["in"]}, THREAD)
    return app


@pytest.mark.parametrize(
    ("goto", "log"),
    [
        ("b", ["in", "a", "b"]),
        (("b",), ["in", "a", "b"]),
        (["a", "b"], ["in", "a", "a", "b"]),
        (Send("b", {"topic": "sent"}), ["in", "a", "b:sent"]),
        ([Send("b", {}), "a"], ["in", "a", "a", "b"]),
    ],
)
def test_a_goto_starts_a_finished_thread_again(colour: Colour, goto: Any, log: list[str]) -> None:
    """Only what the command names runs, on the state the thread ended with."""
    app = finished(colour)

    assert colour.invoke(app, Command(goto=goto), THREAD) == {"log": log}


def test_a_goto_to_the_end_runs_nothing(colour: Colour) -> None:
    """The end is no node: the state comes back as it was."""
    app = finished(colour)

    assert colour.invoke(app, Command(goto=END), THREAD) == {"log": ["in", "a"]}


@pytest.mark.parametrize("update", [{"topic": "x"}, [("topic", "x")], Topic("x")], ids=["dict", "pairs", "instance"])
def test_an_update_is_there_before_the_goto_runs(colour: Colour, update: Any) -> None:
    """In whatever form it is given, the node that runs next sees it."""
    app = finished(colour)

    assert colour.invoke(app, Command(update=update, goto="b"), THREAD) == {"log": ["in", "a", "b:x"], "topic": "x"}


def test_an_update_alone_changes_the_state_and_runs_nothing(colour: Colour) -> None:
    """It stays: a later read of the thread and a later run have it, once."""
    app = finished(colour)

    changed = colour.invoke(app, Command(update={"log": ["more"]}), THREAD)
    later = colour.invoke(app, Command(goto="b"), THREAD)

    assert changed == {"log": ["in", "a", "more"]}
    assert later == {"log": ["in", "a", "more", "b"]}
    assert app.get_state(THREAD).values == later


@pytest.mark.parametrize("goto", ["nowhere", Send("nowhere", {}), START])
def test_an_unknown_goto_fails_before_anything_is_written(colour: Colour, goto: Any) -> None:
    """The error lists the nodes there are, and the thread is as it was."""
    app = finished(colour)

    with pytest.raises(UnknownTargetError, match="the input addresses a node .*known: 'a', 'b'"):
        colour.invoke(app, Command(goto=goto), THREAD)

    assert colour.invoke(app, None, THREAD) == {"log": ["in", "a"]}


def test_a_goto_of_another_type_is_a_type_error(colour: Colour) -> None:
    """Nodes are addressed by name, or by a Send."""
    app = finished(colour)

    with pytest.raises(TypeError, match="goto takes node names and Sends, not an int"):
        colour.invoke(app, Command(goto=[3]), THREAD)


def test_a_command_for_the_parent_is_refused_by_a_root_run(colour: Colour) -> None:
    """There is no parent it could go to."""
    app = finished(colour)

    with pytest.raises(InvalidUpdateError, match="no parent"):
        colour.invoke(app, Command(graph=Command.PARENT, goto="b"), THREAD)


def test_a_command_with_nothing_in_it_goes_on(colour: Colour) -> None:
    """It is a bare resume: what was pending runs, and on a finished thread nothing is."""
    app = finished(colour)

    assert colour.invoke(app, Command(), THREAD) == {"log": ["in", "a"]}


def test_unknown_keys_of_an_update_are_ignored(colour: Colour) -> None:
    """Also the input channel itself, which no update may write."""
    app = finished(colour)

    given = Command(update={"colour": "red", START: "x", "topic": "x"}, goto="b")

    assert colour.invoke(app, given, THREAD) == {"log": ["in", "a", "b:x"], "topic": "x"}


def test_a_strict_graph_refuses_unknown_keys_of_an_update(colour: Colour) -> None:
    """The error names the key and the channels there are."""
    app = finished(colour, strict=True)

    with pytest.raises(UnknownTargetError, match="channel 'colour', which does not exist; known: .*'topic'"):
        colour.invoke(app, Command(update={"colour": "red"}), THREAD)


def test_a_command_on_a_fresh_thread_is_its_first_input(colour: Colour) -> None:
    """The start node applies the update, and the goto runs beside what follows from the start."""
    app = two_nodes()

    assert colour.invoke(app, Command(update={"topic": "x"}, goto="b"), THREAD) == {"log": ["a:x", "b:x"], "topic": "x"}


def test_what_was_pending_runs_together_with_a_goto(colour: Colour) -> None:
    """The thread waits for an answer: it gets it, and the goto's target runs in the same superstep."""
    app = asking()
    colour.invoke(app, {"log": ["in"]}, THREAD)

    done = colour.invoke(app, Command(resume="yes", goto="b", update={"topic": "x"}), THREAD)

    assert done == {"log": ["in", "yes", "b:x"], "topic": "x"}


def test_updates_of_several_resumes_are_applied_once_each(colour: Colour) -> None:
    """They are stored beside the checkpoint that waits, and taken up again whenever it is loaded."""
    app = asking(asks=2)
    colour.invoke(app, {"log": ["in"]}, THREAD)

    paused = colour.invoke(app, Command(update={"log": ["x"]}, resume="A"), THREAD)
    done = colour.invoke(app, Command(update={"log": ["y"]}, resume="B"), THREAD)

    assert paused["log"] == ["in", "x"]
    assert done == {"log": ["in", "x", "y", "A", "B"]}
    assert app.get_state(THREAD).values == done


def test_a_stored_update_outlives_a_run_that_fails(colour: Colour) -> None:
    """The node fails after the command was stored: a bare resume still has the update."""
    is_broken = True

    def fragile(state: State) -> State:
        if is_broken and "topic" in state:
            raise ValueError("later")
        return {"log": [state.get("topic", "none")]}

    graph: StateGraph[Any, Any, Any, Any] = StateGraph(State)
    graph.add_node("fragile", fragile)
    graph.add_edge(START, "fragile")
    app = graph.compile(checkpointer=InMemorySaver())
    colour.invoke(app, {"log": []}, THREAD)
    with pytest.raises(ValueError, match="later"):
        colour.invoke(app, Command(update={"topic": "x"}, goto="fragile"), THREAD)
    is_broken = False

    assert colour.invoke(app, None, THREAD) == {"log": ["none", "x"], "topic": "x"}


def test_new_input_drops_what_was_pending(colour: Colour) -> None:
    """The thread starts over at the start node with its state; the question of before is gone (A6)."""
    app = asking()
    colour.invoke(app, {"log": ["one"]}, THREAD)

    again = colour.invoke(app, {"log": ["two"]}, THREAD)
    done = colour.invoke(app, Command(resume="yes"), THREAD)

    assert again["log"] == ["one", "two"]
    assert len(again["__interrupt__"]) == 1
    assert done == {"log": ["one", "two", "yes"]}


def test_new_input_counts_the_triggers_of_dropped_tasks_as_seen(colour: Colour) -> None:
    """A node that a breakpoint held back does not run beside the new input, but when its turn comes again (A6)."""
    graph: StateGraph[Any, Any, Any, Any] = StateGraph(State)
    graph.add_sequence([("a", says("a")), ("b", says("b"))])
    graph.add_edge(START, "a")
    app = graph.compile(checkpointer=InMemorySaver(), interrupt_before=["b"])
    colour.invoke(app, {"log": ["one"]}, THREAD)

    again = colour.invoke(app, {"log": ["two"]}, THREAD)
    done = colour.invoke(app, None, THREAD)

    assert again == {"log": ["one", "a", "two", "a"]}
    assert done == {"log": ["one", "a", "two", "a", "b"]}


def test_no_input_on_an_empty_thread_is_an_error(colour: Colour) -> None:
    """There is nothing to go on with (A7)."""
    with pytest.raises(EmptyInputError, match="no run to resume"):
        colour.invoke(two_nodes(), None, THREAD)


def test_no_input_on_a_finished_thread_returns_its_state(colour: Colour) -> None:
    """Nothing runs and nothing is saved (A7)."""
    app = finished(colour)
    before = len(list(app.get_state_history(THREAD)))

    assert colour.invoke(app, None, THREAD) == {"log": ["in", "a"]}
    assert len(list(app.get_state_history(THREAD))) == before
