"""Pausing and resuming on the in-memory saver, through the public API in both colours."""

from __future__ import annotations

import operator
from typing import Annotated, Any, TypedDict

import pytest
from colours import Colour

from tracegraph.checkpoint.memory import InMemorySaver
from tracegraph.errors import TracegraphWarning, UnknownInterruptError
from tracegraph.graph import START, StateGraph
from tracegraph.types import Command, interrupt

THREAD = {"configurable": {"thread_id": "t"}}


class State(TypedDict, total=False):
    log: Annotated[list[Any], operator.add]


def graph_of(*, saver: Any = None, **nodes: Any) -> Any:
    """Return a graph that starts all *nodes* at once."""
    graph = StateGraph(State)
    for name, body in nodes.items():
        graph.add_node(name, body)
        graph.add_edge(START, name)
    return graph.compile(checkpointer=saver)


def two_questions(state: State) -> State:
    """Ask twice."""
    return {"log": [interrupt("first?"), interrupt("second?")]}


def test_answers_reach_their_questions_in_order(colour: Colour) -> None:
    """The node starts over at each resume and gets the answers so far; a bare resume answers nothing."""
    app = graph_of(saver=InMemorySaver(), ask=two_questions)

    first = colour.invoke(app, {"log": ["in"]}, THREAD)
    second = colour.invoke(app, Command(resume="A"), THREAD)
    still = colour.invoke(app, None, THREAD)
    done = colour.invoke(app, Command(resume="B"), THREAD)

    assert [i.value for i in first["__interrupt__"]] == ["first?"]
    assert [i.value for i in second["__interrupt__"]] == [i.value for i in still["__interrupt__"]] == ["second?"]
    assert done == {"log": ["in", "A", "B"]}


@pytest.mark.parametrize("answer", [0, "", False, []])
def test_a_falsy_answer_is_an_answer(colour: Colour, answer: Any) -> None:
    """Only None is none."""
    app = graph_of(saver=InMemorySaver(), ask=lambda state: {"log": [interrupt("?")]})
    colour.invoke(app, {"log": []}, THREAD)

    assert colour.invoke(app, Command(resume=answer), THREAD) == {"log": [answer]}


def test_finished_siblings_are_shown_and_not_run_again(colour: Colour) -> None:
    """Their output is in the paused result; on resume it is handed back, marked as such in the updates."""
    ran: list[str] = []

    def work(state: State) -> State:
        ran.append("work")
        return {"log": ["work"]}

    app = graph_of(saver=InMemorySaver(), ask=lambda state: {"log": [interrupt("?")]}, work=work)

    paused = colour.invoke(app, {"log": []}, THREAD)
    updates = colour.stream(app, Command(resume="yes"), THREAD, stream_mode="updates")

    assert paused["log"] == ["work"]
    assert updates == [{"work": {"log": ["work"]}, "__metadata__": {"cached": True}}, {"ask": {"log": ["yes"]}}]
    assert ran == ["work"]


def test_two_pending_questions_need_a_map(colour: Colour) -> None:
    """One plain answer is ambiguous; a map answers the one it names and leaves the other pending."""
    app = graph_of(saver=InMemorySaver(), a=lambda state: {"log": [interrupt("a?")]}, b=lambda state: {"log": [interrupt("b?")]})
    asked = {i.value: i.id for i in colour.invoke(app, {"log": []}, THREAD)["__interrupt__"]}

    with pytest.raises(UnknownInterruptError, match="ambiguous") as failure:
        colour.invoke(app, Command(resume="?"), THREAD)
    left = colour.invoke(app, Command(resume={asked["b?"]: "B"}), THREAD)
    done = colour.invoke(app, Command(resume={asked["a?"]: "A"}), THREAD)

    assert failure.value.reason == "ambiguous"
    assert [i.value for i in left["__interrupt__"]] == ["a?"]
    assert done == {"log": ["A", "B"]}


def test_an_answer_nobody_asked_for_is_an_error_and_the_thread_stays_resumable(colour: Colour) -> None:
    """A stale approval screen must not look as if it had worked."""
    app = graph_of(saver=InMemorySaver(), ask=lambda state: {"log": [interrupt("?")]})
    colour.invoke(app, {"log": []}, THREAD)

    with pytest.raises(UnknownInterruptError, match="nobody asks"):
        colour.invoke(app, Command(resume={"0" * 32: "stale"}), THREAD)

    assert colour.invoke(app, Command(resume="fresh"), THREAD) == {"log": ["fresh"]}


