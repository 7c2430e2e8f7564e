"""An answer is for one question, told by its id, and an id says where the question stands and nothing else."""

from __future__ import annotations

import asyncio
from itertools import permutations
from typing import Any

import pytest
from colours import ASYNC, Colour
from nested import THREAD, Recorder, State, around, beside, calling, state
from updates import update

from tracegraph.checkpoint.memory import InMemorySaver
from tracegraph.engine.identity import hash_text
from tracegraph.errors import TracegraphWarning, UnknownInterruptError
from tracegraph.func import task
from tracegraph.graph import START, StateGraph
from tracegraph.types import Command, interrupt


def asking(*questions: Any) -> Any:
    """Return a saved graph whose one node asks in turn."""
    return around(ask=lambda state: {"log": [interrupt(question) for question in questions]})


def test_going_on_without_an_answer_asks_again(colour: Colour) -> None:
    """The answer to the first question is not taken for the second one's (case C10)."""
    app = asking("p", "q", "r")
    colour.invoke(app, {"log": []}, THREAD)
    colour.invoke(app, Command(resume="P"), THREAD)

    for _ in range(2):
        assert [i.value for i in colour.invoke(app, None, THREAD)["__interrupt__"]] == ["q"]
    colour.invoke(app, Command(resume="Q"), THREAD)
    assert colour.invoke(app, Command(resume="R"), THREAD)["log"] == ["P", "Q", "R"]


def test_an_answer_is_not_kept_for_a_question_to_come(colour: Colour) -> None:
    """At a breakpoint nobody asks, so the answer only passes the breakpoint; LangGraph keeps it for whoever asks next."""
    graph: StateGraph[Any, Any, Any, Any] = StateGraph(State)
    graph.add_sequence([("x", Recorder().says("x")), ("ask", lambda state: {"log": [interrupt("?")]})])
    graph.add_edge(START, "x")
    app = graph.compile(checkpointer=InMemorySaver(), interrupt_before=["ask"])
    colour.invoke(app, {"log": []}, THREAD)

    assert [i.value for i in colour.invoke(app, Command(resume="early"), THREAD)["__interrupt__"]] == ["?"]
    assert colour.invoke(app, Command(resume="late"), THREAD)["log"] == ["x", "late"]


def test_an_answer_given_twice_is_refused_the_second_time(colour: Colour) -> None:
    """The id of a question that was answered is no longer pending (case C09), and the thread stays as it was."""
    app = asking("p", "q")
    (first,) = colour.invoke(app, {"log": []}, THREAD)["__interrupt__"]
    colour.invoke(app, Command(resume={first.id: "P"}), THREAD)

    with pytest.raises(UnknownInterruptError, match=first.id) as refused:
        colour.invoke(app, Command(resume={first.id: "P again"}), THREAD)

    (second,) = state(colour, app).interrupts
    assert (refused.value.reason, refused.value.interrupt_ids, refused.value.pending_ids) == (
        "not_pending",
        (first.id,),
        (second.id,),
    )
    assert colour.invoke(app, Command(resume={second.id: "Q"}), THREAD)["log"] == ["P", "Q"]


def test_one_unknown_id_spoils_the_whole_map(colour: Colour) -> None:
    """Nothing is written: the known question stays open as well."""
    app = beside(a=lambda state: {"log": [interrupt("a")]}, b=lambda state: {"log": [interrupt("b")]})
    ids = {i.value: i.id for i in colour.invoke(app, {"log": []}, THREAD)["__interrupt__"]}

    with pytest.raises(UnknownInterruptError, match="0" * 32):
        colour.invoke(app, Command(resume={ids["a"]: 1, "0" * 32: 2}), THREAD)

    assert {i.id for i in state(colour, app).interrupts} == set(ids.values())
    assert colour.invoke(app, Command(resume={ids["a"]: 1, ids["b"]: 2}), THREAD)["log"] == [1, 2]


