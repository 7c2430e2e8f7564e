"""Feeding an engine by hand: a checked engine for a compiled graph, and what a driver would do between two moves."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeVar
from uuid import UUID

from tracegraph.engine.actions import Action, Decision, RunTask, SaveCheckpoint, SaveWrites
from tracegraph.engine.engine import Engine
from tracegraph.engine.reports import SaveEnded, TaskSucceeded
from tracegraph.engine.settings import Begin, RunSettings
from tracegraph.engine.task import Task
from tracegraph.events import Event, every_kind
from tracegraph.graph import START

AT_NS = 1_000_000_000_000
RUN_ID = UUID(int=7)
A = TypeVar("A", bound=Action)
E = TypeVar("E", bound=Event)


def only(kind: type[A], actions: Iterable[Action]) -> A:
    """Return the one action of that kind."""
    (found,) = [action for action in actions if isinstance(action, kind)]
    return found


def events_of(kind: type[E], decision: Decision) -> list[E]:
    """Return a decision's events of one kind."""
    return [event for event in decision.events if isinstance(event, kind)]


def tasks_of(decision: Decision) -> list[Task]:
    """Return the tasks that a decision lets run."""
    return [action.task for action in decision.actions if isinstance(action, RunTask)]


def engine_for(app: Any, **settings: Any) -> Engine:
    """Return a checked engine for *app* that announces everything."""
    given: dict[str, Any] = {
        "run_id": RUN_ID,
        "recursion_limit": 10,
        "wants": every_kind(),
        "next_version": lambda current: 1 if current is None else current + 1,
        "new_checkpoint_id": lambda parent, step: str(UUID(int=(UUID(parent).int if parent else 0) + 1)),
        "is_checked": True,
        **settings,
    }
    return Engine(app.topology, RunSettings(**given))


def started(engine: Engine, given: Any, *, begin: Begin | None = None) -> Decision:
    """Start the run, let the start node pass its input on, carry out awaited saves; return what is left to do."""
    decision = engine.start(begin or Begin(input=given), AT_NS)
    while True:
        awaited = [a for a in decision.actions if isinstance(a, SaveCheckpoint | SaveWrites) and a.is_awaited]
        starts = [task for task in tasks_of(decision) if task.name == START]
        if awaited:
            for action in awaited:
                decision = engine.receive(SaveEnded(action.order), AT_NS)
        elif starts:
            decision = succeed(engine, starts[0], given)
        else:
            return decision


def succeed(engine: Engine, done: Task, returned: Any = None, at_ns: int = AT_NS) -> Decision:
    """Report that a task returned *returned*, written as its node writes it."""
    list(done.node.writer.write(done, returned))
    return engine.receive(TaskSucceeded(done, done.attempt, returned), at_ns)
