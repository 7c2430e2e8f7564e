"""From a launch to the engine's settings."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from uuid import UUID

from tracegraph.drivers.launch import Launch
from tracegraph.drivers.size_limit import size_limit_of
from tracegraph.engine.identity import derived_uuid_text
from tracegraph.engine.settings import Deadline, RunSettings
from tracegraph.runtime import RunControl, task_counter

__all__ = ["settings_of"]


def settings_of(launch: Launch, *, deadline: Deadline | None, is_checked: bool) -> RunSettings:
    """Return what the engine must know of a launch."""
    saver, ns = launch.saver, launch.ns
    return RunSettings(
        run_id=launch.run_id,
        ns=ns,
        # A nested run that stores nothing starts anew when its task is resumed, and must ask under the same ids.
        id_seed=UUID(derived_uuid_text(ns)).bytes if launch.is_nested else None,
        recursion_limit=launch.spec.recursion_limit,
        max_concurrency=launch.spec.max_concurrency,
        durability=launch.durability if saver is not None else None,
        does_io=saver is not None and saver.does_io,
        wants=launch.hub.wants,
        next_version=_next_number if saver is None else saver.next_version,
        new_checkpoint_id=_no_checkpoint_id if saver is None else saver.new_checkpoint_id,
        default_retry=launch.default_retry,
        interrupt_before=launch.interrupt_before,
        interrupt_after=launch.interrupt_after,
        parents=launch.parents,
        metadata={} if saver is None else saver.extras,
        is_checked=is_checked,
        # A control is inherited, so without one there is none around either.
        count_tasks=None if launch.runtime.control is None else task_counter(_controls(launch)),
        size_limit=size_limit_of(launch.max_state_bytes, None if saver is None else saver.saver, launch.thread_id),
        is_strict=launch.is_strict,
        step_timeout=launch.step_timeout,
        deadline=deadline,
        asked=launch.hub.asked,
        workflow_name=launch.workflow_name,
    )


def _controls(launch: Launch) -> Iterator[RunControl]:
    """Yield the controls of a run and of those around it: one that is given to a run inside replaces no limit."""
    while launch.runtime.control is not None:
        yield launch.runtime.control
        if launch.parent is None:
            return
        launch = launch.parent.run.launch


def _next_number(current: Any) -> int:
    return 1 if current is None else current + 1


def _no_checkpoint_id(_parent_id: str | None, _step: int) -> str:
    raise AssertionError("a run without a saver makes no checkpoints")
