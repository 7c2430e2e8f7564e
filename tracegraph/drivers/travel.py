"""Time travel: which checkpoint each graph of a call starts from, when the call names one of the past.

The root run goes back to the checkpoint that was named. Runs inside it have namespaces that hold task ids, and a branch
gives its tasks new ones; so a run inside is found in the past by its *origin*, the namespace that it had there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from uuid import UUID

from tracegraph.constants import ASKED, DETOURS, INTERRUPT, NS_END, NS_SEP, NULL_TASK_ID, TRACE
from tracegraph.drivers.effects import Flow, GetTuple, ListTuples, ask
from tracegraph.engine.identity import without_ids
from tracegraph.errors import InvalidInputError
from tracegraph.records import CheckpointTuple, Detour
from tracegraph.types import Command

if TYPE_CHECKING:
    from tracegraph.drivers.launch import Launch
    from tracegraph.drivers.saves import SaverPort
    from tracegraph.engine.engine import Engine

__all__ = ["Origin", "Start", "Travel", "at_namespace", "load_start", "refuse_dead_end"]

_BRANCHES = ("update", "fork")


@dataclass(slots=True)
class Origin:
    """A superstep of the past that a run does again: what its tasks' ids were hashed from then."""

    checkpoint_id: str
    ns: str
    step: int

    @property
    def checkpoint(self) -> bytes:
        """The raw bytes of the checkpoint's id."""
        return UUID(self.checkpoint_id).bytes


@dataclass(slots=True)
class Travel:
    """A journey into the past, as the runs inside the travelling one see it."""

    chosen: dict[str, str]
    """Namespaces of graphs inside, as they were then, and the checkpoints to go on from."""
    is_answering: bool
    """Questions of the past are answered: what came after them is done anew, what came before stays."""
    visited: set[str] = field(default_factory=set)
    """Namespaces that were gone back into already; from then on their newest checkpoint counts."""

    def leads_below(self, ns: str) -> str | None:
        """Return the innermost chosen checkpoint at or below a namespace of the past, None if there is none."""
        found = [key for key in self.chosen if _is_within(key, ns) or _is_within(key, without_ids(ns))]
        return self.chosen[max(found, key=len)] if found else None


@dataclass(slots=True, kw_only=True)
class Start:
    """What a run continues from, and how."""

    saved: CheckpointTuple | None
    is_resume: bool = False
    """It goes on with what it was doing, whatever it is called with."""
    is_addressed: bool = False
    """The first save may make a branch."""
    is_replay: bool = False
    """What the checkpoint's tasks did then does not count."""
    is_fork: bool = False
    """The branch begins with a checkpoint of its own."""
    is_foreign: bool = False
    """The checkpoint lies in another namespace, so it cannot be the next one's parent, nor share values with it."""
    detours: tuple[Detour, ...] = ()


def load_start(launch: Launch) -> Flow[Start]:
    """Load what a run starts from, and put into the launch what the runs inside it have to know.

    Raises:
        InvalidInputError: a chosen checkpoint, or that of the graph around it, is not there.
    """
    port, parent = launch.saver, launch.parent
    if not launch.is_nested or parent is None:
        return Start(saved=None) if port is None else (yield from _root(launch, port))
    # The enclosing task ran before: in a resumed superstep, or in an earlier attempt.
    goes_on = parent.run.engine.is_resuming or parent.attempt > 1
    if port is None:
        return Start(saved=None, is_resume=goes_on)
    head = yield from ask(GetTuple(port.saver, port.config(None)))
    port.newest.note_of(head)
    remembered = (yield from _remembered(launch, port, head)) if launch.is_stateful else head
    travel = launch.travel = parent.run.launch.travel
    if travel is not None and launch.ns not in travel.visited:
        travel.visited.add(launch.ns)
        start = yield from _back(launch, port, travel, head)
        if start is not None:
            return start
    return Start(
        saved=remembered,
        is_resume=goes_on and _is_of(remembered, parent.run.ns, launch.parents.get(parent.run.ns)),
        is_addressed=remembered is not head,
        detours=_detours_of(remembered),
    )


def refuse_dead_end(launch: Launch, engine: Engine) -> None:
    """Refuse to go on if no task of the superstep that is done again leads to what was chosen inside.

    Else the graph inside would start anew, as if the whole run had been chosen.

    Raises:
        InvalidInputError: it names the checkpoint, and the node that does not run.
    """
    travel, origin = launch.travel, launch.origin
    if travel is None or origin is None or not travel.chosen:
        return
    inside = f"{origin.ns}{NS_SEP}" if origin.ns else ""
    handlers = {node.error_handler for node in engine.topology.nodes.values()}
    # Planned here, for the engine may wait for the branch to be saved before it does.
    planned = engine.tasks or engine.plan()
    ways = [task.namespace_at(origin.checkpoint, origin.ns, origin.step) for task in planned]
    for ns, checkpoint_id in travel.chosen.items():
        name = ns.removeprefix(inside).partition(NS_SEP)[0].partition(NS_END)[0]
        is_planned = name in engine.topology.nodes and name not in handlers  # others begin while the superstep runs
        is_reached = any(_is_within(ns, way) or _is_within(ns, without_ids(way)) for way in ways)
        if ns.startswith(inside) and ns != origin.ns and is_planned and not is_reached:
            raise InvalidInputError(
                f"checkpoint {checkpoint_id!r} lies inside {ns!r}, but after checkpoint {origin.checkpoint_id!r} of the graph "
                f"around it node {name!r} does not run that call: take checkpoint_map from the same snapshot as checkpoint_id"
            )


