"""A graph that lives on between calls remembers what its parent's branch did, not what other branches did."""

from __future__ import annotations

from typing import Any

import pytest
from colours import Colour
from nested import THREAD, Recorder, State, at, before, history, state
from updates import update

from tracegraph.checkpoint.memory import InMemorySaver
from tracegraph.graph import START, StateGraph
from tracegraph.types import Command, interrupt


def counting(state: State) -> Any:
    """Log how much it remembers."""
    return {"log": [len(state["log"])]}


def app_with_memory(*, asks: bool = False, durability: str | None = None) -> Any:
    """Return a saved graph whose second node remembers; the first one may ask."""
    child: StateGraph[Any, Any, Any, Any] = StateGraph(State)
    child.add_node("count", counting)
    child.add_edge(START, "count")
    memory = child.compile(checkpointer=True)
    graph: StateGraph[Any, Any, Any, Any] = StateGraph(State)
    graph.add_node("x", lambda state: {"log": [interrupt("?")]} if asks else {"log": []})
    graph.add_node("memory", memory, input_schema=State)
    graph.add_edge(START, "x")
    graph.add_edge("x", "memory")
    return graph.compile(checkpointer=InMemorySaver())


def remembered(colour: Colour, app: Any) -> list[Any]:
    """Return what the child knows of itself: the counts it logged."""
    return [word for word in state(colour, app, at("memory")).values["log"] if isinstance(word, int)]


def first(colour: Colour, app: Any, node: str) -> Any:
    """Return the oldest checkpoint's config from which *node* is next."""
    return [found for found in history(colour, app) if found.next == (node,)][-1].config


def talked(colour: Colour, *, asks: bool = False) -> Any:
    """Return a graph after two runs, and what its child came to in the first of them."""
    app = app_with_memory(asks=asks)
    for word in ("one", "two"):
        colour.invoke(app, {"log": [word]}, THREAD)
        if asks:
            colour.invoke(app, Command(resume=f"{word}!"), THREAD)
    return app


def alone(colour: Colour, given: Any, *answers: Any, asks: bool = False) -> list[Any]:
    """Return what the child comes to in a thread of one run."""
    app = app_with_memory(asks=asks)
    colour.invoke(app, given, THREAD)
    for answer in answers:
        colour.invoke(app, Command(resume=answer), THREAD)
    return remembered(colour, app)


@pytest.mark.parametrize("durability", ["sync", "exit"])
def test_new_input_at_an_old_checkpoint(colour: Colour, durability: Any) -> None:
    """The child has never been called on this branch."""
    app = talked(colour)
    colour.invoke(app, {"log": ["three"]}, first(colour, app, "x"), durability=durability)

    assert remembered(colour, app) == alone(colour, {"log": ["one", "three"]})


def test_an_update_of_an_old_checkpoint_that_is_gone_on_from(colour: Colour) -> None:
    """The thread itself is gone on from, and its newest checkpoint tells what lies beside it."""
    app = talked(colour)
    update(colour, app, {"log": ["changed"]}, "x", config=first(colour, app, "x"))
    colour.invoke(app, None, THREAD)

    assert remembered(colour, app) == alone(colour, {"log": ["one", "changed"]})


def test_a_replay_that_pauses_before_the_child_is_called(colour: Colour) -> None:
    """The run that goes on later knows from the branch where it began."""
    app = talked(colour, asks=True)
    colour.invoke(app, None, first(colour, app, "x"))
    colour.invoke(app, Command(resume="other"), THREAD)

    assert remembered(colour, app) == alone(colour, {"log": ["one"]}, "other", asks=True)


def test_an_old_question_answered_again(colour: Colour) -> None:
    """What followed from the first answer is on another branch."""
    app = talked(colour, asks=True)
    colour.invoke(app, Command(resume="other"), first(colour, app, "x"))

    assert remembered(colour, app) == alone(colour, {"log": ["one"]}, "other", asks=True)


