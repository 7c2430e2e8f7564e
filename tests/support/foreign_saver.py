"""A saver as somebody else may have written it: ours underneath, with LangGraph's signatures and no more."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any

from tracegraph.checkpoint.base import BaseCheckpointSaver
from tracegraph.checkpoint.memory import InMemorySaver


class Foreign(BaseCheckpointSaver):
    """A saver of another make around ours: what it is asked for is written down, and its listings tell if they were closed."""

    def __init__(self, *, heeds: bool = True) -> None:
        super().__init__()
        self.inner = InMemorySaver()
        self.heeds = heeds
        self.read = 0
        self.open = 0
        self.asked: list[str] = []

    def get_next_version(self, current: Any, channel: None) -> Any:
        return self.inner.get_next_version(current, channel)

    def get_tuple(self, config: Any) -> Any:
        self.asked.append("get_tuple")
        return self.inner.get_tuple(config)

    def put(self, config: Any, checkpoint: Any, metadata: Any, new_versions: Any) -> Any:  # type: ignore[override]  # as LangGraph's
        return self.inner.put(config, checkpoint, metadata, new_versions)

    def put_writes(self, config: Any, writes: Any, task_id: str) -> None:  # type: ignore[override]  # as LangGraph's
        self.inner.put_writes(config, writes, task_id)

    def list(self, config: Any, *, filter: Any = None, before: Any = None, limit: Any = None) -> Iterator[Any]:
        self.asked.append("list")
        self.open += 1
        try:
            heeded = {"before": before, "limit": limit} if self.heeds else {}
            for found in self.inner.list(config, filter=filter, **heeded):
                self.read += 1
                yield found
        finally:
            self.open -= 1

    async def alist(self, config: Any, *, filter: Any = None, before: Any = None, limit: Any = None) -> AsyncIterator[Any]:
        listing = self.list(config, filter=filter, before=before, limit=limit)
        try:
            for found in listing:
                yield found
        finally:
            listing.close()  # type: ignore[attr-defined]  # a generator
