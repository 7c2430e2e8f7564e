"""Values that only grew are stored as what was added."""

from __future__ import annotations

import operator
from contextlib import closing
from typing import Annotated, Any, TypedDict

import pytest

from tracegraph.channels import DeltaChannel
from tracegraph.checkpoint.base import BaseCheckpointSaver
from tracegraph.checkpoint.serde.encrypted import EncryptedSerializer
from tracegraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from tracegraph.checkpoint.serde.pickled import PickleSerializer
from tracegraph.checkpoint.sqlite import SqliteSaver
from tracegraph.checkpoint.sqlite.database import connect
from tracegraph.constants import MISSING
from tracegraph.graph import START, StateGraph

THREAD: dict[str, Any] = {"configurable": {"thread_id": "t"}}


def merged(table: dict[str, int], batch: list[dict[str, int]]) -> dict[str, int]:
    return {key: value for each in (table, *batch) for key, value in each.items()}


class Log(TypedDict):
    """A list that grows, and a dict that is folded into."""

    log: Annotated[list[Any], operator.add]
    table: Annotated[
        dict[str, int], DeltaChannel(lambda table, batch: {k: v for d in (table, *batch) for k, v in d.items()}, dict)
    ]


def looping(saver: BaseCheckpointSaver, steps: int, *, table: int = 3) -> Any:
    """Return a graph whose node runs *steps* times in one run and adds to everything."""

    def say(state: Log) -> Any:
        number = len(state["log"])
        return {"log": [f"{number:0400}"], "table": {str(number % table): number}}

    graph = StateGraph(Log)
    graph.add_node("say", say)
    graph.add_edge(START, "say")
    graph.add_conditional_edges("say", lambda state: "say" if len(state["log"]) % steps else "__end__")
    return graph.compile(checkpointer=saver)


def test_a_thread_of_many_steps_comes_back_at_every_one(saver: Any, is_async: bool) -> None:
    """Also those whose rows have been joined, and after older ones are gone."""
    app = looping(saver.saver, 300)

    def run(given: Any) -> None:
        config: Any = {**THREAD, "recursion_limit": 2000}
        _ = saver.run(app.ainvoke(given, config)) if is_async else app.invoke(given, config)

    run({"log": []})
    history = [found.checkpoint["channel_values"] for found in saver.list(THREAD)][:-1]
    assert [len(values["log"]) for values in history] == [*range(300, -1, -1)]
    assert all(values["log"] == [f"{n:0400}" for n in range(len(values["log"]))] for values in history[::23])
    table = looping(saver.saver, 300).channels["table"].from_checkpoint(history[0]["table"]).get()
    assert table == {"0": 297, "1": 298, "2": 299}

    saver.prune(["t"])
    assert saver.get(THREAD)["channel_values"] == history[0]
    run({"log": ["more"]})
    saver.copy_thread("t", "copy")
    saver.delete_thread("t")
    values = saver.get({"configurable": {"thread_id": "copy"}})["channel_values"]
    assert values["log"][299:302] == [f"{299:0400}", "more", f"{301:0400}"]


def test_ten_thousand_steps_take_three_times_their_content() -> None:
    """Case C40: bytes in step with what is said, and read at most twice; what was said comes back."""
    with closing(connect(":memory:")) as connection:
        saver = SqliteSaver(connection)
        app = looping(saver, 10_000)
        app.invoke({"log": []}, {**THREAD, "recursion_limit": 20_000})

        values = app.get_state(THREAD).values
        content = {name: len(saver.serde.dumps_typed(value)[1]) for name, value in values.items()}
        assert values["log"] == [f"{n:0400}" for n in range(10_000)]
        (stored,) = connection.execute("SELECT sum(length(value)) FROM tracegraph_blobs WHERE channel = 'log'").fetchone()
        assert stored <= 3 * content["log"]
        newest = "SELECT chain_bytes FROM tracegraph_blobs WHERE channel = ? ORDER BY version DESC LIMIT 1"
        for name, size in content.items():
            (read,) = connection.execute(newest, (name,)).fetchone()
            assert read <= 2 * size + 32


class Plain:
    """A serialiser that cannot join."""

    def __init__(self) -> None:
        self._serde = JsonPlusSerializer()
        self.dumps_typed = self._serde.dumps_typed
        self.loads_typed = self._serde.loads_typed


@pytest.mark.parametrize(
    "serde",
    [
        Plain(),
        PickleSerializer(),
        EncryptedSerializer.from_aes(b"k" * 16),
        EncryptedSerializer.from_aes(b"k" * 16, serde=Plain()),
    ],
)
def test_every_serialiser_stores_increments(serde: Any) -> None:
    """Joined without reviving where it can be, else by reading, else not at all."""
    with closing(connect(":memory:")) as connection:
        app = looping(SqliteSaver(connection, serde=serde), 100)
        app.invoke({"log": []}, {**THREAD, "recursion_limit": 200})

        assert app.get_state(THREAD).values["log"] == [f"{n:0400}" for n in range(100)]
        (grown,) = connection.execute(
            "SELECT count(*) FROM tracegraph_blobs WHERE channel = 'log' AND growth = 'append'"
        ).fetchone()
        assert grown == 100


