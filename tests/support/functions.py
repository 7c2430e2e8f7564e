"""Entrypoints that are written once and run in three ways.

A body is a generator function: it yields the futures that it waits for, and gets their results.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from colours import ASYNC, SYNC, Colour

from tracegraph.func import EntrypointGraph, entrypoint


@dataclass(frozen=True)
class Way:
    """How an entrypoint runs."""

    name: str

    @property
    def colour(self) -> Colour:
        """The colour of its runs."""
        return SYNC if self.name == "sync function" else ASYNC

    def entrypoint(self, **options: Any) -> Callable[[Callable[..., Any]], EntrypointGraph]:
        """Return a decorator: ``entrypoint(**options)`` of a body."""

        def decorate(body: Callable[..., Any]) -> EntrypointGraph:
            return entrypoint(**options)(self.function(body))

        return decorate

    def function(self, body: Callable[..., Any]) -> Callable[..., Any]:
        """Return a body as a function of this way's colour."""

        @functools.wraps(body)
        def run(*args: Any, **kwargs: Any) -> Any:
            steps = body(*args, **kwargs)
            try:
                future = next(steps)
                while True:
                    try:
                        found = future.result()
                    except Exception as error:
                        future = steps.throw(error)
                    else:
                        future = steps.send(found)
            except StopIteration as stop:
                return stop.value

        @functools.wraps(body)
        async def arun(*args: Any, **kwargs: Any) -> Any:
            steps = body(*args, **kwargs)
            try:
                future = next(steps)
                while True:
                    try:
                        found = await future
                    except Exception as error:
                        future = steps.throw(error)
                    else:
                        future = steps.send(found)
            except StopIteration as stop:
                return stop.value

        made = arun if self.name == "async function" else run
        # Told to be what it wraps, it would be taken for a generator.
        del made.__wrapped__  # type: ignore[attr-defined]
        made.__signature__ = inspect.signature(body)  # type: ignore[attr-defined]
        return made

    def invoke(self, app: Any, given: Any, config: Any = None, **options: Any) -> Any:
        """Run to the end and return the result."""
        return self.colour.invoke(app, given, config, **options)

    def stream(self, app: Any, given: Any, config: Any = None, **options: Any) -> list[Any]:
        """Run to the end and return all parts."""
        return self.colour.stream(app, given, config, **options)
