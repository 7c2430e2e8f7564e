"""From a launch to the engine's settings."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from tracegraph.drivers.launch import Launch
from tracegraph.engine.identity import derived_uuid_text
from tracegraph.engine.settings import Deadline, RunSettings

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
        is_checked=is_checked,
        is_strict=launch.is_strict,
        step_timeout=launch.step_timeout,
        deadline=deadline,
    )


def _next_number(current: Any) -> int:
    return 1 if current is None else current + 1


def _no_checkpoint_id(_parent_id: str | None, _step: int) -> str:
    raise AssertionError("a run without a saver makes no checkpoints")
