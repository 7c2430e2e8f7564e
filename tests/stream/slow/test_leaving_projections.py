"""What a run does for readers that are too slow, and for those that are no more: it fails, warns, keeps nothing, ends."""

from __future__ import annotations

import asyncio
import gc
import warnings
import weakref
from typing import Any

import pytest
from colours import SYNC, Colour
from five_projections import app_of
from run_faces import Face, with_run
from small_graphs import THREAD, Listening, State, bounded, chain, saving, says, wait_for
from spans import Trace

from tracegraph.config import get_stream_writer
from tracegraph.errors import InvalidInputError, SlowReaderError, TracegraphWarning
from tracegraph.stream import CustomTransformer


def test_a_projection_that_falls_behind_fails_the_run(colour: Colour, trace: Trace) -> None:
    """Every reader gets the error once, after what it had room for."""

    async def body(run: Face) -> tuple[list[Any], Any, Any]:
        custom, values = run.begin(run.custom), run.begin(run.values)
        with pytest.raises(SlowReaderError, match="projection 'custom' of run .* on thread 't'") as first:
            await run.rest(values)
        read = [await run.one(custom) for _ in range(3)]
        with pytest.raises(SlowReaderError) as second:
            await run.one(custom)
        assert await run.rest(custom) == []
        return read, first.value, second.value

    app = app_of(colour, saving())
    read, first, second = with_run(colour, app, {"xs": []}, body, THREAD, transformers=[CustomTransformer], buffer=(3, "fail"))

    assert (read, first is second) == ([0, 1, 2], True)
    (root,) = (span for span in trace.ended if span.parent is None)
    assert root.attributes is not None
    assert root.attributes["tracegraph.run.status"] == "failed"
    assert trace.is_complete()
    assert app.get_state(THREAD).values["xs"] == ["a"]
    assert colour.invoke(app, None, THREAD)["xs"] == ["a", "b"]


# --- what is kept, and until when --------------------------------------------------------------------------


class Payload:
    """Something whose end can be noticed."""


def test_a_projection_that_nobody_reads_keeps_nothing(colour: Colour) -> None:
    """What came is gone while the run goes on."""
    made: list[weakref.ref[Payload]] = []
    alive: list[int] = []

    def makes(state: State) -> State:
        write = get_stream_writer()
        for _ in range(5):
            payload = Payload()
            made.append(weakref.ref(payload))
            write(payload)
        return {"n": 1}

    async def body(run: Face) -> int:
        values = run.begin(run.values)
        await run.one(values)
        await run.one(values)
        gc.collect()
        alive.append(sum(each() is not None for each in made))
        await run.rest(values)
        return int(run.custom.unread)

    app = chain(makes=makes, b=says("b"))

    assert with_run(colour, app, {"xs": []}, body, transformers=[CustomTransformer]) == 0
    assert alive == [0]


def test_ten_thousand_items_unread_are_worth_one_warning_for_each_reader(colour: Colour) -> None:
    """It names the projection."""

    def many(state: State) -> State:
        write = get_stream_writer()
        for number in range(10_050):
            write(number)
        return {"n": 1}

    async def body(run: Face) -> int:
        custom, values = run.begin(run.custom), run.begin(run.values)
        await run.rest(values)
        return len(await run.rest(custom))

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        count = with_run(colour, chain(many=many), {"xs": []}, body, transformers=[CustomTransformer])

    assert count == 10_050
    texts = [str(each.message) for each in caught if each.category is TracegraphWarning]
    assert sum("projection 'custom'" in text for text in texts) == 1


# --- the last one leaves -----------------------------------------------------------------------------------


@pytest.mark.parametrize(("when_left", "ends"), [("stop", False), ("finish", True)])
def test_a_run_whose_last_reader_leaves_is_stopped_or_finished(colour: Colour, when_left: Any, ends: bool) -> None:
    """As the caller chose; what it had saved by then is saved in both cases."""
    listening = Listening()
    app = app_of(colour, saving())
    config = {**THREAD, "callbacks": [listening]}

    def leave_sync() -> None:
        run = app.stream_events({"xs": []}, config, when_left=when_left)
        next(iter(run.values))
        del run
        wait_for(listening.bell)

    async def leave_async() -> None:
        run = await app.astream_events({"xs": []}, config, version="v3", when_left=when_left)
        await anext(aiter(run.values))
        del run
        gc.collect()
        await asyncio.to_thread(wait_for, listening.bell)

    bounded(leave_sync if colour is SYNC else lambda: asyncio.run(leave_async()))

    assert listening.ends[-1] == ("end", "LangGraph") if ends else ("end", "LangGraph") not in listening.ends
    assert app.get_state(THREAD).next == (() if ends else ("a",))


def test_how_a_run_is_left_is_checked_before_it_runs(colour: Colour) -> None:
    """With a text that says what there is."""

    async def body(run: Face) -> None:
        raise AssertionError("it began")

    with pytest.raises(InvalidInputError, match="when_left must be 'stop' or 'finish'"):
        with_run(colour, app_of(colour), {"xs": []}, body, when_left="wait")
