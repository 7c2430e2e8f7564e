"""The observer behind a stream: it decides which runs are shown, and lets the modes make parts of their events."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any
from uuid import UUID

from tracegraph.constants import NS_SEP
from tracegraph.events import Event, RunStarted, kinds
from tracegraph.stream.modes import MODES, Emit, ShownRun
from tracegraph.stream.parts import Part
from tracegraph.stream.v3.protocol import MESSAGE_EVENTS
from tracegraph.types import PartMeta

__all__ = ["Projector"]


class Projector:
    """Makes the parts of one ``stream`` call.

    Args:
        run_id: the run whose stream this is; events of other runs are passed over.
        ns: its namespace.
        subgraphs: take the runs inside it as well.
        output_keys: channels shown; one name alone shows its bare value.
        sink: gets each part, in the publishing thread.
        meta: tells what a part belongs to; None if nobody reads that.
        gate: where the parts get to, if their reader stops the run or holds it back.
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
        meta: Callable[[Event, ShownRun], PartMeta] | None = None,
        gate: Any = None,
    ) -> None:
        self._modes = tuple(made(_emitter(name, sink, meta)) for name, made in MODES.items() if name in modes)
        self.wants = kinds(RunStarted)
        for mode in self._modes:
            self.wants |= mode.wants
        self.reads_tokens = not {"messages", MESSAGE_EVENTS}.isdisjoint(modes)
        """Models should stream, even where their whole answer is asked for."""
        self._run_id = run_id
        self._runs: dict[int, ShownRun] = {}
        """By the number that their id is: a UUID's own hash is made in Python, for each event."""
        self._ns = ns
        self._inner = f"{ns}{NS_SEP}" if ns else ""
        self._subgraphs = subgraphs
        self._own_keys = output_keys
        self.gate = gate
        self._table: dict[type, tuple[Callable[[Any, ShownRun], None], ...]] = {}
        """What modes make of each kind of event."""

    def observe(self, event: Event) -> None:
        """Make the parts of one event."""
        run = self._runs.get(event.run_id.int)
        if run is None:
            if not isinstance(event, RunStarted) or not self._is_shown(event):
                return
            run = self._runs[event.run_id.int] = self._shown(event)
        observers = self._table.get(type(event))
        if observers is None:
            observers = self._table[type(event)] = tuple(mode.observe for mode in self._modes if mode.wants & event.bit)
        for observe in observers:
            observe(event, run)

    def shows(self, run_id: UUID) -> bool:
        """Say whether parts are made of the events of a run."""
        return run_id.int in self._runs

    def _is_shown(self, event: RunStarted) -> bool:
        """Say whether this is the run, or one inside those that are shown; one on a thread of its own is somebody else's."""
        return event.run_id == self._run_id or (
            self._subgraphs
            and event.parent_run_id is not None
            and event.parent_run_id.int in self._runs
            and event.ns.startswith(self._inner)
            and event.ns != ""
        )

    def _shown(self, event: RunStarted) -> ShownRun:
        is_own = event.run_id == self._run_id
        below = "" if is_own else event.ns[len(self._inner) :]
        keys = self._own_keys if is_own else event.output_keys
        return ShownRun(tuple(below.split(NS_SEP)) if below else (), keys, event, str(event.run_id))


def _emitter(mode: str, sink: Callable[[Part], None], meta: Callable[[Event, ShownRun], PartMeta] | None) -> Emit:
    """Return what hands parts of *mode* to *sink*."""

    def emit(run: ShownRun, event: Event, data: Any, interrupts: tuple[Any, ...] = ()) -> None:
        sink(Part(mode, run.ns, data, interrupts, None if meta is None else meta(event, run)))

    return emit
