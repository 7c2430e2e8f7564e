"""The events of a run's own begin and end, which the engine does not see: it begins after the one and ends before the other."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from tracegraph.events import JoinStarved, Resumed, RunEnded, RunStarted
from tracegraph.events.waits import waits_for
from tracegraph.types import Command

if TYPE_CHECKING:
    from tracegraph.callbacks.hub import Observer
    from tracegraph.drivers.launch import ObserverFactory
    from tracegraph.drivers.run import Run
    from tracegraph.engine.settings import Begin

__all__ = ["publish_end", "publish_resumed", "publish_starved_joins", "start_telemetry", "started_event"]

logger = logging.getLogger("tracegraph.drivers")


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


def start_telemetry(factory: ObserverFactory, started: RunStarted) -> tuple[Sequence[Observer], Callable[[], None] | None]:
    """Return what *factory* makes for a root run; nothing if it fails."""
    try:
        return factory(started)
    except Exception:  # a span processor of the application's own: observers never break a run
        logger.exception("the run's telemetry could not be started; the run goes on without")
        return (), None


def publish_resumed(run: Run, begin: Begin, links: tuple[str, ...]) -> None:
    """Publish what the run goes on from, and the spans it links to."""
    if (saved := begin.saved) is not None:
        step, checkpoint_id = saved.metadata.get("step", -1), saved.checkpoint["id"]
        answered, now_ns = tuple(begin.answers), run.hub.now_ns()
        waits = waits_for(answered, run.hub.asked, now_ns)
        run.hub.publish(Resumed(run.run_id, run.ns, step, now_ns, checkpoint_id, answered, links, waits))


def publish_starved_joins(run: Run) -> None:
    """Publish which joins the run left waiting."""
    assert run.finish is not None
    for join, target, waiting in run.finish.starved:
        if run.hub.wants & JoinStarved.bit:
            run.hub.publish(JoinStarved(run.run_id, run.ns, run.engine.step, run.hub.now_ns(), join, target, waiting))


def publish_end(run: Run) -> None:
    """Publish how the run ended."""
    hub, finish = run.hub, run.finish
    assert finish is not None
    step = run.engine.step if hasattr(run, "engine") else -1
    if not hub.wants & RunEnded.bit:
        run.is_told = True
        return
    event = RunEnded(
        run.run_id,
        run.ns,
        step,
        hub.now_ns(),
        run.launch.name,
        finish.status,
        finish.output,
        finish.error,
        finish.interrupts,
        finish.reason,
        run.parts.buffering.dropped,
    )
    try:
        hub.publish(event)
    finally:  # Ctrl-C may come when it is told
        run.is_told = bool(event.seq)
