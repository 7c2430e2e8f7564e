"""What the code that started a run gets of its end: a result, or what ended it."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

from tracegraph.errors import GraphInterrupt, InvalidAnswerError, RunClosed, TracegraphWarning

if TYPE_CHECKING:
    from tracegraph.drivers.run import Run
    from tracegraph.engine.actions import Finish

__all__ = ["result_of"]


def result_of(run: Run) -> Finish:
    """Return how the run ended if that is a result, else raise what ended it."""
    finish = run.finish
    assert finish is not None
    _warn_of_starved_joins(finish)
    if finish.status == "interrupted" and run.launch.is_nested:
        raise _passed_up(run, finish)
    if finish.error is not None:
        error = finish.error
        if run.parent is not None and isinstance(error, InvalidAnswerError):
            run.parent.refused = error
        raise error
    if finish.status in ("cancelled", "abandoned"):
        raise RunClosed(finish.reason)
    return finish


def _passed_up(run: Run, finish: Finish) -> GraphInterrupt:
    # The enclosing task is marked, so that a pause counts even if its code swallows the exception.
    if run.parent is not None:
        # Two runs called by one task may both have paused.
        run.parent.interrupted = (*(run.parent.interrupted or ()), *finish.interrupts)
    return GraphInterrupt(finish.interrupts)


def _warn_of_starved_joins(finish: Finish) -> None:
    """Warn of joins that some, but not all, of their sources reached: their nodes never ran."""
    for join, target, waiting in finish.starved:
        warnings.warn(
            f"node {target!r} never ran: its join {join!r} still waits for {', '.join(map(repr, waiting))}, not chosen "
            "by the routing. Give it one edge per source instead of a list edge, if it should run without them",
            TracegraphWarning,
            stacklevel=6,
        )
