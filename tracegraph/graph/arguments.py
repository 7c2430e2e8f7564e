"""What the builder's methods accept, brought into one form."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any, TypeAlias

from tracegraph.graph.annotations import callable_name, command_destinations, is_invocable
from tracegraph.types import RetryPolicy, TimeoutPolicy

__all__ = [
    "Retry",
    "Timeout",
    "check_invocable",
    "check_no_more",
    "declared_ends",
    "named_action",
    "node_names",
    "retry_policies",
    "take_renamed",
]

Retry: TypeAlias = RetryPolicy | Sequence[RetryPolicy] | None
Timeout: TypeAlias = float | timedelta | TimeoutPolicy | None


def named_action(node: Any, action: Any = None) -> tuple[str, Any]:
    """Return name and body of a node given as a function, or as a name and a function.

    Raises:
        RuntimeError: a name was given without a function.
        TypeError: the body is nothing that can be called.
    """
    if isinstance(node, str):
        if action is None:
            raise RuntimeError(f"node {node!r} has no function; write add_node({node!r}, function)")
        name = node
    else:
        name, action = callable_name(node), node
    check_invocable(action, f"node {name!r}")
    return name, action


def check_invocable(action: Any, what: str) -> None:
    """Raise TypeError unless *action* is a callable, a Runnable or a compiled graph."""
    if not is_invocable(action):
        raise TypeError(f"{what} must be a function, a Runnable or a compiled graph, not {action!r} (a {type(action).__name__})")


def retry_policies(given: Retry) -> tuple[RetryPolicy, ...] | None:
    """Return the policies as a tuple; None says that the graph's default applies.

    Raises:
        TypeError: *given* is neither a policy nor a sequence of them.
    """
    if given is None:
        return None
    # A policy is a tuple itself. LangGraph's has the same fields, and is as good.
    found: tuple[Any, ...] = (given,) if hasattr(given, "max_attempts") else tuple(given)
    for policy in found:
        if not hasattr(policy, "max_attempts") or not hasattr(policy, "retry_on"):
            raise TypeError(f"retry_policy takes a RetryPolicy or a sequence of them, not {given!r}: RetryPolicy(max_attempts=3)")
    return tuple(RetryPolicy(*policy) for policy in found)


def declared_ends(action: Any, destinations: Mapping[str, str] | Sequence[str] | None) -> tuple[str, ...] | dict[str, str] | None:
    """Return where a node's Commands may lead, by its *destinations* or else its return annotation."""
    if destinations is None:
        return command_destinations(action)
    return dict(destinations) if isinstance(destinations, Mapping) else tuple(destinations)


def node_names(given: str | Sequence[str] | None) -> str | tuple[str, ...]:
    """Return the names of interrupt_before or interrupt_after as a tuple; ``"*"`` stays as it is."""
    if given is None:
        return ()
    if isinstance(given, str):
        return given if given == "*" else (given,)
    return tuple(given)


def take_renamed(deprecated: dict[str, Any], old: str, new: str, value: Any) -> Any:
    """Return *value*, else what was given under its *old* name, which warns."""
    if old not in deprecated:
        return value
    warnings.warn(f"the argument {old!r} is called {new!r} now", DeprecationWarning, stacklevel=3)
    found = deprecated.pop(old)
    return found if value is None else value


def check_no_more(call: str, deprecated: Mapping[str, Any]) -> None:
    """Raise TypeError if arguments are left that *call* does not know."""
    if deprecated:
        raise TypeError(f"{call}() got unexpected arguments: {', '.join(map(repr, deprecated))}")
