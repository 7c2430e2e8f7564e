"""Mode ``updates``: what each task wrote, as it finishes."""

from __future__ import annotations

from typing import Any, ClassVar

from tracegraph.engine.nesting import NestedKeys
from tracegraph.engine.views import isolated
from tracegraph.events import Interrupted, TaskEnded, kinds
from tracegraph.stream.modes.base import Emit, ShownRun

__all__ = ["UpdatesMode"]


class UpdatesMode:
    """Shows one part per finished task, and one per pause."""

    wants: ClassVar[int] = kinds(TaskEnded, Interrupted)

    def __init__(self, emit: Emit) -> None:
        self._emit = emit

    def observe(self, event: TaskEnded | Interrupted, run: ShownRun) -> None:
        """Show an update, questions, or a static breakpoint, which asks nothing."""
        if isinstance(event, Interrupted):
            if event.status != "pending":
                self._emit(run, event, {"__interrupt__": ()})
        elif event.status == "interrupted" and event.interrupts and not event.is_call:
            self._emit(run, event, {"__interrupt__": event.interrupts})
        elif event.status == "cached" and event.is_call:
            pass  # a result of the run that is gone on with: it was shown then
        elif event.status in ("completed", "cached") and not event.is_hidden:
            update: dict[str, Any] = {event.name: event.result if event.is_call else _update(event, run)}
            if event.status == "cached":
                update["__metadata__"] = {"cached": True}
            self._emit(run, event, update)


def _update(event: TaskEnded, run: ShownRun) -> Any:
    """Return what a task wrote to shown channels: a dict, or a list of one-key dicts if it wrote one twice."""
    keys = run.keys
    shown = (keys,) if isinstance(keys, str) else keys
    writes = [(channel, isolated(value)) for channel, value in event.writes if channel in shown]
    if not writes:
        return None
    if isinstance(keys, str):
        return writes[0][1] if len(writes) == 1 else [value for _, value in writes]
    update = dict(writes)
    is_once = len(update) == len(writes)
    if isinstance(keys, NestedKeys):
        return keys.show_writes(update) if is_once else keys.show_each(writes)
    return update if is_once else [{channel: value} for channel, value in writes]
