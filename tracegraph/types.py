"""What users build and receive: commands, policies, interrupts, snapshots, stream parts."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from math import inf
from typing import Any, ClassVar, Generic, Literal, NamedTuple, TypeAlias, TypeVar, final

from tracegraph.current import here

__all__ = [
    "All",
    "CachePolicy",
    "Checkpointer",
    "Command",
    "Durability",
    "GraphOutput",
    "Interrupt",
    "Overwrite",
    "PartMeta",
    "PregelTask",
    "RetryPolicy",
    "Send",
    "StateSnapshot",
    "StateUpdate",
    "StreamBuffer",
    "StreamMode",
    "StreamPart",
    "StreamWriter",
    "TimeoutPolicy",
    "TracePolicy",
    "WhenFull",
    "default_retry_on",
    "interrupt",
    "omit_payload",
]

All: TypeAlias = Literal["*"]
"""Every node, for ``interrupt_before`` and ``interrupt_after``."""

StreamMode: TypeAlias = Literal["values", "updates", "custom", "messages", "tasks", "checkpoints", "debug", "tools", "events"]
StreamWriter: TypeAlias = Callable[[Any], None]
"""Emits one chunk of the ``custom`` stream mode."""

WhenFull: TypeAlias = Literal["drop_oldest", "block", "fail"]
"""What happens when a reader has left too much unread: it loses the oldest, the run waits for it, or the run fails."""

StreamBuffer: TypeAlias = tuple[int, WhenFull]
"""How many items a reader may leave unread, and what happens then."""

Durability: TypeAlias = Literal["sync", "async", "exit"]
"""When checkpoints are stored: before the next superstep, in the background, or once at the end."""

Checkpointer: TypeAlias = Any
"""``None`` (inherit), ``True``/``False`` (own/none in a subgraph), or a saver."""


N = TypeVar("N")


@dataclass(slots=True)
class PartMeta:
    """What a part of a stream belongs to: :attr:`StreamPart.meta`.

    ``seq`` counts the parts of one ``stream`` call from 1 without a gap, ``event_seq`` is the number of the event the part
    is made of. ``span_id`` is that of the task or call, where the event is about one that has a span, else the run's; both
    ids are hex texts as in W3C traceparents, and None in a run without spans.
    """

    seq: int
    event_seq: int
    run_id: str
    trace_id: str | None
    span_id: str | None
    step: int


class StreamPart(dict[str, Any]):
    """``{"type": mode, "ns": namespace, "data": payload}``, what ``stream(version="v2")`` yields.

    What it belongs to is an attribute and no key, so it is a plain dict to whoever does not ask.

    >>> part = StreamPart({"type": "custom", "ns": (), "data": 1}, PartMeta(1, 5, "r", None, None, 0))
    >>> part["data"], part.meta.event_seq
    (1, 5)
    """

    __slots__ = ("meta",)
    meta: PartMeta

    def __init__(self, content: Mapping[str, Any], meta: PartMeta) -> None:
        super().__init__(content)
        self.meta = meta

    def __reduce__(self) -> tuple[Any, ...]:
        return StreamPart, (dict(self), self.meta)


@final
@dataclass(slots=True, unsafe_hash=True, init=False)
class Send:
    """Run *node* next with *arg* as its input; several Sends run in parallel.

    >>> Send("grade", {"essay": "..."})
    Send(node='grade', arg={'essay': '...'})
    """

    node: str
    arg: Any
    timeout: TimeoutPolicy | None = field(default=None, repr=False)

    def __init__(self, node: str, arg: Any, *, timeout: float | timedelta | TimeoutPolicy | None = None) -> None:
        self.node = node
        self.arg = arg
        self.timeout = TimeoutPolicy.coerce(timeout)


@dataclass(frozen=True, slots=True, kw_only=True)
class Command(Generic[N]):
    """A state update, where to go next, and answers to interrupts, in one value.

    Returned by a node, or given as the input of a run.

    >>> Command(update={"topic": "cats"}, goto="write").goto
    'write'
    """

    PARENT: ClassVar[Literal["__parent__"]] = "__parent__"

    graph: str | None = None
    update: Any | None = None
    resume: Any | None = None
    goto: Send | N | Sequence[Send | N] = ()

    def targets(self) -> tuple[Send | N, ...]:
        """Return ``goto`` as a tuple."""
        if isinstance(self.goto, (str, Send)):
            return (self.goto,)
        return tuple(self.goto)  # type: ignore[arg-type]  # N is a node name; only sequences get here


@final
@dataclass(slots=True, unsafe_hash=True, init=False)
class Interrupt:
    """One pending question: the value shown to a person, and the id an answer is addressed to."""

    value: Any
    id: str
    response_schema: Any = field(default=None, repr=False)

    def __init__(self, value: Any, id: str = "placeholder-id", *, response_schema: Any = None) -> None:
        self.value = value
        self.id = id
        self.response_schema = response_schema


def interrupt(value: Any, *, response_schema: Any = None) -> Any:
    """Pause the run, hand *value* to the caller, and return the answer once the run is resumed.

    The node starts again from its first line on every resume; its answers are matched by call order.

    Raises:
        GraphInterrupt: there is no answer yet. Let it pass.
        RuntimeError: called outside a run.
    """
    return here("interrupt()").ask(value, response_schema)


def default_retry_on(error: BaseException) -> bool:
    """Say whether an error looks transient.

    Connection errors and HTTP 5xx (httpx, requests) are; programming errors and other OS errors are not;
    everything else is retried.

    >>> default_retry_on(ConnectionResetError()), default_retry_on(ValueError()), default_retry_on(Exception())
    (True, False, True)
    """
    if isinstance(error, ConnectionError):
        return True
    if (status := _http_status(error)) is not MISSING_STATUS:
        return status is None or 500 <= status < 600
    return not isinstance(
        error,
        (
            ValueError,
            TypeError,
            ArithmeticError,
            ImportError,
            LookupError,
            NameError,
            SyntaxError,
            RuntimeError,
            ReferenceError,
            StopIteration,
            StopAsyncIteration,
            OSError,
        ),
    )


MISSING_STATUS = -1


def _http_status(error: BaseException) -> int | None:
    """Return the status of an httpx or requests HTTP error, None if it has no response, -1 if it is none."""
    # Looked up, not imported: whoever raised the error has loaded the library already.
    for library, name in (("httpx", "HTTPStatusError"), ("requests", "HTTPError")):
        kind = getattr(sys.modules.get(library), name, None)
        if kind is not None and isinstance(error, kind):
            response = getattr(error, "response", None)
            return None if response is None else int(response.status_code)
    return MISSING_STATUS


class RetryPolicy(NamedTuple):
    """How often and on which errors a node is tried again, with which pauses (seconds).

    The pause after failure n is ``min(max_interval, initial_interval * backoff_factor ** (n - 1))``,
    plus up to one second of jitter. ``max_attempts`` includes the first one.
    """

    initial_interval: float = 0.5
    backoff_factor: float = 2.0
    max_interval: float = 128.0
    max_attempts: int = 3
    jitter: bool = True
    retry_on: type[BaseException] | Sequence[type[BaseException]] | Callable[[BaseException], bool] = default_retry_on

    def matches(self, error: BaseException) -> bool:
        """Say whether ``retry_on`` covers *error*.

        Raises:
            TypeError: ``retry_on`` is neither an exception class, a sequence of them, nor a function.
        """
        rule = self.retry_on
        if isinstance(rule, type):
            return isinstance(error, rule)
        if isinstance(rule, Sequence):
            return isinstance(error, tuple(rule))
        if callable(rule):
            return bool(rule(error))
        raise TypeError(f"retry_on must be an exception class, a sequence of them, or a function, not {rule!r}")

    def delay_s(self, failures: int, jitter: float) -> float:
        """Return the pause after *failures* failed attempts; *jitter* is a number from 0 to 1, drawn by the driver."""
        delay = min(self.max_interval, self.initial_interval * self.backoff_factor ** (failures - 1))
        return delay + jitter if self.jitter else delay


@dataclass(slots=True, kw_only=True)
class CachePolicy:
    """How a node's result is keyed, and for how long it stays (``ttl`` in seconds, ``None`` for ever)."""

    key_func: Callable[..., str | bytes] | None = None
    ttl: int | None = None


