"""Every exception tracegraph raises, with its code.

The type says whose fault it is::

    GraphDefinitionError(ValueError)      the graph was built wrong; raised by builder calls and compile()
    InvalidUpdateError                    a write that a channel or the graph cannot take
      UnknownTargetError                  a Send, goto or branch names a node that does not exist
    EmptyInputError, EmptyChannelError    nothing to run, nothing to read
    InvalidInputError(ValueError)         arguments of a call that cannot be carried out
    GraphRecursionError(RecursionError)   the step limit was reached; the thread stays resumable
    TaskLimitError(RuntimeError)          so was the limit of all tasks of a run tree
    StateSizeError(RuntimeError)          a thread's state would have become too large; the thread stays resumable
    NodeTimeoutError, NodeCancelledError  how an attempt of a node ended
    StepTimeoutError(TimeoutError)        a superstep took too long; the thread stays resumable, as in the next
    RunDeadlineError(TimeoutError)        the run took too long
    SlowReaderError(RuntimeError)         a reader fell further behind than it may; the thread stays resumable
    UnknownInterruptError                 an answer to a question nobody asked
    InvalidAnswerError(ValueError)        an answer that does not fit the question's schema
    ConcurrentRunError                   two runs wrote one thread
    GraphBubbleUp                         control flow, never a failure
      GraphInterrupt, ParentCommand, GraphDrained
    EngineBug                             ours; please report it

Each failure carries ``code`` (``TGnnn``, in its text too) and the names involved as attributes. A text never shows a value of
the state, an input or an answer: that is ``value``, see :mod:`tracegraph.refused_values`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, Literal

from tracegraph.constants import FAILURES
from tracegraph.refused_values import about, described, nearest, what_is_wrong

if TYPE_CHECKING:
    from tracegraph.types import Command, Interrupt

__all__ = [
    "EmptyChannelError",
    "EmptyInputError",
    "EngineBug",
    "ErrorCode",
    "GraphBubbleUp",
    "GraphDefinitionError",
    "GraphDrained",
    "GraphInterrupt",
    "GraphRecursionError",
    "InvalidAnswerError",
    "InvalidInputError",
    "InvalidUpdateError",
    "NodeCancelledError",
    "NodeError",
    "NodeTimeoutError",
    "ParentCommand",
    "RunClosed",
    "RunDeadlineError",
    "SlowReaderError",
    "StepTimeoutError",
    "StateSizeError",
    "TaskLimitError",
    "TaskNotFound",
    "ConcurrentRunError",
    "TracegraphWarning",
    "UnknownInterruptError",
    "UnknownTargetError",
    "failures_of",
]


class ErrorCode(Enum):
    """Codes that LangGraph users search for; ours are the ``TGnnn`` of each class."""

    GRAPH_RECURSION_LIMIT = "GRAPH_RECURSION_LIMIT"
    INVALID_CONCURRENT_GRAPH_UPDATE = "INVALID_CONCURRENT_GRAPH_UPDATE"
    INVALID_GRAPH_NODE_RETURN_VALUE = "INVALID_GRAPH_NODE_RETURN_VALUE"
    MULTIPLE_SUBGRAPHS = "MULTIPLE_SUBGRAPHS"
    INVALID_CHAT_HISTORY = "INVALID_CHAT_HISTORY"


class TracegraphWarning(UserWarning):
    """Something a run survived but its author should know: a starved join, an unanswerable interrupt."""


class _Coded:
    """Puts the code before the text; mixed into the exceptions below."""

    code = "TG000"

    def __str__(self) -> str:
        return f"[{self.code}] {super().__str__()}"


class GraphDefinitionError(_Coded, ValueError):
    """The graph was built wrong. ``problems`` lists every fault found, one sentence each."""

    code = "TG101"

    def __init__(self, *problems: str) -> None:
        self.problems: tuple[str, ...] = problems
        text = problems[0] if len(problems) == 1 else "the graph has several faults:\n" + "\n".join(f"- {p}" for p in problems)
        super().__init__(text)


class InvalidInputError(_Coded, ValueError):
    """A call's arguments cannot be carried out (unknown stream mode, durability without a saver, ...)."""

    code = "TG102"


