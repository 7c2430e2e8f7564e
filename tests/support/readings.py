"""Runs a graph and writes down what can be compared: final values, the updates of each superstep, the error."""

from __future__ import annotations

import asyncio
import warnings
from collections import Counter
from collections.abc import AsyncIterable, Awaitable, Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from recipes import text_of

Updates: TypeAlias = Counter[str]
"""The updates of a superstep as a multiset: parallel tasks finish in any order."""


@dataclass
class Reading:
    """What a run showed. ``values`` holds, by superstep, the state after it, where the library told."""

    final: str | None = None
    error: str | None = None
    steps: list[Updates] = field(default_factory=list)
    values: dict[int, str] = field(default_factory=dict)

    def agrees_with(self, other: Reading) -> None:
        """Assert that both readings say the same.

        After an error the last superstep may be told in part: how far siblings of a failed task got is a race.
        """
        assert (self.error, self.final) == (other.error, other.final)
        ours, theirs = self.steps, other.steps
        if self.error is not None:
            assert abs(len(ours) - len(theirs)) <= 1
            whole = max(min(len(ours), len(theirs)) - 1, 0)
            ours, theirs = ours[:whole], theirs[:whole]
        assert ours == theirs
        both = self.values.keys() & other.values.keys()
        assert {n: self.values[n] for n in both} == {n: other.values[n] for n in both}


class Oracle:
    """Reads LangGraph's stream, where ``debug`` says in which superstep a task starts."""

    modes = ["updates", "debug", "values"]

    def __init__(self, reading: Reading) -> None:
        self._reading = reading
        self._step = 0

    def read(self, mode: str, chunk: Any) -> None:
        """Take one chunk."""
        if mode == "debug" and chunk["type"] == "task":
            self._step = chunk["step"]
        elif mode == "updates":
            add(self._reading, self._step, chunk)
        elif mode == "values":
            self._reading.values[self._step] = text_of(chunk)


class Ours:
    """Reads tracegraph's stream, where every superstep ends with its ``values``."""

    modes = ["updates", "values"]

    def __init__(self, reading: Reading) -> None:
        self._reading = reading
        self._step = 0

    def read(self, mode: str, chunk: Any) -> None:
        """Take one chunk."""
        if mode == "updates":
            add(self._reading, self._step, chunk)
        else:
            self._reading.values[self._step] = text_of(chunk)
            self._step += 1


def add(reading: Reading, step: int, chunk: Any) -> None:
    """Count an update in its superstep; step 0 is the start node's and has none, so step n is ``steps[n - 1]``."""
    while len(reading.steps) < step:
        reading.steps.append(Counter())
    reading.steps[step - 1][text_of(chunk)] += 1


Reader: TypeAlias = type[Oracle] | type[Ours]


def read_sync(app: Any, recipe: Any, reader: Reader) -> Reading:
    """Run *app* on the sync driver: stream it, and invoke it once more for the final values."""
    reading = Reading()
    config = {"recursion_limit": recipe.recursion_limit}
    with quiet():
        stream = app.stream(recipe.input(), config, stream_mode=reader.modes)
        _collect(stream, reader(reading), reading)
        _finish(lambda: app.invoke(recipe.input(), config), reading)
    return reading


def read_async(app: Any, recipe: Any, reader: Reader) -> Reading:
    """Run *app* on the async driver, each run on a loop of its own."""
    reading = Reading()
    config = {"recursion_limit": recipe.recursion_limit}

    async def stream() -> None:
        source: AsyncIterable[Any] = app.astream(recipe.input(), config, stream_mode=reader.modes)
        sink = reader(reading)
        async for mode, chunk in source:
            sink.read(mode, chunk)

    with quiet():
        _note_error(lambda: asyncio.run(stream()), reading)
        _finish(lambda: asyncio.run(_wait(app.ainvoke(recipe.input(), config))), reading)
    return reading


async def _wait(result: Awaitable[Any]) -> Any:
    return await result


def _collect(stream: Iterable[Any], sink: Any, reading: Reading) -> None:
    def take() -> None:
        for mode, chunk in stream:
            sink.read(mode, chunk)

    _note_error(take, reading)


def _note_error(run: Callable[[], None], reading: Reading) -> None:
    try:
        run()
    except Exception as error:
        reading.error = type(error).__name__


def _finish(invoke: Callable[[], Any], reading: Reading) -> None:
    """Note what invoke() returns; it must fail if, and as, the streamed run did."""
    try:
        reading.final = text_of(invoke())
    except Exception as error:
        assert type(error).__name__ == reading.error, error
    else:
        assert reading.error is None, reading.error


@contextmanager
def quiet() -> Iterator[None]:
    """Let a run warn: a generated graph may well have a join that starves."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
