"""The small engines below the drivers: flows of effects, and awaiting in another Context."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Coroutine
from dataclasses import dataclass
from typing import Any

import pytest
from colours import Colour

from tracegraph.drivers.effects import Effect, Flow, arun_flow, ask, run_flow
from tracegraph.drivers.in_context import InContext

SEEN: contextvars.ContextVar[str] = contextvars.ContextVar("seen", default="outside")


@dataclass
class Echo(Effect[str]):
    """Answers with a text, or fails with an error."""

    text: str
    error: BaseException | None = None

    def carry_out(self) -> str:
        """Answer, blocking."""
        if self.error is not None:
            raise self.error
        return f"sync {self.text}"

    async def acarry_out(self) -> str:
        """Answer, awaiting."""
        await asyncio.sleep(0)
        if self.error is not None:
            raise self.error
        return f"async {self.text}"


def run(colour: Colour, flow: Flow[Any]) -> Any:
    """Run a flow in the given colour."""
    return run_flow(flow) if colour.name == "sync" else asyncio.run(arun_flow(flow))


def test_a_flow_gets_the_answers_of_its_effects(colour: Colour) -> None:
    """One after the other; what it returns is the result."""

    def flow() -> Flow[list[str]]:
        first = yield from ask(Echo("one"))
        second = yield from ask(Echo("two"))
        return [first, second]

    assert run(colour, flow()) == [f"{colour.name} one", f"{colour.name} two"]


def test_a_flow_may_handle_what_an_effect_raises(colour: Colour) -> None:
    """The error is raised where the effect was asked for; the flow may go on with another one."""

    def flow() -> Flow[str]:
        try:
            return (yield from ask(Echo("one", OSError("disk"))))
        except OSError as error:
            answer = yield from ask(Echo(str(error)))
            return answer

    assert run(colour, flow()) == f"{colour.name} disk"


def test_an_error_a_flow_does_not_handle_comes_out(colour: Colour) -> None:
    """As it is."""

    def flow() -> Flow[str]:
        return (yield from ask(Echo("one", OSError("disk"))))

    with pytest.raises(OSError, match="disk"):
        run(colour, flow())


# --- another Context --------------------------------------------------------------------------------------------


def fresh(value: str) -> contextvars.Context:
    """Return a Context in which the variable has that value."""
    context = contextvars.copy_context()
    context.run(SEEN.set, value)
    return context


async def inside(coroutine: Coroutine[Any, Any, Any]) -> Any:
    """Await a coroutine in a Context of its own."""
    return await InContext(coroutine, fresh("inside"))


def test_a_coroutine_runs_in_its_context_from_first_to_last_line() -> None:
    """Across awaits; the caller's Context is untouched, also by what the coroutine sets."""

    async def look() -> list[str]:
        before = SEEN.get()
        await asyncio.sleep(0)
        SEEN.set("changed")
        await asyncio.sleep(0)
        return [before, SEEN.get()]

    async def main() -> tuple[Any, str]:
        return await inside(look()), SEEN.get()

    assert asyncio.run(main()) == (["inside", "changed"], "outside")


def test_an_awaited_failure_is_raised_inside() -> None:
    """The coroutine may handle it, still in its Context."""

    async def handle(future: asyncio.Future[None]) -> str:
        try:
            await future
        except OSError as error:
            await asyncio.sleep(0)
            return f"{SEEN.get()}: {error}"
        return "nothing happened"

    async def main() -> Any:
        loop = asyncio.get_running_loop()
        future = loop.create_future()
        loop.call_soon(future.set_exception, OSError("disk"))
        return await inside(handle(future))

    assert asyncio.run(main()) == "inside: disk"


def test_what_a_coroutine_raises_comes_out() -> None:
    """At once or after an await."""

    async def fail(*, late: bool) -> None:
        if late:
            await asyncio.sleep(0)
        raise KeyError(SEEN.get())

    for late in (False, True):
        with pytest.raises(KeyError, match="inside"):
            asyncio.run(inside(fail(late=late)))


def test_a_cancellation_reaches_the_coroutine() -> None:
    """It sees it in its own Context, and may clean up."""
    seen: list[str] = []

    async def wait() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            seen.append(SEEN.get())

    async def main() -> None:
        running = asyncio.create_task(inside(wait()))
        await asyncio.sleep(0)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running

    asyncio.run(main())

    assert seen == ["inside"]


def test_closing_whoever_awaits_closes_the_coroutine() -> None:
    """Its last lines run in its own Context; nothing is left behind unawaited."""
    seen: list[str] = []

    async def wait() -> None:
        try:
            await asyncio.sleep(0)
        finally:
            seen.append(SEEN.get())

    awaiting = inside(wait())
    awaiting.send(None)
    awaiting.close()

    assert seen == ["inside"]


def test_an_effect_that_does_not_say_how_is_our_fault(colour: Colour) -> None:
    """There is no half an effect: each has to be carried out in both colours."""

    def flow() -> Flow[None]:
        yield from ask(Effect[None]())

    with pytest.raises(AssertionError, match="every effect says how"):
        run(colour, flow())