class InvalidUpdateError(_Coded, Exception):
    """A write that a channel or the graph cannot take."""

    code = "TG201"

    def __init__(
        self,
        message: str = "",
        *,
        channel: str | None = None,
        node: str | None = None,
        step: int | None = None,
        writers: Sequence[str] = (),
        error_code: ErrorCode | None = None,
    ) -> None:
        self.channel = channel
        self.node = node
        self.step = step
        self.writers = tuple(writers)
        self.error_code = error_code
        super().__init__(message if error_code is None else f"{message} ({error_code.value})")


class UnknownTargetError(InvalidUpdateError):
    """A Send, goto, branch or low-level write names something that does not exist."""

    code = "TG202"

    def __init__(self, target: object, *, node: str | None, known: Iterable[str], what: str = "node") -> None:
        self.target = target
        self.known = tuple(sorted(known))
        by = f"node {node!r} sent to" if node else "the input addresses"
        # The key of a state is a name; where to go may be what a model said.
        gone = f"a {what} that does not exist{nearest(target, self.known)}"
        if what == "channel":
            gone = f"channel {target!r}, which does not exist"
        super().__init__(f"{by} {gone}; known: {', '.join(map(repr, self.known))}", node=node)
        about(self, target)


class EmptyInputError(_Coded, Exception):
    """Nothing to run: the input is empty and the thread has nothing to resume."""

    code = "TG203"


class EmptyChannelError(_Coded, Exception):
    """Read of a channel that holds no value."""

    code = "TG204"


class GraphRecursionError(_Coded, RecursionError):
    """``recursion_limit`` supersteps were not enough; what they did is kept.

    ``step`` is the superstep that was not begun, ``next_nodes`` are the nodes of its tasks.
    """

    code = "TG205"

    def __init__(
        self, message: str = "", *, limit: int | None = None, step: int | None = None, next_nodes: Sequence[str] = ()
    ) -> None:
        self.limit = limit
        self.step = step
        self.next_nodes = tuple(next_nodes)
        super().__init__(
            f"{message} ({ErrorCode.GRAPH_RECURSION_LIMIT.value})" if message else ErrorCode.GRAPH_RECURSION_LIMIT.value
        )


class TaskLimitError(_Coded, RuntimeError):
    """A run and all runs inside it would have begun more tasks than ``RunControl(max_tasks=...)`` allows.

    None of the ``planned`` tasks was begun; what others did is kept, so the thread goes on with None and a new control.
    ``begun`` is how many the run tree had begun, ``step`` the superstep that they are of.
    """

    code = "TG207"

    def __init__(self, *, limit: int, begun: int, step: int, planned: int, nodes: Sequence[str]) -> None:
        self.limit = limit
        self.begun = begun
        self.step = step
        self.planned = planned
        self.nodes = tuple(nodes)
        named = ", ".join(map(repr, dict.fromkeys(nodes)))
        super().__init__(
            f"step {step} would begin {planned} more task{'' if planned == 1 else 's'} ({named}), but max_tasks={limit} and "
            f"{begun} have been begun. To go on, invoke the thread with None and a new RunControl(max_tasks=...)"
        )


class StateSizeError(_Coded, RuntimeError):
    """A thread's state would have become larger than ``max_state_bytes``; nothing of it was changed.

    ``size_bytes`` is what it would have been, ``channels`` maps the largest channels to their sizes, largest first.
    ``step`` is the superstep whose result it was, that of the input or update among them.
    """

    code = "TG208"

    def __init__(
        self, *, thread_id: str | None, limit: int, size_bytes: int, channels: Mapping[str, int], step: int | None = None
    ) -> None:
        self.thread_id = thread_id
        self.limit = limit
        self.size_bytes = size_bytes
        self.channels = dict(channels)
        self.step = step
        super().__init__(thread_id, limit, size_bytes)

    def __str__(self) -> str:
        whose = "the run's state" if self.thread_id is None else f"the state of thread {self.thread_id!r}"
        when = "" if self.step is None else f" after step {self.step}"
        largest = ", ".join(f"{name!r} {size}" for name, size in self.channels.items())
        return (
            f"[{self.code}] {whose} would be {self.size_bytes} bytes{when}, more than max_state_bytes={self.limit}; the largest "
            f"channels: {largest}. Nothing was changed: raise the limit, or make the state smaller with update_state(), and "
            "invoke with None"
        )


