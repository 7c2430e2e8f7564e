"""How long questions wait for their answer: measured, on the resuming run's span and on its record, wherever they are kept."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from colours import ASYNC, SYNC, Colour
from foreign_saver import Foreign
from langgraph.checkpoint.memory import InMemorySaver as TheirSaver
from measured import Measured
from records import Records
from small_graphs import THREAD, State, chain, parallel, says

from tracegraph.callbacks.hub import Hub
from tracegraph.checkpoint.memory import InMemorySaver
from tracegraph.checkpoint.postgres import PostgresSaver
from tracegraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from tracegraph.checkpoint.sqlite import SqliteSaver
from tracegraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from tracegraph.constants import ASKED
from tracegraph.graph import START, StateGraph
from tracegraph.types import Command, interrupt

WAIT, WAITED = "tracegraph.interrupt.wait", "tracegraph.resumed_from.waited"
HOUR_NS = 3_600_000_000_000


@pytest.fixture(params=[SYNC, ASYNC], ids=lambda colour: colour.name)
def colour(request: pytest.FixtureRequest) -> Colour:
    chosen: Colour = request.param
    return chosen


@pytest.fixture(params=["memory", "bytes", "sqlite", "postgres"])
def saver(request: pytest.FixtureRequest, colour: Colour, tmp_path: Path) -> Iterator[Any]:
    if request.param == "postgres":
        with PostgresSaver.from_conn_string(request.getfixturevalue("postgres_url")) as server:
            yield server
        return
    if request.param != "sqlite":
        yield InMemorySaver(serde=JsonPlusSerializer() if request.param == "bytes" else None)
        return
    connection = sqlite3.connect(tmp_path / "threads.db", check_same_thread=False)
    yield (AsyncSqliteSaver if colour is ASYNC else SqliteSaver)(connection)
    connection.close()


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(Hub, "now_ns", lambda _: made.now_ns)
    return made


class Clock:
    """The wall clock of all runs, which stands still unless it is told to go on."""

    def __init__(self) -> None:
        self.now_ns = 1_700_000_000_000_000_000

    def let_pass(self, hours: float) -> None:
        self.now_ns += int(hours * HOUR_NS)


def asks(*questions: str) -> Any:
    def body(_: State) -> State:
        return {"xs": [interrupt(question) for question in questions]}

    return body


def hours(point: Any) -> float:
    return float(point.sum / 3600)


def answer(colour: Colour, app: Any, given: Any) -> Any:
    return colour.invoke(app, Command(resume=given), THREAD)


def test_wait_is_on_all_three_signals(
    measured: Measured, spans: Any, records: Records, colour: Colour, saver: Any, clock: Clock
) -> None:
    """From the asking to the resume that answers, in seconds, for the graph and node that asked."""
    app = chain({"checkpointer": saver, "name": "triage"}, sure=asks("sure?"))
    colour.invoke(app, {}, THREAD)
    assert not measured.of(WAIT)
    spans.clear()
    records.clear()
    clock.let_pass(2)
    answer(colour, app, "yes")

    point = measured.one(WAIT)
    assert (point.unit, point.count, hours(point)) == ("s", 1, 2.0)
    assert point.attributes == {
        "gen_ai.workflow.name": "triage",
        "gen_ai.step.name": "sure",
        "tracegraph.interrupt.reason": "human_input",
    }
    (exemplar,) = point.exemplars
    root = spans.one("invoke_workflow triage")
    assert exemplar.span_id == root.context.span_id
    assert root.attributes[WAITED] == (7200.0,)
    assert records.one("run.resumed").attributes[WAITED] == (7200.0,)


def test_several_questions_answered_at_once_each_have_their_own_wait(
    measured: Measured, spans: Any, colour: Colour, saver: Any, clock: Clock
) -> None:
    """The second one is asked when the first is answered; answers to both come with one resume later on."""
    app = parallel({"checkpointer": saver}, a=asks("a1", "a2"), b=asks("b1"))
    questions = {q.value: q.id for q in colour.invoke(app, {}, THREAD)["__interrupt__"]}
    clock.let_pass(1)
    left = answer(colour, app, {questions["a1"]: 1})["__interrupt__"]
    spans.clear()
    clock.let_pass(3)
    ids = {q.value: q.id for q in left}
    answer(colour, app, {ids["a2"]: 2, ids["b1"]: 3})

    a, b = (measured.one(WAIT, gen_ai_step_name=node) for node in "ab")
    assert (a.count, hours(a)) == (2, 1 + 3)
    assert (b.count, hours(b)) == (1, 4.0)  # though its node asked once more in between
    assert spans.one("invoke_workflow").attributes[WAITED] == (3 * 3600.0, 4 * 3600.0)


def nested(saver: Any, inner_saver: Any = None) -> Any:
    inner = chain({"name": "inner", "checkpointer": inner_saver}, ask=asks("sure?"))
    builder: Any = StateGraph(State)
    return builder.add_node("outer", inner).add_edge(START, "outer").compile(checkpointer=saver, name="whole")


@pytest.mark.parametrize("inner_saver", [None, False], ids=["stored inside too", "stored outside alone"])
def test_question_of_a_graph_inside_counts_once_and_where_it_was_asked(
    measured: Measured, spans: Any, colour: Colour, saver: Any, clock: Clock, inner_saver: Any
) -> None:
    """As in the count of questions: the innermost node, though each run around it resumes as well."""
    app = nested(saver, inner_saver)
    colour.invoke(app, {}, THREAD)
    spans.clear()
    clock.let_pass(1)
    answer(colour, app, "yes")

    point, asked = measured.one(WAIT), measured.one("tracegraph.interrupts")
    assert (point.count, hours(point)) == (1, 1.0)
    assert point.attributes == asked.attributes
    assert spans.one("invoke_workflow whole").attributes[WAITED] == (3600.0,)


def test_clock_that_was_set_back_makes_no_negative_wait(measured: Measured, colour: Colour, saver: Any, clock: Clock) -> None:
    """The run that resumes may be on another machine."""
    app = chain({"checkpointer": saver}, sure=asks("sure?"))
    colour.invoke(app, {}, THREAD)
    clock.let_pass(-1)
    answer(colour, app, "yes")

    assert (measured.one(WAIT).count, measured.one(WAIT).sum) == (1, 0)


@pytest.mark.parametrize("left", [None, "soon", {"x": 1}], ids=["nothing", "a text", "another form"])
def test_question_without_a_time_is_answered_as_ever(
    measured: Measured, spans: Any, records: Records, colour: Colour, left: Any
) -> None:
    """An older version stored none, and another program may store anything: the wait is absent, not 0."""
    saver = InMemorySaver()
    app = chain({"checkpointer": saver}, sure=asks("sure?"))
    (question,) = colour.invoke(app, {}, THREAD)["__interrupt__"]
    for slots in saver.writes.values():
        for slot, (task_id, channel, _, path) in list(slots.items()):
            if channel == ASKED:
                del slots[slot]
                if left is not None:
                    stored = {question.id: left["x"]} if isinstance(left, dict) else left
                    slots[slot] = (task_id, channel, stored, path)
    spans.clear()
    assert answer(colour, app, "yes")["xs"] == ["yes"]

    assert not measured.of(WAIT)
    assert WAITED not in spans.one("invoke_workflow").attributes
    assert WAITED not in records.one("run.resumed").attributes


def three(_: State) -> Any:
    xs = interrupt("a?")
    return [Command(update={"xs": [xs]}), Command(update={"xs": ["two"]}), Command(update={"xs": ["three"]})]


@pytest.mark.parametrize("make", [Foreign, TheirSaver])
def test_savers_of_another_make_lose_no_result_of_an_answered_task(
    spans: Any, measured: Measured, colour: Colour, make: Any
) -> None:
    """They may file what we store beside a pause where a task's results go next, and keep the first of the two."""
    app = parallel({"checkpointer": make()}, a=three, b=asks("b?"))
    questions = {q.value: q.id for q in colour.invoke(app, {}, THREAD)["__interrupt__"]}
    answer(colour, app, {questions["a?"]: "one"})
    done = answer(colour, app, {questions["b?"]: "b"})

    assert sorted(done["xs"]) == ["b", "one", "three", "two"]
    assert not measured.of(WAIT)


def test_question_asked_anew_in_a_branch_waits_anew(measured: Measured, colour: Colour, saver: Any, clock: Clock) -> None:
    """Going back to before it was asked asks another question, which has waited only since then."""
    app = chain({"checkpointer": saver}, start=says("s"), sure=asks("sure?"))
    colour.invoke(app, {}, THREAD)

    def paused() -> Any:
        return next(s for s in app.get_state_history(THREAD) if s.next == ("start",))

    clock.let_pass(5)
    colour.invoke(app, None, paused().config)
    clock.let_pass(1)
    answer(colour, app, "yes")

    assert hours(measured.one(WAIT)) == 1.0
