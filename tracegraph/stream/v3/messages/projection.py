"""Parts of a message that can be read from the start by any number of readers, while they grow or afterwards."""

from __future__ import annotations

from collections.abc import AsyncIterator, Generator, Iterator
from typing import Any, Generic, TypeVar

from tracegraph.stream.v3.pulling import AsyncPump, Bell, Pump

__all__ = ["AsyncProjection", "Projection", "SyncProjection", "SyncText"]

T = TypeVar("T")


class Projection(Generic[T]):
    """Deltas, and the value they come to."""

    def __init__(self) -> None:
        self.deltas: list[T] = []
        self.done = False
        self.error: BaseException | None = None
        self.final: Any = None
        self._bell = Bell()

    def push(self, delta: T) -> None:
        """Add a delta."""
        self.deltas.append(delta)
        self._bell.ring()

    def complete(self, final: Any) -> None:
        """End it with what the deltas come to."""
        if not self.done:
            self.final = final
            self.done = True
            self._bell.ring()

    def fail(self, error: BaseException) -> None:
        """End it with an error, which readers are given after the deltas."""
        if not self.done:
            self.error = error
            self.done = True
            self._bell.ring()

    def _result(self) -> Any:
        if self.error is not None:
            raise self.error
        return self.final


class SyncProjection(Projection[T]):
    """Read with ``for``, or whole with ``get()``; either moves the run on as far as it takes."""

    def __init__(self, pump: Pump | None) -> None:
        super().__init__()
        self._pump = pump

    def _pull(self) -> bool:
        return self._pump is not None and self._pump()

    def __iter__(self) -> Iterator[T]:
        at = 0
        while True:
            if at < len(self.deltas):
                yield self.deltas[at]
                at += 1
            elif self.done:
                self._result()
                return
            elif not self._pull():
                return

    def get(self) -> Any:
        """Return the whole, once it is there; None if the run was left before."""
        while not self.done and self._pull():
            pass
        return self._result()


class SyncText(SyncProjection[str]):
    """Text that is read with ``for``, or whole with ``str()``."""

    def get(self) -> str:
        """Return the text, once it is all there; what there is of it if the run was left before."""
        found = super().get()
        return "".join(self.deltas) if found is None else str(found)

    def __str__(self) -> str:
        return self.get()

    def __repr__(self) -> str:
        return f"<{'text' if self.done else 'unfinished text'} {''.join(self.deltas)!r}>"


class AsyncProjection(Projection[T]):
    """Read with ``async for``, or whole with ``await``; either moves the run on as far as it takes."""

    def __init__(self, pump: AsyncPump | None) -> None:
        super().__init__()
        self._pump = pump

    async def _pull(self) -> bool:
        if self._pump is not None:
            return await self._pump()
        await self._bell.wait()
        return True

    async def __aiter__(self) -> AsyncIterator[T]:
        at = 0
        while True:
            if at < len(self.deltas):
                yield self.deltas[at]
                at += 1
            elif self.done:
                self._result()
                return
            elif not await self._pull():
                return

    def __await__(self) -> Generator[Any, None, Any]:
        return self.get().__await__()

    async def get(self) -> Any:
        """Return the whole, once it is there; None if the run was left before."""
        while not self.done and await self._pull():
            pass
        return self._result()
