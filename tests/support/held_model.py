"""The model of the briefing example, held back."""

from __future__ import annotations

import asyncio
from typing import Any

import briefing
import pytest

__all__ = ["HeldModel"]


class HeldModel:
    """Says one word in each node, and no more before it is told to."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.go_on, self.stopped = asyncio.Event(), asyncio.Event()
        self._speaking: set[asyncio.Task[Any] | None] = set()
        monkeypatch.setattr(briefing, "think", self.think)

    async def think(self) -> None:
        if (node := asyncio.current_task()) not in self._speaking:
            self._speaking.add(node)
            return
        try:
            await self.go_on.wait()
        except asyncio.CancelledError:
            self.stopped.set()
            raise
