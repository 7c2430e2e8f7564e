"""What node code can ask of the run it is in, and the handle that asks a run to stop."""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Final, Generic, TypeVar, cast

from tracegraph.current import here
from tracegraph.errors import InvalidInputError
from tracegraph.types import StreamWriter, seconds_of
from tracegraph.typing import ContextT

__all__ = [
    "DEFAULT_RUNTIME",
    "ExecutionInfo",
    "RunControl",
    "Runtime",
    "ServerInfo",
    "coerce_context",
    "get_runtime",
    "task_counter",
]

C = TypeVar("C")


@dataclass(frozen=True, slots=True)
class ExecutionInfo:
    """Ids of the running task and the count of its attempts.

    ``run_id`` is the text of the id the caller gave, None if none was given. ``node_attempt`` starts at 1;
    ``node_first_attempt_time`` is in seconds since the epoch.
    """

    checkpoint_id: str | None
    checkpoint_ns: str
    task_id: str
    thread_id: str | None = None
    run_id: str | None = None
    node_attempt: int = 1
    node_first_attempt_time: float | None = None

    def patch(self, **overrides: Any) -> ExecutionInfo:
        """Return a copy with some fields replaced."""
        return dataclasses.replace(self, **overrides)


@dataclass(frozen=True, slots=True)
class ServerInfo:
    """What a hosting server says about the run."""

    assistant_id: str
    graph_id: str
    user: Any = None


class TaskBudget:
    """How many tasks may be begun, and how many were."""

    __slots__ = ("begun", "limit")

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.begun = 0


class RunControl:
    """Handle that lets any thread ask a run to stop cleanly, and limits its time; give it as ``control=``, one to each run.

    Asked to stop, the running step finishes and is saved, then the run raises ``GraphDrained``; invoke with None to go on.

    ``deadline_s`` (seconds or a timedelta) counts from the start of each run it is given to, and holds for all that runs
    inside it, sync nodes, retries and waits included. When it has passed, async nodes are cancelled, sync ones are left
    behind, and the run raises ``RunDeadlineError``; what finished tasks wrote is kept, so invoke with None goes on.

    ``max_tasks`` limits how many tasks the run and all runs inside it begin, one count for all of them: nodes, Sends, calls
    of ``@task`` functions and error handlers. Not counted are further attempts of a task, tasks whose results are stored
    already, and the start node. One task more raises ``TaskLimitError``.

    >>> control = RunControl()
    >>> control.request_drain("deploy")
    >>> control.drain_requested, control.drain_reason
    (True, 'deploy')
    >>> RunControl(deadline_s=30).deadline_s
    30.0

    Raises:
        InvalidInputError: ``deadline_s`` is no positive, finite number or timedelta, or ``max_tasks`` no positive int.
    """

    __slots__ = ("_callbacks", "_lock", "_reason", "budget", "deadline_s")

    def __init__(self, *, deadline_s: float | timedelta | None = None, max_tasks: int | None = None) -> None:
        try:
            self.deadline_s = None if deadline_s is None else seconds_of(deadline_s, "deadline_s")
        except ValueError as error:
            raise InvalidInputError(str(error)) from None
        if max_tasks is not None and (type(max_tasks) is not int or max_tasks < 1):  # no bool either
            raise InvalidInputError(f"max_tasks must be a whole number, at least 1, not {max_tasks!r}; leave it out for no limit")
        self.budget = None if max_tasks is None else TaskBudget(max_tasks)
        self._lock = threading.Lock()
        self._reason: str | None = None
        self._callbacks: dict[object, Callable[[str], None]] = {}

    def request_drain(self, reason: str = "shutdown") -> None:
        """Ask the run to stop; asked again, the last reason counts."""
        with self._lock:
            is_first = self._reason is None
            self._reason = reason
            callbacks = list(self._callbacks.values()) if is_first else []
        # Outside the lock: a callback may take its subscription off, which takes the lock too.
        for callback in callbacks:
            callback(reason)

    @property
    def drain_requested(self) -> bool:
        """Say whether someone asked the run to stop."""
        return self._reason is not None

    @property
    def drain_reason(self) -> str | None:
        """The reason given, None if nobody asked."""
        return self._reason

    @property
    def max_tasks(self) -> int | None:
        """How many tasks may be begun, None for any number."""
        return None if self.budget is None else self.budget.limit

    @property
    def tasks_begun(self) -> int:
        """How many were counted: a superstep's all at once, as it begins. Without a limit none are."""
        return 0 if self.budget is None else self.budget.begun

    def on_drain(self, callback: Callable[[str], None]) -> Callable[[], None]:
        """Call *callback* with the reason once the run is asked to stop, at once if it was already.

        It runs in the asking thread. Returns a function that takes the callback off again.
        """
        token = object()
        with self._lock:
            reason = self._reason
            if reason is None:
                self._callbacks[token] = callback
        if reason is not None:
            callback(reason)

        def unsubscribe() -> None:
            with self._lock:
                self._callbacks.pop(token, None)

        return unsubscribe

    def __repr__(self) -> str:
        return f"<RunControl drain_reason={self._reason!r}>"