class Unlisted:
    """A class that is not on the allow-list: see :class:`Point`."""


def test_joining_keeps_what_may_not_be_loaded() -> None:
    """With a strict allow-list such values are read as plain data, but they must not be stored as that."""
    from dataclasses import dataclass

    @dataclass
    class Point:
        x: int

    Point.__module__, Point.__qualname__ = __name__, "Unlisted"
    globals()["Unlisted"] = Point
    graph = StateGraph(Log)
    graph.add_node("say", lambda state: {"log": [Point(len(state["log"]))]})
    graph.add_edge(START, "say")
    graph.add_conditional_edges("say", lambda state: "say" if len(state["log"]) < 70 else "__end__")
    with closing(connect(":memory:")) as connection:
        strict = SqliteSaver(connection, serde=JsonPlusSerializer(allowed_msgpack_modules=None))
        graph.compile(checkpointer=strict).invoke({"log": []}, {**THREAD, "recursion_limit": 100})

        assert strict.get(THREAD)["channel_values"]["log"][0] != Point(0)  # type: ignore[index]
        trusting = strict.with_allowlist([Point])
        assert trusting.get(THREAD)["channel_values"]["log"] == [Point(n) for n in range(70)]  # type: ignore[index]


def test_a_value_whose_base_is_gone_is_stored_whole() -> None:
    """Another process pruned the thread between two steps of a run."""
    with closing(connect(":memory:")) as connection:
        saver = SqliteSaver(connection)
        graph = StateGraph(Log)

        def say(state: Log) -> Any:
            if len(state["log"]) == 3:
                connection.execute("DELETE FROM tracegraph_blobs WHERE channel = 'log'")
            return {"log": [len(state["log"])]}

        graph.add_node("say", say)
        graph.add_edge(START, "say")
        graph.add_conditional_edges("say", lambda state: "say" if len(state["log"]) < 6 else "__end__")
        graph.compile(checkpointer=saver).invoke({"log": []}, THREAD, durability="sync")

        assert saver.get(THREAD)["channel_values"]["log"] == [*range(6)]  # type: ignore[index]


def test_delta_history_is_a_seed_and_the_writes_since(saver: Any, is_async: bool) -> None:
    """For a checkpoint in the middle: what was stored before it, and what its parents' tasks wrote; not its own tasks'."""
    app = looping(saver.saver, 5)
    _ = saver.run(app.ainvoke({"log": []}, THREAD)) if is_async else app.invoke({"log": []}, THREAD)
    configs = [found.config for found in saver.list(THREAD)]  # newest first: six supersteps and the input

    history = saver.get_delta_channel_history(config=configs[2], channels=["table", "log", "absent"])

    table = app.channels["table"]
    value = table.replay(table.load(history["table"].get("seed", MISSING)), [write for _, _, write in history["table"]["writes"]])
    assert value == {"0": 0, "1": 1, "2": 2}
    assert history["log"]["seed"] == [f"{n:0400}" for n in range(2)]
    assert [write for _, _, write in history["log"]["writes"]] == [[f"{2:0400}"]]
    assert history["absent"] == {"writes": []}
    assert saver.get_delta_channel_history(config={"configurable": {"thread_id": "none"}}, channels=["log"]) == {
        "log": {"writes": []}
    }


SHORT = {"none": None, "yes": True, "n": -(2**63), "big": 2**64 - 1, "ratio": -0.0, "text": "x" * 64, "empty": ""}
LONG = {"huge": 2**64, "long": "x" * 65, "umlaut": "ä", "half": "\ud800", "list": [], "bytes": b"", "kind": type(None)}


def test_short_values_are_part_of_the_record(saver: Any) -> None:
    """They come back as they were, beside others; a value that changes from short to long and back too."""
    config, _ = saver.save(**SHORT, **LONG)
    found = saver.get(config)["channel_values"]
    assert found == {**SHORT, **LONG}
    assert {name: type(value) for name, value in found.items()} == {name: type(v) for name, v in {**SHORT, **LONG}.items()}
    assert str(found["ratio"]) == "-0.0"

    later, _ = saver.save(parent=config["configurable"]["checkpoint_id"], text="x" * 65, long="x", n=MISSING)
    values = saver.get(later)["channel_values"]
    assert values == {key: value for key, value in {**SHORT, **LONG, "text": "x" * 65, "long": "x"}.items() if key != "n"}


def test_only_what_may_be_read_by_anybody_is_part_of_the_record() -> None:
    """An encrypting serialiser, or one of the application's, writes all values itself."""

    class Hiding(JsonPlusSerializer):
        """Keeps values from who can read the database."""

    for serde in (EncryptedSerializer.from_aes(b"k" * 16), Hiding()):
        with closing(connect(":memory:")) as connection:
            graph = StateGraph(Secret).add_node("tell", lambda state: {"secret": "tell nobody"}).add_edge(START, "tell")
            graph.compile(checkpointer=SqliteSaver(connection, serde=serde)).invoke({"secret": ""}, THREAD)
            records = connection.execute("SELECT record FROM tracegraph_checkpoints").fetchall()

            assert records and not any(b"tell nobody" in record for (record,) in records)


class Secret(TypedDict):
    """One short text."""

    secret: str
