"""Whoever reads what supersteps come to waits for lone nodes in its own thread or task; those who read more do not."""

from __future__ import annotations

import asyncio
import threading
import warnings
from collections.abc import Callable
from typing import Any

import pytest
from colours import Colour
from run_faces import Face, with_run
from small_graphs import PATIENCE_S, State, chain, parallel, says
from spoken import Speaker, words

from tracegraph.config import RunnableConfig
from tracegraph.stream import StreamTransformer, UpdatesTransformer


class Places:
    """A node that notes in which thread and asyncio task it runs."""

    def __init__(self, colour: Colour) -> None:
        self.seen: list[Any] = []
        self.is_async = colour.name == "async"

    def here(self) -> Any:
        """Return the current thread and task."""
        return threading.get_ident(), asyncio.current_task() if self.is_async else None

    def graph(self) -> Any:
        """Return two of the node in a row."""

        def node(state: State) -> State:
            self.seen.append(self.here())
            return {"xs": ["x"]}

        async def anode(state: State) -> State:
            return node(state)

        body = anode if self.is_async else node
        return chain(one=body, two=body)


@pytest.mark.parametrize("read", ["values", "updates", "output"])
def test_a_lone_node_runs_where_its_patient_reader_waits(colour: Colour, read: str) -> None:
    places = Places(colour)

    async def body(run: Face) -> Any:
        await (run.output() if read == "output" else run.rest(getattr(run, read)))
        return places.here()

    # The coroutine of with_run() is the reader's own task, and this its thread.
    here = with_run(colour, places.graph(), {"xs": []}, body, transformers=[UpdatesTransformer])
    assert places.seen == [here, here]


class Seeing(StreamTransformer):
    """Has not said what it does with an event."""

    def process(self, event: Any) -> bool:
        return True


@pytest.mark.parametrize("read", ["messages", "lifecycle", "subgraphs", "the log", "a transformer of the user's own"])
def test_it_runs_elsewhere_where_somebody_reads_meanwhile(colour: Colour, read: str) -> None:
    places = Places(colour)
    own = "transformer" in read

    async def body(run: Face) -> Any:
        subscribed = run.begin(run.values if own else run.run if read == "the log" else getattr(run, read))
        await run.output()
        del subscribed
        return places.here()

    here = with_run(colour, places.graph(), {"xs": []}, body, transformers=[Seeing] if own else [])
    assert len(places.seen) == 2
    assert here not in places.seen


def test_a_late_reader_has_what_comes_from_then_on(colour: Colour) -> None:
    """One that subscribes between two supersteps misses nothing of those that follow."""
    speaker = Speaker(words("a b c"))

    def node(state: State, config: RunnableConfig) -> State:
        return {"xs": [speaker.speak(config).text]}

    async def anode(state: State, config: RunnableConfig) -> State:
        return {"xs": [(await speaker.aspeak(config)).text]}

    speaks = anode if colour.name == "async" else node

    async def body(run: Face) -> Any:
        values = run.begin(run.values)
        seen = [await run.one(values), await run.one(values)]
        messages, handles = run.begin(run.messages), run.begin(run.subgraphs)
        seen += await run.rest(values)
        return seen, [await run.whole(m.text) for m in await run.rest(messages)], [h.path for h in await run.rest(handles)]

    app = chain(early=speaks, late=speaks, inner=chain(within=speaks))
    seen, texts, paths = with_run(colour, app, {"xs": []}, body)
    assert [len(values["xs"]) for values in seen] == [0, 1, 2, 5]  # the graph inside returns the two that it was given, too
    assert texts == ["a b c"]
    assert [path[0].partition(":")[0] for path in paths] == ["inner"]


def test_a_graph_that_is_open_when_its_reader_comes_was_started_before(colour: Colour) -> None:
    """Its end is told of all the same: what tells of graphs inside is followed whether it is read or not."""
    proceed = threading.Event()

    def waits(state: State) -> State:
        assert proceed.wait(PATIENCE_S)
        return {"xs": ["waited"]}

    async def body(run: Face) -> Any:
        updates = run.begin(run.updates)
        first = await run.one(updates)
        lifecycle = run.begin(run.lifecycle)
        proceed.set()
        return first, [each["event"] for each in await run.rest(lifecycle)]

    app = parallel(quick=says("quick"), inner=chain(one=says("one"), waits=waits))
    first, events = with_run(colour, app, {"xs": []}, body, transformers=[UpdatesTransformer])
    assert first == {"quick": {"xs": ["quick"]}}
    assert events[-1] == "completed"


def test_what_nobody_reads_is_not_kept_while_a_node_runs(colour: Colour) -> None:
    """However much a graph inside says, there is no warning of a reader that falls behind."""
    speaker = Speaker(words(*["word "] * 10_100))

    def node(state: State, config: RunnableConfig) -> State:
        return {"n": len(speaker.speak(config).text)}

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        values = with_run(colour, chain(inner=chain(node=node)), {"xs": []}, lambda run: run.rest(run.values))
    assert values[-1]["n"] == 10_100 * 5


async def test_another_task_aborts_the_run_that_a_reader_waits_for() -> None:
    """The node is cancelled though it runs in the reader's own task, which itself goes on."""
    running, stopped = asyncio.Event(), []

    async def forever(state: State) -> State:
        running.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            stopped.append(asyncio.current_task())
            raise
        return {}

    async def read(run: Any) -> list[Any]:
        found = [values async for values in run.values]
        await asyncio.sleep(0)  # nothing is left of the cancellation
        return [*found, asyncio.current_task().cancelling()]  # type: ignore[union-attr]  # there is one

    run = await chain(first=says("first"), forever=forever).astream_events({"xs": []}, version="v3")
    reading = asyncio.create_task(read(run))
    await asyncio.wait_for(running.wait(), PATIENCE_S)
    await asyncio.wait_for(run.abort(), PATIENCE_S)
    assert await asyncio.wait_for(reading, PATIENCE_S) == [{"xs": []}, {"xs": ["first"]}, 0]
    assert stopped == [reading]
    assert await run.output() == {"xs": ["first"]}


@pytest.mark.parametrize("how", ["abort", "read"])
def test_a_node_has_hold_of_the_very_run_that_it_is_part_of(how: str) -> None:
    """It may stop it; reading it would be waiting for itself, so it is told."""
    held: list[Any] = []
    told: list[str] = []

    def abort(state: State) -> State:
        held[0].abort()
        return {"xs": ["aborted"]}

    def read(state: State) -> State:
        try:
            held[0].output  # noqa: B018  # asking for it reads the run
        except RuntimeError as error:
            told.append(str(error))
        return {"xs": ["read"]}

    bodies: dict[str, Callable[[State], State]] = {"abort": abort, "read": read}
    run = chain(first=says("first"), node=bodies[how], last=says("last")).stream_events({"xs": []}, version="v3")
    held.append(run)
    seen = [values["xs"] for values in run.values]
    if how == "abort":
        assert seen == [[], ["first"]]
    else:
        assert told == ["a node cannot read the run that it is part of: that waits for the node"]
        assert seen[-1] == ["first", "read", "last"]
