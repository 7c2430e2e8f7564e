"""How the service's graphs are called, and what must come of it, in both colours."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from benchmarks.soak.shapes import BoomError, Call, build_for_one_run
from tracegraph.errors import GraphDrained, NodeTimeoutError
from tracegraph.types import Command

__all__ = ["SCENARIOS", "Scenario"]

GIVEN: Any = {"n": 0}


@dataclass(frozen=True)
class Scenario:
    """One way to use a graph: called with the compiled graph and the run's config."""

    name: str
    shape: str
    sync: Callable[[Any, Any], None] | None
    asynchronous: Callable[[Any, Any], Awaitable[None]] | None
    runs: int = 1
    """How often it calls a graph."""
    needs_saver: bool = False
    takes_turns: bool = False
    """Whether runs queue up for their thread."""


def _check(is_right: bool, what: str, got: Any) -> None:
    if not is_right:
        raise AssertionError(f"{what} came out wrong: {got!r}")


def _ending(name: str, is_right: Callable[[Any], bool]) -> Scenario:
    """Return a scenario that runs the shape of this name to its end."""

    def run(app: Any, config: Any) -> None:
        result = app.invoke(GIVEN, config)
        _check(is_right(result), name, result)

    async def arun(app: Any, config: Any) -> None:
        result = await app.ainvoke(GIVEN, config)
        _check(is_right(result), name, result)

    return Scenario(name, name, run, arun)


def _failing(name: str, shape: str, error: type[BaseException], *, is_sync: bool = True) -> Scenario:
    """Return a scenario whose run must raise *error*."""

    def run(app: Any, config: Any) -> None:
        with suppress(error):
            _check(False, name, app.invoke(GIVEN, config))

    async def arun(app: Any, config: Any) -> None:
        with suppress(error):
            _check(False, name, await app.ainvoke(GIVEN, config))

    return Scenario(name, shape, run if is_sync else None, arun)


# --- paused, drained, resumed -----------------------------------------------------------------------------------


def _resume(app: Any, config: Any) -> None:
    paused = app.invoke(GIVEN, config)
    _check("__interrupt__" in paused, "a pause", paused)
    _check(app.get_state(config).next == ("ask",), "the state of a pause", paused)
    result = app.invoke(Command(resume=7), config)
    _check(result == {"n": 1, "xs": [7]}, "a resumed run", result)
    _check(len(list(app.get_state_history(config))) == 4, "a history", result)


async def _aresume(app: Any, config: Any) -> None:
    paused = await app.ainvoke(GIVEN, config)
    _check("__interrupt__" in paused, "a pause", paused)
    _check((await app.aget_state(config)).next == ("ask",), "the state of a pause", paused)
    result = await app.ainvoke(Command(resume=7), config)
    _check(result == {"n": 1, "xs": [7]}, "a resumed run", result)
    _check(len([state async for state in app.aget_state_history(config)]) == 4, "a history", result)


def _drain(app: Any, config: Any) -> None:
    call = Call()
    with suppress(GraphDrained):
        _check(False, "a drained run", app.invoke(GIVEN, config, context=call, control=call.control))
    result = app.invoke(None, config, context=Call())
    _check(result["n"] == 2, "a run after a drain", result)


async def _adrain(app: Any, config: Any) -> None:
    call = Call()
    with suppress(GraphDrained):
        _check(False, "a drained run", await app.ainvoke(GIVEN, config, context=call, control=call.control))
    result = await app.ainvoke(None, config, context=Call())
    _check(result["n"] == 2, "a run after a drain", result)


# --- left in the middle -----------------------------------------------------------------------------------------


def _close(app: Any, config: Any) -> None:
    parts = app.stream(GIVEN, config, stream_mode=["updates", "custom"])
    next(parts)
    parts.close()


async def _aclose(app: Any, config: Any) -> None:
    parts = app.astream(GIVEN, config, stream_mode=["updates", "custom"])
    await anext(parts)
    await parts.aclose()


def _drop(app: Any, config: Any) -> None:
    next(app.stream(GIVEN, config, stream_mode="values"))


async def _adrop(app: Any, config: Any) -> None:
    await anext(app.astream(GIVEN, config, stream_mode="values"))


async def _cancel(app: Any, config: Any) -> None:
    call = Call()
    run = asyncio.create_task(app.ainvoke(GIVEN, config, context=call))
    await call.is_waiting.wait()
    run.cancel()
    with suppress(asyncio.CancelledError):
        _check(False, "a cancelled run", await run)


# --- in turn, and for once --------------------------------------------------------------------------------------


async def _aqueue(app: Any, config: Any) -> None:
    await asyncio.gather(app.ainvoke(GIVEN, config), app.ainvoke(GIVEN, config))


def _queue(app: Any, config: Any) -> None:
    app.invoke(GIVEN, config)
    app.invoke(GIVEN, config)


def _once(app: Any, config: Any) -> None:
    result = build_for_one_run(is_async=False).invoke(GIVEN, config)
    _check(result == {"n": 1}, "a graph made for one run", result)


async def _aonce(app: Any, config: Any) -> None:
    result = await build_for_one_run(is_async=True).ainvoke(GIVEN, config)
    _check(result == {"n": 1}, "a graph made for one run", result)


def _own_loop(app: Any, config: Any) -> None:
    result = asyncio.run(app.ainvoke(GIVEN, config))
    _check(result["n"] == 3, "an async run on a loop of its own", result)


SCENARIOS = (
    _ending("loop", lambda result: result["n"] == 3),
    _ending("fan-out", lambda result: result["xs"] == [0, 1, 2, 3]),
    _ending("subgraph", lambda result: result["n"] == 1 and result["xs"] == [1]),
    _ending("called graph", lambda result: result["n"] == 2),
    _ending("tasks", lambda result: result["xs"] == [2, 4]),
    _ending("retry", lambda result: sorted(result["xs"]) == [0, 2]),
    _ending("rescue", lambda result: result["xs"] == [0]),
    _failing("failed", "fail", BoomError),
    _failing("timed out", "too slow", NodeTimeoutError, is_sync=False),
    Scenario("paused, resumed", "ask", _resume, _aresume, runs=2, needs_saver=True),
    Scenario("drained, resumed", "drain", _drain, _adrain, runs=2, needs_saver=True),
    Scenario("closed early", "talk", _close, _aclose),
    Scenario("reader dropped", "talk", _drop, _adrop),
    Scenario("cancelled", "wait", None, _cancel),
    Scenario("in turn", "loop", _queue, _aqueue, runs=2, needs_saver=True, takes_turns=True),
    Scenario("graph of its own", "loop", _once, _aonce),
    Scenario("loop of its own", "loop", _own_loop, None),
)