_counting = threading.Lock()
"""One for all controls: a run inside may have one of its own beside that of the run around it."""


def task_counter(controls: Iterable[RunControl]) -> Callable[[int], tuple[int, int] | None] | None:
    """Return what counts tasks before they are begun, None if none of *controls* has a limit.

    Called with a number of tasks, it counts them all and returns None; if a control would not allow that it counts none and
    returns the control's limit and how many were begun. Any threads may call it.
    """
    budgets = [control.budget for control in dict.fromkeys(controls) if control.budget is not None]

    def count(tasks: int) -> tuple[int, int] | None:
        with _counting:
            for budget in budgets:
                if budget.begun + tasks > budget.limit:
                    return budget.limit, budget.begun
            for budget in budgets:
                budget.begun += tasks
        return None

    return count if budgets else None


def _no_writer(_: Any) -> None:
    """Drop the chunk: nobody reads the custom stream."""


def _no_heartbeat() -> None:
    """Do nothing: the attempt has no idle timeout to push back."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Runtime(Generic[ContextT]):
    """What a node gets as its ``runtime`` parameter.

    ``stream_writer`` emits one chunk of the custom stream; ``heartbeat`` tells an idle timeout that the node is
    alive, from any thread; ``previous`` is the last return value of an entrypoint on this thread.
    """

    context: ContextT = field(default=cast("ContextT", None))
    store: Any = None
    stream_writer: StreamWriter = field(default=_no_writer)
    heartbeat: Callable[[], None] = field(default=_no_heartbeat)
    previous: Any = None
    execution_info: ExecutionInfo | None = None
    server_info: ServerInfo | None = None
    control: RunControl | None = None

    @property
    def drain_requested(self) -> bool:
        """Say whether someone asked this run to stop."""
        return self.control is not None and self.control.drain_requested

    @property
    def drain_reason(self) -> str | None:
        """Why the run was asked to stop, None if it was not."""
        return None if self.control is None else self.control.drain_reason

    def override(self, **overrides: Any) -> Runtime[ContextT]:
        """Return a copy with some fields replaced, None included."""
        return dataclasses.replace(self, **overrides)

    def merge(self, other: Runtime[ContextT]) -> Runtime[ContextT]:
        """Return a copy in which every field that *other* has set wins."""
        return Runtime(
            context=self.context if other.context is None else other.context,
            store=self.store if other.store is None else other.store,
            stream_writer=self.stream_writer if other.stream_writer is _no_writer else other.stream_writer,
            heartbeat=self.heartbeat if other.heartbeat is _no_heartbeat else other.heartbeat,
            previous=self.previous if other.previous is None else other.previous,
            execution_info=other.execution_info or self.execution_info,
            server_info=other.server_info or self.server_info,
            control=self.control if other.control is None else other.control,
        )

    def patch_execution_info(self, **overrides: Any) -> Runtime[ContextT]:
        """Return a copy with some fields of ``execution_info`` replaced.

        Raises:
            RuntimeError: there is no ``execution_info``: this runtime belongs to no task.
        """
        if self.execution_info is None:
            raise RuntimeError("this Runtime has no execution_info to patch: it was not made for a task")
        return self.override(execution_info=self.execution_info.patch(**overrides))


DEFAULT_RUNTIME: Final[Runtime[Any]] = Runtime()
"""No context, no store; the writer drops what it gets."""


def get_runtime(context_schema: type[C] | None = None) -> Runtime[C]:  # noqa: ARG001  it only names the type of .context
    """Return the Runtime of the running node: the very object a ``runtime`` parameter gets.

    Raises:
        RuntimeError: called outside a run.
    """
    return cast("Runtime[C]", here("get_runtime()").runtime)


def coerce_context(schema: type[Any] | None, value: Any) -> Any:
    """Return *value* as a run's context: a dict becomes an instance of a dataclass or Pydantic *schema*.

    None stays None (a schema is not default-constructed); an instance, and whatever a TypedDict describes, stays
    as it is. Errors of the schema's constructor are the caller's to see.
    """
    if schema is None or not isinstance(value, dict):
        return value
    if dataclasses.is_dataclass(schema) or hasattr(schema, "model_validate"):
        return schema(**value)
    return value
