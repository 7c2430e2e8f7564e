"""How near a task is to the recursion limit."""

from __future__ import annotations

from typing import Annotated, TypeAlias

from tracegraph.managed.base import ManagedValue, Position

__all__ = ["IsLastStep", "IsLastStepManager", "RemainingSteps", "RemainingStepsManager"]


class IsLastStepManager(ManagedValue[bool]):
    """True in the last superstep that the limit allows."""

    @staticmethod
    def get(task: Position) -> bool:
        """Return whether *task* runs in the last allowed superstep."""
        return task.step == task.stop - 1


class RemainingStepsManager(ManagedValue[int]):
    """Supersteps left, the running one included."""

    @staticmethod
    def get(task: Position) -> int:
        """Return how many supersteps are left, the one *task* runs in included."""
        return task.stop - task.step


IsLastStep: TypeAlias = Annotated[bool, IsLastStepManager]
"""Annotation of a state key that is True in the last superstep the limit allows."""

RemainingSteps: TypeAlias = Annotated[int, RemainingStepsManager]
"""Annotation of a state key that holds the number of supersteps left."""
