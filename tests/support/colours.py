"""Both colours of a compiled graph behind one face, so that a test is written once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal


@dataclass(frozen=True)
class Colour:
    """Runs a graph on the sync or the async driver; each async call has an event loop of its own."""

    name: Literal["sync", "async"]

    def invoke(self, app: Any, given: Any, config: Any = None, **options: Any) -> Any:
        """Run to the end and return the result."""
        if self.name == "sync":
            return app.invoke(given, config, **options)

        async def run() -> Any:
            return await app.ainvoke(given, config, **options)

        return asyncio.run(run())

    def stream(self, app: Any, given: Any, config: Any = None, **options: Any) -> list[Any]:
        """Run to the end and return all chunks."""
        found: list[Any] = []
        self.each(app, given, found.append, config, **options)
        return found

    def each(self, app: Any, given: Any, consume: Callable[[Any], None], config: Any = None, **options: Any) -> None:
        """Run to the end and give each chunk to *consume* as it comes."""
        if self.name == "sync":
            for chunk in app.stream(given, config, **options):
                consume(chunk)
            return

        async def run() -> None:
            async for chunk in app.astream(given, config, **options):
                consume(chunk)

        asyncio.run(run())


SYNC, ASYNC = Colour("sync"), Colour("async")
