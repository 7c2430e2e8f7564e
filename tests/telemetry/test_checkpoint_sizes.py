"""What a checkpoint takes: measured, on its save's span and on its record, as far as the saver tells."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pytest
from colours import ASYNC, SYNC, Colour
from foreign_saver import Foreign
from langgraph.checkpoint.memory import InMemorySaver as TheirSaver
from measured import Measured
from records import Records
from small_graphs import THREAD, chain, says

from tracegraph.checkpoint.memory import InMemorySaver
from tracegraph.checkpoint.postgres import PostgresSaver
from tracegraph.checkpoint.postgres.aio import AsyncPostgresSaver
from tracegraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from tracegraph.checkpoint.sqlite import SqliteSaver
from tracegraph.checkpoint.sqlite.aio import AsyncSqliteSaver

SIZE, BYTES = "tracegraph.checkpoint.size", "tracegraph.checkpoint.bytes"
STORED = """
    SELECT (SELECT SUM(LENGTH(record)) FROM tracegraph_checkpoints)
         + (SELECT SUM(LENGTH(CAST(CAST(metadata AS TEXT) AS {bytes}))) FROM tracegraph_checkpoints)
         + (SELECT SUM(LENGTH(value)) FROM tracegraph_blobs)
"""
LONG = "é" * 3000  # two bytes each, and too long to lie in the record


@pytest.fixture(params=[SYNC, ASYNC], ids=lambda colour: colour.name)
def colour(request: pytest.FixtureRequest) -> Colour:
    chosen: Colour = request.param
    return chosen


def graph(saver: Any) -> Any:
    return chain({"checkpointer": saver, "name": "triage"}, a=says(LONG), b=says("b"), c=says(LONG))


def check(measured: Measured, spans: Any, records: Records, stored: int) -> None:
    """All that is stored was told of, once, and the three signals agree."""
    point = measured.one(SIZE)
    told = [record.attributes[BYTES] for record in records.named("checkpoint.saved")]
    assert (point.unit, point.attributes) == ("By", {"gen_ai.workflow.name": "triage"})
    assert (point.count, point.sum) == (len(told), sum(told))
    assert sorted(span.attributes[BYTES] for span in spans.named("checkpoint put")) == sorted(told)
    assert sum(told) == stored > 2 * 6000
    assert sum(size > 6000 for size in told) == 2  # those of the steps that wrote something long


CONFIG: Any = {**THREAD, "metadata": {"wer": "Zoë"}}


@pytest.mark.parametrize("durability", ["sync", "async"])
def test_bytes_in_a_file_are_those_that_were_told(
    measured: Measured, spans: Any, records: Records, colour: Colour, tmp_path: Path, durability: Any
) -> None:
    """Record, metadata and values, as they lie in the database: whatever is stored in one transaction, and when."""

    async def run() -> None:
        async with AsyncSqliteSaver.from_conn_string(str(tmp_path / "s.db")) as saver:
            await graph(saver).ainvoke({}, CONFIG, durability=durability)

    if colour is ASYNC:
        asyncio.run(run())
    else:
        with SqliteSaver.from_conn_string(str(tmp_path / "s.db")) as saver:
            graph(saver).invoke({}, CONFIG, durability=durability)

    with closing(sqlite3.connect(tmp_path / "s.db")) as connection:
        ((stored,),) = connection.execute(STORED.format(bytes="BLOB")).fetchall()
    check(measured, spans, records, stored)


def test_bytes_on_a_server_are_those_that_were_told(
    measured: Measured, spans: Any, records: Records, colour: Colour, postgres_url: str
) -> None:
    """As above; the server counts in bytes what is text to it."""

    async def run() -> None:
        async with AsyncPostgresSaver.from_conn_string(postgres_url) as saver:
            await graph(saver).ainvoke({}, CONFIG)

    if colour is ASYNC:
        asyncio.run(run())
    else:
        with PostgresSaver.from_conn_string(postgres_url) as saver:
            graph(saver).invoke({}, CONFIG)

    size = STORED.replace("LENGTH(CAST(CAST(metadata AS TEXT) AS {bytes}))", "OCTET_LENGTH(CAST(metadata AS TEXT))")
    with psycopg.connect(postgres_url) as connection:
        ((stored,),) = connection.execute(size.encode()).fetchall()
    check(measured, spans, records, int(stored))


def test_saver_in_memory_tells_of_bytes_where_it_makes_any(measured: Measured, records: Records, colour: Colour) -> None:
    """With a serialiser it keeps values as bytes: those; records and metadata stay dicts."""
    saver = InMemorySaver(serde=JsonPlusSerializer())
    colour.invoke(graph(saver), {}, THREAD)

    point = measured.one(SIZE)
    told = [record.attributes[BYTES] for record in records.named("checkpoint.saved")]
    assert (point.count, point.sum) == (len(told), sum(told))
    assert sum(size > 6000 for size in told) == 2


@pytest.mark.parametrize("make", [InMemorySaver, Foreign, TheirSaver])
def test_savers_that_do_not_tell_leave_it_out(
    measured: Measured, spans: Any, records: Records, colour: Colour, make: Any
) -> None:
    """Nothing was serialised, or nobody knows: absent, not 0."""
    colour.invoke(graph(make()), {}, THREAD)

    assert not measured.of(SIZE)
    assert records.named("checkpoint.saved")
    assert not [record for record in records.all if BYTES in record.attributes]
    assert not [span for span in spans.finished if BYTES in span.attributes]


class Chatty(InMemorySaver):
    """A saver whose answers are its own business."""

    def __init__(self, answer: Any) -> None:
        super().__init__()
        self.answer = answer

    def put_group(self, config: Any, saves: Any) -> Any:
        super().put_group(config, saves)
        told = {save.checkpoint["id"]: "much" for save in saves if hasattr(save, "checkpoint")}
        return told if self.answer == "much" else self.answer


@pytest.mark.parametrize("answer", ["fine", 3, {"another": 5}, {}, "much"])
def test_savers_that_tell_something_else_break_no_run(measured: Measured, colour: Colour, answer: Any) -> None:
    """What a saver returns was nobody's concern before."""
    assert colour.invoke(graph(Chatty(answer)), {}, THREAD)["xs"] == [LONG, "b", LONG]

    assert not measured.of(SIZE)