class SlowReaderError(_Coded, RuntimeError):
    """A reader left more unread than its ``buffer=(limit, "fail")`` allows, so the run was stopped.

    ``reader`` says which reader of which run it was. What finished supersteps saved is kept.
    """

    code = "TG209"

    def __init__(self, reader: str, *, limit: int) -> None:
        self.reader = reader
        self.limit = limit
        super().__init__(reader, limit)

    def __str__(self) -> str:
        return (
            f"[{self.code}] {self.reader} left {self.limit} items unread when another one came, more than buffer=({self.limit}, "
            "'fail') allows, so the run was stopped: read faster, allow more, or choose 'block' or 'drop_oldest'; on a saved "
            "thread, invoke with None goes on with what did not finish, if anything"
        )


class ConcurrentRunError(_Coded, Exception):
    """Another run moved this thread on while this one was running; nothing of either was overwritten."""

    code = "TG206"

    def __init__(self, thread_id: str, *, expected: str | None, found: str | None) -> None:
        self.thread_id = thread_id
        self.expected = expected
        self.found = found
        super().__init__(
            f"thread {thread_id!r} was at checkpoint {expected!r} when this run last saved, but is now at {found!r}: "
            "another run wrote it; run one at a time per thread, or invoke again to continue from the new head"
        )


class UnknownInterruptError(_Coded, RuntimeError):
    """A resume that names no pending interrupt; ``reason`` is empty_map, not_pending, ambiguous or no_checkpointer."""

    code = "TG301"

    def __init__(self, message: str, *, reason: str, interrupt_ids: Sequence[str] = (), pending_ids: Sequence[str] = ()) -> None:
        self.reason = reason
        self.interrupt_ids = tuple(interrupt_ids)
        self.pending_ids = tuple(pending_ids)
        super().__init__(message)


class InvalidAnswerError(_Coded, ValueError):
    """An answer that does not fit the question's ``response_schema``. Nothing took it: the question is still open."""

    code = "TG305"

    def __init__(self, node: str, *, interrupt_id: str, answer: object, reason: BaseException) -> None:
        self.node = node
        self.interrupt_id = interrupt_id
        self.answer = answer
        super().__init__(
            f"the answer, {described(answer)}, does not fit what node {node!r} asks in question {interrupt_id!r}, which stays "
            f"open; resume with one that does: {what_is_wrong(reason)}"
        )
        about(self, answer)


class NodeTimeoutError(_Coded, Exception):
    """A node's attempt took too long. Not a ``TimeoutError``, so that user code's own time-outs stay apart."""

    code = "TG302"

    def __init__(
        self,
        node: str,
        elapsed: float,
        *,
        kind: Literal["idle", "run"],
        idle_timeout: float | None = None,
        run_timeout: float | None = None,
        step: int | None = None,
    ) -> None:
        self.node = node
        self.step = step
        self.elapsed = elapsed
        self.kind = kind
        self.idle_timeout = idle_timeout
        self.run_timeout = run_timeout
        self.timeout = idle_timeout if kind == "idle" else run_timeout
        where = "" if step is None else f" in step {step}"
        passed = f"after {elapsed:.3f} s" if kind == "run" else f"with no progress for {elapsed:.3f} s"
        super().__init__(f"node {node!r} exceeded its {kind} timeout of {self.timeout} s{where} {passed}")