def test_ids_say_where_a_question_stands(colour: Colour) -> None:
    """A hash of the asking task's namespace, and of the number of answers it has: in subgraphs the full path counts."""
    ask: Any = lambda state: {"log": [interrupt("p"), interrupt("q")]}  # noqa: E731  # one node for two places
    inner: StateGraph[Any, Any, Any, Any] = StateGraph(State)
    inner.add_node("ask", ask)
    inner.add_edge(START, "ask")
    app = around(sub=inner.compile())
    (first,) = colour.invoke(app, {"log": []}, THREAD)["__interrupt__"]
    (second,) = colour.invoke(app, Command(resume=1), THREAD)["__interrupt__"]
    (outer,) = state(colour, app, subgraphs=True).tasks
    ns = f"sub:{outer.id}|ask:{outer.state.tasks[0].id}"

    assert (first.id, second.id) == (hash_text(ns), hash_text(f"{ns}|1"))


@pytest.mark.parametrize("order", list(permutations("abc")))
def test_ids_and_answers_do_not_depend_on_who_asks_first(order: tuple[str, ...]) -> None:
    """Tasks of one superstep ask in any order; each gets the answer to its own question."""

    async def run(turns: tuple[str, ...], app: Any, given: Any) -> Any:
        turn = {name: asyncio.Event() for name in turns}
        turn[turns[0]].set()
        app.turn, app.following = turn, dict(zip(turns, turns[1:], strict=False))
        return await app.ainvoke(given, THREAD)

    def build() -> Any:
        graph: StateGraph[Any, Any, Any, Any] = StateGraph(State)
        for name in "abc":

            async def ask(state: State, name: str = name) -> Any:
                await app.turn[name].wait()
                if name in app.following:
                    app.turn[app.following[name]].set()
                return {"log": [(name, interrupt(name))]}

            graph.add_node(name, ask)
            graph.add_edge(START, name)
        app = graph.compile(checkpointer=InMemorySaver())
        return app

    app = build()
    paused = asyncio.run(run(order, app, {"log": []}))
    ids = {i.value: i.id for i in paused["__interrupt__"]}
    tasks = {task.name: task.id for task in app.get_state(THREAD).tasks}
    assert ids == {name: hash_text(f"{name}:{tasks[name]}") for name in "abc"}

    answers = {ids[name]: name.upper() for name in "abc"}
    done = asyncio.run(run(tuple(reversed(order)), app, Command(resume=answers)))

    assert done["log"] == [("a", "A"), ("b", "B"), ("c", "C")]


def test_of_questions_asked_at_once_in_one_node_the_first_is_the_one_answered() -> None:
    """Whoever answers sees the question that the answer will reach, also where others came up before the node stopped."""

    async def node(state: State) -> Any:
        async def ask(word: str) -> Any:
            return word, interrupt(word)

        found = await asyncio.gather(ask("p"), ask("q"), return_exceptions=True)
        if any(isinstance(each, BaseException) for each in found):
            raise next(each for each in found if isinstance(each, BaseException))
        return {"log": list(found)}

    app = around(n=node)
    first = ASYNC.invoke(app, {"log": []}, THREAD)
    assert [i.value for i in first["__interrupt__"]] == ["p"]
    second = ASYNC.invoke(app, Command(resume="P"), THREAD)
    assert [i.value for i in second["__interrupt__"]] == ["q"]
    assert ASYNC.invoke(app, Command(resume="Q"), THREAD)["log"] == [("p", "P"), ("q", "Q")]


def test_a_question_that_was_swallowed_is_the_one_answered(colour: Colour) -> None:
    """Code that catches the pause and asks something else does not redirect the answer."""

    def node(state: State) -> Any:
        try:
            first = interrupt("p")
        except Exception:  # noqa: BLE001  # what this is about
            first = None
        return {"log": [first, interrupt("q")]}

    app = around(n=node)
    assert [i.value for i in colour.invoke(app, {"log": []}, THREAD)["__interrupt__"]] == ["p"]
    assert [i.value for i in colour.invoke(app, Command(resume=1), THREAD)["__interrupt__"]] == ["q"]
    assert colour.invoke(app, Command(resume=2), THREAD)["log"] == [1, 2]


