"""What a run is made of."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Protocol
from uuid import UUID

from tracegraph.callbacks.hub import Hub, Observer
from tracegraph.config import RunSpec
from tracegraph.drivers.saves import SaverPort
from tracegraph.engine.topology import Topology
from tracegraph.events import RunStarted
from tracegraph.runtime import Runtime
from tracegraph.types import Durability, RetryPolicy

if TYPE_CHECKING:
    from tracegraph.drivers.here import HereNow
    from tracegraph.drivers.travel import Origin, Travel

__all__ = ["LIVE", "PATIENT", "Launch", "ObserverFactory", "Readers"]

ObserverFactory = Callable[[RunStarted], tuple[Sequence[Observer], Callable[[], None] | None]]
"""Makes what observes a root run, and what to call inside the run's Context to make its span the current one."""


class Readers(Protocol):
    """Who reads a run while it runs."""

    @property
    def is_live(self) -> bool:
        """Whether they read parts while nodes run, so that no node may run in the reader's own thread."""


@dataclass(frozen=True, slots=True)
class _Known:
    is_live: bool


PATIENT: Final[Readers] = _Known(is_live=False)
"""Read nothing, or what supersteps come to."""

LIVE: Final[Readers] = _Known(is_live=True)
"""Read parts while nodes run."""


@dataclass(slots=True, kw_only=True)
class Launch:
    """Everything a run is made of, resolved: which saver, which namespace, whose hub."""

    topology: Topology
    name: str
    workflow_name: str | None
    """What traces call it; None if nobody chose a name."""
    spec: RunSpec
    run_id: UUID
    input: Any
    hub: Hub
    is_root: bool
    """It owns the hub: no run encloses it."""
    parent: HereNow | None
    """The task whose code started this run."""
    is_nested: bool
    """It shares thread and namespace with the enclosing run, so its pauses and commands pass up."""
    saver: SaverPort | None
    ns: str
    thread_id: str | None
    durability: Durability | None
    runtime: Runtime[Any]
    handlers: Sequence[Any] = ()
    own_observers: Sequence[Observer] = ()
    """Observers that leave the hub with this run."""
    observer_factory: ObserverFactory | None = None
    interrupt_before: frozenset[str] | str = frozenset()
    interrupt_after: frozenset[str] | str = frozenset()
    default_retry: tuple[RetryPolicy, ...] = ()
    is_strict: bool = False
    max_state_bytes: int | None = None
    parents: Mapping[str, str] = field(default_factory=dict)
    step_timeout: float | None = None
    """Seconds a superstep may take."""
    deadline_s: float | None = None
    """Seconds the run may take, by the control it was given."""
    takes_turns: bool = False
    """It waits until the runs before it on its thread have ended."""
    readers: Readers = PATIENT
    is_streaming: bool = False
    is_stateful: bool = False
    """Nested, it lives on between calls: filed under its name, without ids."""
    origin_ns: str | None = None
    """Nested in a superstep of the past that is done again: its namespace then."""
    travel: Travel | None = None
    """The journey into the past that it is part of; known once it has started."""
    origin: Origin | None = None
    """The superstep of the past that it begins with; known once it has started."""
