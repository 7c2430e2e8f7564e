"""What all stream modes have in common: which events they need, and the runs they are told of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

from tracegraph.events import Event, RunStarted

__all__ = ["Emit", "Mode", "ShownRun"]


@dataclass(slots=True)
class ShownRun:
    """A run that a stream shows: the streamed one, or one inside it."""

    ns: tuple[str, ...]
    """Where it is, seen from the streamed run, which is at ``()``."""
    keys: str | Sequence[str]
    """Channels shown of it; one name alone shows its bare value."""
    started: RunStarted
    id_text: str


class Emit(Protocol):
    """Hands a part of one mode to the reader."""

    def __call__(self, run: ShownRun, event: Event, data: Any, interrupts: tuple[Any, ...] = ()) -> None:
        """Make a part of *data*, which comes from *event* of *run*."""


class Mode(Protocol):
    """Makes the parts of one stream mode; called for the runs that are shown only, in the order of their events."""

    wants: ClassVar[int]
    """The kinds of events it is made of, as a mask."""

    def __init__(self, emit: Emit) -> None: ...

    def observe(self, event: Any, run: ShownRun) -> None:
        """Make what parts one event of a wanted kind gives."""