@pytest.mark.parametrize("form", ["node", "call"])
def test_a_question_of_a_child_graph_pauses_the_root(colour: Colour, form: str) -> None:
    """The child goes on where it was, whether it is a node or called in one; its finished nodes do not run again."""
    ran: list[str] = []

    def before(state: State) -> State:
        ran.append("before")
        return {"log": ["before"]}

    inner = StateGraph(State)
    inner.add_sequence([("before", before), ("ask", two_questions)])
    inner.add_edge(START, "before")
    child = inner.compile()

    def call(state: State) -> Any:
        return child.invoke({"log": []})

    async def acall(state: State) -> Any:
        return await child.ainvoke({"log": []})

    body = child if form == "node" else (call if colour.name == "sync" else acall)
    app = graph_of(saver=InMemorySaver(), child=body)

    first = colour.invoke(app, {"log": []}, THREAD)
    colour.invoke(app, Command(resume="A"), THREAD)
    done = colour.invoke(app, Command(resume="B"), THREAD)

    assert [i.value for i in first["__interrupt__"]] == ["first?"]
    assert done == {"log": ["before", "A", "B"]}
    assert ran == ["before"]


def test_a_swallowed_interrupt_pauses_all_the_same(colour: Colour) -> None:
    """A broad except must not turn a question into a missing answer; a warning names the node."""

    def careless(state: State) -> State:
        try:
            interrupt("?")
        except Exception:
            return {"log": ["swallowed"]}
        return {"log": ["answered"]}

    app = graph_of(saver=InMemorySaver(), careless=careless)

    with pytest.warns(TracegraphWarning, match="'careless' caught"):
        paused = colour.invoke(app, {"log": []}, THREAD)

    assert [i.value for i in paused["__interrupt__"]] == ["?"]
    assert colour.invoke(app, Command(resume=1), THREAD) == {"log": ["answered"]}


def test_without_a_checkpointer_a_pause_is_shown_but_not_resumable(colour: Colour) -> None:
    """One warning when it happens, a named error when somebody tries to resume."""
    app = graph_of(ask=lambda state: {"log": [interrupt("?")]})

    with pytest.warns(TracegraphWarning, match="cannot be resumed"):
        paused = colour.invoke(app, {"log": []})
    with pytest.raises(UnknownInterruptError, match="needs a checkpointer"):
        colour.invoke(app, Command(resume=1))

    assert [i.value for i in paused["__interrupt__"]] == ["?"]


def test_static_breakpoints_stop_before_and_after(colour: Colour) -> None:
    """Each stop is passed by a resume with None; new input starts over instead."""
    graph = StateGraph(State)
    graph.add_sequence([("x", lambda state: {"log": ["x"]}), ("y", lambda state: {"log": ["y"]})])
    graph.add_edge(START, "x")
    app = graph.compile(checkpointer=InMemorySaver(), interrupt_before=["x"], interrupt_after=["x"])

    stops = [colour.invoke(app, {"log": []}, THREAD), colour.invoke(app, None, THREAD), colour.invoke(app, None, THREAD)]

    assert stops == [{"log": []}, {"log": ["x"]}, {"log": ["x", "y"]}]
    assert app.get_state(THREAD).next == ()


def test_history_shows_every_superstep(colour: Colour) -> None:
    """Newest first, with what would run next and what the step's tasks did."""
    app = graph_of(saver=InMemorySaver(), a=lambda state: {"log": ["a"]})
    colour.invoke(app, {"log": ["in"]}, THREAD)

    history = list(app.get_state_history(THREAD))

    assert [(s.values, s.next, (s.metadata or {})["step"]) for s in history] == [
        ({"log": ["in", "a"]}, (), 1),
        ({"log": ["in"]}, ("a",), 0),
        ({"log": []}, ("__start__",), -1),
    ]
    assert history[1].tasks[0].result == {"log": ["a"]}


def test_a_checkpoint_can_be_resumed_again_with_another_answer(colour: Colour) -> None:
    """An explicit new answer outranks the stored one; other questions keep theirs."""
    app = graph_of(saver=InMemorySaver(), ask=two_questions)
    colour.invoke(app, {"log": []}, THREAD)
    paused = app.get_state(THREAD).config
    colour.invoke(app, Command(resume="A"), THREAD)
    first = colour.invoke(app, Command(resume="B"), THREAD)

    again = colour.invoke(app, Command(resume="C"), paused)

    assert (first["log"], again["log"]) == (["A", "B"], ["A", "C"])