def test_a_swallowed_question_of_a_child_and_one_of_its_own_are_both_shown(colour: Colour) -> None:
    """They have ids of their own, so both can be answered at once."""
    made = Recorder()
    child = made.chain(("ask?",))
    call = calling(colour, child)

    def node(state: State) -> Any:
        try:
            word = call(state)["log"][0]
        except Exception:  # noqa: BLE001  # what this is about
            word = None
        return {"log": [word, interrupt("own?")]}

    async def anode(state: State) -> Any:
        try:
            word = (await call(state))["log"][0]
        except Exception:  # noqa: BLE001  # what this is about
            word = None
        return {"log": [word, interrupt("own?")]}

    app = around(n=node if colour.name == "sync" else anode)
    ids = {i.value: i.id for i in colour.invoke(app, {"log": []}, THREAD)["__interrupt__"]}
    assert set(ids) == {"ask?", "own?"}
    assert colour.invoke(app, Command(resume={ids["ask?"]: 1, ids["own?"]: 2}), THREAD)["log"] == [1, 2]


def test_a_branch_asks_under_other_ids(colour: Colour) -> None:
    """A replay and an update give the task another id, so an answer to the old question is refused there."""
    app = asking("p")
    (old,) = colour.invoke(app, {"log": []}, THREAD)["__interrupt__"]
    (again,) = colour.invoke(app, None, THREAD)["__interrupt__"]
    (replayed,) = colour.invoke(app, None, state(colour, app).config)["__interrupt__"]
    update(colour, app, {"log": ["u"]}, START)
    (updated,) = colour.invoke(app, None, THREAD)["__interrupt__"]

    assert again.id == old.id
    assert len({old.id, replayed.id, updated.id}) == 3
    with pytest.raises(UnknownInterruptError):
        colour.invoke(app, Command(resume={old.id: 1}), THREAD)
    assert colour.invoke(app, Command(resume={updated.id: 1}), THREAD)["log"] == ["u", 1]


def test_without_a_checkpointer_there_is_no_resuming(colour: Colour) -> None:
    """The pause is shown with a warning; an answer is a named error (D24)."""
    graph: StateGraph[Any, Any, Any, Any] = StateGraph(State)
    graph.add_node("ask", lambda state: {"log": [interrupt("?")]})
    graph.add_edge(START, "ask")
    app = graph.compile()

    with pytest.warns(TracegraphWarning, match="cannot be resumed"):
        assert [i.value for i in colour.invoke(app, {"log": []})["__interrupt__"]] == ["?"]
    with pytest.raises(UnknownInterruptError, match="needs a checkpointer"):
        colour.invoke(app, Command(resume=1))


@pytest.mark.parametrize("form", ["plain", "by id", "at the config"])
def test_a_question_is_answered_after_the_state_was_changed(colour: Colour, form: str) -> None:
    """Who sees a question, changes the state and answers, has answered that question; its id is the one that was seen."""
    made = Recorder()
    app = around(a=made.says("a"), ask=made.asks("ask"), b=made.says("b"))
    (question,) = colour.invoke(app, {"log": []}, THREAD)["__interrupt__"]
    made.take()
    changed = update(colour, app, {"log": ["changed"]}, "a")

    answer = Command(resume={question.id: 1} if form == "by id" else 1)
    done = colour.invoke(app, answer, changed if form == "at the config" else THREAD)

    assert done["log"] == ["a", "changed", 1, "b"]
    assert made.take() == ["ask", "b"]


