"""The events of a run's own begin and end, which the engine does not see: it begins after the one and ends before the other."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

from tracegraph.errors import TracegraphWarning
from tracegraph.events import JoinStarved, RunEnded, RunStarted
from tracegraph.types import Command

if TYPE_CHECKING:
    from tracegraph.drivers.run import Run
    from tracegraph.engine.actions import Finish

__all__ = ["publish_end", "started_event", "warn_of_starved_joins"]


def started_event(run: Run, now_ns: int) -> RunStarted:
    """Return the event of a run's begin."""
    launch, spec, parent = run.launch, run.spec, run.parent
    return RunStarted(
        run.run_id,
        run.ns,
        -1,
        now_ns,
        None if parent is None else parent.run.run_id,
        None if parent is None else parent.task.id,
        launch.name,
        launch.input,
        run.thread_id,
        spec.tags,
        spec.metadata,
        launch.durability,
        launch.input is None or isinstance(launch.input, Command),
        spec.checkpoint_id,
        launch.topology.output_channels,
        launch.topology.stream_channels,
        launch.workflow_name,
        launch.topology.trace_policies,
    )


def publish_end(run: Run, finish: Finish) -> None:
    """Publish how a run ended, and which joins it left waiting."""
    hub, at_ns, step = run.hub, run.hub.now_ns(), run.engine.step
    for join, target, waiting in finish.starved:
        if hub.wants & JoinStarved.bit:
            hub.publish(JoinStarved(run.run_id, run.ns, step, at_ns, join, target, waiting))
    if hub.wants & RunEnded.bit:
        hub.publish(
            RunEnded(
                run.run_id,
                run.ns,
                step,
                at_ns,
                run.launch.name,
                finish.status,
                finish.output,
                finish.error,
                finish.interrupts,
                finish.reason,
            )
        )


def warn_of_starved_joins(finish: Finish) -> None:
    """Warn of joins that some, but not all, of their sources reached: their nodes never ran."""
    for join, target, waiting in finish.starved:
        warnings.warn(
            f"node {target!r} never ran: its join {join!r} still waits for {', '.join(map(repr, waiting))}, not chosen "
            "by the routing. Give it one edge per source instead of a list edge, if it should run without them",
            TracegraphWarning,
            stacklevel=5,
        )