def _is_of(saved: CheckpointTuple | None, ns: str, checkpoint_id: str | None) -> bool:
    """Say whether a checkpoint was made while the graph around it was at *checkpoint_id*.

    If not, it is an earlier call's: a graph that lives on between calls takes new input then, resumed or not.
    """
    return saved is not None and saved.metadata.get("parents", {}).get(ns, checkpoint_id) == checkpoint_id


# --- what other branches did --------------------------------------------------------------------------------


def _detours_of(saved: CheckpointTuple | None) -> tuple[Detour, ...]:
    return () if saved is None else tuple(Detour(*each) for each in saved.metadata.get(DETOURS, ()))


def _left(port: SaverPort, saved: CheckpointTuple, *, is_kept: bool) -> tuple[Detour, ...]:
    """Return a checkpoint's detours, and what came after it until now, which a branch from it leaves behind."""
    found, now = saved.checkpoint["id"], port.new_checkpoint_id(None, 0)
    return (*_detours_of(saved), Detour(found, now, found if is_kept else ""))


def _remembered(launch: Launch, port: SaverPort, head: CheckpointTuple | None) -> Flow[CheckpointTuple | None]:
    """Return the newest checkpoint of a graph that lives on between calls, of those that its parent's branch knows of."""
    hidden: list[tuple[str, Detour]] = []
    here = launch.parent
    while here is not None:
        hidden.extend((here.run.ns, detour) for detour in here.run.engine.saving.detours)
        here = here.run.parent if here.run.launch.is_nested else None
    found, before = head, ""
    while found is not None and (before := _hides(found, hidden)):
        found = yield from _latest(port, launch.ns, before=before)
    return found


def _hides(found: CheckpointTuple, hidden: Sequence[tuple[str, Detour]]) -> str:
    """Return a checkpoint id before which to look on, if one of another branch was found; else nothing."""
    checkpoint_id: str = found.checkpoint["id"]
    for ns, detour in hidden:
        if detour.since < checkpoint_id <= detour.until:
            if not detour.kept:
                return detour.since
            if not _is_of(found, ns, detour.kept):
                return checkpoint_id
    return ""


# --- the run that travels ----------------------------------------------------------------------------------


def _root(launch: Launch, port: SaverPort) -> Flow[Start]:
    checkpoint_id, chosen = yield from _address(launch, port)
    saved = yield from ask(GetTuple(port.saver, port.config(checkpoint_id)))
    if checkpoint_id is None:
        port.newest.note_of(saved)
        return Start(saved=saved, detours=_detours_of(saved))
    if saved is None and chosen:
        raise InvalidInputError(
            f"thread {port.thread_id!r} has no checkpoint {checkpoint_id!r}, which is where the graph around "
            f"{max(chosen, key=len)!r} was; with durability='exit' only the last one of a run is stored"
        )
    for ns, inner_id in chosen.items():  # before anything is written
        if (yield from ask(GetTuple(port.saver, at_namespace(port, ns, inner_id)))) is None:
            raise _missing(port, ns, inner_id)
    head = yield from ask(GetTuple(port.saver, port.config(None)))
    # A branch becomes the thread's newest state, even if a machine whose clock is ahead made the head.
    port.newest.note_of(head)
    command = launch.input if isinstance(launch.input, Command) else None
    is_answering = command is not None and command.resume is not None
    is_replay = saved is not None and not is_answering and (launch.input is None or command is not None)
    launch.travel = Travel(chosen if is_replay or is_answering else {}, is_answering)
    if saved is not None and (is_replay or is_answering):
        launch.origin = _origin(saved, launch.ns)
    is_head = saved is None or head is None or saved.checkpoint["id"] == head.checkpoint["id"]
    return Start(
        saved=saved,
        is_addressed=True,
        is_replay=is_replay,
        is_fork=is_replay and _needs_fork(saved, head),
        detours=_detours_of(saved) if saved is None or (is_head and not is_replay) else _left(port, saved, is_kept=is_answering),
    )


def _address(launch: Launch, port: SaverPort) -> Flow[tuple[str | None, dict[str, str]]]:
    """Return the root graph's checkpoint that a config leads to, and those of the graphs inside that it names."""
    spec = launch.spec
    ns, checkpoint_id, chosen = spec.checkpoint_ns, spec.checkpoint_id, dict(spec.checkpoint_map)
    if ns and checkpoint_id is not None and ("" not in chosen or chosen.get(ns) != checkpoint_id):
        found = yield from ask(GetTuple(port.saver, at_namespace(port, ns, checkpoint_id)))
        if found is None:
            raise _missing(port, ns, checkpoint_id)
        chosen = {**found.metadata.get("parents", {}), ns: checkpoint_id}
    around = chosen.pop("", None)
    return (around if ns else checkpoint_id or around), chosen


