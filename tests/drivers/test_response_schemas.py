"""``interrupt(..., response_schema=...)``: an answer that does not fit is refused before anything takes it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypedDict

import pytest
from both import Library
from colours import Colour
from nested import THREAD, Recorder, State, around, state
from pydantic import BaseModel, ValidationError

from tracegraph.checkpoint.memory import InMemorySaver
from tracegraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from tracegraph.checkpoint.sqlite import SqliteSaver
from tracegraph.errors import InvalidAnswerError, InvalidInputError
from tracegraph.func import task
from tracegraph.graph import START, StateGraph
from tracegraph.types import Command, RetryPolicy, interrupt


class Approval(BaseModel):
    ok: bool
    amount: int = 3


@dataclass
class Verdict:
    ok: bool


class Form(TypedDict):
    ok: bool


GOOD, BAD = {"ok": True}, {"ok": "perhaps"}


def asking(schema: Any, **options: Any) -> Any:
    """Return a saved graph that asks for an answer of that form."""
    graph: StateGraph[Any, Any, Any, Any] = StateGraph(State)
    graph.add_node("ask", lambda state: {"log": [interrupt("sure?", response_schema=schema)]}, **options)
    graph.add_edge(START, "ask")
    return graph.compile(checkpointer=InMemorySaver(serde=JsonPlusSerializer()))


@pytest.mark.parametrize(
    ("schema", "made"), [(Approval, Approval(ok=True)), (Verdict, Verdict(ok=True)), (Form, GOOD), (bool, True)]
)
def test_the_node_gets_what_the_schema_makes_of_an_answer(colour: Colour, schema: Any, made: Any) -> None:
    """Models and dataclasses come as instances, and whoever is asked sees a JSON schema."""
    app = asking(schema)
    (question,) = colour.invoke(app, {"log": []}, THREAD)["__interrupt__"]

    assert question.response_schema["type"] == ("boolean" if schema is bool else "object")
    assert state(colour, app).interrupts[0].response_schema == question.response_schema
    assert colour.invoke(app, Command(resume=True if schema is bool else GOOD), THREAD)["log"] == [made]


@pytest.mark.parametrize("schema", [Approval, Verdict, Form, bool])
def test_an_answer_that_does_not_fit_is_refused_and_the_question_stays(colour: Colour, schema: Any) -> None:
    """Nothing of it is stored: going on without an answer asks again, and one that fits is taken."""
    app = asking(schema)
    (question,) = colour.invoke(app, {"log": []}, THREAD)["__interrupt__"]

    with pytest.raises(InvalidAnswerError, match="stays open") as refused:
        colour.invoke(app, Command(resume=BAD), THREAD)

    assert (refused.value.node, refused.value.interrupt_id, refused.value.answer) == ("ask", question.id, BAD)
    assert isinstance(refused.value.__cause__, ValidationError)
    assert [each.id for each in state(colour, app).interrupts] == [question.id]
    saved = app.checkpointer.get_tuple(THREAD)
    assert not [value for _, channel, value in saved.pending_writes if channel == "__resume__"]
    assert [i.id for i in colour.invoke(app, None, THREAD)["__interrupt__"]] == [question.id]
    assert colour.invoke(app, Command(resume={question.id: GOOD if schema is not bool else True}), THREAD)["log"]


def test_a_json_schema_is_shown_and_not_enforced(colour: Colour) -> None:
    """A dict tells whoever answers what is wanted; it is theirs to keep to it."""
    schema = {"type": "object", "properties": {"ok": {"type": "boolean"}}}
    app = asking(schema)

    assert colour.invoke(app, {"log": []}, THREAD)["__interrupt__"][0].response_schema == schema
    assert colour.invoke(app, Command(resume=BAD), THREAD)["log"] == [BAD]


def test_what_is_no_schema_is_the_nodes_error(colour: Colour) -> None:
    """It is said when the question is asked, not when it is answered."""
    with pytest.raises(InvalidInputError, match="node 'ask' asks with response_schema='nonsense'"):
        colour.invoke(asking("nonsense"), {"log": []}, THREAD)


def test_a_refusal_is_neither_retried_nor_handled(colour: Colour) -> None:
    """It is the caller's mistake: another attempt would refuse it too, and an error handler is for the node's own."""
    made = Recorder()
    graph: StateGraph[Any, Any, Any, Any] = StateGraph(State)

    def ask(state: State) -> Any:
        made.ran.append("ask")
        return {"log": [interrupt("sure?", response_schema=Approval)]}

    def handle(state: State) -> Any:
        made.ran.append("handle")
        return {"log": ["handled"]}

    policy = RetryPolicy(initial_interval=0.0, jitter=False, retry_on=Exception)
    graph.add_node("ask", ask, retry_policy=policy, error_handler=handle)
    graph.add_edge(START, "ask")
    app = graph.compile(checkpointer=InMemorySaver())
    colour.invoke(app, {"log": []}, THREAD)
    made.take()

    with pytest.raises(InvalidAnswerError):
        colour.invoke(app, Command(resume=BAD), THREAD)

    assert made.take() == ["ask"]
    assert colour.invoke(app, Command(resume=GOOD), THREAD)["log"] == [Approval(ok=True)]


def test_a_refusal_cannot_be_swallowed(colour: Colour) -> None:
    """A node that catches it has no answer all the same."""
    graph: StateGraph[Any, Any, Any, Any] = StateGraph(State)

    def ask(state: State) -> Any:
        try:
            return {"log": [interrupt("sure?", response_schema=Approval)]}
        except ValueError:
            return {"log": ["made up"]}

    graph.add_node("ask", ask)
    graph.add_edge(START, "ask")
    app = graph.compile(checkpointer=InMemorySaver())
    colour.invoke(app, {"log": []}, THREAD)

    with pytest.raises(InvalidAnswerError):
        colour.invoke(app, Command(resume=BAD), THREAD)
    assert [i.value for i in state(colour, app).interrupts] == ["sure?"]


def test_siblings_of_a_refusal_finish(colour: Colour) -> None:
    """Their questions are answered and their results kept, whichever of them comes first."""
    graph: StateGraph[Any, Any, Any, Any] = StateGraph(State)
    for name in "abc":
        graph.add_node(name, lambda state, name=name: {"log": [(name, interrupt(name, response_schema=Approval).ok)]})
        graph.add_edge(START, name)
    app = graph.compile(checkpointer=InMemorySaver())
    ids = {i.value: i.id for i in colour.invoke(app, {"log": []}, THREAD)["__interrupt__"]}

    with pytest.raises(InvalidAnswerError):
        colour.invoke(app, Command(resume={ids["a"]: BAD, ids["b"]: GOOD, ids["c"]: GOOD}), THREAD)

    assert [i.value for i in state(colour, app).interrupts] == ["a"]
    assert colour.invoke(app, Command(resume=GOOD), THREAD)["log"] == [("a", True), ("b", True), ("c", True)]


def test_a_refusal_keeps_the_answers_before_it(colour: Colour) -> None:
    """Of two questions of one node the second is asked again, the first is not."""
    graph: StateGraph[Any, Any, Any, Any] = StateGraph(State)
    graph.add_node("ask", lambda state: {"log": [interrupt(q, response_schema=Approval).amount for q in ("p", "q")]})
    graph.add_edge(START, "ask")
    app = graph.compile(checkpointer=InMemorySaver())
    colour.invoke(app, {"log": []}, THREAD)
    colour.invoke(app, Command(resume={"ok": True, "amount": 1}), THREAD)

    with pytest.raises(InvalidAnswerError):
        colour.invoke(app, Command(resume=BAD), THREAD)

    assert [i.value for i in colour.invoke(app, None, THREAD)["__interrupt__"]] == ["q"]
    assert colour.invoke(app, Command(resume={"ok": True, "amount": 2}), THREAD)["log"] == [1, 2]


@pytest.mark.parametrize("saver", [None, False, True], ids=["parent's saver", "no saver", "own state"])
@pytest.mark.parametrize("is_called", [False, True], ids=["as a node", "by node code"])
def test_a_refusal_inside_a_subgraph_leaves_its_question(colour: Colour, saver: Any, is_called: bool) -> None:
    """It comes out of the root run, and the thread is resumed as ever."""
    inner: StateGraph[Any, Any, Any, Any] = StateGraph(State)
    inner.add_node("ask", lambda state: {"log": [interrupt("sure?", response_schema=Approval).amount]})
    inner.add_edge(START, "ask")
    sub = inner.compile(checkpointer=saver)
    lib = Library("tracegraph", colour)
    app = around(sub=lib.calls(sub) if is_called else sub)
    (question,) = colour.invoke(app, {"log": []}, THREAD)["__interrupt__"]

    with pytest.raises(InvalidAnswerError):
        colour.invoke(app, Command(resume=BAD), THREAD)

    assert [i.id for i in state(colour, app).interrupts] == [question.id]
    assert "3" in str(colour.invoke(app, Command(resume=GOOD), THREAD)["log"])


def test_an_answer_that_was_taken_survives_a_failure_after_it(colour: Colour) -> None:
    """It is stored when the node takes it; what the node does next may fail."""
    failures = [True]

    def ask(state: State) -> Any:
        answer = interrupt("sure?", response_schema=Approval)
        if failures.pop() if failures else False:
            raise OSError("disk")
        return {"log": [answer.amount]}

    graph: StateGraph[Any, Any, Any, Any] = StateGraph(State)
    graph.add_node("ask", ask)
    graph.add_edge(START, "ask")
    app = graph.compile(checkpointer=InMemorySaver())
    colour.invoke(app, {"log": []}, THREAD)
    with pytest.raises(OSError, match="disk"):
        colour.invoke(app, Command(resume=GOOD), THREAD)

    assert colour.invoke(app, None, THREAD)["log"] == [3]


def test_an_answer_that_was_not_taken_is_not_stored(colour: Colour) -> None:
    """The node failed before it came to its question, so nobody knows whether the answer fits."""
    failures = [False, True]

    def ask(state: State) -> Any:
        if failures.pop(0) if failures else False:
            raise OSError("disk")
        return {"log": [interrupt("sure?", response_schema=Approval).amount]}

    graph: StateGraph[Any, Any, Any, Any] = StateGraph(State)
    graph.add_node("ask", ask)
    graph.add_edge(START, "ask")
    app = graph.compile(checkpointer=InMemorySaver())
    colour.invoke(app, {"log": []}, THREAD)
    with pytest.raises(OSError, match="disk"):
        colour.invoke(app, Command(resume=GOOD), THREAD)

    assert [i.value for i in colour.invoke(app, None, THREAD)["__interrupt__"]] == ["sure?"]


def test_a_schema_survives_a_database(tmp_path: Any) -> None:
    """Another process finds the question with the form of its answer."""
    graph: StateGraph[Any, Any, Any, Any] = StateGraph(State)
    graph.add_node("ask", lambda state: {"log": [interrupt("sure?", response_schema=Approval).amount]})
    graph.add_edge(START, "ask")
    with SqliteSaver.from_conn_string(tmp_path / "db") as saver:
        graph.compile(checkpointer=saver).invoke({"log": []}, THREAD, durability="sync")
    with SqliteSaver.from_conn_string(tmp_path / "db") as saver:
        app = graph.compile(checkpointer=saver)
        assert app.get_state(THREAD).interrupts[0].response_schema["required"] == ["ok"]
        with pytest.raises(InvalidAnswerError):
            app.invoke(Command(resume=BAD), THREAD, durability="sync")
        assert app.invoke(Command(resume=GOOD), THREAD)["log"] == [3]


def test_a_refusal_in_a_called_task_leaves_its_question(colour: Colour) -> None:
    """What a task asks that node code calls is checked before it is stored as well."""

    @task
    def ask() -> Any:
        return interrupt("sure?", response_schema=Approval).amount

    @task
    async def ask_async() -> Any:
        return interrupt("sure?", response_schema=Approval).amount

    def node(state: State) -> Any:
        return {"log": [ask().result()]}

    async def anode(state: State) -> Any:
        return {"log": [await ask_async()]}

    app = around(n=node if colour.name == "sync" else anode)
    colour.invoke(app, {"log": []}, THREAD)

    with pytest.raises(InvalidAnswerError):
        colour.invoke(app, Command(resume=BAD), THREAD)

    assert [i.value for i in colour.invoke(app, None, THREAD)["__interrupt__"]] == ["sure?"]
    assert colour.invoke(app, Command(resume=GOOD), THREAD)["log"] == [3]