class StepTimeoutError(_Coded, TimeoutError):
    """A superstep took longer than ``step_timeout``: no channel changed, what its finished tasks wrote is kept.

    ``limit`` and ``elapsed`` are in seconds, ``running`` are the nodes that were at work, ``waiting`` those that had
    not begun or were between two attempts. It is about the step, so neither retries nor error handlers apply.
    """

    code = "TG306"

    def __init__(
        self, *, step: int, limit: float, elapsed: float, running: Sequence[str] = (), waiting: Sequence[str] = ()
    ) -> None:
        self.step = step
        self.limit = limit
        self.elapsed = elapsed
        self.running = tuple(running)
        self.waiting = tuple(waiting)
        super().__init__(
            f"step {step} exceeded its timeout of {limit} s after {elapsed:.3f} s{_unfinished(self.running, self.waiting)}; "
            "on a saved thread, invoke with None goes on with what did not finish"
        )


class RunDeadlineError(_Coded, TimeoutError):
    """A run took longer than its ``RunControl(deadline_s=)``; see :class:`StepTimeoutError` for what becomes of the step.

    ``step`` is the superstep it stood at; None if it still waited for its turn on the thread.
    """

    code = "TG307"

    def __init__(
        self, *, limit: float, elapsed: float, step: int | None = None, running: Sequence[str] = (), waiting: Sequence[str] = ()
    ) -> None:
        self.limit = limit
        self.elapsed = elapsed
        self.step = step
        self.running = tuple(running)
        self.waiting = tuple(waiting)
        where = "while it waited for its turn on the thread" if step is None else f"in step {step}"
        hint = "invoke again" if step is None else "on a saved thread, invoke with None goes on with what did not finish"
        super().__init__(
            f"the run exceeded its deadline of {limit} s after {elapsed:.3f} s, {where}"
            f"{_unfinished(self.running, self.waiting)}; {hint}"
        )


def _unfinished(running: Sequence[str], waiting: Sequence[str]) -> str:
    shown = [f"{what}: {', '.join(map(repr, names))}" for what, names in (("running", running), ("waiting", waiting)) if names]
    return f" ({'; '.join(shown)})" if shown else ""


class NodeCancelledError(_Coded, Exception):
    """A node's own code raised ``CancelledError``."""

    code = "TG303"

    def __init__(self, node: str, message: str | None = None) -> None:
        self.node = node
        super().__init__(message or f"node {node!r} raised CancelledError although nobody cancelled it")


class TaskNotFound(_Coded, Exception):  # noqa: N818  # the name users know
    """A task to run was not found (distributed drivers)."""

    code = "TG304"


@dataclass(frozen=True)
class NodeError:
    """A failed node and its error, as given to an error handler."""

    node: str
    error: BaseException


class GraphBubbleUp(Exception):  # noqa: N818  # no error at all
    """Base of the exceptions that are control flow: never retried, never a failure."""


class GraphInterrupt(GraphBubbleUp):
    """A pause on its way up to the root run."""

    def __init__(self, interrupts: Sequence[Interrupt] = ()) -> None:
        self.interrupts: tuple[Interrupt, ...] = tuple(interrupts)
        super().__init__(interrupts)


class ParentCommand(GraphBubbleUp):
    """Carries a ``Command`` to the graph that encloses this one."""

    args: tuple[Any, ...]

    def __init__(self, command: Command[Any]) -> None:
        self.command = command
        super().__init__(command)


class GraphDrained(GraphBubbleUp):
    """The run stopped between two supersteps because it was asked to."""

    def __init__(self, reason: str = "shutdown") -> None:
        self.reason = reason
        super().__init__(reason)


class RunClosed(BaseException):
    """Raised into code of a run that was closed from outside; not an ``Exception``, so that it is not handled by accident."""


class EngineBug(_Coded, RuntimeError):  # noqa: N818  # whose fault it is, is its point
    """An invariant of the engine broke: our fault, not yours. Please report it with this text."""

    code = "TG901"


def failures_of(error: BaseException) -> tuple[BaseException, ...]:
    """Return every failure of the superstep that ended a run: *error*, which the run raised, then the others in task order.

    A run raises the first of them in task order, as its node raised it; of a nested run, those of the superstep inside come
    along. Of any other exception, it is just that one.

    >>> failures_of(ValueError("x"))
    (ValueError('x'),)
    """
    return (error, *vars(error).get(FAILURES, (None, ()))[1])
