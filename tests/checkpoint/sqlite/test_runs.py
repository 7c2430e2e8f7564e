"""Graphs on the savers: in both colours, over several saver objects, and through long histories."""

from __future__ import annotations

import operator
from collections import OrderedDict, deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, TypedDict
from zoneinfo import ZoneInfo

import pytest

from tracegraph.checkpoint.base import empty_checkpoint
from tracegraph.checkpoint.base.id import uuid6
from tracegraph.checkpoint.sql import statements
from tracegraph.checkpoint.sql.rows import short
from tracegraph.checkpoint.sql.statements import Statements
from tracegraph.checkpoint.sqlite import SqliteSaver
from tracegraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from tracegraph.checkpoint.sqlite.dialect import SqliteDialect
from tracegraph.graph import START, StateGraph
from tracegraph.types import Command, interrupt

THREAD: dict[str, Any] = {"configurable": {"thread_id": "1"}}


class State(TypedDict):
    log: Annotated[list[str], operator.add]
    values: dict[str, Any]


VALUES = {
    "set": {(1, 2), frozenset({3})},
    "when": datetime(2026, 11, 1, 1, 30, fold=1, tzinfo=ZoneInfo("America/New_York")),
    "ordered": OrderedDict(b=1, a=(2,)),
    "last": deque([1, 2], maxlen=2),
    "money": Decimal("1.10"),
    "big": 2**80,
    "text": "\0 é \ud800",
}


def ask(_state: State) -> Any:
    return {"log": [f"answer: {interrupt('sure?')}"]}


def builder() -> Any:
    graph = StateGraph(State).add_node("make", lambda _state: {"log": ["made"], "values": VALUES}).add_node("ask", ask)
    return graph.add_edge(START, "make").add_edge("make", "ask")


@asynccontextmanager
async def opened(kind: str, path: Path) -> AsyncIterator[SqliteSaver]:
    if kind == "async":
        async with AsyncSqliteSaver.from_conn_string(path) as saver:
            yield saver
    else:
        with SqliteSaver.from_conn_string(path) as saver:
            yield saver


@pytest.mark.parametrize("second", ["sync", "async"])
@pytest.mark.parametrize("first", ["sync", "async"])
async def test_paused_run_is_resumed_by_another_saver_on_the_file(tmp_path: Path, first: str, second: str) -> None:
    """Whatever the colours of the two savers and runs; all values come back as they were."""

    async def invoke(kind: str, app: Any, given: Any) -> Any:
        return await app.ainvoke(given, THREAD) if kind == "async" else app.invoke(given, THREAD)

    async with opened(first, tmp_path / "a.db") as saver:
        paused = await invoke(first, builder().compile(checkpointer=saver), {"log": ["in"]})
        assert [question.value for question in paused["__interrupt__"]] == ["sure?"]

    async with opened(second, tmp_path / "a.db") as saver:
        app = builder().compile(checkpointer=saver)
        found = await invoke(second, app, Command(resume="yes"))
        steps = [each.metadata["step"] async for each in app.aget_state_history(THREAD)]

    assert found == {"log": ["in", "made", "answer: yes"], "values": VALUES}
    assert {key: type(value) for key, value in found["values"].items()} == {key: type(value) for key, value in VALUES.items()}
    assert found["values"]["when"].fold == 1
    assert found["values"]["last"].maxlen == 2
    assert steps == [2, 1, 0, -1]


def fill(saver: SqliteSaver, thread: str, ns: str, count: int, ids: list[str]) -> None:
    parent = None
    for number in range(count):
        checkpoint = empty_checkpoint()
        checkpoint["id"] = parent = str(uuid6(after=parent))
        saver.put({"configurable": {"thread_id": thread, "checkpoint_ns": ns}}, checkpoint, {"step": number}, {})
        ids.append(parent)


def test_long_history_is_read_a_page_at_a_time() -> None:
    """What is listed does not depend on page limits; the first items need one page only."""
    ids: list[str] = []
    with SqliteSaver.from_conn_string(":memory:") as saver:
        fill(saver, "1", "", 150, ids)
        fill(saver, "1", "child", 128, ids)
        fill(saver, "2", "", 3, ids)
        statements: list[str] = []
        saver.conn.set_trace_callback(statements.append)

        newest = [each.checkpoint["id"] for each in saver.list(THREAD, limit=3)]
        few = sum("c.id < " in statement for statement in statements)

        saver.conn.set_trace_callback(None)
        assert newest == ids[277:274:-1]
        assert few == 1
        assert [each.checkpoint["id"] for each in saver.list(THREAD)] == ids[277::-1]
        assert [each.checkpoint["id"] for each in saver.list(None)] == ids[::-1]
        assert [each.metadata["step"] for each in saver.list(THREAD, filter={"step": 70})] == [70, 70]


