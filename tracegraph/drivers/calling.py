"""Calling a node: map its input, run its body, turn what it returned into writes, say how it went.

One generator for both colours: it yields a :class:`Call` wherever user code is to be called, and gets what it
returned (or raised) back. The drivers' pumps differ in how they call, and in nothing else.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import random
import warnings
from collections.abc import Generator
from typing import Any

from tracegraph.constants import NS_SEP
from tracegraph.drivers.body import Body
from tracegraph.drivers.checks import DeepGuard
from tracegraph.drivers.here import HereNow
from tracegraph.engine.failures import add_note
from tracegraph.engine.identity import without_ids
from tracegraph.engine.node import PathCall
from tracegraph.engine.reports import Report, TaskAborted, TaskFailed, TaskHandedOver, TaskInterrupted, TaskSucceeded
from tracegraph.engine.retry import matching_policy
from tracegraph.engine.views import task_input
from tracegraph.errors import (
    GraphBubbleUp,
    GraphInterrupt,
    InvalidAnswerError,
    NodeCancelledError,
    ParentCommand,
    TaskLimitError,
    TracegraphWarning,
)
from tracegraph.events import BranchEnded, BranchStarted
from tracegraph.types import Command, RetryPolicy

__all__ = ["Call", "attempt_flow", "failure_report"]


class Call:
    """An order to call user code. ``on_loop``: quick code (a path function) that an async run calls on the event loop."""

    __slots__ = ("args", "body", "kwargs", "on_loop")

    def __init__(self, body: Body, args: tuple[Any, ...], kwargs: dict[str, Any], on_loop: bool) -> None:
        self.body = body
        self.args = args
        self.kwargs = kwargs
        self.on_loop = on_loop

    def in_sync_run(self) -> Any:
        """Call the sync lane.

        Raises:
            TypeError: there is none, or it made an awaitable: this needs ``ainvoke``.
        """
        body = self.body
        if body.fn is None:
            raise TypeError(f"{body.name!r} is async, so a sync run cannot call it: use ainvoke() or astream()")
        result = body.fn(*self.args, **self.kwargs) if self.kwargs else body.fn(*self.args)
        if type(result) in _PLAIN or not hasattr(result, "__await__"):
            return result
        if isinstance(result, asyncio.Future) or not hasattr(result, "close"):
            raise TypeError(
                f"{body.name!r} returned {type(result).__name__}, which only an async run can await: use ainvoke() or astream()"
            )
        result.close()
        raise TypeError(f"{body.name!r} returned a coroutine, which only an async run can await: use ainvoke() or astream()")


_NOTHING: dict[str, Any] = {}
_PLAIN = frozenset({dict, list, str, int, type(None), tuple, bool})


def attempt_flow(here: HereNow) -> Generator[Call, Any, Report]:
    """Run one attempt of a task and return its report; never raises what user code raised."""
    task = here.task
    node = task.node
    guard = DeepGuard(task) if here.run.is_checked else None
    here.share_config()
    try:
        returned = yield from _returned(here)
        here.note_progress()
        if here.is_over:
            # Out of time, but the code went on: what it returns must not get among the writes of the next attempt.
            return TaskSucceeded(task, here.attempt, returned)
        if guard is not None:
            guard.warn()
        if task.call is None:
            writing = node.writer.write(task, returned)
            try:
                order = next(writing)
            except StopIteration:
                pass
            else:
                yield from _branches(here, writing, order)
    except BaseException as error:
        if guard is not None and isinstance(error, Exception) and not here.is_over:
            with contextlib.suppress(TracegraphWarning):  # where warnings are errors, the node's own comes first
                guard.warn()
        return failure_report(here, error)
    finally:
        here.is_over = True
    if here.refused is not None:
        return failure_report(here, here.refused)
    if here.interrupted is not None:
        warnings.warn(
            f"node {node.name!r} caught the exception of an interrupt; the run pauses all the same. Let GraphInterrupt pass: "
            "catch narrower exceptions around interrupt()",
            TracegraphWarning,
            stacklevel=2,
        )
        return _interrupted(here, here.interrupted)
    return TaskSucceeded(task, here.attempt, returned)


def _returned(here: HereNow) -> Generator[Call, Any, Any]:
    task = here.task
    node = task.node
    if task.call is not None:
        function_args, function_kwargs = task.call[1], task.call[2]
        called: Body = node.body
        kwargs = {**called.arguments(here), **function_kwargs} if called.inject else function_kwargs
        return (yield Call(called, function_args, kwargs, False))
    if here.attempt > 1:
        # A retry starts from the state again, not from what the failed attempt did to its input.
        task.input = task_input(task)
    if node.mapper is not None and task.is_mapped:
        task.input = node.mapper(task.input)
    body: Body | None = node.body
    if body is None:
        return task.input
    args = (task.input, here.config()) if body.takes_config else (task.input,)
    try:
        return (yield Call(body, args, body.arguments(here) if body.inject else _NOTHING, False))
    except ParentCommand as handed:
        return _take_command(here, handed)


def _take_command(here: HereNow, handed: ParentCommand) -> Any:
    """Return the command if a child run addressed it to this graph, else send it on to the enclosing one.

    A child run's command leaves it addressed to the namespace of the task that encloses it.
    """
    command = handed.command
    mine = here.namespace
    if command.graph in (mine, without_ids(mine), here.task.node.name):
        return Command(update=command.update, goto=command.goto)
    raise handed


def readdress(command: Command[Any], run_ns: str) -> Command[Any]:
    """Return *command*, if it is for the parent graph, addressed to the task that encloses the run at *run_ns*."""
    if command.graph != Command.PARENT or not run_ns:
        return command
    head, _, tail = run_ns.rpartition(NS_SEP)
    enclosing = head if tail.isdigit() else run_ns
    return Command(graph=enclosing, update=command.update, goto=command.goto, resume=command.resume)


def _branches(here: HereNow, writing: Generator[PathCall, Any, None], order: PathCall) -> Generator[Call, Any, None]:
    """Call the path functions that a writer asks for, announcing each."""
    position = 0
    hub = here.run.hub
    try:
        while True:
            is_wanted = bool(hub.wants & (BranchStarted.bit | BranchEnded.bit))
            if is_wanted:
                _announce(here, BranchStarted, order.name, position, order.input)
            body: Body = order.path
            args = (order.input, here.config()) if body.takes_config else (order.input,)
            try:
                found = yield Call(body, args, body.arguments(here) if body.inject else _NOTHING, True)
            except BaseException as error:
                if is_wanted:
                    _announce(here, BranchEnded, order.name, position, None, error)
                raise
            if is_wanted:
                _announce(here, BranchEnded, order.name, position, found, None)
            here.note_progress()
            position += 1
            order = writing.send(found)
    except StopIteration:
        pass


def _announce(here: HereNow, kind: Any, name: str, position: int, *rest: Any) -> None:
    run, task = here.run, here.task
    run.hub.publish(kind(run.run_id, run.ns, task.step, run.hub.now_ns(), task.id, name, position, *rest))


def failure_report(here: HereNow, error: BaseException) -> Report:
    """Return the report of an attempt that raised *error*. Control flow is told by type and is never a failure."""
    task, attempt = here.task, here.attempt
    here.is_over = True
    if isinstance(error, GraphInterrupt):
        asked = {question.id: question for question in (*(here.interrupted or ()), *error.interrupts)}
        return _interrupted(here, tuple(asked.values()))
    if isinstance(error, ParentCommand):
        error.command = readdress(error.command, here.run.ns)
        return TaskHandedOver(task, attempt, error)
    if isinstance(error, GraphBubbleUp):
        return TaskHandedOver(task, attempt, error)
    if isinstance(error, (asyncio.CancelledError, concurrent.futures.CancelledError)):
        cancelled = NodeCancelledError(task.node.name)
        cancelled.__cause__ = error
        return _failed(here, cancelled, None)
    if not isinstance(error, Exception):
        return TaskAborted(task, attempt, error)
    try:
        # The same answer would be refused again, and what was begun stays begun.
        policy = (
            None
            if isinstance(error, InvalidAnswerError | TaskLimitError)
            else matching_policy(task, error, here.run.default_retry)
        )
    except Exception as broken:
        broken.__context__ = error
        return _failed(here, broken, None)
    return _failed(here, error, policy)


def _failed(here: HereNow, error: Exception, policy: RetryPolicy | None) -> TaskFailed:
    task, thread_id = here.task, here.run.thread_id
    thread = "" if thread_id is None else f", thread {thread_id!r}"
    note = f"while running node {task.node.name!r} (step {task.step}, task {task.id}, attempt {here.attempt}{thread})"
    add_note(error, note)
    jitter = random.random() if policy is not None else 0.0  # noqa: S311  # spreads retries; nothing secret
    is_stopped = here.is_told_to_stop and _comes_of_cancellation(error)
    return TaskFailed(task, here.attempt, error, policy, jitter, here.run.hub.trace_of(task.id), is_stopped)


def _comes_of_cancellation(error: BaseException) -> bool:
    """Say whether *error* was raised while a cancellation was on its way through the node's code: in its clean-up, say."""
    seen = {id(error)}  # a chain that user code has tied into a ring has no end
    context = error.__context__
    while context is not None and id(context) not in seen:
        if isinstance(context, asyncio.CancelledError):
            return True
        seen.add(id(context))
        context = context.__context__
    return False


def _interrupted(here: HereNow, interrupts: tuple[Any, ...]) -> Report:
    if not here.run.has_saver and here.run.parent is None:
        warnings.warn(
            f"node {here.task.node.name!r} paused the run; without compile(checkpointer=...) it cannot be resumed",
            TracegraphWarning,
            stacklevel=2,
        )
    return TaskInterrupted(here.task, here.attempt, interrupts, here.run.hub.trace_of(here.task.id))
