"""Handlers that fail, sync and async, in both colours: logged, counted, or the end of the run."""

from __future__ import annotations

import asyncio
import logging
from typing import Any, TypedDict

import pytest
from colours import ASYNC, SYNC, Colour

from tracegraph.callbacks import AsyncCallbackHandler, BaseCallbackHandler
from tracegraph.graph import START, StateGraph


class State(TypedDict, total=False):
    n: int


@pytest.fixture(params=[SYNC, ASYNC], ids=lambda colour: colour.name)
def colour(request: pytest.FixtureRequest) -> Colour:
    """The colour of the run under test."""
    return request.param  # type: ignore[no-any-return]


@pytest.fixture
def ran() -> list[str]:
    """Which nodes ran."""
    return []


@pytest.fixture
def app(ran: list[str]) -> Any:
    """A graph of two nodes."""
    graph: StateGraph[Any, Any, Any, Any] = StateGraph(State)
    graph.add_sequence([("a", lambda state: ran.append("a")), ("b", lambda state: ran.append("b"))])
    graph.add_edge(START, "a")
    return graph.compile()


def failing(method: str, node: str | None, *, is_async: bool, raise_error: bool) -> Any:
    """Return a handler whose *method* fails, for the run of that name if one is given."""
    names: dict[Any, str] = {}

    def check(kwargs: dict[str, Any]) -> None:
        name = names.setdefault(kwargs["run_id"], kwargs.get("name") or "")
        if node is None or name == node:
            raise LookupError(f"{method} of {name}")

    class Sync(BaseCallbackHandler):
        def on_chain_start(self, serialized: Any, inputs: Any, **kwargs: Any) -> None:
            names[kwargs["run_id"]] = kwargs.get("name") or ""

    class Async(AsyncCallbackHandler):
        async def on_chain_start(self, serialized: Any, inputs: Any, **kwargs: Any) -> None:
            names[kwargs["run_id"]] = kwargs.get("name") or ""

    def sync_method(self: Any, *args: Any, **kwargs: Any) -> None:
        check(kwargs)

    async def async_method(self: Any, *args: Any, **kwargs: Any) -> None:
        await asyncio.sleep(0)
        check(kwargs)

    made: Any = type("Failing", (Async if is_async else Sync,), {method: async_method if is_async else sync_method})()
    made.raise_error = raise_error
    return made


