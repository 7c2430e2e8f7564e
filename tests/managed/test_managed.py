"""Values computed from a run's position."""

from __future__ import annotations

from dataclasses import dataclass
from typing import get_args

import pytest

from tracegraph.managed import IsLastStep, RemainingSteps
from tracegraph.managed.base import ManagedValue


@dataclass
class At:
    step: int
    stop: int


@pytest.mark.parametrize(("step", "remaining", "is_last"), [(1, 3, False), (2, 2, False), (3, 1, True)])
def test_position_decides(step: int, remaining: int, is_last: bool) -> None:
    """The running superstep counts as left, and the one before the stop is the last."""
    task = At(step, stop=4)

    assert get_args(RemainingSteps)[1].get(task) == remaining
    assert get_args(IsLastStep)[1].get(task) is is_last


def test_aliases_are_annotations_of_managed_values() -> None:
    """A schema finds the class as last metadata of the annotation."""
    assert get_args(RemainingSteps)[0] is int and issubclass(get_args(RemainingSteps)[-1], ManagedValue)
    assert get_args(IsLastStep)[0] is bool and issubclass(get_args(IsLastStep)[-1], ManagedValue)
