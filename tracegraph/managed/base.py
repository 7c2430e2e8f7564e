"""The interface of managed values."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Generic, Protocol, TypeVar

__all__ = ["ManagedValue", "Position"]

V = TypeVar("V")


class Position(Protocol):
    """Where a task stands: ``step`` of at most ``stop`` supersteps."""

    @property
    def step(self) -> int:
        """Number of the superstep."""

    @property
    def stop(self) -> int:
        """Number of the superstep that the recursion limit forbids."""


class ManagedValue(ABC, Generic[V]):
    """A state key that is computed from the run's position: read like a channel, never written, never stored.

    Use the class as the last item of an annotation's metadata: ``steps_done: Annotated[int, StepsDone]``.
    """

    @staticmethod
    @abstractmethod
    def get(task: Position) -> V:
        """Return the value that *task* sees."""
