"""What a run is given: its settings, and what it begins with."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from tracegraph.engine.state_size import SizeLimit
from tracegraph.events.waits import AskedAt
from tracegraph.records import CheckpointTuple, Detour, Version
from tracegraph.types import Command, Durability, RetryPolicy

__all__ = ["Begin", "Deadline", "RunSettings", "nanoseconds"]


def nanoseconds(seconds: float) -> int:
    """Return a time limit in nanoseconds; what is longer than centuries is as good as centuries, and can be counted.

    >>> nanoseconds(0.5)
    500000000
    """
    return int(min(seconds, 1e10) * 1e9)


@dataclass(slots=True, frozen=True)
class Deadline:
    """When a run must be over, and what it was given."""

    began_ns: int
    limit_s: float

    @property
    def due_ns(self) -> int:
        """When its time is up."""
        return self.began_ns + nanoseconds(self.limit_s)


@dataclass(slots=True, kw_only=True)
class RunSettings:
    """Fixed for the whole run; no live object but the functions the saver and the driver supply."""

    run_id: UUID
    ns: str = ""
    id_seed: bytes | None = None
    """16 bytes that task ids are hashed from while there is no checkpoint; None: those of the run's id."""
    recursion_limit: int
    max_concurrency: int | None = None
    durability: Durability | None = None
    """None: there is no saver, nothing is stored."""
    does_io: bool = False
    """Whether the saver does I/O: decides if an awaited save makes a superstep worth a span."""
    wants: int = 0
    """Mask of the event kinds somebody listens to; no other event is built."""
    next_version: Callable[[Version | None], Version]
    new_checkpoint_id: Callable[[str | None, int], str]
    """(parent id, step) -> an id that sorts after the parent's."""
    default_retry: tuple[RetryPolicy, ...] = ()
    interrupt_before: frozenset[str] | str = frozenset()
    """Node names, or "*" for all that are not hidden."""
    interrupt_after: frozenset[str] | str = frozenset()
    parents: Mapping[str, str] = field(default_factory=dict)
    """Enclosing graphs' namespaces and the checkpoints they were at."""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    """What the run's checkpoints say beside source, step and parents."""
    is_checked: bool = False
    """Check the invariants after every report."""
    count_tasks: Callable[[int], tuple[int, int] | None] | None = None
    """Counts so many tasks of the run tree; if that is over its limit none, and returns the limit and how many had begun."""
    size_limit: SizeLimit | None = None
    is_strict: bool = False
    """An unknown key of an input or return value is an error."""
    step_timeout: float | None = None
    """Seconds a superstep may take."""
    deadline: Deadline | None = None
    """When the whole run must be over; of nested runs, those it was given to."""
    asked: dict[str, AskedAt] = field(default_factory=dict)
    """When and where questions were first asked, by id; shared by the run tree, so the innermost node counts as the asker."""
    workflow_name: str | None = None
    """What traces call the graph; None if nobody chose a name."""


@dataclass(slots=True, kw_only=True)
class Begin:
    """What a run begins with.

    ``saved`` is the checkpoint to continue from, with its pending writes. ``answers`` maps interrupt ids to
    answers. ``is_resume``: an enclosing run resumes, so a non-empty input is no new one.
    """

    input: Any = None
    command: Command[Any] | None = None
    saved: CheckpointTuple | None = None
    answers: Mapping[str, Any] = field(default_factory=dict)
    is_resume: bool = False
    is_addressed: bool = False
    """A checkpoint id was given, so the first save may make a branch."""
    is_replay: bool = False
    """Run the addressed checkpoint's superstep anew: what its tasks did then does not count."""
    is_fork: bool = False
    """It is run anew on a branch, which begins with a checkpoint of its own."""
    is_foreign: bool = False
    """``saved`` lies in another namespace: it cannot be a parent there, and all its values are stored again."""
    detours: tuple[Detour, ...] = ()
    """Other branches' ids, for the run's checkpoints to name and for graphs inside to pass over."""
    carried: CheckpointTuple | None = None
    """``saved`` is an update of it: questions asked there are answered where the same tasks ask them now."""
    reopened: Mapping[str, str] = field(default_factory=dict)
    """Namespaces, of graphs inside, that are gone back to: what the tasks leading there did does not count either."""
