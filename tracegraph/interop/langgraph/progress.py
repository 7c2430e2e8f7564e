"""How far a thread has come, in the source and in the target: whether one of them is simply behind."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal, TypeAlias

from tracegraph.constants import RESUME, UNFINISHED_WRITES

__all__ = ["Progress", "compared", "progress_of"]

Progress: TypeAlias = Mapping[str, tuple[bool, int, int]]
"""task id -> whether it has finished, how many answers it has, how many writes"""

_NONE = (False, -1, -1)


def progress_of(writes: Iterable[tuple[str, str, Any]]) -> Progress:
    """Return how far the tasks of a checkpoint's superstep have come, by task id, channel and value of their writes.

    >>> progress_of([("t1", "__interrupt__", []), ("t1", "__resume__", ["yes"]), ("t2", "log", ["x"])])
    {'t1': (False, 1, 2), 't2': (True, 0, 1)}
    """
    found: dict[str, tuple[bool, int, int]] = {}
    for task_id, channel, value in writes:
        finished, answers, count = found.get(task_id, (False, 0, 0))
        if channel == RESUME:
            answers = len(value) if isinstance(value, (list, tuple)) else 1
        found[task_id] = (finished or channel not in UNFINISHED_WRITES, answers, count + 1)
    return found


def compared(ours: Progress, theirs: Progress) -> Literal["same", "behind", "ahead", "apart"]:
    """Say where *ours* stands, seen from *theirs*."""
    pairs = [(ours.get(task_id, _NONE), theirs.get(task_id, _NONE)) for task_id in {*ours, *theirs}]
    is_behind, is_ahead = any(a < b for a, b in pairs), any(a > b for a, b in pairs)
    if is_behind and is_ahead:
        return "apart"
    return "behind" if is_behind else "ahead" if is_ahead else "same"
