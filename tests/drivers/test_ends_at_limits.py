"""What a run that reaches a time limit still says of its failures, and what it does not begin any more."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from colours import ASYNC, SYNC, Colour
from small_graphs import State, bounded, chain, parallel

from tracegraph.errors import RunDeadlineError, failures_of
from tracegraph.runtime import RunControl

LIMIT_S = 0.4


@dataclass(frozen=True)
class FrozenError(Exception):
    """An exception that takes no notes."""

    name: str


@pytest.fixture
def may_end() -> Iterator[threading.Event]:
    """Hold back bodies that outlive their run until the test is over."""
    event = threading.Event()
    yield event
    event.set()


def test_all_failures_before_the_limit_are_told(may_end: threading.Event) -> None:
    """A sibling that hangs does not hide the second, and the limit is noted on an error that takes no notes.

    An async run would have cancelled the second.
    """
    all_run = threading.Barrier(3)

    def fails(name: str) -> Any:
        def body(state: State) -> None:
            all_run.wait()
            raise FrozenError(name)

        return body

    def stuck(state: State) -> None:
        all_run.wait()
        may_end.wait()

    app = parallel({"step_timeout": LIMIT_S}, a=fails("a"), b=fails("b"), stuck=stuck)

    with pytest.raises(FrozenError) as raised:
        bounded(lambda: app.invoke({"xs": []}))

    assert [error.name for error in failures_of(raised.value)] == ["a", "b"]  # type: ignore[attr-defined]
    assert any("exceeded its timeout" in note for note in raised.value.__notes__)


@pytest.mark.parametrize(
    ("colour", "is_async"), [(SYNC, False), (ASYNC, False), (ASYNC, True)], ids=["sync", "async, sync nodes", "async"]
)
def test_a_node_does_not_begin_after_the_deadline(colour: Colour, *, is_async: bool) -> None:
    """A reader holds the run back, and the loop with it, until the time is up."""
    ran: list[str] = []

    def node(name: str) -> Any:
        def body(state: State) -> State:
            ran.append(name)
            return {"xs": [name]}

        async def abody(state: State) -> State:
            return body(state)

        return abody if is_async else body

    app = chain(first=node("first"), second=node("second"))

    async def read() -> None:
        async for _ in app.astream({"xs": []}, stream_mode="updates", control=RunControl(deadline_s=LIMIT_S)):
            time.sleep(1.5 * LIMIT_S)  # noqa: ASYNC251  # nothing else may run on the loop meanwhile

    def run() -> None:
        if colour.name == "async":
            asyncio.run(read())
            return
        for _ in app.stream({"xs": []}, stream_mode="updates", control=RunControl(deadline_s=LIMIT_S)):
            threading.Event().wait(1.5 * LIMIT_S)

    with pytest.raises(RunDeadlineError):
        bounded(run)

    assert ran == ["first"]


@pytest.mark.parametrize("kind", ["step", "run"])
def test_a_reader_that_stops_reading_waits_for_nodes_until_the_limit(kind: str, may_end: threading.Event) -> None:
    """Closing a stream waits for threads; not for longer than the run itself would have."""
    options, control = ({"step_timeout": LIMIT_S}, None) if kind == "step" else ({}, RunControl(deadline_s=LIMIT_S))
    begun, is_left = threading.Event(), []

    def stuck(state: State) -> None:
        begun.set()
        may_end.wait()
        is_left.append(False)

    def quick(state: State) -> State:
        begun.wait()
        return {"xs": ["quick"]}

    app = parallel(options, quick=quick, stuck=stuck)

    def read() -> None:
        reader = app.stream({"xs": []}, stream_mode="updates", control=control)
        next(reader)
        reader.close()

    bounded(read)
    assert not is_left