@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize("method", ["on_chain_start", "on_chain_end"])
def test_a_handlers_failure_is_logged_and_the_run_goes_on(
    colour: Colour, app: Any, ran: list[str], method: str, is_async: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """Once per method, however often it fails."""
    handler = failing(method, None, is_async=is_async, raise_error=False)

    with caplog.at_level(logging.WARNING, "tracegraph"):
        colour.invoke(app, {"n": 1}, {"callbacks": [handler]})

    assert ran == ["a", "b"]
    assert [record.getMessage().partition(" raised")[0] for record in caplog.records] == [f"Failing.{method}"]


@pytest.mark.parametrize(
    ("method", "node", "nodes"),
    [
        ("on_chain_start", "LangGraph", []),
        ("on_chain_end", "a", ["a"]),
        ("on_chain_end", "LangGraph", ["a", "b"]),
    ],
)
def test_with_raise_error_it_fails_the_run(
    colour: Colour, app: Any, ran: list[str], method: str, node: str, nodes: list[str]
) -> None:
    """With its own error; at the start nothing runs, between two nodes the second does not, at the end nothing is returned."""
    handler = failing(method, node, is_async=False, raise_error=True)

    with pytest.raises(LookupError, match=f"{method} of {node}"):
        colour.invoke(app, {"n": 1}, {"callbacks": [handler]})

    assert ran == nodes


@pytest.mark.parametrize(
    ("method", "node"), [("on_chain_start", "LangGraph"), ("on_chain_end", "a"), ("on_chain_end", "LangGraph")]
)
def test_with_raise_error_an_async_handler_fails_the_run_too(colour: Colour, app: Any, method: str, node: str) -> None:
    """Its coroutine is awaited while the run goes on."""
    handler = failing(method, node, is_async=True, raise_error=True)

    with pytest.raises(LookupError, match=f"{method} of {node}"):
        colour.invoke(app, {"n": 1}, {"callbacks": [handler]})


def test_async_handlers_of_a_sync_run_finish_before_it_goes_on(app: Any, ran: list[str]) -> None:
    """Their coroutines run to completion on a loop of their own."""

    class Slow(AsyncCallbackHandler):
        async def on_chain_start(self, serialized: Any, inputs: Any, **kwargs: Any) -> None:
            await asyncio.sleep(0)
            ran.append(f"start {kwargs['name']}")

        async def on_chain_end(self, outputs: Any, **kwargs: Any) -> None:
            await asyncio.sleep(0)
            ran.append("end")

    app.invoke({"n": 1}, {"callbacks": [Slow()]})

    assert ran[0] == "start LangGraph"
    assert ran[-1] == "end"
    assert sorted(ran) == ["a", "b", "end", "end", "end", "start LangGraph", "start a", "start b"]


def test_a_sync_run_in_a_coroutine_serves_async_handlers_too(app: Any, ran: list[str]) -> None:
    """The loop of its thread runs already and cannot be re-entered: a thread of its own serves."""

    class Slow(AsyncCallbackHandler):
        async def on_chain_end(self, outputs: Any, **kwargs: Any) -> None:
            await asyncio.sleep(0)
            ran.append("end")

    async def main() -> Any:
        return app.invoke({"n": 1}, {"callbacks": [Slow()]})

    assert asyncio.run(main()) == {"n": 1}
    assert sorted(ran) == ["a", "b", "end", "end", "end"]


def test_a_sync_run_in_a_coroutine_fails_with_its_handler(app: Any) -> None:
    """The error comes back from that thread."""
    handler = failing("on_chain_end", "a", is_async=True, raise_error=True)

    async def main() -> Any:
        return app.invoke({"n": 1}, {"callbacks": [handler]})

    with pytest.raises(LookupError, match="on_chain_end of a"):
        asyncio.run(main())


def test_handlers_of_a_nested_call_leave_with_it(colour: Colour, app: Any) -> None:
    """They hear of the inner run only, and of nothing after it."""
    heard: list[str] = []

    class Listening(BaseCallbackHandler):
        def on_chain_start(self, serialized: Any, inputs: Any, **kwargs: Any) -> None:
            heard.append(kwargs["name"])

    def call(state: State) -> None:
        app.invoke({"n": 1}, {"callbacks": [Listening()], "run_name": "inner"})

    async def acall(state: State) -> None:
        await app.ainvoke({"n": 1}, {"callbacks": [Listening()], "run_name": "inner"})

    graph: StateGraph[Any, Any, Any, Any] = StateGraph(State)
    graph.add_sequence([("outer", call if colour.name == "sync" else acall), ("after", lambda state: None)])
    graph.add_edge(START, "outer")

    colour.invoke(graph.compile(), {"n": 1})

    assert heard == ["inner", "a", "b"]


def test_cancelling_the_caller_cancels_what_a_handler_is_doing(app: Any, ran: list[str]) -> None:
    """The run ends cancelled; the handler's failure it is not."""
    seen: list[str] = []

    async def main() -> None:
        is_there = asyncio.Event()

        class Waiting(AsyncCallbackHandler):
            async def on_chain_start(self, serialized: Any, inputs: Any, **kwargs: Any) -> None:
                is_there.set()
                try:
                    await asyncio.Event().wait()
                finally:
                    seen.append("over")

        running = asyncio.create_task(app.ainvoke({"n": 1}, {"callbacks": [Waiting()]}))
        await is_there.wait()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running

    asyncio.run(main())

    assert seen == ["over"]
    assert ran == []


@pytest.mark.parametrize("error", [asyncio.CancelledError, SystemExit])
def test_a_handler_that_raises_what_nobody_handles_ends_the_run(
    colour: Colour, app: Any, error: type[BaseException], caplog: pytest.LogCaptureFixture
) -> None:
    """It comes out of the call; a handler has no business cancelling anything, but it is not swallowed either."""

    class Odd(BaseCallbackHandler):
        def on_chain_end(self, outputs: Any, **kwargs: Any) -> None:
            raise error

    with pytest.raises(error):
        colour.invoke(app, {"n": 1}, {"callbacks": [Odd()]})
