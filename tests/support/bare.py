"""Drives an engine by hand: no thread, no loop, no clock, and reports in whatever order the caller chooses."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from itertools import count
from typing import Any, TypeAlias
from uuid import UUID

from readings import Reading, add, quiet
from recipes import text_of

from tracegraph.constants import PULL, UNFINISHED_WRITES
from tracegraph.engine.actions import Decision, Finish, RunTask, SaveCheckpoint, SaveWrites
from tracegraph.engine.engine import Engine
from tracegraph.engine.identity import task_namespace
from tracegraph.engine.reports import Report, SaveEnded, TaskFailed, TaskHandedOver, TaskInterrupted, TaskSucceeded
from tracegraph.engine.settings import Begin, RunSettings
from tracegraph.engine.task import Task
from tracegraph.engine.topology import Topology
from tracegraph.errors import GraphInterrupt, ParentCommand
from tracegraph.events import Event, StateUpdated, TaskEnded, every_kind
from tracegraph.types import Durability

Choose: TypeAlias = Callable[[int], int]
"""Says which of n waiting reports comes next: a number from 0 to n - 1."""

RUN_ID = UUID("018f0000-0000-7000-8000-000000000001")
AT_NS = 1_700_000_000_000_000_000


class Stopped(Exception):
    """The driver was told to give up here, as if the process had died."""


def first(_: int) -> int:
    """Choose the report that has waited longest."""
    return 0


def last(waiting: int) -> int:
    """Choose the report that came last."""
    return waiting - 1


def checkpoint_id(parent_id: str | None, step: int) -> str:
    """Return an id that sorts after its parent's."""
    return str(UUID(int=(UUID(parent_id).int if parent_id else 0) + 0x1_0000 + step + 2))


