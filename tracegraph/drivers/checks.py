"""What is watched under ``TRACEGRAPH_CHECK=1``: the engine's invariants, deep mutation, slow code on the loop."""

from __future__ import annotations

import copy
import os
import time
import warnings
from typing import Any, Final

from tracegraph.constants import MISSING
from tracegraph.engine.task import Task
from tracegraph.errors import TracegraphWarning

__all__ = ["DeepGuard", "is_checking", "warn_if_slow"]

SLOW_S: Final = 0.05
"""How long code that runs on the event loop may take; beyond that, other runs notice."""


def is_checking() -> bool:
    """Say whether runs are checked; read at the start of each."""
    return os.environ.get("TRACEGRAPH_CHECK", "") not in ("", "0")


class DeepGuard:
    """Notices that a node changed what it read deeper than the one level that is copied for it."""

    __slots__ = ("_before", "_task")

    def __init__(self, task: Task) -> None:
        self._task = task
        reads = (task.node.reads,) if isinstance(task.node.reads, str) else task.node.reads
        self._before = {name: _copied(task.view[name]) for name in reads if name in task.view}

    def warn(self) -> None:
        """Warn of every channel whose value is no longer what it was."""
        for name, before in self._before.items():
            if before is not MISSING and _differs(before, self._task.view[name]):
                warnings.warn(
                    f"node {self._task.node.name!r} changed the value of channel {name!r} in place, below its first level: "
                    "siblings, the caller and later steps see it, the saved state may not. Return a new value instead",
                    TracegraphWarning,
                    stacklevel=3,
                )


def _copied(value: Any) -> Any:
    try:
        made = copy.deepcopy(value)
        return made if made == value else MISSING  # equal by identity only: cannot be compared later either
    except Exception:  # what cannot be copied cannot be compared
        return MISSING


def _differs(before: Any, after: Any) -> bool:
    try:
        return bool(before != after)
    except Exception:  # arrays and the like answer with arrays
        return False


def warn_if_slow(name: str, began: float) -> None:
    """Warn if *name*, which runs on the event loop and began at ``time.perf_counter()`` *began*, took too long."""
    took = time.perf_counter() - began
    if took > SLOW_S:
        warnings.warn(
            f"{name!r} took {took * 1000:.0f} ms on the event loop, which stood still: make it async, or do the work in a node",
            TracegraphWarning,
            stacklevel=3,
        )
