"""Where in a run node code stands, and how what it calls gets to the Hub and to handlers the Hub does not know."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final, Protocol
from uuid import UUID, uuid4

from tracegraph.callbacks.base import FatalObserverError
from tracegraph.callbacks.dispatch import HandlerObserver
from tracegraph.engine.identity import derived_uuid_text
from tracegraph.events import Event

__all__ = ["NOWHERE", "Place", "Publisher", "Reporter"]


class Publisher(Protocol):
    """The part of a Hub that node code needs."""

    @property
    def wants(self) -> int:
        """Kinds somebody listens to."""

    def publish(self, event: Event) -> None:
        """Hand an event to whoever wants it."""


def _nobody() -> None:
    """Return what there is where no attempt is."""


@dataclass(frozen=True, slots=True)
class Place:
    """One attempt of one task, and the Hub of its run (None outside a run).

    ``heard`` are the handlers that the Hub tells already. Make one Place per attempt: the ids of calls are hashed
    from how many were made here before.
    """

    hub: Publisher | None
    run_id: UUID
    ns: str = ""
    step: int = -1
    task_id: str = ""
    node: str = ""
    attempt: int = 1
    heard: tuple[Any, ...] = ()
    now: Callable[[], int] = time.time_ns
    progress: Callable[[], None] | None = None
    """Called for whatever is reported here, whether or not anybody listens: a sign that node code is alive."""
    calls: Iterator[int] = field(default_factory=itertools.count)
    attempt_here: Callable[[], Any] = field(default=_nobody, compare=False)
    """Returns the driver's record of the attempt, None once nobody needs it any more: what is called with the attempt's config
    in a thread without its context finds its way by it. Not the record itself, which has the config that leads here."""

    def next_call_id(self) -> UUID:
        """Return the id of the next call made here."""
        if self.hub is None:
            return uuid4()
        return UUID(derived_uuid_text(self.run_id.bytes, self.task_id, str(self.attempt), "call", str(next(self.calls))))


NOWHERE: Final = Place(None, UUID(int=0))
"""Outside any run."""


class Reporter:
    """Publishes on the Hub of *place*, and tells *handlers*, which that Hub does not know, directly."""

    __slots__ = ("_last", "_local", "place")

    def __init__(self, place: Place, handlers: list[Any], parent_run_id: UUID | None) -> None:
        self.place = place
        self._local = HandlerObserver(handlers, parent_run_id=parent_run_id) if handlers else None
        self._last: asyncio.Task[None] | None = None

    def wants(self, bit: int) -> bool:
        """Say whether an event of this kind is worth building; asked whenever there is something to report."""
        place, local = self.place, self._local
        if place.progress is not None:
            place.progress()
        return bool((place.hub is not None and place.hub.wants & bit) or (local is not None and local.wants & bit))

    def note_progress(self) -> None:
        """Take note that something was reported."""
        if self.place.progress is not None:
            self.place.progress()

    def publish(self, event: Event) -> None:
        """Hand the event to everyone who wants it; raise what a handler with ``raise_error`` raised here."""
        hub, local = self.place.hub, self._local
        if local is None:  # so it is the Hub that wants it
            assert hub is not None
            hub.publish(event)
            return
        if hub is not None and hub.wants & event.bit:
            hub.publish(event)
        if local.wants & event.bit:
            try:
                self.settle(local.observe(event))
            except FatalObserverError as error:
                raise error.original from None

    def settle(self, pending: Awaitable[None] | None) -> None:
        """Run the work of async handlers: to completion if no event loop runs here, else in order beside the caller."""
        if pending is None:
            return
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            asyncio.run(_after(None, pending))
        else:
            self._last = loop.create_task(_after(self._last, pending))

    async def settled(self) -> None:
        """Wait for the work of async handlers that is still under way; raise what failed the call."""
        last, self._last = self._last, None
        if last is not None:
            try:
                await last
            except FatalObserverError as error:
                raise error.original from None


async def _after(previous: asyncio.Task[None] | None, pending: Awaitable[None]) -> None:
    try:
        if previous is not None:
            await previous
    finally:
        await pending
