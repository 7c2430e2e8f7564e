"""How long a run may wait for something before it has begun: until it is closed, or its deadline has passed."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from tracegraph.errors import RunClosed, RunDeadlineError

if TYPE_CHECKING:
    from tracegraph.drivers.run import Run

__all__ = ["seconds_to_wait"]


def seconds_to_wait(run: Run) -> float:
    """Return how long *run* may still wait for its turn.

    Raises:
        RunClosed: it was closed meanwhile. RunDeadlineError: no longer.
    """
    if run.finish is not None:
        raise RunClosed(run.finish.reason)
    if run.deadline is None:
        return math.inf
    now_ns = run.hub.now_ns()
    if now_ns >= run.deadline.due_ns:
        raise RunDeadlineError(limit=run.deadline.limit_s, elapsed=(now_ns - run.deadline.began_ns) / 1e9)
    return (run.deadline.due_ns - now_ns) / 1e9
