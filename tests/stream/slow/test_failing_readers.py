"""A reader that was too slow for its own choice fails its run; one without a choice is warned of; what is none is refused."""

from __future__ import annotations

import asyncio
import warnings
from typing import Any

import pytest
from colours import Colour
from pulling import Emitter, pulled
from small_graphs import THREAD, State, chain, parallel, saving, says
from spans import Trace

from tracegraph.config import get_stream_writer
from tracegraph.errors import InvalidInputError, SlowReaderError, TracegraphWarning
from tracegraph.graph import START, StateGraph


def test_a_reader_that_falls_behind_fails_the_run(colour: Colour, trace: Trace) -> None:
    """It gets what was there, then the error, once; the run's span has it, and the thread can go on."""
    emitter = Emitter()
    app = chain(saving(), first=says("a"), node=emitter.node, last=says("b"))
    with pulled(colour, app, THREAD, stream_mode="custom", buffer=(3, "fail")) as stream:
        emitter.order(1)
        read = [stream.next()]
        emitter.emit(5)
        emitter.end()
        with pytest.raises(SlowReaderError, match=r"TG209.*'custom'.*thread 't'.*buffer=\(3, 'fail'\)") as caught:
            while True:
                read.append(stream.next())
        assert stream.rest() == []

    assert (read, caught.value.limit) == ([0, 1, 2, 3], 3)
    (root,) = (span for span in trace.ended if span.parent is None)
    assert root.attributes is not None
    assert root.attributes["tracegraph.run.status"] == "failed"
    assert root.attributes["tracegraph.run.reason"] == "SlowReaderError"
    assert trace.is_complete()
    assert app.get_state(THREAD).values == {"xs": ["a"]}
    emitter.end()
    assert colour.invoke(app, None, THREAD)["xs"] == ["a", "b"]


def test_a_superstep_that_has_more_results_than_fit_fails_the_run(colour: Colour) -> None:
    """Parts that the engine makes count like those of nodes; no superstep is begun after them."""
    ran: list[str] = []

    def last(state: State) -> State:
        ran.append("last")
        return {}

    graph: StateGraph[Any, Any, Any, Any] = StateGraph(State)
    for name in "abc":
        graph.add_node(name, says(name))
        graph.add_edge(START, name)
        graph.add_edge(name, "last")
    graph.add_node("last", last)
    app = graph.compile(**saving())

    with pytest.raises(SlowReaderError, match="'tasks'"):
        colour.stream(app, {"xs": []}, THREAD, stream_mode="tasks", buffer=(2, "fail"))

    assert ran == []


def test_nodes_have_come_to_rest_when_the_reader_gets_the_error() -> None:
    """Coroutines are cancelled and awaited."""
    seen: list[str] = []

    async def node(state: State) -> State:
        write = get_stream_writer()
        try:
            for number in range(5):
                write(number)
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            seen.append("at rest")
        return {}

    async def run() -> None:
        with pytest.raises(SlowReaderError):
            async for _ in chain(node=node).astream({"xs": []}, stream_mode="custom", buffer=(2, "fail")):
                pass
        assert seen == ["at rest"]

    asyncio.run(run())


def test_the_very_last_parts_can_be_too_many(colour: Colour, trace: Trace) -> None:
    """A run that has come to its end with them has failed all the same: its reader must not take what it got for all."""
    app = chain(saving(), node=says("x"))
    read: list[Any] = []

    with pytest.raises(SlowReaderError):
        colour.each(app, {"xs": []}, read.append, THREAD, stream_mode=["updates", "values"], buffer=(1, "fail"))

    assert read == [("values", {"xs": []}), ("updates", {"node": {"xs": ["x"]}})]
    (root,) = (span for span in trace.ended if span.parent is None)
    assert root.attributes is not None
    assert root.attributes["tracegraph.run.status"] == "failed"
    assert app.get_state(THREAD).values == {"xs": ["x"]}


def test_a_stream_that_a_node_reads_fails_that_node_alone(colour: Colour) -> None:
    """It may handle the error as any other; the run around it goes on."""
    inner = parallel(a=says("x"), b=says("y"), c=says("z"))

    def node(state: State) -> State:
        try:
            return {"xs": list(inner.stream({"xs": []}, stream_mode="tasks", buffer=(1, "fail")))}
        except SlowReaderError as error:
            return {"xs": [error.code]}

    assert colour.invoke(chain(node=node), {"xs": []})["xs"] == ["TG209"]


# --- the warning, and what is refused ----------------------------------------------------------------------


def test_ten_thousand_parts_unread_are_worth_one_warning(colour: Colour) -> None:
    """It says whose they are; nothing is lost."""
    emitter = Emitter()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with pulled(colour, chain(saving(), node=emitter.node), THREAD, stream_mode="custom") as stream:
            emitter.order(1)
            read = [stream.next()]
            emitter.emit(10_000)
            assert [each for each in caught if each.category is TracegraphWarning] == []
            emitter.emit(3)
            assert stream.reader.unread == 10_003
            emitter.end()
            read += stream.rest()

    (warning,) = (str(each.message) for each in caught if each.category is TracegraphWarning)
    assert all(part in warning for part in ("'custom'", "10000", "thread 't'", "buffer=(max, "))
    assert read == list(range(10_004))


def test_a_warning_that_is_an_error_does_not_break_the_run(colour: Colour, caplog: pytest.LogCaptureFixture) -> None:
    """As nobody could handle it, it is logged."""
    emitter = Emitter()
    with pulled(colour, chain(node=emitter.node), stream_mode="custom") as stream:
        emitter.order(1)
        read = [stream.next()]
        emitter.emit(10_001)
        emitter.end()
        read += stream.rest()

    assert len(read) == 10_002
    assert [record.levelname for record in caplog.records if "has not read 10000" in record.message] == ["WARNING"]


@pytest.mark.parametrize(
    "buffer",
    [
        10,
        (10,),
        (10, "drop"),
        (0, "block"),
        (-1, "fail"),
        (True, "block"),
        (1.5, "fail"),
        ("10", "block"),
        "block",
        (1, "fail", 2),
    ],
)
def test_what_is_no_buffer_is_refused_at_the_call(buffer: Any) -> None:
    """Before anything runs."""
    app = chain(node=says("x"))
    for call in (app.stream, app.astream, app.stream_events, app.astream_events):
        with pytest.raises(InvalidInputError, match="buffer"):
            call({"xs": []}, buffer=buffer)
