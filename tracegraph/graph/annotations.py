"""What the signature of a node or path function says: its input schema, its destinations, its name.

A hint that cannot be resolved (a name imported under ``TYPE_CHECKING`` only, say) counts as not given:
the graph then works as if the function had no annotations.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from tracegraph.types import Command

__all__ = [
    "callable_name",
    "command_destinations",
    "is_invocable",
    "is_natively_async",
    "literal_return",
    "parameter_schema",
    "path_name",
    "runnable_steps",
]

_UNRESOLVABLE = (NameError, TypeError, AttributeError, ValueError, SyntaxError)


def is_invocable(action: object) -> bool:
    """Say whether *action* can be a node: a callable, or anything with ``invoke`` (Runnables, compiled graphs)."""
    return callable(action) or (callable(getattr(action, "invoke", None)) and callable(getattr(action, "ainvoke", None)))


def is_natively_async(action: Any) -> bool:
    """Say whether *action*, with all steps of a Runnable sequence or parallel, awaits and so can be stopped at a deadline.

    A Runnable that only wraps its sync lane in a thread is not: nothing can stop a thread.
    """
    if inspect.isroutine(action) or not callable(getattr(action, "ainvoke", None)):
        while isinstance(action, functools.partial):
            action = action.func
        call = getattr(action, "__call__", None)  # noqa: B004  # the bound method is wanted, not whether there is one
        return inspect.iscoroutinefunction(action) or inspect.iscoroutinefunction(call)
    if (steps := runnable_steps(action)) is not None:
        return all(map(is_natively_async, steps))
    if hasattr(action, "func") or hasattr(action, "afunc"):
        return hasattr(action, "afunc")
    lane = getattr(type(action), "ainvoke", None)
    # The base class's ainvoke calls invoke in a thread.
    return getattr(lane, "__qualname__", "") != "Runnable.ainvoke"


def runnable_steps(action: Any) -> list[Any] | None:
    """Return the parts of a Runnable sequence or parallel, by duck type; None if it is neither."""
    steps = getattr(action, "steps", None)
    if isinstance(steps, list):
        return steps
    branches = getattr(action, "steps__", None)
    return list(branches.values()) if isinstance(branches, dict) else None


def callable_name(action: Any) -> str:
    """Return the name of a Runnable, else of the function, else of the class of a callable object."""
    get_name = getattr(action, "get_name", None)
    if callable(get_name) and callable(getattr(action, "invoke", None)) and not isinstance(action, type):
        return str(get_name())
    return str(getattr(action, "__name__", type(action).__name__))


def path_name(path: Any) -> str:
    """Return the name of a conditional edge: of its Runnable or function; ``condition`` if it has none of its own."""
    if callable(getattr(path, "invoke", None)):
        return callable_name(path)
    name = getattr(path, "__name__", None)
    return "condition" if name is None or name == "<lambda>" else str(name)


def parameter_schema(action: Any) -> Any | None:
    """Return the class that annotates the first parameter, if it has annotated fields."""
    function = _function_of(action)
    hints = _hints(function)
    if function is None or not hints:
        return None
    try:
        first = next(iter(inspect.signature(function).parameters), None)
        hint = hints.get(first) if first is not None else None
        return hint if isinstance(hint, type) and get_type_hints(hint) else None
    except _UNRESOLVABLE:
        return None


def command_destinations(action: Any) -> tuple[str, ...] | None:
    """Return the names in a ``Command[Literal[...]]`` return annotation, also inside a union."""
    hint = _hints(_function_of(action)).get("return")
    for option in get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,):
        if get_origin(option) is Command:
            (names,) = get_args(option)
            return get_args(names) if get_origin(names) is Literal else None
    return None


def literal_return(path: Any) -> tuple[Any, ...] | None:
    """Return the values of a ``Literal[...]`` return annotation."""
    hint = _hints(_function_of(path)).get("return")
    return get_args(hint) if get_origin(hint) is Literal else None


def _function_of(action: Any) -> Callable[..., Any] | None:
    if inspect.isfunction(action) or inspect.ismethod(action):
        return action
    if isinstance(action, type):
        return None
    call = getattr(action, "__call__", None)  # noqa: B004  # the bound method is wanted, not whether there is one
    return call if inspect.ismethod(call) else None


def _hints(function: Callable[..., Any] | None) -> dict[str, Any]:
    try:
        return get_type_hints(function) if function is not None else {}
    except _UNRESOLVABLE:
        return {}
