"""``@task``: calling the function starts a task of the running superstep and returns its future."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Generator, Sequence
from datetime import timedelta
from typing import Any, Generic, ParamSpec, TypeVar, overload

from tracegraph.constants import PUSH
from tracegraph.current import here
from tracegraph.drivers.body import Body, callable_name
from tracegraph.engine.node import Node, PathCall
from tracegraph.engine.task import Task
from tracegraph.errors import GraphDefinitionError
from tracegraph.graph.arguments import check_no_more, take_renamed
from tracegraph.types import CachePolicy, RetryPolicy, TimeoutPolicy

__all__ = ["TaskFunction", "task"]

P = ParamSpec("P")
R = TypeVar("R")


class _ReturnsOnly:
    """A called task writes to no channel: its value goes to the caller."""

    __slots__ = ()

    def write(self, task: Task, returned: Any) -> Generator[PathCall, Any, None]:  # noqa: ARG002  # the shape of all writers
        """Write nothing."""
        yield from ()


class TaskFunction(Generic[P, R]):
    """A function decorated with :func:`task`."""

    def __init__(
        self,
        function: Callable[P, R],
        *,
        name: str | None,
        retry_policy: Sequence[RetryPolicy],
        cache_policy: CachePolicy | None = None,
        timeout: TimeoutPolicy | None = None,
    ) -> None:
        self.func = function
        self.name = name or callable_name(function)
        functools.update_wrapper(self, function)
        body = Body.of(function, name=self.name, takes_state=False)
        if timeout is not None and not body.is_async:
            raise GraphDefinitionError(
                f"task {self.name!r} has a timeout but is not async, and nothing can stop a thread; make it an async function, "
                "or leave the timeout out"
            )
        self._node = Node(
            name=self.name,
            triggers=(PUSH,),
            reads=(),
            body=body,
            writer=_ReturnsOnly(),
            retry_policies=tuple(retry_policy),
            cache_policy=cache_policy,
            timeout=timeout,
        )

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Any:
        """Start the task; return a future at once: an awaitable one on an event loop, else one with ``result()``.

        Raises:
            RuntimeError: called outside a run, or an async function is called in a sync run.
        """
        current: Any = here(f"task {self.name!r}")
        return current.call(self._node, self.func, args, kwargs)

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        """Bind to an instance, as functions do."""
        return self if instance is None else functools.partial(self, instance)


@overload
def task(function: Callable[P, R], /) -> TaskFunction[P, R]: ...


@overload
def task(
    *,
    name: str | None = None,
    retry_policy: RetryPolicy | Sequence[RetryPolicy] | None = None,
    cache_policy: CachePolicy | None = None,
    timeout: float | timedelta | TimeoutPolicy | None = None,
    **deprecated: Any,
) -> Callable[[Callable[P, R]], TaskFunction[P, R]]: ...


def task(
    function: Callable[P, R] | None = None,
    /,
    *,
    name: str | None = None,
    retry_policy: RetryPolicy | Sequence[RetryPolicy] | None = None,
    cache_policy: CachePolicy | None = None,
    timeout: float | timedelta | TimeoutPolicy | None = None,
    **deprecated: Any,
) -> Any:
    """Make calls of a function tasks of the run they happen in: parallel, retried, saved, and visible in the trace.

    A finished call is not made again when the run is resumed. Usable bare or with options. ``timeout`` limits every
    attempt of an async function: seconds or a timedelta for its whole time, or a :class:`~tracegraph.types.TimeoutPolicy`.
    ``cache_policy`` has no effect yet, as that of a node.

    >>> @task
    ... def double(x: int) -> int:
    ...     return x * 2
    >>> double.name
    'double'

    Raises:
        GraphDefinitionError: a sync function is given a timeout; it is a ValueError, too.
        TypeError: the function is a generator.
    """
    retry_policy = take_renamed(deprecated, "retry", "retry_policy", retry_policy)
    check_no_more("task", deprecated)
    limits = TimeoutPolicy.coerce(timeout)
    policies = () if retry_policy is None else (retry_policy,) if isinstance(retry_policy, RetryPolicy) else tuple(retry_policy)

    def decorate(target: Callable[P, R]) -> TaskFunction[P, R]:
        if inspect.isgeneratorfunction(target) or inspect.isasyncgenfunction(target):
            raise TypeError(f"{callable_name(target)!r} is a generator; a task returns one value")
        return TaskFunction(target, name=name, retry_policy=policies, cache_policy=cache_policy, timeout=limits)

    return decorate if function is None else decorate(function)