def test_checkpoint_that_goes_while_a_history_is_read_is_skipped() -> None:
    """What is yielded after that was there when it was read; a name that does not exist lists nothing."""
    ids: list[str] = []
    with SqliteSaver.from_conn_string(":memory:") as saver:
        fill(saver, "1", "", 3, ids)
        fill(saver, "2", "", 1, ids)
        reading = saver.list(None)
        assert next(reading).checkpoint["id"] == ids[3]

        saver.delete_thread("1")

        assert list(reading) == []
        missing = {"configurable": {"thread_id": "2", "checkpoint_id": ids[0]}}
        assert list(saver.list(missing)) == []
        saver.copy_thread("never there", "never there")


def test_latest_checkpoint_is_found_by_index() -> None:
    """Neither a head nor a named checkpoint, nor its values and writes, are searched for by reading a table."""
    with SqliteSaver.from_conn_string(":memory:") as saver:
        saver.setup()
        sql = Statements(SqliteDialect())
        found = {"latest": sql.latest, "named": sql.named, "values": sql.values, "place": sql.place, "page": sql.page("")}
        found |= {name: getattr(statements, name) for name in ("GET_WRITES", "HEAD", "GET_PIECE", "CHECKPOINTS_OF_RUN")}
        for name, statement in found.items():
            plan = saver.conn.execute(f"EXPLAIN QUERY PLAN {statement}", [None] * statement.count("?")).fetchall()
            steps = [step[3] for step in plan]
            assert not [step for step in steps if step.startswith("SCAN") and step != "SCAN part" and "VIRTUAL" not in step], name
            assert name == "GET_WRITES" or not [step for step in steps if "TEMP B-TREE" in step], name


@pytest.mark.parametrize(
    "wanted",
    [
        {"odd key": 1, "it's": "x'y"},
        {'quo"ted': "a\\b"},
        {"text": "Grüße", "none": None},
        {"flag": True, "ratio": 0.5},
        {"parents": {"": "p"}},
        {"big": 2**70},
        {"'; DROP TABLE tracegraph_places; --": "x"},
    ],
)
def test_metadata_is_found_by_any_key_and_value(wanted: Any) -> None:
    """What SQLite could misread is compared in Python; nothing of it becomes SQL."""
    with SqliteSaver.from_conn_string(":memory:") as saver:
        for number in range(3):
            metadata = {key: value if number == 1 else "else" for key, value in wanted.items()}
            saver.put({"configurable": {"thread_id": number}}, empty_checkpoint(), metadata, {})  # type: ignore[arg-type]

        assert [each.config["configurable"]["thread_id"] for each in saver.list(None, filter=wanted)] == ["1"]
        assert list(saver.list(None, filter={"absent": None})) == []


def test_channels_and_versions_of_any_form_come_back() -> None:
    """Names with quotes, backslashes and accents; versions that other savers or users made."""
    versions: Any = {'a"b': 3, "c\\u00e9": "v1", "é\n": 2.5, "z": "=odd", "": f"{1:032}.{2:016}", "same": f"{1:032}.{2:016}"}
    checkpoint = empty_checkpoint()
    checkpoint["channel_versions"] = versions
    checkpoint["channel_values"] = {name: [name] for name in versions}
    checkpoint["versions_seen"] = {"n": {"gone": "0" * 49, "z": "=odd"}}
    checkpoint["updated_channels"] = ["never seen", "z"]

    with SqliteSaver.from_conn_string(":memory:") as saver:
        saver.put(THREAD, checkpoint, {}, versions)
        assert saver.get(THREAD) == checkpoint


def test_stored_versions_are_short_and_sort_as_the_versions_do() -> None:
    """So that what a step changed lies side by side in the file."""
    made = [f"{n:032}.{7 * n % 10:016}" for n in (0, 1, 9, 10, 12, 99, 100, 10**31)]

    stored = [short(version) for version in made]

    assert stored[4] == "b12.0000000000000004"
    assert sorted(stored) == stored  # type: ignore[type-var]
    assert [short(version) for version in ("v1", 3, 2.5)] == ["=v1", 3, 2.5]


def test_deleting_and_pruning_leave_no_rows_behind() -> None:
    """Not even those of tables that a reader never looks at."""
    tables = ("places", "checkpoints", "blobs", "writes")
    with SqliteSaver.from_conn_string(":memory:") as saver:

        def rows() -> list[int]:
            return [saver.conn.execute(f"SELECT count(*) FROM tracegraph_{table}").fetchone()[0] for table in tables]

        app = builder().compile(checkpointer=saver)
        for _ in range(3):
            app.invoke({"log": ["in"]}, {**THREAD, "metadata": {"run_id": "r1"}})
        saver.prune(["1"])
        assert rows()[:2] == [1, 1]
        assert app.get_state(THREAD).values["log"] == ["in", "made"] * 3

        saver.copy_thread("1", "2")
        saver.delete_for_runs(["r1"])
        assert rows() == [0, 0, 0, 0]