def _origin(saved: CheckpointTuple, ns: str) -> Origin:
    return Origin(saved.checkpoint["id"], ns, saved.metadata.get("step", -1) + 1)


def _needs_fork(saved: CheckpointTuple | None, head: CheckpointTuple | None) -> bool:
    """Say whether doing a superstep again needs a checkpoint of its own to keep apart from what was done before.

    An update or a fork that nothing was done from is such a checkpoint already.
    """
    if saved is None or head is None or saved.checkpoint["id"] != head.checkpoint["id"]:
        return True
    beside = any(
        task != NULL_TASK_ID and channel not in (INTERRUPT, TRACE, ASKED) for task, channel, _ in saved.pending_writes or ()
    )
    return beside or saved.metadata.get("source") not in _BRANCHES


# --- runs inside it ----------------------------------------------------------------------------------------


def _back(launch: Launch, port: SaverPort, travel: Travel, head: CheckpointTuple | None) -> Flow[Start | None]:
    """Return what a graph inside starts from when it is first visited on a journey; None: as on any other day."""
    origin_ns, parent = launch.origin_ns, launch.parent
    if origin_ns is not None and parent is not None:
        around = parent.run.launch.origin
        assert around is not None
        saved = yield from _found_in_the_past(launch, port, travel, origin_ns, around)
        is_chosen = saved is not None and travel.chosen.get(origin_ns) == saved.checkpoint["id"]
        if saved is not None and (is_chosen or travel.is_answering or _is_of(saved, around.ns, around.checkpoint_id)):
            return _again(launch, port, saved, head, origin_ns)
    if travel.is_answering or launch.is_stateful or origin_ns is None:
        return None
    return Start(saved=None, is_addressed=True)


def _again(launch: Launch, port: SaverPort, saved: CheckpointTuple, head: CheckpointTuple | None, origin_ns: str) -> Start:
    """Go on from a checkpoint of the past, in the namespace of today."""
    launch.origin = _origin(saved, origin_ns)
    is_foreign, is_answering = origin_ns != launch.ns, launch.travel is not None and launch.travel.is_answering
    return Start(
        saved=saved,
        is_resume=True,
        is_addressed=True,
        is_replay=not is_answering,
        is_fork=is_foreign or (not is_answering and _needs_fork(saved, head)),
        is_foreign=is_foreign,
        detours=_left(port, saved, is_kept=is_answering),
    )


def _found_in_the_past(
    launch: Launch, port: SaverPort, travel: Travel, origin_ns: str, around: Origin
) -> Flow[CheckpointTuple | None]:
    """Return the checkpoint that was chosen here, that asks what is answered, or that was the last before the chosen one."""
    if (chosen := travel.chosen.get(origin_ns)) is not None:
        return (yield from ask(GetTuple(port.saver, at_namespace(port, origin_ns, chosen))))
    if travel.is_answering:
        return (yield from _asking(port, origin_ns, launch.hub.answers, since=around.checkpoint_id))
    assert launch.parent is not None
    task_ns = launch.parent.origin_namespace
    if task_ns is not None and (target := travel.leads_below(task_ns)) is not None:
        # An earlier call of the task that leads to what was chosen: it is not made again.
        return (yield from _latest(port, origin_ns, before=target))
    return None


def _asking(port: SaverPort, ns: str, answers: Any, *, since: str) -> Flow[CheckpointTuple | None]:
    """Return the newest checkpoint of a namespace, made after *since*, that asks one of the questions that are answered."""
    found = yield from ask(GetTuple(port.saver, at_namespace(port, ns, None)))
    while found is not None and found.checkpoint["id"] > since:
        for _, channel, value in found.pending_writes or ():
            if channel == INTERRUPT and any(question.id in answers for question in value):
                return found
        found = yield from _latest(port, ns, before=found.checkpoint["id"])
    return None


def _latest(port: SaverPort, ns: str, *, before: str) -> Flow[CheckpointTuple | None]:
    bound = {"configurable": {"checkpoint_id": before}}
    page = yield from ask(ListTuples(port.saver, at_namespace(port, ns, None), None, bound, 1))
    return page[0] if page else None


def at_namespace(port: SaverPort, ns: str, checkpoint_id: str | None) -> dict[str, Any]:
    """Return the config of a checkpoint in another namespace of the run's thread."""
    return {"configurable": {**port.config(checkpoint_id)["configurable"], "checkpoint_ns": ns}}


def _is_within(ns: str, outer: str) -> bool:
    return ns == outer or ns.startswith(f"{outer}{NS_SEP}")


def _missing(port: SaverPort, ns: str, checkpoint_id: str) -> InvalidInputError:
    return InvalidInputError(
        f"thread {port.thread_id!r} has no checkpoint {checkpoint_id!r} under checkpoint_ns {ns!r}: "
        "take the config of a snapshot of get_state_history()"
    )
