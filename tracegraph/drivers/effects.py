"""Effects: saver I/O around a run, written once as generators and carried out in either colour.

``found = yield from ask(GetTuple(saver, config))`` reads the same in both; :func:`run_flow` and :func:`arun_flow`
carry the orders out.
"""

from __future__ import annotations

import asyncio
import contextvars
import time
from collections.abc import Generator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar

from tracegraph.checkpoint.base import BaseCheckpointSaver
from tracegraph.current import CURRENT, Here
from tracegraph.drivers.in_context import InContext
from tracegraph.drivers.saves import SaverPort, Written
from tracegraph.engine.actions import SaveCheckpoint, SaveWrites
from tracegraph.records import CheckpointTuple

if TYPE_CHECKING:
    from tracegraph.drivers.body import Body

__all__ = ["CallPath", "CallSaver", "Effect", "Flow", "GetTuple", "ListTuples", "Save", "Wait", "arun_flow", "ask", "run_flow"]

T = TypeVar("T")


class Effect(Generic[T]):
    """An order to the outside world whose answer is a T."""

    __slots__ = ()

    def carry_out(self) -> T:
        """Do it, blocking."""
        raise AssertionError("every effect says how it is carried out")

    async def acarry_out(self) -> T:
        """Do it, awaiting."""
        raise AssertionError("every effect says how it is carried out")


Flow: TypeAlias = Generator[Effect[Any], Any, T]


def ask(effect: Effect[T]) -> Flow[T]:
    """Yield an effect and return its answer, typed."""
    answer: T = yield effect
    return answer


@dataclass(slots=True)
class GetTuple(Effect["CheckpointTuple | None"]):
    """Load the checkpoint that *config* names, or the newest of its thread and namespace."""

    saver: BaseCheckpointSaver
    config: Any

    def carry_out(self) -> CheckpointTuple | None:
        """Do it, blocking."""
        return self.saver.get_tuple(self.config)

    async def acarry_out(self) -> CheckpointTuple | None:
        """Do it, awaiting."""
        return await self.saver.aget_tuple(self.config)


@dataclass(slots=True)
class ListTuples(Effect["list[CheckpointTuple]"]):
    """Load one page of a thread's checkpoints, newest first."""

    saver: BaseCheckpointSaver
    config: Any
    filter: dict[str, Any] | None
    before: Any
    limit: int | None

    def carry_out(self) -> list[CheckpointTuple]:
        """Do it, blocking."""
        found = self.saver.list(self.config, filter=self.filter, before=self.before, limit=self.limit)
        try:
            return list(islice(found, self.limit))  # a saver may count for itself, or not at all
        finally:
            if (close := getattr(found, "close", None)) is not None:
                close()

    async def acarry_out(self) -> list[CheckpointTuple]:
        """Do it, awaiting."""
        found = self.saver.alist(self.config, filter=self.filter, before=self.before, limit=self.limit)
        page: list[CheckpointTuple] = []
        try:
            while self.limit is None or len(page) < self.limit:
                page.append(await anext(found))
        except StopAsyncIteration:
            pass
        finally:
            if (close := getattr(found, "aclose", None)) is not None:
                await close()
        return page


@dataclass(slots=True)
class Save(Effect[Written]):
    """Store checkpoints, and what tasks wrote under the checkpoints whose supersteps they belong to: all of it or nothing.

    The answer is how many bytes that took, by checkpoint.
    """

    port: SaverPort
    saves: Sequence[SaveCheckpoint | SaveWrites]

    def carry_out(self) -> Written:
        """Do it, blocking."""
        return self.port.store(self.saves)

    async def acarry_out(self) -> Written:
        """Do it, awaiting."""
        return await self.port.astore(self.saves)


@dataclass(slots=True)
class CallSaver(Effect[Any]):
    """Call a saver's method, or its async twin."""

    saver: BaseCheckpointSaver
    method: str
    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = field(default_factory=dict)

    def carry_out(self) -> Any:
        """Do it, blocking."""
        return getattr(self.saver, self.method)(*self.args, **self.kwargs)

    async def acarry_out(self) -> Any:
        """Do it, awaiting."""
        return await getattr(self.saver, f"a{self.method}")(*self.args, **self.kwargs)


@dataclass(slots=True)
class Wait(Effect[None]):
    """Let some time pass."""

    seconds: float

    def carry_out(self) -> None:
        """Do it, blocking."""
        time.sleep(self.seconds)

    async def acarry_out(self) -> None:
        """Do it, awaiting."""
        await asyncio.sleep(self.seconds)


@dataclass(slots=True)
class CallPath(Effect[Any]):
    """Call the path function of a conditional edge outside a run; ``here`` is what its code finds as the current task."""

    here: Here
    body: Body
    args: tuple[Any, ...]
    kwargs: dict[str, Any]

    def carry_out(self) -> Any:
        """Do it, blocking.

        Raises:
            TypeError: it is async.
        """
        if self.body.fn is not None:
            found: Any = self._context().run(self.body.fn, *self.args, **self.kwargs)
            if not hasattr(found, "__await__"):
                return found
            if hasattr(found, "close"):
                found.close()  # else Python warns that it was never awaited
        raise TypeError(f"path function {self.body.name!r} is async: use aupdate_state() or abulk_update_state()")

    async def acarry_out(self) -> Any:
        """Do it, awaiting; a path function is quick, so a sync one is called on the loop."""
        context = self._context()
        function: Any = self.body.afn or self.body.fn
        found = context.run(function, *self.args, **self.kwargs)
        return await InContext(_awaited(found), context) if hasattr(found, "__await__") else found

    def _context(self) -> contextvars.Context:
        context = contextvars.copy_context()
        context.run(CURRENT.set, self.here)
        return context


async def _awaited(awaitable: Any) -> Any:
    return await awaitable


def run_flow(flow: Flow[T]) -> T:
    """Carry out a flow's effects, blocking, and return its result."""
    try:
        effect = next(flow)
        while True:
            try:
                answer = effect.carry_out()
            except BaseException as error:
                effect = flow.throw(error)
            else:
                effect = flow.send(answer)
    except StopIteration as stop:
        result: T = stop.value
        return result


async def arun_flow(flow: Flow[T]) -> T:
    """Carry out a flow's effects, awaiting, and return its result."""
    try:
        effect = next(flow)
        while True:
            try:
                answer = await effect.acarry_out()
            except BaseException as error:
                effect = flow.throw(error)
            else:
                effect = flow.send(answer)
    except StopIteration as stop:
        result: T = stop.value
        return result
