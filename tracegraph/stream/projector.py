"""Stream modes: an observer that makes parts of a run's events, and only of those that were asked for."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any
from uuid import UUID

from tracegraph.constants import NS_SEP
from tracegraph.engine.nesting import NestedKeys
from tracegraph.engine.views import isolated, read
from tracegraph.events import CustomEmitted, Event, Interrupted, RunStarted, StateUpdated, TaskEnded, kinds
from tracegraph.stream.parts import Part

__all__ = ["Projector"]

_KINDS = {
    "values": (RunStarted, StateUpdated, TaskEnded),
    "updates": (RunStarted, TaskEnded, Interrupted),
    "custom": (RunStarted, CustomEmitted),
}


class Projector:
    """Makes the parts of one ``stream`` call.

    Args:
        run_id: the run whose stream this is; events of other runs are passed over.
        ns: its namespace.
        subgraphs: take the runs inside it as well.
        output_keys: channels shown; one name alone shows its bare value.
        sink: gets each part, in the publishing thread.
    """

    def __init__(
        self,
        modes: Sequence[str],
        *,
        run_id: UUID,
        ns: str,
        subgraphs: bool,
        output_keys: str | Sequence[str],
        sink: Callable[[Part], None],
    ) -> None:
        self.wants = kinds(*(kind for mode in modes for kind in _KINDS[mode]))
        self._modes = frozenset(modes)
        self._runs: set[UUID] = {run_id}
        self._ns = ns
        self._inner = f"{ns}{NS_SEP}" if ns else ""
        self._subgraphs = subgraphs
        self._keys: dict[str, str | Sequence[str]] = {}
        """Channels shown, by namespace: what the caller asked for, and of child runs their output."""
        self._own_keys = output_keys
        self._sink = sink
        self._values: dict[str, Mapping[str, Any]] = {}
        """Last known values by namespace: what an interrupt is shown with."""

    def observe(self, event: Event) -> None:
        """Make the parts of one event."""
        if event.run_id not in self._runs and not self._is_inner(event):
            return
        match event:
            case RunStarted():
                self._runs.add(event.run_id)
                self._keys[event.ns] = self._own_keys if event.ns == self._ns else event.output_keys
            case StateUpdated():
                self._state_updated(event)
            case TaskEnded():
                self._task_ended(event)
            case CustomEmitted():
                if event.name is None:
                    self._send("custom", event.ns, event.data)
            case Interrupted():
                if event.status != "pending" and "updates" in self._modes:
                    self._send("updates", event.ns, {"__interrupt__": ()})
            case _:
                pass

    def _is_inner(self, event: Event) -> bool:
        """Say whether a run begins inside those that are shown; one on a thread of its own is somebody else's."""
        return (
            self._subgraphs
            and isinstance(event, RunStarted)
            and event.parent_run_id in self._runs
            and event.ns.startswith(self._inner)
            and event.ns != ""
        )

    def _send(self, mode: str, ns: str, data: Any, interrupts: tuple[Any, ...] = ()) -> None:
        below = ns[len(self._inner) :] if ns != self._ns else ""
        self._sink(Part(mode, tuple(below.split(NS_SEP)) if below else (), data, interrupts))

    def _state_updated(self, event: StateUpdated) -> None:
        if "values" in self._modes:
            self._values[event.ns] = event.values
            self._send("values", event.ns, read(event.values, self._keys[event.ns]))

    def _task_ended(self, event: TaskEnded) -> None:
        if event.status == "interrupted" and event.interrupts and not event.is_call:
            if "updates" in self._modes:
                self._send("updates", event.ns, {"__interrupt__": event.interrupts})
            if "values" in self._modes:
                values = self._values.get(event.ns, {})
                self._send("values", event.ns, read(values, self._keys[event.ns]), event.interrupts)
        elif event.status == "cached" and event.is_call:
            pass  # a result of the run that is gone on with: it was shown then
        elif event.status in ("completed", "cached") and "updates" in self._modes and not event.is_hidden:
            update: dict[str, Any] = {event.name: event.result if event.is_call else self._update(event)}
            if event.status == "cached":
                update["__metadata__"] = {"cached": True}
            self._send("updates", event.ns, update)

    def _update(self, event: TaskEnded) -> Any:
        """Return what a task wrote to shown channels: a dict, or a list of one-key dicts if it wrote one twice."""
        keys = self._keys[event.ns]
        shown = (keys,) if isinstance(keys, str) else keys
        wanted = [(channel, value) for channel, value in event.writes if channel in shown]
        if not wanted:
            return None
        if isinstance(keys, str):
            return isolated(wanted[0][1]) if len(wanted) == 1 else [isolated(value) for _, value in wanted]
        if isinstance(keys, NestedKeys):
            writes = [(channel, isolated(value)) for channel, value in wanted]
            is_once = len(dict(writes)) == len(writes)
            return keys.show_writes(dict(writes)) if is_once else keys.show_each(writes)
        if len({channel for channel, _ in wanted}) == len(wanted):
            return {channel: isolated(value) for channel, value in wanted}
        return [{channel: isolated(value)} for channel, value in wanted]