def test_a_branch_of_a_branch(colour: Colour) -> None:
    """Each branch remembers its own line, however often the thread goes back."""
    app = talked(colour)
    expected = remembered(colour, app)
    for _ in range(3):
        colour.invoke(app, None, before(colour, app, "x"))
        assert remembered(colour, app) == expected
    colour.invoke(app, {"log": ["three"]}, THREAD)
    assert len(remembered(colour, app)) > len(expected)


def test_runs_after_a_branch_go_on_from_it(colour: Colour) -> None:
    """The child remembers the branch from then on."""
    app, straight = talked(colour), app_with_memory()
    colour.invoke(app, None, first(colour, app, "x"))
    colour.invoke(straight, {"log": ["one"]}, THREAD)
    for each in (app, straight):
        colour.invoke(each, {"log": ["three"]}, THREAD)

    assert remembered(colour, app) == remembered(colour, straight)


def test_a_sibling_that_had_finished_beside_an_old_question_keeps_what_it_did(colour: Colour) -> None:
    """Answered again, the superstep goes on: its finished memory is of this branch too, and is added to later."""
    child: StateGraph[Any, Any, Any, Any] = StateGraph(State)
    child.add_node("count", counting)
    child.add_edge(START, "count")
    graph: StateGraph[Any, Any, Any, Any] = StateGraph(State)
    graph.add_node("ask", lambda state: {"log": [interrupt("?")]})
    graph.add_node("memory", child.compile(checkpointer=True))
    graph.add_edge(START, "ask")
    graph.add_edge(START, "memory")
    graph.add_conditional_edges("ask", lambda state: "memory" if state["log"][0] == "go" else "__end__", ["memory", "__end__"])
    app = graph.compile(checkpointer=InMemorySaver())
    colour.invoke(app, {"log": ["go"]}, THREAD)
    paused = state(colour, app).config
    colour.invoke(app, Command(resume="a"), THREAD)
    once = remembered(colour, app)

    colour.invoke(app, Command(resume="b"), paused)

    assert len(once) > 1
    assert remembered(colour, app) == once


def test_what_lies_beside_a_branch_does_not_show(colour: Colour) -> None:
    """It is bookkeeping of the saver's records; the metadata of a snapshot are what they were."""
    app = talked(colour)
    colour.invoke(app, None, first(colour, app, "x"))

    assert {key for found in history(colour, app) for key in found.metadata} == {"source", "step", "parents"}


def test_going_on_at_the_head_by_its_id_leaves_nothing_beside(colour: Colour) -> None:
    """A client that always names the checkpoint it saw makes no branches, so nothing piles up."""
    app = talked(colour)
    for _ in range(3):
        colour.invoke(app, {"log": ["more"]}, state(colour, app).config)

    assert "__detours__" not in app.checkpointer.get_tuple(THREAD).metadata


def test_children_inside_a_child_remember_alike(colour: Colour) -> None:
    """What the root left behind is passed over at every depth."""
    made = Recorder()
    inner: StateGraph[Any, Any, Any, Any] = StateGraph(State)
    inner.add_node("count", counting)
    inner.add_edge(START, "count")
    middle: StateGraph[Any, Any, Any, Any] = StateGraph(State)
    middle.add_sequence([("m", made.says("m")), ("inner", inner.compile(checkpointer=True))])
    middle.add_edge(START, "m")
    graph: StateGraph[Any, Any, Any, Any] = StateGraph(State)
    graph.add_sequence([("x", made.says("x")), ("middle", middle.compile())])
    graph.add_edge(START, "x")
    app = graph.compile(checkpointer=InMemorySaver())
    colour.invoke(app, {"log": ["one"]}, THREAD)
    once = state(colour, app, at("middle|inner")).values
    colour.invoke(app, {"log": ["two"]}, THREAD)

    colour.invoke(app, None, first(colour, app, "x"))

    assert state(colour, app, at("middle|inner")).values == once
