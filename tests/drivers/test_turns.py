"""Runs that take turns on a thread."""

from __future__ import annotations

import asyncio
import operator
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, TypedDict

import pytest
from colours import Colour
from databases import opened
from recording import recording
from small_graphs import PATIENCE_S, THREAD

from tracegraph.checkpoint.base import BaseCheckpointSaver
from tracegraph.checkpoint.memory import InMemorySaver
from tracegraph.checkpoint.sqlite import SqliteSaver
from tracegraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from tracegraph.checkpoint.sqlite.database import connect
from tracegraph.drivers import turns
from tracegraph.errors import ConcurrentRunError, GraphDefinitionError
from tracegraph.events import TurnTaken
from tracegraph.graph import START, StateGraph


class Log(TypedDict):
    log: Annotated[list[str], operator.add]


def app_on(saver: Any, node: Any, **options: Any) -> Any:
    graph = StateGraph(Log).add_node("node", node).add_edge(START, "node")
    return graph.compile(checkpointer=saver, **{"concurrent_runs": "queue", **options})


def echo(state: Log) -> Any:
    return {"log": [f"{state['log'][-1]}-done"]}


SAVERS: dict[str, Any] = {
    "memory": InMemorySaver,
    "sqlite": lambda: SqliteSaver(connect(":memory:")),
    "async_sqlite": lambda: AsyncSqliteSaver(connect(":memory:")),
}


@pytest.fixture(params=SAVERS)
def saver(request: pytest.FixtureRequest) -> Any:
    return SAVERS[request.param]()


def log_of(saver: BaseCheckpointSaver) -> list[str]:
    found = saver.get(THREAD)
    assert found is not None
    log: list[str] = found["channel_values"]["log"]
    return log