class BareRun:
    """One run of a compiled graph on a bare engine.

    Args:
        choose: the order in which reports are delivered.
        is_eager: bodies run when the engine hands them out; else just before they are reported.
        saver: carries out saves, at once and in order; their reports join the others.
        stop_after: give up after that many reports.
    """

    def __init__(
        self,
        app: Any,
        *,
        choose: Choose = first,
        is_eager: bool = True,
        recursion_limit: int = 25,
        max_concurrency: int | None = None,
        ns: str = "",
        saver: Any = None,
        config: Mapping[str, Any] | None = None,
        durability: Durability = "sync",
        stop_after: int | None = None,
    ) -> None:
        self._choose = choose
        self._is_eager = is_eager
        self._limit = recursion_limit
        self._saver = saver
        self._config: Any = {"configurable": {**(config or {}), "checkpoint_ns": ns}}
        self._stop_after = stop_after
        self._clock = count(AT_NS)
        self._waiting: list[Callable[[], Report]] = []
        self.finish: Finish | None = None
        self.events: list[Event] = []
        self.ran: list[Task] = []
        """Tasks whose bodies ran, in that order."""
        self.saved_ids: set[str] = set()
        """Tasks whose writes are stored: they must not run again."""
        self.report_count = 0
        self.topology: Topology = app.topology
        self.engine = Engine(
            self.topology,
            RunSettings(
                run_id=RUN_ID,
                ns=ns,
                recursion_limit=recursion_limit,
                max_concurrency=max_concurrency,
                durability=durability if saver is not None else None,
                wants=every_kind(),
                is_checked=True,
                next_version=self._next_version,
                new_checkpoint_id=checkpoint_id,
            ),
        )

    def _next_version(self, current: Any) -> Any:
        return self._saver.get_next_version(current, None) if self._saver is not None else (current or 0) + 1

    def run(self, given: Any) -> Finish:
        """Run to the end and return it; an error of the run stands on it, except one that kept it from starting.

        A thread that has a checkpoint goes on from there.

        Raises:
            Stopped: ``stop_after`` reports were delivered.
        """
        saved = self._saver.get_tuple(self._config) if self._saver is not None else None
        begin = Begin(input=given if saved is None else None, saved=saved)
        self._follow(self.engine.start(begin, next(self._clock)))
        while self.finish is None:
            if self.report_count == self._stop_after:
                raise Stopped
            report = self._waiting.pop(self._choose(len(self._waiting)))()
            self.report_count += 1
            self.before(report)
            self._follow(self.engine.receive(report, next(self._clock)))
        for late in self._waiting:
            self._follow(self.engine.receive(late(), next(self._clock)))
        return self.finish

    def _follow(self, decision: Decision) -> None:
        self.events += decision.events
        for action in decision.actions:
            match action:
                case RunTask(task=task):
                    self.events += action.started
                    self._wait_for(partial(self._attempt, task), is_eager=self._is_eager)
                case SaveCheckpoint() | SaveWrites():
                    self._wait_for(partial(self._save, action), is_eager=True)
                case Finish():
                    self.finish = action
                case _:
                    pass  # nothing here sleeps, and nothing that runs can be cancelled

    def _wait_for(self, work: Callable[[], Report], *, is_eager: bool) -> None:
        if is_eager:
            report = work()
            self._waiting.append(lambda: report)
        else:
            self._waiting.append(work)

    def _attempt(self, task: Task) -> Report:
        """Run a task's body as a driver would, and return the report of it."""
        self.ran.append(task)
        try:
            self._write(task, self._call(task))
            self.wrote(task)
        except GraphInterrupt as pause:
            return TaskInterrupted(task, task.attempt, pause.interrupts)
        except ParentCommand as command:
            return TaskHandedOver(task, task.attempt, command)
        except Exception as error:
            return TaskFailed(task, task.attempt, error)
        return TaskSucceeded(task, task.attempt)

    def before(self, report: Report) -> None:
        """Look at the engine before it takes a report: for subclasses."""

    def wrote(self, task: Task) -> None:
        """Look at, or change, what a task wrote, before it is reported: for subclasses."""

    def _call(self, task: Task) -> Any:
        node = task.node
        if node.body is None:
            return task.input
        # A Send's argument is the node's input as it is, whatever the schema.
        given = task.input if node.mapper is None or task.path[0] != PULL else node.mapper(task.input)
        if node.subgraph is not None and node.body.target is node.subgraph:
            return self._run_inner(node.subgraph, task, given)
        return node.body.fn(given)

    def _run_inner(self, app: Any, task: Task, given: Any) -> Any:
        """A subgraph that is a node: an engine of its own, driven by this same hand."""
        ns = task_namespace(task.ns, task.node.name, task.id)
        inner = BareRun(app, choose=self._choose, is_eager=self._is_eager, recursion_limit=self._limit, ns=ns)
        end = inner.run(given)
        if end.error is not None:
            raise end.error
        return end.output

    @staticmethod
    def _write(task: Task, returned: Any) -> None:
        writing = task.node.writer.write(task, returned)
        answer = None
        while True:
            try:
                call = writing.send(answer)
            except StopIteration:
                return
            answer = call.path.fn(call.input)

    def _save(self, action: SaveCheckpoint | SaveWrites) -> Report:
        config = {"configurable": dict(self._config["configurable"])}
        if isinstance(action, SaveCheckpoint):
            config["configurable"]["checkpoint_id"] = action.parent_id
            self._saver.put(config, action.checkpoint, action.metadata, action.new_versions)
        else:
            config["configurable"]["checkpoint_id"] = action.checkpoint_id
            self._saver.put_writes(config, action.writes, action.task_id, action.task_path)
            if any(channel not in UNFINISHED_WRITES for channel, _ in action.writes):
                self.saved_ids.add(action.task_id)
        return SaveEnded(action.order)


def read_bare(app: Any, recipe: Any, choose: Choose, *, is_eager: bool, max_concurrency: int | None = None) -> Reading:
    """Run *app* on a bare engine and write down what the streams of the drivers would show."""
    run = BareRun(app, choose=choose, is_eager=is_eager, recursion_limit=recipe.recursion_limit, max_concurrency=max_concurrency)
    with quiet():
        end = run.run(recipe.input())
    reading = Reading()
    if end.error is not None:
        reading.error = type(end.error).__name__
    else:
        reading.final = text_of(end.output)
    keys = run.topology.stream_channels
    for event in run.events:
        match event:
            case TaskEnded(status="completed", is_hidden=False):
                add(reading, event.step, {event.name: update_of(event, keys)})
            case StateUpdated():
                reading.values[event.step] = text_of({k: event.values[k] for k in keys if k in event.values})
            case _:
                pass
    return reading


def update_of(event: TaskEnded, keys: Any) -> Any:
    """Return a task's writes to the state in the form of the ``updates`` stream mode."""
    pairs = [(name, value) for name, value in event.writes if name in keys]
    if not pairs:
        return None
    names = [name for name, _ in pairs]
    return dict(pairs) if len(set(names)) == len(names) else [{name: value} for name, value in pairs]