def seconds_of(value: Any, name: str) -> float:
    """Return a time limit, given as seconds or a timedelta, in seconds.

    >>> seconds_of(timedelta(minutes=1), "step_timeout")
    60.0

    Raises:
        ValueError: it is no positive, finite number; *name* says in the text what was to be limited.
    """
    seconds = value.total_seconds() if isinstance(value, timedelta) else value
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 < seconds < inf:
        raise ValueError(f"{name} must be positive: a finite number of seconds or a timedelta, not {value!r}")
    return float(seconds)


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeoutPolicy:
    """Limits of one attempt of an async node, in seconds: its whole time, and the time without a sign of progress.

    Signs are what the node's code streams, reports through callbacks, calls as tasks, and all that happens in graphs it
    runs; with ``refresh_on="heartbeat"`` only ``runtime.heartbeat()`` counts. Whichever limit comes first ends the
    attempt with :class:`~tracegraph.errors.NodeTimeoutError`, which is retried like any failure.

    >>> from datetime import timedelta
    >>> TimeoutPolicy(run_timeout=timedelta(minutes=5), idle_timeout=30)
    TimeoutPolicy(run_timeout=300.0, idle_timeout=30.0, refresh_on='auto')

    Raises:
        ValueError: a limit is no positive, finite number or timedelta, or ``refresh_on`` is unknown.
    """

    run_timeout: float | timedelta | None = None
    idle_timeout: float | timedelta | None = None
    refresh_on: Literal["auto", "heartbeat"] = "auto"

    def __post_init__(self) -> None:
        for name in ("run_timeout", "idle_timeout"):
            if (value := getattr(self, name)) is not None:
                object.__setattr__(self, name, seconds_of(value, name))
        if self.refresh_on not in ("auto", "heartbeat"):
            raise ValueError(f"refresh_on must be 'auto' or 'heartbeat', not {self.refresh_on!r}")

    @classmethod
    def coerce(cls, value: float | timedelta | TimeoutPolicy | None) -> TimeoutPolicy | None:
        """Return *value* as a policy: a number or timedelta is a ``run_timeout``; no limit at all is None."""
        if value is None:
            return None
        policy = value if isinstance(value, cls) else cls(run_timeout=value)  # type: ignore[arg-type]  # number or timedelta
        return None if policy.run_timeout is None and policy.idle_timeout is None else policy