def test_threads_that_run_at_once_run_one_after_the_other(saver: Any) -> None:
    """Case C07 with nothing refused: every run finds what those before it left."""
    app = app_on(saver, echo)
    workers = [threading.Thread(target=app.invoke, args=({"log": [str(n)]}, THREAD)) for n in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(PATIENCE_S)

    log = log_of(saver)
    assert sorted(log[::2]) == [str(n) for n in range(8)]
    assert log[1::2] == [f"{entry}-done" for entry in log[::2]]


def test_tasks_that_run_at_once_run_one_after_the_other(saver: Any) -> None:
    """In the order in which they came."""

    async def main() -> None:
        app = app_on(saver, echo)
        await asyncio.gather(*(app.ainvoke({"log": [str(n)]}, THREAD) for n in range(5)))

    asyncio.run(main())

    assert sorted(log_of(saver)[::2]) == [str(n) for n in range(5)]


def test_an_update_waits_for_the_run_under_way(colour: Colour, saver: Any) -> None:
    """It is then made on what the run left, not refused."""
    has_begun, may_end = threading.Event(), threading.Event()

    def node(state: Log) -> Any:
        has_begun.set()
        assert may_end.wait(PATIENCE_S)
        return echo(state)

    app = app_on(saver, node)
    running = threading.Thread(target=colour.invoke, args=(app, {"log": ["a"]}, THREAD))
    running.start()
    assert has_begun.wait(PATIENCE_S)
    updating = threading.Thread(target=app.update_state, args=(THREAD, {"log": ["update"]}, "node"))
    updating.start()
    may_end.set()
    running.join(PATIENCE_S)
    updating.join(PATIENCE_S)

    assert log_of(saver) == ["a", "a-done", "update"]


def test_a_run_that_fails_lets_the_next_one_run(colour: Colour, saver: Any) -> None:
    def node(_state: Log) -> Any:
        raise ValueError("no")

    for _ in range(2):
        with pytest.raises(ValueError, match="no"):
            colour.invoke(app_on(saver, node), {"log": ["a"]}, THREAD)
    colour.invoke(app_on(saver, echo), {"log": ["b"]}, THREAD)

    assert log_of(saver)[-1] == "b-done"


def test_a_reader_that_stops_reading_gives_up_the_turn(saver: Any) -> None:
    """By closing the stream, and by dropping it."""
    app = app_on(saver, echo)
    stream = app.stream({"log": ["a"]}, THREAD)
    next(stream)
    stream.close()
    dropped = app.stream({"log": ["b"]}, THREAD)
    next(dropped)
    del dropped

    app.invoke({"log": ["c"]}, THREAD)

    assert log_of(saver)[-2:] == ["c", "c-done"]


def test_a_cancelled_run_that_waits_leaves_the_queue(saver: Any) -> None:
    async def main() -> None:
        begun, may_end = asyncio.Event(), asyncio.Event()

        async def node(state: Log) -> Any:
            begun.set()
            await may_end.wait()
            return echo(state)

        app = app_on(saver, node)
        first = asyncio.create_task(app.ainvoke({"log": ["a"]}, THREAD))
        await begun.wait()
        second = asyncio.create_task(app.ainvoke({"log": ["b"]}, THREAD))
        await asyncio.sleep(0)
        second.cancel()
        with pytest.raises(asyncio.CancelledError):
            await second
        may_end.set()
        await first
        await app.ainvoke({"log": ["c"]}, THREAD)

    asyncio.run(main())
    assert log_of(saver) == ["a", "a-done", "c", "c-done"]


def test_a_node_may_run_and_update_its_own_thread(colour: Colour) -> None:
    """It would wait for itself for ever; that its run is then overtaken is told as always."""
    saver = InMemorySaver()
    inner = app_on(saver, echo)

    def node(state: Log) -> Any:
        inner.invoke({"log": ["inner"]}, {"configurable": {"thread_id": "t"}})
        return echo(state)

    with pytest.raises(ConcurrentRunError):
        colour.invoke(app_on(saver, node), {"log": ["outer"]}, THREAD)


def test_how_long_a_run_waited_is_an_event() -> None:
    with recording() as recorder:
        app_on(InMemorySaver(), echo).invoke({"log": ["a"]}, THREAD)

    (event,) = [event for event in recorder.events if isinstance(event, TurnTaken)]
    assert event.waited_ns >= 0


def test_other_policies_and_savers_without_queues_are_refused() -> None:
    with pytest.raises(GraphDefinitionError, match="concurrent_runs='both'"):
        app_on(None, echo, concurrent_runs="both")

    class Foreign(BaseCheckpointSaver):
        """A saver written before there were queues."""

    with pytest.raises(NotImplementedError, match="Foreign has no join_queue"):
        app_on(Foreign(), echo).invoke({"log": ["a"]}, THREAD)


HOLDER = """
import sys
from pathlib import Path
from databases import opened

with opened(sys.argv[1]) as saver:
    saver.join_queue("t", "ticket of the holder", lease_s=float(sys.argv[2]))
    print("in line", flush=True)
    sys.stdin.read()
"""


@contextmanager
def holder(database: str, lease_s: float) -> Iterator[subprocess.Popen[str]]:
    """A process that is first in line for the thread."""
    support = Path(__file__).parents[1] / "support"
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, database, str(lease_s)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={"PYTHONPATH": f"{support}:{':'.join(sys.path)}"},
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "in line\n"
        yield process


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_a_killed_process_does_not_hold_up_the_others_for_ever(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its ticket runs out; while it was valid, nobody passed it."""
    database = str(request.getfixturevalue("postgres_url") if kind == "postgres" else tmp_path / "db")
    waits: list[float] = []
    with opened(database) as saver, holder(database, 0.5) as process:
        app = app_on(saver, echo)
        real = turns.Wait
        monkeypatch.setattr(turns, "Wait", lambda seconds: waits.append(seconds) or real(seconds))
        process.kill()

        app.invoke({"log": ["a"]}, THREAD)

        assert log_of(saver) == ["a", "a-done"]
        assert waits


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_processes_take_turns(kind: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """Nothing is refused, and no process's runs see half of another's."""
    import other_writer

    database = str(request.getfixturevalue("postgres_url") if kind == "postgres" else tmp_path / "db")
    command = [sys.executable, other_writer.__file__, database, "--queue", "5"]
    processes = [subprocess.Popen([*command, tag]) for tag in "abc"]

    assert [process.wait() for process in processes] == [0, 0, 0]
    with opened(database) as saver:
        found = saver.get({"configurable": {"thread_id": "shared"}})
    assert found is not None
    log = found["channel_values"]["log"]
    assert sorted(log[::2]) == sorted(f"{tag}{n}" for tag in "abc" for n in range(5))
    assert log[1::2] == [f"{entry}-done" for entry in log[::2]]
