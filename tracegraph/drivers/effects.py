"""Effects: saver I/O around a run, written once as generators and carried out in either colour.

``found = yield from ask(GetTuple(saver, config))`` reads the same in both; :func:`run_flow` and :func:`arun_flow`
carry the orders out.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import Any, Generic, TypeAlias, TypeVar

from tracegraph.checkpoint.base import BaseCheckpointSaver
from tracegraph.records import CheckpointTuple

__all__ = ["Effect", "Flow", "GetTuple", "ListTuples", "arun_flow", "ask", "run_flow"]

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
        return list(self.saver.list(self.config, filter=self.filter, before=self.before, limit=self.limit))

    async def acarry_out(self) -> list[CheckpointTuple]:
        """Do it, awaiting."""
        return [found async for found in self.saver.alist(self.config, filter=self.filter, before=self.before, limit=self.limit)]


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