def omit_payload(_value: Any) -> dict[str, Any]:
    """Hide a value from traces; for :class:`TracePolicy`."""
    return {}


@dataclass(frozen=True, slots=True, kw_only=True)
class TracePolicy:
    """Functions that rewrite what a node's own trace records of its inputs and outputs."""

    process_inputs: Callable[[Any], Any] | None = None
    process_outputs: Callable[[Any], Any] | None = None


@dataclass(slots=True)
class Overwrite:
    """Wraps a write that replaces a reduced value instead of being reduced.

    >>> Overwrite([1])
    Overwrite(value=[1])
    """

    value: Any
    type: Literal["__overwrite__"] = field(default="__overwrite__", repr=False)

    @staticmethod
    def unwrap(write: Any) -> tuple[bool, Any]:
        """Return whether *write* is an overwrite in one of its three encodings, and the value to store."""
        if isinstance(write, Overwrite):
            return True, write.value
        if type(write) is dict:
            if len(write) == 1 and "__overwrite__" in write:
                return True, write["__overwrite__"]
            if write.get("type") == "__overwrite__" and "value" in write:
                return True, write["value"]
        return False, write


class StateUpdate(NamedTuple):
    """One entry of ``bulk_update_state``."""

    values: dict[str, Any] | None
    as_node: str | None = None
    task_id: str | None = None


class PregelTask(NamedTuple):
    """A task in a snapshot."""

    id: str
    name: str
    path: tuple[Any, ...]
    error: BaseException | str | None = None
    interrupts: tuple[Interrupt, ...] = ()
    state: Any = None
    result: Any | None = None


class StateSnapshot(NamedTuple):
    """The state of a thread at a checkpoint; ``next`` names the nodes that would run."""

    values: Any
    next: tuple[str, ...]
    config: dict[str, Any]
    metadata: dict[str, Any] | None
    created_at: str | None
    parent_config: dict[str, Any] | None
    tasks: tuple[PregelTask, ...]
    interrupts: tuple[Interrupt, ...]


@dataclass(frozen=True, slots=True)
class GraphOutput:
    """The result of ``invoke(version="v2")``."""

    value: Any
    interrupts: tuple[Interrupt, ...] = ()