@pytest.mark.parametrize("form", ["plain", "by id", "at the config"])
def test_a_question_in_a_subgraph_is_answered_after_the_state_was_changed(colour: Colour, form: str) -> None:
    """The subgraph goes on from the update, and the answer reaches the node that asked."""
    made = Recorder()
    app = around(sub=made.chain(("a", "ask?", "b")), z=made.says("z"))
    (question,) = colour.invoke(app, {"log": []}, THREAD)["__interrupt__"]
    made.take()
    changed = update(colour, app, {"log": ["changed"]}, "a", config=state(colour, app).tasks[0].state)

    answer = Command(resume={question.id: 1} if form == "by id" else 1)
    done = colour.invoke(app, answer, changed if form == "at the config" else THREAD)

    assert done["log"] == ["a", "changed", 1, "b", "z"]
    assert made.take() == ["ask", "b", "z"]


def test_an_update_that_answers_for_one_leaves_the_other_question(colour: Colour) -> None:
    """Only questions that are asked again after the update can be answered; a plain answer is theirs if it is one."""
    made = Recorder()
    app = beside(a=made.asks("p"), b=made.asks("q"))
    ids = {i.value: i.id for i in colour.invoke(app, {"log": []}, THREAD)["__interrupt__"]}
    update(colour, app, {"log": ["said"]}, START)
    again = {i.value: i.id for i in colour.invoke(app, None, THREAD)["__interrupt__"]}
    assert set(again) == {"p?", "q?"} and set(again.values()).isdisjoint(ids.values())
    update(colour, app, {"log": ["more"]}, START)

    with pytest.raises(UnknownInterruptError, match="ambiguous"):
        colour.invoke(app, Command(resume=1), THREAD)
    paused = colour.invoke(app, Command(resume={again["q?"]: 2}), THREAD)

    assert [i.value for i in paused["__interrupt__"]] == ["p?"]
    assert colour.invoke(app, Command(resume=1), THREAD)["log"] == ["said", "more", 1, 2]


def test_answers_before_the_one_given_count_after_a_change_too(colour: Colour) -> None:
    """Of a node that asks twice, the second question is answered; the first answer stays."""
    app = asking("p", "q")
    colour.invoke(app, {"log": []}, THREAD)
    colour.invoke(app, Command(resume="P"), THREAD)
    update(colour, app, {"log": ["changed"]}, START)

    assert colour.invoke(app, Command(resume="Q"), THREAD)["log"] == ["changed", "P", "Q"]


def test_an_answer_to_what_an_update_passed_by_is_no_answer(colour: Colour) -> None:
    """The node that asked does not run any more, so its question cannot be answered by id; a plain answer goes on."""
    made = Recorder()
    app = around(ask=made.asks("ask"), b=made.says("b"))
    (question,) = colour.invoke(app, {"log": []}, THREAD)["__interrupt__"]
    update(colour, app, {"log": ["said"]}, "ask")

    with pytest.raises(UnknownInterruptError, match=question.id):
        colour.invoke(app, Command(resume={question.id: 1}), THREAD)
    assert colour.invoke(app, Command(resume=1), THREAD)["log"] == ["said", "b"]


def test_an_answer_carried_over_a_change_is_for_one_superstep(colour: Colour) -> None:
    """A node that calls the same asking task in a loop asks again in its next round."""

    @task
    def ask() -> Any:
        return interrupt("?")

    @task
    async def ask_async() -> Any:
        return interrupt("?")

    def node(state: State) -> Any:
        return {"log": [ask().result()]}

    async def anode(state: State) -> Any:
        return {"log": [await ask_async()]}

    graph: StateGraph[Any, Any, Any, Any] = StateGraph(State)
    graph.add_node("n", node if colour.name == "sync" else anode)
    graph.add_edge(START, "n")
    graph.add_conditional_edges("n", lambda state: "n" if len(state["log"]) < 3 else "__end__")
    app = graph.compile(checkpointer=InMemorySaver())
    colour.invoke(app, {"log": []}, THREAD)
    update(colour, app, {"log": ["changed"]}, START)

    paused = colour.invoke(app, Command(resume=1), THREAD)

    assert (paused["log"], [i.value for i in paused["__interrupt__"]]) == (["changed", 1], ["?"])
    assert colour.invoke(app, Command(resume=2), THREAD)["log"] == ["changed", 1, 2]
