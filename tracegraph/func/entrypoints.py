"""``@entrypoint``: a function as a graph of one node, whose calls of ``@task`` functions are saved."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Generic, TypeVar, get_args, get_origin, get_type_hints

from tracegraph.channels import EphemeralValue, LastValue, Topic
from tracegraph.constants import END, PREVIOUS, START, TASKS
from tracegraph.drivers.body import Body, callable_name
from tracegraph.engine.node import Node, PathCall
from tracegraph.engine.task import Task
from tracegraph.errors import GraphDefinitionError
from tracegraph.func.graph import EntrypointGraph
from tracegraph.graph.arguments import check_no_more, take_renamed
from tracegraph.graph.trusted import with_classes_of
from tracegraph.types import CachePolicy, RetryPolicy, Send, TimeoutPolicy

__all__ = ["entrypoint"]

Value = TypeVar("Value")
Saved = TypeVar("Saved")


@dataclass(frozen=True, slots=True, kw_only=True)
class final(Generic[Value, Saved]):  # noqa: N801  # it is used as ``entrypoint.final``
    """Return this from an entrypoint to return *value*, and give *save* to the next run as ``previous``."""

    value: Value
    save: Saved


class _ReturnWriter:
    """Writes what the function returned: the run's output, and what the next run gets as ``previous``."""

    __slots__ = ()

    def write(self, task: Task, returned: Any) -> Generator[PathCall, Any, None]:
        """Append both writes."""
        is_split = isinstance(returned, final)
        task.writes.append((END, returned.value if is_split else returned))
        task.writes.append((PREVIOUS, returned.save if is_split else returned))
        yield from ()


class entrypoint:  # noqa: N801  # a decorator, in lower case as all are
    """Make a function a graph that is invoked, streamed, saved and resumed like any other.

    The function's first parameter is the input, of any type; ``config``, ``runtime``, ``previous``, ``store`` and ``writer``
    are supplied where it has such parameters. ``previous`` is what the last completed run on the thread returned. When a run
    goes on after an interrupt or a failure, the function begins anew, and each finished call of a ``@task`` function gives
    its saved result without being made again: keep what must happen once, or takes long, in tasks.

    Args:
        checkpointer: keeps threads; without one there is no ``previous`` and nothing to resume.
        context_schema: type of the run's context.
        retry_policy: for the function, and for the tasks that have none of their own.
        timeout: time limits of one attempt of an async function; seconds, if it is a number.

    Raises:
        GraphDefinitionError: (a ValueError) there is no parameter for the input, or a time limit on a sync function.
        NotImplementedError: the function is a generator.

    >>> from tracegraph import InMemorySaver, task
    >>> @task
    ... def measure(text: str) -> int:
    ...     return len(text.split())
    >>> @entrypoint(checkpointer=InMemorySaver())
    ... def total(texts: list[str], *, previous: int | None = None) -> int:
    ...     counts = [measure(text) for text in texts]
    ...     return (previous or 0) + sum(count.result() for count in counts)
    >>> thread = {"configurable": {"thread_id": "1"}}
    >>> total.invoke(["one two", "three"], thread), total.invoke(["four"], thread)
    (3, 4)
    """

    final = final
    """Returned by the function when the next run is to get something else as ``previous`` than this one returns."""

    def __init__(
        self,
        checkpointer: Any = None,
        store: Any = None,
        cache: Any = None,
        context_schema: type[Any] | None = None,
        cache_policy: CachePolicy | None = None,
        retry_policy: RetryPolicy | Sequence[RetryPolicy] | None = None,
        timeout: float | timedelta | TimeoutPolicy | None = None,
        **deprecated: Any,
    ) -> None:
        context_schema = take_renamed(deprecated, "config_schema", "context_schema", context_schema)
        retry_policy = take_renamed(deprecated, "retry", "retry_policy", retry_policy)
        check_no_more("entrypoint", deprecated)
        self._timeout = TimeoutPolicy.coerce(timeout)
        self._options: dict[str, Any] = {
            "checkpointer": checkpointer,
            "store": store,
            "cache": cache,
            "cache_policy": cache_policy,
            "retry_policy": () if retry_policy is None else retry_policy,
            "context_schema": context_schema,
        }

    def __call__(self, function: Callable[..., Any]) -> EntrypointGraph:
        """Return the graph."""
        name = callable_name(function)
        _check(function, name)
        takes, returns, saves = _types(function)
        node = Node(
            name=name,
            triggers=(START,),
            reads=START,
            body=Body.of(function, name=name),
            writer=_ReturnWriter(),
            timeout=self._timeout,
        )
        graph = EntrypointGraph(
            nodes={name: node},
            channels={
                START: EphemeralValue(takes),
                END: LastValue(returns),
                PREVIOUS: LastValue(saves),
                TASKS: Topic(Send, accumulate=False),
            },
            input_channels=START,
            output_channels=END,
            stream_channels=END,
            stream_mode="updates",
            stream_eager=True,
            **self._options,
        )
        graph.checkpointer = with_classes_of(graph.checkpointer, [takes, returns, saves])
        return graph


def _check(function: Callable[..., Any], name: str) -> None:
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise NotImplementedError(
            f"entrypoint {name!r} is a generator; return the result, and emit parts with get_stream_writer() on the way"
        )
    if not inspect.signature(function).parameters:
        raise GraphDefinitionError(f"entrypoint {name!r} has no parameter for its input; give it one, even if it is not used")


def _types(function: Callable[..., Any]) -> tuple[Any, Any, Any]:
    """Return the types of the input, of the result, and of what is saved, as far as the function is annotated."""
    first = next(iter(inspect.signature(function).parameters))
    hints = _hints(function)
    returns = hints.get("return", Any)
    if returns is final:
        returns = Any
    elif get_origin(returns) is final:
        return hints.get(first, Any), *get_args(returns)
    return hints.get(first, Any), returns, returns


def _hints(function: Callable[..., Any]) -> dict[str, Any]:
    target = function if inspect.isroutine(function) else getattr(function, "func", None) or type(function).__call__
    try:
        return get_type_hints(target)
    except NameError:  # a name that exists only for the type checker: types are for schemas, nothing depends on them
        return {}
