"""What must hold after every report; checked in tests and under ``TRACEGRAPH_CHECK=1``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracegraph.constants import MISSING
from tracegraph.errors import EngineBug
from tracegraph.refused_values import about

if TYPE_CHECKING:
    from tracegraph.engine.engine import Engine
    from tracegraph.engine.task import Task

__all__ = ["check_engine"]


def check_engine(engine: Engine) -> None:
    """Check the engine's counts against its tasks, and the channels against their versions.

    Raises:
        EngineBug: something does not hold; the text names the last reports, and a note shows them.
    """
    faults = [*_channel_faults(engine), *([] if engine.phase != "running" else _task_faults(engine))]
    if faults:
        reports = list(engine.history or ())
        told = ", ".join(type(report).__name__ for report in reports)
        raise about(EngineBug(f"in step {engine.step}: {'; '.join(faults)}. The last reports were: {told}"), reports)


def _task_faults(engine: Engine) -> list[str]:
    everyone = engine.everyone()
    working = sum(task.is_running and not _waits(task) for task in everyone)
    open_count = sum(not task.is_finished for task in everyone)
    faults: list[str] = []
    if working != engine.running:
        faults.append(f"{working} tasks are at work, but {engine.running} are counted")
    if open_count != engine.open_tasks:
        faults.append(f"{open_count} tasks are open, but {engine.open_tasks} are counted")
    faults.extend(f"{task!r} is finished and runs" for task in everyone if task.is_finished and task.is_running)
    faults.extend(f"{task!r} is queued and runs" for task in engine.queue if task.is_running)
    limit = engine.settings.max_concurrency
    if limit is not None and not any(task.children for task in everyone) and working > limit:
        faults.append(f"{working} tasks run, but only {limit} may")
    return faults


def _waits(task: Task) -> bool:
    return any(not child.is_finished for child in task.children or ())


def _channel_faults(engine: Engine) -> list[str]:
    store, rules = engine.store, engine.topology.channels
    faults = [f"channel {name!r} holds a value but does not exist" for name in store.values if name not in rules]
    faults.extend(
        f"channel {name!r} is readable in one place and not in the other"
        for name, state in store.states.items()
        if (rules[name].peek(state) is not MISSING) != (name in store.values)
    )
    if store.top is not None:
        faults.extend(
            f"channel {name!r} has version {version!r}, later than the newest {store.top!r}"
            for name, version in store.versions.items()
            if version > store.top  # type: ignore[operator]  # versions of one saver are of one type
        )
    return faults
