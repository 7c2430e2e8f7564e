"""Paused threads of LangGraph's older versions, in which questions were told apart by their order only."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import msgpack
import pytest
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph_databases import THREAD, Database
from moving_programs import PROGRAMS, Names
from xxhash import xxh3_128_hexdigest

from tracegraph.checkpoint.memory import InMemorySaver
from tracegraph.interop.langgraph import import_thread, open_source
from tracegraph.types import Command

THEIRS, OURS = Names("langgraph"), Names("tracegraph")


def flat(names: Names) -> Any:
    """A graph that asks twice."""

    def ask(state: Any) -> Any:
        return {"log": [f"{names.interrupt('first?')}, then {names.interrupt('second?')}"]}

    schema = PROGRAMS["loop"].build(names).state_schema
    return names.StateGraph(schema).add_node("ask", ask).add_edge(names.START, "ask")


def nested(names: Names) -> Any:
    """A graph whose subgraph asks twice."""
    inner = flat(names)
    return names.StateGraph(inner.state_schema).add_node("inner", inner.compile()).add_edge(names.START, "inner")


def make_older(path: Path, *, has_ids: bool) -> None:
    """Write the questions in the form they had before they could have a schema, or even an id."""
    with closing(sqlite3.connect(path)) as connection, connection:
        found = connection.execute("SELECT rowid, type, value FROM writes WHERE channel = '__interrupt__'").fetchall()
        assert found
        for row, kind, data in found:
            held = [
                {"value": question.value} | ({"id": question.id} if has_ids else {"when": "during"})
                for question in JsonPlusSerializer().loads_typed((kind, data))
            ]
            packed = [msgpack.ExtType(2, msgpack.packb(["langgraph.types", "Interrupt", fields])) for fields in held]
            connection.execute("UPDATE writes SET value = ? WHERE rowid = ?", (msgpack.packb(packed), row))


@pytest.mark.parametrize("build", [nested, flat])
def test_second_question_is_not_taken_for_the_first(source_path: Path, build: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The answer that was given stays that of the first question; here and where the subgraph is called."""
    monkeypatch.setattr("langgraph.types._interrupt_id", lambda ns, answered: xxh3_128_hexdigest(ns.encode()))
    with Database(str(source_path)).saver() as theirs:
        app = build(THEIRS).compile(checkpointer=theirs)
        app.invoke({"log": []}, THREAD)
        (second,) = app.invoke(THEIRS.Command(resume="one"), THREAD)["__interrupt__"]
    make_older(source_path, has_ids=True)
    target = InMemorySaver()
    with open_source(str(source_path)) as source:
        import_thread(source, "t1", target)
    app = build(OURS).compile(checkpointer=target)

    (question,) = app.get_state(THREAD).interrupts
    assert (question.value, question.id == second.id) == ("second?", False)
    assert app.invoke(Command(resume="two"), THREAD) == {"log": ["one, then two"]}


@pytest.mark.parametrize("build", [nested, flat])
def test_first_question_keeps_its_id(source_path: Path, build: Any) -> None:
    """It was always made in this way."""
    with Database(str(source_path)).saver() as theirs:
        (first,) = build(THEIRS).compile(checkpointer=theirs).invoke({"log": []}, THREAD)["__interrupt__"]
    make_older(source_path, has_ids=True)
    target = InMemorySaver()
    with open_source(str(source_path)) as source:
        import_thread(source, "t1", target)

    (question,) = build(OURS).compile(checkpointer=target).get_state(THREAD).interrupts
    assert question.id == first.id


def test_question_without_an_id_is_asked_once_more(source_path: Path) -> None:
    """Then it has one."""
    with Database(str(source_path)).saver() as theirs:
        flat(THEIRS).compile(checkpointer=theirs).invoke({"log": []}, THREAD)
    make_older(source_path, has_ids=False)
    target = InMemorySaver()
    with open_source(str(source_path)) as source:
        import_thread(source, "t1", target)
    app = flat(OURS).compile(checkpointer=target)

    answers = [app.invoke(Command(resume=answer), THREAD) for answer in ("lost", "one", "two")]

    assert [each["__interrupt__"][0].value for each in answers[:2]] == ["first?", "second?"]
    assert answers[2] == {"log": ["one, then two"]}
