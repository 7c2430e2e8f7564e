"""What readers of a run need of whatever moves it on, and a bell for those that wait for somebody else to do so."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeAlias

__all__ = ["AsyncPump", "Bell", "Pump"]

Pump: TypeAlias = Callable[[], bool]
"""Takes one part of the run through the mux; False says that nothing will come any more."""

AsyncPump: TypeAlias = Callable[[], Awaitable[bool]]


class Bell:
    """Wakes the coroutines that wait, each through a future of its own: cancelling one does not touch the others."""

    __slots__ = ("_waiting",)

    def __init__(self) -> None:
        self._waiting: list[asyncio.Future[None]] = []

    @property
    def has_waiters(self) -> bool:
        """Whether somebody waits."""
        return bool(self._waiting)

    def ring(self) -> None:
        """Wake all that wait now."""
        waiting, self._waiting = self._waiting, []
        for future in waiting:
            if not future.done():
                future.set_result(None)

    async def wait(self) -> None:
        """Wait for the next ring."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(future)
        await future
